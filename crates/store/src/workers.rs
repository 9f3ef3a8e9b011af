//! The registry of workers: the processes that run tasks, for operators, and for the API, which
//! reports whether a model is served. An announcement expires by the store's clock unless it is
//! renewed. Nothing else depends on it, so a lost announcement costs no task.

use std::collections::BTreeSet;

use async_trait::async_trait;
use kinora_contract::UnixMs;
use serde::{Deserialize, Serialize};

use crate::StoreError;

/// The registry of live workers.
#[async_trait]
pub trait WorkerDirectory: Send + Sync + std::fmt::Debug {
    /// Announces a worker, or replaces its announcement, for `for_ms` milliseconds from now by the
    /// store's clock.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be written now.
    async fn announce(&self, worker: &WorkerAnnouncement, for_ms: u64) -> Result<(), StoreError>;

    /// Ends a worker's announcement now. No effect if there is none.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be written now.
    async fn withdraw(&self, id: &str) -> Result<(), StoreError>;

    /// Every worker whose announcement has not expired, sorted by id.
    ///
    /// # Errors
    /// [`StoreError`] if they cannot be read.
    async fn living(&self) -> Result<Vec<LivingWorker>, StoreError>;

    /// The models for which a live worker claims tasks: those of the workers in
    /// [`WorkerState::Serving`]. Cheap: from memory if one process serves, otherwise one small
    /// query.
    ///
    /// # Errors
    /// [`StoreError`] if they cannot be read.
    async fn served_models(&self) -> Result<BTreeSet<String>, StoreError>;
}

/// A worker's announcement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerAnnouncement {
    /// The worker's unique name, also in its leases.
    pub id: String,
    /// Name of its machine.
    pub host: String,
    /// Process id on that machine.
    pub pid: u32,
    /// Version of its program.
    pub version: String,
    /// The models that it serves.
    pub models: Vec<ServedModel>,
    /// Maximum number of concurrent tasks.
    pub slots: u32,
    /// Start time, by its own clock.
    pub started_at_ms: UnixMs,
    /// Whether it claims tasks.
    pub state: WorkerState,
    /// The devices that its engines share. Older programs announce none.
    #[serde(default)]
    pub devices: Vec<SharedDevice>,
    /// The places of its engines. Older programs announce none.
    #[serde(default)]
    pub places: Vec<WorkerPlace>,
}

/// A device that engines of a worker share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedDevice {
    /// Its name in the worker's configuration.
    pub name: String,
    /// The memory that the engines may use together.
    pub memory_megabytes: u64,
    /// Number of times an engine was unloaded because another needed its memory, since the worker
    /// started. Older programs do not count.
    #[serde(default)]
    pub swaps: u64,
    /// The engines that share it.
    pub engines: Vec<DeviceEngine>,
}

impl SharedDevice {
    /// The memory that the engines on the device need.
    pub fn used_megabytes(&self) -> u64 {
        // An engine that is leaving still holds its memory.
        let there = self.engines.iter().filter(|one| one.state.is_there());
        there.map(|one| one.memory_megabytes).sum()
    }
}

/// An engine that shares a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceEngine {
    /// Its name in the worker's configuration.
    pub engine: String,
    /// The models that it serves. Older programs name none.
    #[serde(default)]
    pub models: Vec<String>,
    /// The memory that it needs on the device.
    pub memory_megabytes: u64,
    /// Whether it is there.
    pub state: DeviceEngineState,
}

/// Whether an engine is on its device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeviceEngineState {
    /// It is not loaded.
    Away,
    /// It is loaded, or loads, and works on a task.
    Working,
    /// It is loaded and has no task.
    Idle,
    /// It is being unloaded.
    Leaving,
}

impl DeviceEngineState {
    /// The name for people and programs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Away => "away",
            Self::Working => "working",
            Self::Idle => "idle",
            Self::Leaving => "leaving",
        }
    }

    /// Whether it takes memory of the device.
    pub const fn is_there(self) -> bool {
        !matches!(self, Self::Away)
    }
}

/// A model that a worker serves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServedModel {
    /// Canonical identifier.
    pub model: String,
    /// Its engine: `name/version`.
    pub engine: String,
    /// Device that the engine computes on, as the engine names it; `None` if it chooses itself.
    pub device: Option<String>,
    /// Whether its engine can work: not while all its places are in quarantine. Older programs do
    /// not say.
    #[serde(default = "yes")]
    pub is_available: bool,
}

const fn yes() -> bool {
    true
}

/// A place of a worker's engine that can break by itself: a device, or a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerPlace {
    /// The engine's name in the worker's configuration.
    pub engine: String,
    /// The place's name: a device, or the base URL of a server.
    pub name: String,
    /// Whether it takes tasks.
    pub state: WorkerPlaceState,
    /// Number of tasks of this worker there.
    pub running: u64,
    /// Number of runs there since the worker started.
    pub attempts: u64,
    /// Number of its failures since the worker started.
    pub failures: u64,
    /// Time in quarantine since the worker started, in seconds.
    pub quarantined_seconds: u64,
    /// The error of the last failure, for operators.
    pub last_error: Option<String>,
}

/// Whether a place takes tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WorkerPlaceState {
    /// The place takes tasks.
    Available,
    /// The place takes no task until a pause ends.
    Paused,
    /// The place failed too often: it gets one task at a time, as a test.
    Quarantined,
}

impl WorkerPlaceState {
    /// The name for people and programs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Available => "available",
            Self::Paused => "paused",
            Self::Quarantined => "quarantined",
        }
    }
}

/// Whether a worker claims tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WorkerState {
    /// It claims tasks.
    Serving,
    /// It finishes its tasks and then stops.
    Draining,
}

impl WorkerState {
    /// The name for people and programs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Serving => "serving",
            Self::Draining => "draining",
        }
    }
}

/// A worker whose announcement has not expired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LivingWorker {
    /// Its announcement.
    pub worker: WorkerAnnouncement,
    /// Time since the announcement, in milliseconds.
    pub seen_ms_ago: u64,
    /// Number of tasks that run under its leases.
    pub running: u64,
}

/// The models of the workers that claim tasks.
pub(crate) fn served<'a>(
    workers: impl Iterator<Item = &'a WorkerAnnouncement>,
) -> BTreeSet<String> {
    let serving = workers.filter(|worker| worker.state == WorkerState::Serving);
    let models = serving.flat_map(|worker| &worker.models);
    // A model whose engine is in quarantine stays announced; the API should not call it served.
    let available = models.filter(|served| served.is_available);
    available.map(|served| served.model.clone()).collect()
}
