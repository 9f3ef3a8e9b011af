//! The store for operators: the queue, running tasks, sums of made videos, and changes of keys.
//! Only reads, in the process that serves the store or beside it.

use std::collections::BTreeMap;

use async_trait::async_trait;
use kinora_contract::lifecycle::TallyEntry;
use kinora_contract::{TaskId, TaskTally, UnixMs};
use serde::{Deserialize, Serialize};

use crate::{KeyAction, LivingWorker, Pauses, StoreError};

/// How far back a [`ServiceOverview`] counts ended tasks.
pub const LATELY_MS: u64 = 60_000;

/// Queries for operators.
#[async_trait]
pub trait OperatorStore: Send + Sync + std::fmt::Debug {
    /// The sums over ended tasks, sorted by day, project and model. They outlive the tasks. Each
    /// task is added once, in the transaction that ends it. Never scans tasks.
    ///
    /// # Errors
    /// [`StoreError`] if they cannot be read.
    async fn tallies(&self, request: &TallyRequest) -> Result<Vec<TallyRow>, StoreError>;

    /// Changes of API keys, of one project or of all, newest first: at most
    /// [`kinora_contract::limits::KEY_LOG_ENTRIES_MAX`].
    ///
    /// # Errors
    /// [`StoreError`] if they cannot be read.
    async fn key_log(&self, project: Option<&str>) -> Result<Vec<KeyAction>, StoreError>;

    /// The current state of the service. Its cost grows with the number of unfinished tasks, not of
    /// ended ones.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read.
    async fn overview(&self) -> Result<ServiceOverview, StoreError>;
}

/// A service at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceOverview {
    /// Time of the snapshot, by the store's wall clock.
    pub now_ms: UnixMs,
    /// Every model with unfinished tasks, sorted by name.
    pub models: Vec<ModelQueue>,
    /// Running tasks, oldest first: at most [`kinora_contract::limits::OVERVIEW_RUNNING_MAX`].
    pub running: Vec<RunningTask>,
    /// Number of tasks completed in the last [`LATELY_MS`] that still exist.
    pub completed_lately: u64,
    /// Number of tasks that failed or were cancelled in that time.
    pub failed_lately: u64,
    /// The live workers, sorted by id.
    pub workers: Vec<LivingWorker>,
    /// The pauses of models.
    pub pauses: Pauses,
}

/// The unfinished tasks of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelQueue {
    /// Canonical identifier.
    pub model: String,
    /// Tasks that wait for references or for a worker.
    pub waiting: u64,
    /// Running tasks.
    pub running: u64,
    /// Age of the oldest waiting task, in milliseconds.
    pub oldest_waiting_ms: Option<u64>,
}

/// A running task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningTask {
    /// Its identifier.
    pub id: TaskId,
    /// The project that owns it.
    pub project: String,
    /// Canonical identifier of its model.
    pub model: String,
    /// 0 to 99.
    pub progress: u8,
    /// Number of claims.
    pub attempt: u32,
    /// Time since the first claim, in milliseconds.
    pub since_ms: u64,
    /// Id of the worker that runs it.
    pub worker: String,
}

impl ServiceOverview {
    /// Counts tasks of a model in this phase; `oldest_ms` is the creation time of the oldest one.
    pub(crate) fn count(&mut self, model: &str, is_running: bool, tasks: u64, oldest_ms: UnixMs) {
        // The list is sorted and short. A database may report a model in several rows: one for each
        // place in its queue.
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
        // By the wall clock: after a step back, a task may seem to be created in the future.
        let waited_ms = self.now_ms.saturating_sub(oldest_ms);
        queue.oldest_waiting_ms = queue.oldest_waiting_ms.max(Some(waited_ms));
    }
}

/// A query for sums.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TallyRequest {
    /// From this day on, in days since 1970 (UTC).
    pub since: Option<u64>,
    /// Up to and including this day.
    pub until: Option<u64>,
    /// Only this project.
    pub project: Option<String>,
    /// Only this model.
    pub model: Option<String>,
}

/// The sums over the tasks of one model of one project that ended on one day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TallyRow {
    /// The day, in days since 1970 (UTC).
    pub day: u64,
    /// The project that owned the tasks.
    pub project: String,
    /// Canonical identifier of their model.
    pub model: String,
    /// The sums.
    pub tally: TaskTally,
}

/// Sums in memory, sorted by day, project and model.
#[derive(Clone, Debug, Default)]
pub(crate) struct TallySums(BTreeMap<(u64, String, String), TaskTally>);

impl TallySums {
    pub(crate) fn add(&mut self, ending: &TallyEntry) {
        let place = (ending.day, ending.project.clone(), ending.model.clone());
        self.0.entry(place).or_default().add(ending.tally);
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = TallyRow> {
        self.0
            .iter()
            .map(|((day, project, model), tally)| TallyRow {
                day: *day,
                project: project.clone(),
                model: model.clone(),
                tally: *tally,
            })
    }
}

impl<'a> FromIterator<&'a TallyEntry> for TallySums {
    fn from_iter<I: IntoIterator<Item = &'a TallyEntry>>(endings: I) -> Self {
        let mut tallies = Self::default();
        endings.into_iter().for_each(|ending| tallies.add(ending));
        tallies
    }
}
