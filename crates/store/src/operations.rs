//! The store as operators look at it: what waits and runs, what has been made, and who has changed keys. Reads only,
//! in the process that serves the store or beside it.

use async_trait::async_trait;
use kinora_contract::{TaskId, UnixMs};

use crate::{KeyAction, LivingWorker, StoreError, TallyRequest, TallyRow};

/// How far back an [`Overview`] counts ended tasks.
pub const LATELY_MS: u64 = 60_000;

/// What operators ask.
#[async_trait]
pub trait Operations: Send + Sync + std::fmt::Debug {
    /// The sums over ended tasks, by day, project and model in this order. They are kept when the tasks are gone. Each
    /// task is added once, in the transaction that ends it. Never a scan over tasks.
    ///
    /// # Errors
    /// [`StoreError`] when they cannot be read.
    async fn tallies(&self, request: &TallyRequest) -> Result<Vec<TallyRow>, StoreError>;

    /// Changes of API keys, of one project or of all, newest first:
    /// [`kinora_contract::limits::KEY_LOG_ENTRIES_MAX`] at most.
    ///
    /// # Errors
    /// [`StoreError`] when they cannot be read.
    async fn key_log(&self, project: Option<&str>) -> Result<Vec<KeyAction>, StoreError>;

    /// The service as it stands now. Its cost grows with the unfinished tasks, and not with those that have ended.
    ///
    /// # Errors
    /// [`StoreError`] when it cannot be read.
    async fn overview(&self) -> Result<Overview, StoreError>;
}

/// A service at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overview {
    /// The moment, by the store's wall clock.
    pub now_ms: UnixMs,
    /// Every model with unfinished tasks, in the order of the names.
    pub models: Vec<ModelQueue>,
    /// Running tasks, those that were started first come first:
    /// [`kinora_contract::limits::OVERVIEW_RUNNING_MAX`] at most.
    pub running: Vec<RunningTask>,
    /// Tasks that were completed in the last [`LATELY_MS`] and are still there.
    pub completed_lately: u64,
    /// Tasks that failed or were cancelled meanwhile.
    pub failed_lately: u64,
    /// The living workers, in the order of their ids.
    pub workers: Vec<LivingWorker>,
}

/// The unfinished tasks of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelQueue {
    /// Canonical identifier.
    pub model: String,
    /// Tasks that wait for references or for a worker.
    pub waiting: u64,
    /// Tasks that a worker runs.
    pub running: u64,
    /// How long the oldest waiting task has waited, in milliseconds.
    pub oldest_waiting_ms: Option<u64>,
}

/// A task that a worker runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningTask {
    /// Its identifier.
    pub id: TaskId,
    /// Whose it is.
    pub project: String,
    /// Canonical identifier of its model.
    pub model: String,
    /// 0 to 99.
    pub progress: u8,
    /// How many workers have taken it.
    pub attempt: u32,
    /// How long ago a worker first took it, in milliseconds.
    pub since_ms: u64,
    /// The worker that runs it, by its id.
    pub worker: String,
}

impl Overview {
    /// Counts tasks of a model in this phase, of which the oldest was created at `oldest_ms`.
    pub(crate) fn count(&mut self, model: &str, is_running: bool, tasks: u64, oldest_ms: UnixMs) {
        let place = self.models.partition_point(|one| *one.model < *model);
        if self.models.get(place).is_none_or(|one| one.model != model) {
            let new = ModelQueue {
                model: model.to_owned(),
                waiting: 0,
                running: 0,
                oldest_waiting_ms: None,
            };
            self.models.insert(place, new);
        }
        let Some(queue) = self.models.get_mut(place) else {
            return;
        };
        if is_running {
            queue.running = queue.running.saturating_add(tasks);
            return;
        }
        queue.waiting = queue.waiting.saturating_add(tasks);
        let waited_ms = self.now_ms.saturating_sub(oldest_ms);
        queue.oldest_waiting_ms = queue.oldest_waiting_ms.max(Some(waited_ms));
    }
}
