//! Frees the memory of servers, so that another engine can use their device. `POST /free` returns at once: the server
//! unloads its models after its current job, and `GET /system_stats` says what it still holds.

use std::time::Duration;

use futures_util::future::join_all;
use kinora_upstream::chain;
use serde_json::{Value, json};

use crate::error::ComfyError;
use crate::server::Server;
use crate::shared::Comfy;

/// How long to wait until a server has freed its memory.
const FREED_WITHIN: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// What a server without models may hold of a device, in bytes.
const HELD_MAX: u64 = 512 << 20;

impl Comfy {
    /// Has every server unload its models, and waits until their memory is free. Servers that do not answer or keep their
    /// memory are logged.
    pub async fn free(&self) {
        let shared = &self.0;
        let freed = shared.upstreams.iter().enumerate().map(async |(index, upstream)| {
            let server = Server { shared, index };
            match server.free().await {
                Ok(true) => tracing::info!(server = upstream.name, "models unloaded"),
                Ok(false) => tracing::warn!(
                    server = upstream.name,
                    "server keeps its memory after `/free`; an engine that needs it may find none"
                ),
                Err(error) => tracing::warn!(
                    server = upstream.name,
                    error = chain(&error),
                    "server not asked to free its memory"
                ),
            }
        });
        join_all(freed).await;
    }
}

impl Server<'_> {
    /// Whether the server has freed its memory in time.
    async fn free(&self) -> Result<bool, ComfyError> {
        let order = json!({"unload_models": true, "free_memory": true});
        self.order(&["free"], &order).await?;
        let timer = &self.shared.timer;
        let begun = timer.now();
        while self.held().await? > HELD_MAX {
            if timer.now().saturating_sub(begun) >= FREED_WITHIN {
                return Ok(false);
            }
            timer.sleep(LOOK_EVERY).await;
        }
        Ok(true)
    }

    /// The memory that PyTorch holds on the server's devices, in bytes.
    async fn held(&self) -> Result<u64, ComfyError> {
        let limit = self.shared.options.cancel_timeout;
        let reply = self.get(&["system_stats"], limit).await?;
        if !reply.is_success() {
            return Err(ComfyError::Refused(reply.refusal()));
        }
        let stats: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
        let devices = stats["devices"].as_array().into_iter().flatten();
        // For a processor, Apple's GPUs and DirectML it gives the whole memory instead.
        let is_known = |device: &&Value| device["torch_vram_total"] != device["vram_total"];
        Ok(devices
            .filter(is_known)
            .filter_map(|device| device["torch_vram_total"].as_u64())
            .sum())
    }
}
