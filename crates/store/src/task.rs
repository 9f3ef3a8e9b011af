//! Arguments and results of [`crate::Tasks`], besides the task itself.

use std::collections::BTreeMap;
use std::sync::Arc;

use kinora_contract::lifecycle::Record;
use kinora_contract::{Priority, State, Task, TaskId, TraceContext, UnixMs, VideoSpec};

use crate::{Callback, Chore};

/// A task to add.
#[derive(Clone, Debug)]
pub struct NewTask {
    /// Drawn by the caller. The store accepts the task under this id or a later one, so that ids of a project sort in the
    /// order of acceptance, whichever process drew them ([`TaskId::following`]).
    pub id: TaskId,
    /// The project that owns it.
    pub project: String,
    /// The video to make.
    pub spec: VideoSpec,
    /// The caller's own notes.
    pub metadata: BTreeMap<String, String>,
    /// Priority within the project.
    pub priority: Priority,
    /// The request's idempotency key, if it has one.
    pub idempotency: Option<Idempotency>,
    /// The webhook to notify of its end, besides those of its project.
    pub callback: Option<Callback>,
    /// The span of its submit, if its trace is recorded.
    pub trace: Option<TraceContext>,
    /// The limits of the queue.
    pub bounds: QueueBounds,
}

impl NewTask {
    /// The task in its initial state, under the id that the store gave it.
    pub(crate) fn accepted(&self, id: TaskId, now_ms: UnixMs) -> Task {
        Task {
            id,
            project: self.project.clone(),
            spec: self.spec.clone(),
            metadata: self.metadata.clone(),
            priority: self.priority,
            state: State::Waiting,
            progress: 0,
            created_at_ms: now_ms,
            started_at_ms: None,
            finished_at_ms: None,
            expires_at_ms: None,
            attempt: 0,
            engine: None,
            warnings: Vec::new(),
            trace: self.trace,
        }
    }
}

/// An `Idempotency-Key`, scoped to the project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Idempotency {
    /// As sent.
    pub key: String,
    /// SHA-256 of the normalised request; a different request under the same key is refused.
    pub fingerprint: [u8; 32],
    /// How long the key is bound, in milliseconds. The first sweep after that frees it, or a later
    /// one ([`crate::SweepRequest::keys_kept_ms`]).
    pub bound_ms: u64,
}

/// The limits of the queue, checked in the transaction of the insert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueBounds {
    /// Waiting tasks of all projects.
    pub waiting_max: u64,
    /// Unfinished tasks of the project.
    pub project_unfinished_max: u64,
    /// Unexpired tasks of the project.
    pub project_tasks_max: u64,
    /// Stored bytes of the project: rows, references, results.
    pub project_bytes_max: u64,
    /// Stored bytes of all projects.
    pub bytes_max: u64,
}

impl QueueBounds {
    /// No limits.
    pub const NONE: Self = Self {
        waiting_max: u64::MAX,
        project_unfinished_max: u64::MAX,
        project_tasks_max: u64::MAX,
        project_bytes_max: u64::MAX,
        bytes_max: u64::MAX,
    };
}

impl QueueBounds {
    /// Why a task of this size does not fit in addition to this load; `None` if it does.
    pub(crate) const fn refusal(&self, bytes: u64, load: Load) -> Option<Full> {
        if load.waiting >= self.waiting_max {
            Some(Full::Queue)
        } else if load.unfinished >= self.project_unfinished_max {
            Some(Full::Project)
        } else if bytes > self.project_bytes_max || bytes > self.bytes_max {
            Some(Full::Quota(Quota::Task))
        } else if load.own.tasks >= self.project_tasks_max {
            Some(Full::Quota(Quota::ProjectTasks))
        } else if load.own.bytes.saturating_add(bytes) > self.project_bytes_max {
            Some(Full::Quota(Quota::ProjectBytes))
        } else if load.bytes.saturating_add(bytes) > self.bytes_max {
            Some(Full::Quota(Quota::Bytes))
        } else {
            None
        }
    }
}

/// The load when a task is submitted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    /// Waiting tasks of all projects, and places promised to other projects.
    pub(crate) waiting: u64,
    /// Unfinished tasks of the project.
    pub(crate) unfinished: u64,
    /// Usage of the project.
    pub(crate) own: Usage,
    /// Stored bytes of all projects.
    pub(crate) bytes: u64,
}

/// The limit that a task would exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Full {
    /// [`QueueBounds::waiting_max`].
    Queue,
    /// [`QueueBounds::project_unfinished_max`].
    Project,
    /// A limit on stored data.
    Quota(Quota),
}

/// The limit on stored data that a task would exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quota {
    /// [`QueueBounds::project_bytes_max`] or [`QueueBounds::bytes_max`], by this task alone:
    /// freeing space does not help.
    Task,
    /// [`QueueBounds::project_tasks_max`].
    ProjectTasks,
    /// [`QueueBounds::project_bytes_max`].
    ProjectBytes,
    /// [`QueueBounds::bytes_max`].
    Bytes,
}

/// A project's stored data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Bytes of its rows, references and results. References count with an allowance until they are
    /// fetched, and texts by their length.
    pub bytes: u64,
    /// Number of unexpired tasks.
    pub tasks: u64,
}

/// The outcome of an insert.
#[derive(Clone, Debug)]
pub enum Insertion {
    /// The task is stored.
    Inserted(Arc<Task>),
    /// The same request was stored before under this idempotency key, as this task.
    Replayed(Arc<Task>),
    /// The idempotency key belongs to another request. Nothing was stored.
    KeyReused,
    /// The queue is full. Nothing was stored.
    QueueFull(RetryAfter),
    /// The project has reached its maximum of unfinished tasks. Nothing was stored.
    ProjectFull(RetryAfter),
    /// A limit on stored data is reached. Nothing was stored.
    QuotaFull(Quota),
}

/// When a place is expected to be free for the refused project: estimated from measured service
/// times, the tasks ahead, and places promised to others before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryAfter {
    /// Milliseconds from now, at least 1.
    pub millis: u64,
}

/// Numbers of waiting and running tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// By model.
    pub models: BTreeMap<String, Count>,
    /// By project.
    pub projects: BTreeMap<String, Count>,
    /// How long the oldest waiting task of each model has waited, in milliseconds by the store's wall clock. Only
    /// models for which tasks wait.
    pub oldest_waiting_ms: BTreeMap<String, u64>,
}

impl Counts {
    /// Counts all unfinished tasks, at this time of the store's wall clock.
    pub(crate) fn of<'a>(unfinished: impl Iterator<Item = &'a Record>, now_ms: UnixMs) -> Self {
        let mut counts = Self::default();
        for record in unfinished {
            let task = &record.task;
            let models = counts.models.entry(task.spec.model.clone()).or_default();
            let projects = counts.projects.entry(task.project.clone()).or_default();
            let one = Count::of(record);
            models.add(one);
            projects.add(one);
            if record.is_waiting() {
                counts.waits_since(&task.spec.model, task.created_at_ms, now_ms);
            }
        }
        counts
    }

    /// Of a task that waits for `model` and was created at `at_ms`.
    pub(crate) fn waits_since(&mut self, model: &str, at_ms: UnixMs, now_ms: UnixMs) {
        let waited_ms = now_ms.saturating_sub(at_ms);
        let oldest_ms = self.oldest_waiting_ms.entry(model.to_owned()).or_default();
        *oldest_ms = waited_ms.max(*oldest_ms);
    }
}

/// Numbers for one model or project.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Tasks that wait for references or for a worker.
    pub waiting: u64,
    /// Of these, those whose references must be fetched.
    pub unfetched: u64,
    /// Of these, those whose references are being fetched.
    pub fetching: u64,
    /// Running tasks.
    pub running: u64,
}

impl Count {
    /// Counts one unfinished task.
    fn of(record: &Record) -> Self {
        if record.is_running() {
            return Self {
                running: 1,
                ..Self::default()
            };
        }
        let is_fetched_for = record.references.fetch().is_some();
        Self {
            waiting: 1,
            unfetched: (!record.is_claimable() && !is_fetched_for).into(),
            fetching: is_fetched_for.into(),
            running: 0,
        }
    }

    pub(crate) const fn add(&mut self, other: Self) {
        self.waiting += other.waiting;
        self.unfetched += other.unfetched;
        self.fetching += other.fetching;
        self.running += other.running;
    }
}

/// The outcome of a cancel.
#[derive(Clone, Debug)]
pub enum Cancellation {
    /// The task is now failed.
    Cancelled(Arc<Task>),
    /// It was already finished; this is its state.
    AlreadyFinished(Arc<Task>),
    /// No such task in this project.
    NotFound,
}

/// The outcome of a delete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deletion {
    /// The task was deleted. Its result files must be removed: these chores are leased to the
    /// caller.
    Deleted {
        /// One chore per file.
        files: Vec<Chore>,
    },
    /// No such task in this project.
    NotFound,
}
