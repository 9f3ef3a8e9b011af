//! The registry of workers: which processes run tasks, for operators and for the API, which says of each model
//! whether anybody serves it. An announcement ends by the store's clock unless it is renewed; nothing else depends on
//! it, so that a lost announcement costs no task.

use std::collections::BTreeSet;

use async_trait::async_trait;
use kinora_contract::UnixMs;
use serde::{Deserialize, Serialize};

use crate::StoreError;

/// The living workers.
#[async_trait]
pub trait Workers: Send + Sync + std::fmt::Debug {
    /// Announces a worker, or replaces its announcement, for `for_ms` milliseconds from now by the store's clock.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot change now.
    async fn announce(&self, worker: &Announcement, for_ms: u64) -> Result<(), StoreError>;

    /// Ends a worker's announcement at once. Without effect where there is none.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot change now.
    async fn withdraw(&self, id: &str) -> Result<(), StoreError>;

    /// Every worker whose announcement has not ended, in the order of their ids.
    ///
    /// # Errors
    /// [`StoreError`] when they cannot be read.
    async fn living(&self) -> Result<Vec<LivingWorker>, StoreError>;

    /// The models for which a living worker claims tasks: those of the workers in [`WorkerState::Serving`]. Cheap:
    /// from memory where one process serves, one small query otherwise.
    ///
    /// # Errors
    /// [`StoreError`] when they cannot be read.
    async fn served_models(&self) -> Result<BTreeSet<String>, StoreError>;
}

/// What a worker says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Announcement {
    /// The name in its leases; no other process has it.
    pub id: String,
    /// Name of its machine.
    pub host: String,
    /// Number of its process on that machine.
    pub pid: u32,
    /// Version of its program.
    pub version: String,
    /// What it serves, by model.
    pub models: Vec<ServedModel>,
    /// How many tasks it runs at a time.
    pub slots: u32,
    /// When it started, by its own clock.
    pub started_at_ms: UnixMs,
    /// Whether it claims tasks.
    pub state: WorkerState,
}

/// A model that a worker serves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServedModel {
    /// Canonical identifier.
    pub model: String,
    /// Its engine: `name/version`.
    pub engine: String,
    /// Where the engine computes, in the engine's own words; `None`: its own choice.
    pub device: Option<String>,
}

/// Whether a worker claims tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WorkerState {
    /// It claims tasks.
    Serving,
    /// It finishes its tasks and ends.
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

/// A worker whose announcement has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LivingWorker {
    /// What it says of itself.
    pub worker: Announcement,
    /// How long ago it announced itself, in milliseconds.
    pub seen_ms_ago: u64,
    /// Tasks that run under its leases.
    pub running: u64,
}

/// The models of those that claim.
pub(crate) fn served<'a>(workers: impl Iterator<Item = &'a Announcement>) -> BTreeSet<String> {
    let serving = workers.filter(|worker| worker.state == WorkerState::Serving);
    let models = serving.flat_map(|worker| &worker.models);
    models.map(|served| served.model.clone()).collect()
}
