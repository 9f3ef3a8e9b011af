//! What goes into and comes out of a [`crate::TaskStore`], besides the task itself.

use std::collections::BTreeMap;
use std::sync::Arc;

use kinora_contract::{Task, TaskId, UnixMs, VideoSpec};

/// A task to be added.
#[derive(Clone, Debug)]
pub struct NewTask {
    /// Chosen by the caller before the insert, so that an ambiguous commit can be looked up.
    pub id: TaskId,
    /// Whose it is.
    pub project: String,
    /// What to make.
    pub spec: VideoSpec,
    /// The caller's notes.
    pub metadata: BTreeMap<String, String>,
    /// The present; becomes `created_at`.
    pub now_ms: UnixMs,
    /// The request's idempotency key, when it has one.
    pub idempotency: Option<Idempotency>,
    /// What the queue may hold.
    pub bounds: QueueBounds,
}

/// An `Idempotency-Key`, scoped to the project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Idempotency {
    /// As sent.
    pub key: String,
    /// SHA-256 of the normalised request; another one under the same key is refused.
    pub fingerprint: [u8; 32],
    /// The key is free again from then on.
    pub expires_at_ms: UnixMs,
}

/// What the queue may hold; checked in the transaction of the insert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueBounds {
    /// Waiting tasks of all projects.
    pub waiting_max: u64,
    /// Unfinished tasks of the inserting project.
    pub project_unfinished_max: u64,
    /// Tasks of the inserting project that are not expired.
    pub project_tasks_max: u64,
    /// Stored bytes of the inserting project: rows, references, results.
    pub project_bytes_max: u64,
    /// Stored bytes of all projects.
    pub bytes_max: u64,
}

impl QueueBounds {
    /// No bound at all.
    pub const NONE: Self = Self {
        waiting_max: u64::MAX,
        project_unfinished_max: u64::MAX,
        project_tasks_max: u64::MAX,
        project_bytes_max: u64::MAX,
        bytes_max: u64::MAX,
    };
}

/// Which bound on what is stored a task would pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quota {
    /// [`QueueBounds::project_bytes_max`] or [`QueueBounds::bytes_max`], by this task alone: no room that is
    /// made helps.
    Task,
    /// [`QueueBounds::project_tasks_max`].
    ProjectTasks,
    /// [`QueueBounds::project_bytes_max`].
    ProjectBytes,
    /// [`QueueBounds::bytes_max`].
    Bytes,
}

/// What a project has stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Bytes of its rows, references and results. References count with an allowance until they are
    /// fetched, and texts by their length.
    pub bytes: u64,
    /// Tasks that are not expired.
    pub tasks: u64,
}

/// What came of an insert.
#[derive(Clone, Debug)]
pub enum Insertion {
    /// The task is stored.
    Inserted(TaskView),
    /// The same request was stored before under this idempotency key: this is its task.
    Replayed(TaskView),
    /// The idempotency key belongs to another request. Nothing was stored.
    KeyReused,
    /// The queue as a whole is full. Nothing was stored.
    QueueFull(RetryAfter),
    /// The project has its maximum of unfinished tasks. Nothing was stored.
    ProjectFull(RetryAfter),
    /// Too much is stored already. Nothing was stored.
    QuotaFull(Quota),
}

/// When a place is expected to be free for the refused project: told from measured service times, what
/// waits ahead, and the places that were promised to others before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryAfter {
    /// Milliseconds from now, at least 1.
    pub millis: u64,
}

/// A task as read.
#[derive(Clone, Debug)]
pub struct TaskView {
    /// The task.
    pub task: Arc<Task>,
    /// How many tasks are expected to start before it, while it waits for its first worker. May be a moment
    /// old; absent where unknown, as far back in a long queue.
    pub queue_position: Option<u64>,
    /// The last preview of its run ([`crate::Renewed::preview`]), while it runs.
    pub preview: Option<Arc<[u8]>>,
}

/// Which way a list runs by creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Oldest first.
    Ascending,
    /// Newest first.
    Descending,
}

/// Which tasks to list.
#[derive(Clone, Debug)]
pub struct PageRequest {
    /// Whose.
    pub project: String,
    /// Only those after this one in the order. It need not exist any more.
    pub after: Option<TaskId>,
    /// How many at most; a page may hold fewer, see [`crate::TaskStore::list`].
    pub limit: usize,
    /// Which way.
    pub order: Order,
}

/// A page of tasks.
#[derive(Clone, Debug)]
pub struct Page {
    /// The tasks, in the order asked for.
    pub tasks: Vec<TaskView>,
    /// Whether there are more after them; also of a page that holds fewer than asked for.
    pub has_more: bool,
}

/// What came of a cancel.
#[derive(Clone, Debug)]
pub enum Cancellation {
    /// The task is now failed.
    Cancelled(TaskView),
    /// It was finished before: this is how it stands.
    AlreadyFinished(TaskView),
    /// No such task in this project.
    NotFound,
}

/// What came of a delete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deletion {
    /// The task is gone; these blob keys are to be removed.
    Deleted {
        /// Keys of the files that belonged to it.
        files: Vec<String>,
    },
    /// No such task in this project.
    NotFound,
}

/// What a sweep goes by.
#[derive(Clone, Copy, Debug)]
pub struct SweepRequest {
    /// The present.
    pub now_ms: UnixMs,
    /// A lease that ends later than this far ahead was made by a wrong clock and counts as expired.
    pub lease_ahead_max_ms: u64,
    /// After so many attempts a lost task fails.
    pub attempts_max: u32,
    /// Leaves running tasks alone: for the time after an outage of the store, in which leases could not
    /// be renewed.
    pub spares_leases: bool,
    /// A task that has waited so long for its first worker fails with `task_expired`; `None`: never.
    pub waiting_ms_max: Option<u64>,
    /// How long a task that fails in this sweep is kept.
    pub retention_ms: u64,
    /// How long an expired task still answers 410.
    pub tombstone_ms: u64,
    /// How many rows of each kind at most, so that a sweep never blocks submits for long.
    pub batch: usize,
}

/// What a sweep did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Tasks that went back to the queue.
    pub requeued: u64,
    /// Tasks that failed with `worker_lost`.
    pub lost: u64,
    /// Tasks that failed with `task_expired`.
    pub waited: u64,
    /// Tasks whose files are past their time.
    pub expired: u64,
    /// Expired tasks that vanished.
    pub forgotten: u64,
    /// Blob keys to be removed now: of expired and of deleted tasks.
    pub files: Vec<String>,
    /// What is to be called off now, until [`crate::TaskStore::forget_abandoned`] says that it was.
    pub abandoned: Vec<Abandoned>,
}

/// What an attempt kept ([`crate::Renewed::kept`]) of a task that ended without a result: work that
/// may go on elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Abandoned {
    /// The task; it may be gone.
    pub task: TaskId,
    /// Its model, whose engine understands what was kept.
    pub model: String,
    /// What the last attempt kept.
    pub kept: String,
}
