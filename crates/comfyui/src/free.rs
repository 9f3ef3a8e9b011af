//! Frees the memory of servers, so that another engine can use their device. `POST /free` returns at once: the server
//! unloads its models after its current job, and `GET /system_stats` says what it still holds.

use std::time::Duration;

use futures_util::future::join_all;
use kinora_upstream::{Cause, chain};
use serde_json::{Value, json};

use crate::error::ComfyError;
use crate::server::Server;
use crate::shared::Comfy;

/// How long to wait until a server that runs no job has freed its memory.
const FREED_WITHIN: Duration = Duration::from_secs(20);
/// How long to wait in all: a server frees its memory when its current job ends, and jobs of other clients may follow.
const WAIT_MAX: Duration = Duration::from_secs(600);
/// Number of failed looks in a row after which a server counts as gone.
const FAILURES_MAX: u32 = 4;
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// What a server without models may hold of a device, in bytes.
const HELD_MAX: u64 = 512 << 20;

impl Comfy {
    /// Has every server unload its models, and waits until their memory is free. Servers that are gone or keep their memory
    /// are logged.
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

/// What a server does with its memory.
enum Look {
    Freed,
    Holds,
    /// It frees nothing before its job ends.
    Works,
}

impl Server<'_> {
    /// Whether the server has freed its memory in time. One late or failed answer says nothing of its memory, so it is
    /// asked again.
    async fn free(&self) -> Result<bool, ComfyError> {
        let timer = &self.shared.timer;
        let begun = timer.now();
        let (mut idle_since, mut failures, mut is_ordered) = (begun, 0, false);
        loop {
            match self.watch(&mut is_ordered).await {
                Ok(Look::Freed) => return Ok(true),
                Ok(Look::Holds) => failures = 0,
                Ok(Look::Works) => (failures, idle_since) = (0, timer.now()),
                Err(error) => {
                    failures += 1;
                    // Where nobody listens, the process is gone, and its memory with it.
                    if failures >= FAILURES_MAX || is_gone(&error) {
                        return Err(error);
                    }
                }
            }
            let waited = |since| timer.now().saturating_sub(since);
            if waited(idle_since) >= FREED_WITHIN || waited(begun) >= WAIT_MAX {
                return Ok(false);
            }
            timer.sleep(LOOK_EVERY).await;
        }
    }

    async fn watch(&self, is_ordered: &mut bool) -> Result<Look, ComfyError> {
        let limit = self.shared.options.probe_timeout;
        if !*is_ordered {
            let order = json!({"unload_models": true, "free_memory": true});
            self.order(&["free"], &order, limit).await?;
            *is_ordered = true;
        }
        let Some(held) = self.held(limit).await? else {
            return Ok(Look::Freed);
        };
        // A job may hold little now and load its models next.
        if self.works(limit).await? {
            return Ok(Look::Works);
        }
        Ok(match held <= HELD_MAX {
            true => Look::Freed,
            false => Look::Holds,
        })
    }

    /// The memory that PyTorch holds on the server's devices, in bytes; `None` where the server does not know it.
    async fn held(&self, limit: Duration) -> Result<Option<u64>, ComfyError> {
        let stats = self.status(&["system_stats"], limit).await?;
        let devices = stats["devices"].as_array().into_iter().flatten();
        // For a processor, Apple's GPUs and DirectML it gives the whole memory instead.
        let is_known = |device: &&Value| device["torch_vram_total"] != device["vram_total"];
        let mut held = None;
        for device in devices.filter(is_known) {
            *held.get_or_insert(0) += device["torch_vram_total"].as_u64().unwrap_or_default();
        }
        Ok(held)
    }

    /// Whether the server runs a job, of any client.
    async fn works(&self, limit: Duration) -> Result<bool, ComfyError> {
        let queue = self.status(&["queue"], limit).await?;
        Ok(queue["queue_running"]
            .as_array()
            .is_some_and(|jobs| !jobs.is_empty()))
    }
}

fn is_gone(error: &ComfyError) -> bool {
    matches!(
        error,
        ComfyError::Busy {
            cause: Cause::Connect(_),
            ..
        }
    )
}
