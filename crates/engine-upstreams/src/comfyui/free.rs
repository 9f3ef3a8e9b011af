//! Frees the memory of servers, so that another engine can use their device. `POST /free` returns at once: the server
//! unloads its models after its current job, and `GET /system_stats` says what it still holds.

use std::time::Duration;

use crate::servers::{CallError, UpstreamError, chain};
use futures_util::future::join_all;
use kinora_http::ExchangeError;
use serde_json::json;

use super::server::ComfyServer;
use super::shared::ComfyServers;

/// How long to wait for a server that runs no job and frees nothing more.
const FREED_WITHIN: Duration = Duration::from_secs(20);
/// How long to wait in all: a server frees its memory when its current job ends, and jobs of other clients may follow.
const WAIT_MAX: Duration = Duration::from_secs(600);
/// Number of failed looks in a row after which a server counts as gone.
const FAILURES_MAX: u32 = 4;
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// What a server without models may hold of a device, in bytes.
const HELD_MAX: u64 = 512 << 20;
/// How long the free memory must have stayed the same. PyTorch does not see the weights that ComfyUI's DynamicVRAM holds,
/// and ComfyUI looks at the order half a second later.
const SETTLED: Duration = Duration::from_secs(2);
/// The least rise of free memory that counts, in bytes: others use the device, too.
const RISE_MIN: u64 = 64 << 20;

impl ComfyServers {
    /// Has every server unload its models, and waits until their memory is free. Servers that are gone or keep their memory
    /// are logged.
    pub async fn free(&self) {
        let shared = &self.0;
        let servers = shared.pool.servers.iter().enumerate();
        let freed = servers.map(async |(index, upstream)| {
            match shared.server(index).free().await {
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

/// The memory of a server's devices, in bytes.
struct ServerMemory {
    /// What PyTorch holds.
    held: u64,
    /// What is free, also within what PyTorch holds.
    free: u64,
}

/// What the looks at a server have shown so far.
struct MemoryWatch {
    /// Since when it has run no job.
    idle_since: Duration,
    /// The most free memory so far, and since when.
    freest: u64,
    risen_at: Duration,
}

impl MemoryWatch {
    fn begin(now: Duration) -> Self {
        Self {
            idle_since: now,
            freest: 0,
            risen_at: now,
        }
    }

    fn note(&mut self, memory: &ServerMemory, works: bool, now: Duration) {
        if works {
            self.idle_since = now;
        }
        if memory.free >= self.freest.saturating_add(RISE_MIN) {
            (self.freest, self.risen_at) = (memory.free, now);
        }
    }

    /// How long nothing has changed.
    fn stood(&self, now: Duration) -> Duration {
        now.saturating_sub(self.idle_since.max(self.risen_at))
    }
}

impl ComfyServer<'_> {
    /// Whether the server has freed its memory in time. One late or failed answer says nothing of its memory, so it is
    /// asked again.
    async fn free(&self) -> Result<bool, UpstreamError> {
        let timer = &self.shared.pool.timer;
        let begun = timer.now();
        let (mut watch, mut failures, mut is_ordered) = (MemoryWatch::begin(begun), 0, false);
        loop {
            match self.look_at_memory(&mut is_ordered, &mut watch).await {
                Ok(true) => return Ok(true),
                Ok(false) => failures = 0,
                Err(error) => {
                    failures += 1;
                    // Where nobody listens, the process is gone, and its memory with it.
                    if failures >= FAILURES_MAX || is_gone(&error) {
                        return Err(error);
                    }
                }
            }
            let now = timer.now();
            if watch.stood(now) >= FREED_WITHIN || now.saturating_sub(begun) >= WAIT_MAX {
                return Ok(false);
            }
            timer.sleep(LOOK_EVERY).await;
        }
    }

    /// Whether the memory is free.
    async fn look_at_memory(
        &self,
        is_ordered: &mut bool,
        watch: &mut MemoryWatch,
    ) -> Result<bool, UpstreamError> {
        if !*is_ordered {
            let order = json!({"unload_models": true, "free_memory": true});
            let limit = self.shared.pool.options.probe_timeout;
            self.order(&["free"], &order, limit).await?;
            *is_ordered = true;
        }
        let Some(memory) = self.memory().await? else {
            return Ok(true);
        };
        // A job may hold little now and load its models next.
        let works = self.works().await?;
        let now = self.shared.pool.timer.now();
        watch.note(&memory, works, now);
        Ok(!works && memory.held <= HELD_MAX && watch.stood(now) >= SETTLED)
    }

    /// The memory of the server's devices; `None` where the server does not know what it holds.
    async fn memory(&self) -> Result<Option<ServerMemory>, UpstreamError> {
        let stats = self.status(&["system_stats"]).await?;
        let devices = stats["devices"].as_array().into_iter().flatten();
        // For a processor, Apple's GPUs and DirectML it gives the whole memory instead.
        let mut memory = None;
        for device in devices.filter(|device| device["torch_vram_total"] != device["vram_total"]) {
            let sum: &mut ServerMemory = memory.get_or_insert(ServerMemory { held: 0, free: 0 });
            sum.held += device["torch_vram_total"].as_u64().unwrap_or_default();
            sum.free += device["vram_free"].as_u64().unwrap_or_default();
        }
        Ok(memory)
    }

    /// Whether the server runs a job, of any client.
    async fn works(&self) -> Result<bool, UpstreamError> {
        let queue = self.status(&["queue"]).await?;
        Ok(queue["queue_running"]
            .as_array()
            .is_some_and(|jobs| !jobs.is_empty()))
    }
}

fn is_gone(error: &UpstreamError) -> bool {
    matches!(
        error,
        UpstreamError::Busy {
            cause: CallError::Exchange(ExchangeError::Connect(_)),
            ..
        }
    )
}
