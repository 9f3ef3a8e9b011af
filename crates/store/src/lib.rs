//! Where tasks live. [`TaskStore`] is the meeting place of API and workers; [`KeyStore`] holds
//! API keys beside it. Both take only what `kinora-contract` has judged, never a raw request.
//! Every answer of a changing method is given after the change is synced to disk.

mod backup;
#[cfg(feature = "conformance")]
pub mod conformance;
mod deaths;
#[cfg(feature = "faulty")]
pub mod faulty;
mod fetch;
mod files;
mod gap;
mod inspect;
mod keys;
mod lease;
mod open;
mod outage;
pub mod sqlite;
mod task;

pub use backup::{BackupSource, Counts, TaskFiles};
pub use fetch::{Fetch, FetchRequest, Fetched};
pub use files::{mark_key, names_file, reference_keys};
pub use gap::Gap;
pub use inspect::{Inspection, inspect};
pub use keys::{ApiKey, KeyStore, NewKey, Scope};
pub use lease::{Attempt, Claim, ClaimRequest, Lease, LeaseLost, Renewed};
pub use open::{Loss, OpenError, OpenOptions, open, open_keys, open_snapshot, open_source};
pub use outage::Outage;
pub use sqlite::Snapshot;
pub use task::{
    Abandoned, Cancellation, Deletion, Idempotency, Insertion, NewTask, Order, Page, PageRequest,
    Place, Postpone, Postponed, QueueBounds, Quota, RetryAfter, SweepRequest, Swept, TaskView,
    Usage, WaitingFrom,
};

use std::sync::Arc;

use async_trait::async_trait;
use kinora_contract::{Artifact, Failure, TaskId, UnixMs};
use tokio::sync::watch;

/// Where tasks live. A dozen methods, each with its guarantee.
#[async_trait]
pub trait TaskStore: Send + Sync + std::fmt::Debug {
    /// Adds a waiting task, once it is within the queue's bounds and its idempotency key is
    /// free. On `Ok` the task (or the twin that was there before) is on disk. The bounds, the
    /// key and the insert are one transaction. A failed call may have inserted the task: the
    /// id was chosen by the caller, who can look it up.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot take it now.
    async fn insert(&self, new: NewTask) -> Result<Insertion, StoreError>;

    /// The task that the same request under the same key has made in this project, or `None`: for
    /// a repeat that would be refused by now, whose first answer still stands. A twin that is just
    /// being stored is not found here; [`TaskStore::insert`] finds it, in its transaction.
    ///
    /// # Errors
    /// [`StoreError`] when it cannot be read.
    async fn find_twin(
        &self,
        project: &str,
        idempotency: &Idempotency,
    ) -> Result<Option<TaskView>, StoreError>;

    /// The task with this id in this project, or `None` for an unknown and for another
    /// project's id alike. Never a scan.
    ///
    /// # Errors
    /// [`StoreError`] when it cannot be read.
    async fn get(&self, project: &str, id: TaskId) -> Result<Option<TaskView>, StoreError>;

    /// The task with this id, in any project: for callers whose right to it was proved by other
    /// means than a key, such as a signed address.
    ///
    /// # Errors
    /// [`StoreError`] when it cannot be read.
    async fn get_of_any_project(&self, id: TaskId) -> Result<Option<TaskView>, StoreError>;

    /// One page of a project's tasks by creation, expired ones left out. It has fewer tasks than
    /// asked for where they would take more than [`kinora_contract::limits::PAGE_BYTES_MAX`] in
    /// all ([`kinora_contract::listed_bytes`]), but at least one. One that cannot be read is left out and
    /// logged, and ends no list. It blocks no thread that serves other calls.
    ///
    /// # Errors
    /// [`StoreError`] when it cannot be read.
    async fn list(&self, request: PageRequest) -> Result<Page, StoreError>;

    /// Makes an unfinished task `failed` with `failure`, at once and for good; a worker that
    /// runs it learns of it by its next renewal, and its finish will be refused.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot change now.
    async fn cancel(
        &self,
        project: &str,
        id: TaskId,
        failure: Failure,
        now_ms: UnixMs,
        expires_at_ms: UnixMs,
    ) -> Result<Cancellation, StoreError>;

    /// Removes a task in any phase. The keys of its files are returned for removal, and are
    /// remembered as garbage until [`TaskStore::forget_files`] so that a crash leaks none.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot change now.
    async fn delete(&self, project: &str, id: TaskId) -> Result<Deletion, StoreError>;

    /// Leases waiting tasks whose references are not at hand, for the fetch stage: up to `request.count`, by
    /// projects in turn, the project with the fewest leased fetches first, among several the one whose last
    /// fetch is longest ago; its oldest task first. No project holds more than `request.project_max`. A
    /// fetch whose lease has run out is leased again.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot change now.
    async fn take_fetches(&self, request: FetchRequest) -> Result<Vec<Fetch>, StoreError>;

    /// Ends a fetch: the task becomes claimable (durably), fails, or waits for another try.
    ///
    /// # Errors
    /// [`StoreError::LeaseLost`] when the fetch is not the task's current one, or the task has ended: nothing
    /// was changed.
    async fn settle_fetch(&self, fetch: &Fetch, fetched: Fetched) -> Result<(), StoreError>;

    /// Leases up to `request.count` waiting tasks whose references are at hand, by projects in turn. Turns are
    /// weighted by the estimated cost of the tasks started ([`kinora_contract::VideoSpec::cost`]), as in
    /// start-time fair queueing: the project that was given the least work comes first, and one that was away
    /// starts where the others are; its oldest task first. A task that is given back has had its turn. A project
    /// that runs its share of the worker's slots ([`ClaimRequest::project_slots_max`]) is passed over. Each lease
    /// gets a fresh, larger token.
    ///
    /// A task that was running at a death of its worker, and has one attempt left, is claimed only by a worker
    /// that runs nothing else, which claims nothing else meanwhile; one whose turn it is holds back further
    /// claims until that is so.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot change now.
    async fn claim(&self, request: ClaimRequest) -> Result<Vec<Claim>, StoreError>;

    /// Extends a lease and records progress (never downward), the engine's name, what has been
    /// decided of the spec, a token for later attempts, and a preview.
    ///
    /// # Errors
    /// [`StoreError::LeaseLost`] when the token is stale: nothing was changed.
    async fn renew(&self, lease: &Lease, renewed: Renewed) -> Result<(), StoreError>;

    /// Whether this lease still holds; cheap, from memory where the process is the only writer.
    ///
    /// # Errors
    /// [`StoreError::LeaseLost`] when it does not.
    async fn check(&self, lease: &Lease) -> Result<(), StoreError>;

    /// Ends a running task by compare-and-set on (id, token, running).
    ///
    /// # Errors
    /// [`StoreError::LeaseLost`] when the token is stale: nothing was changed.
    async fn finish(
        &self,
        lease: &Lease,
        outcome: Result<Artifact, Failure>,
        now_ms: UnixMs,
        expires_at_ms: UnixMs,
    ) -> Result<(), StoreError>;

    /// Gives a running task back to the queue, in its old place. The caller says whether the attempt counts,
    /// and gives back no last one that does.
    ///
    /// # Errors
    /// [`StoreError::LeaseLost`] when the token is stale: nothing was changed.
    async fn release(&self, lease: &Lease, attempt: Attempt) -> Result<(), StoreError>;

    /// Takes up what was left behind: expired leases go back to the queue or, after the last
    /// attempt, fail with `worker_lost`, unless the same worker ran other tasks beside, which may
    /// have been the cause: then the attempt is forgiven, and the task runs alone from then on.
    /// Tasks that waited too long fail with `task_expired`; finished tasks past `expires_at` become
    /// `Expired`, and much later vanish; old idempotency keys are forgotten. Leases are judged by
    /// steady time, and those of an earlier process are over; all else by the wall clock, if it is
    /// trusted. No task expires and vanishes in one sweep: a tombstone's time counts from the sweep
    /// that made it.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot change now.
    async fn sweep(&self, request: SweepRequest) -> Result<Swept, StoreError>;

    /// Moves the expiry of ended tasks, those that expire last first. Returns where to go on, or `None` when
    /// all are moved.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot change now.
    async fn postpone(&self, request: Postpone) -> Result<Option<Place>, StoreError>;

    /// The largest task id of all projects below `bound`.
    ///
    /// # Errors
    /// [`StoreError`] when it cannot be read.
    async fn newest_below(&self, bound: TaskId) -> Result<Option<TaskId>, StoreError>;

    /// Confirms that these files (blob keys) are gone from the blob store.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot change now.
    async fn forget_files(&self, keys: &[String]) -> Result<(), StoreError>;

    /// Confirms that what was kept of these tasks is called off, or given up.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot change now.
    async fn forget_abandoned(&self, tasks: &[TaskId]) -> Result<(), StoreError>;

    /// Records what the references of an unfinished task take, in bytes, now that they are stored;
    /// until then an allowance is counted. Without effect on any other task.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot change now.
    async fn charge_references(&self, task: TaskId, bytes: u64) -> Result<(), StoreError>;

    /// What a project has stored at the moment.
    ///
    /// # Errors
    /// [`StoreError`] when it cannot be read.
    async fn usage(&self, project: &str) -> Result<Usage, StoreError>;

    /// Whether changes are stored at the moment: the last one was. While they are not, the store tries by itself,
    /// so that this turns true again without a caller.
    fn is_writable(&self) -> bool;

    /// Starts in a row, that of this process included, that followed a death of the process before: 0 after a
    /// clean stop, and where many processes share the store. A completed task ends the row. Until it ends, no
    /// task is claimed for its last attempt after a death, which another death would end.
    fn unclean_starts(&self) -> u64;

    /// Ends the row of unclean starts: this process lives long enough.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot change now.
    async fn settle(&self) -> Result<(), StoreError>;

    /// What this store cannot know: creation times between which it accepted no task itself, so that
    /// files of such tasks come from a copy of it. They are left until an operator says otherwise.
    fn gaps(&self) -> Vec<Gap>;

    /// Confirms that a look at all files found none of a task in these gaps.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot change now.
    async fn close_gaps(&self, gaps: &[Gap]) -> Result<(), StoreError>;

    /// A number that is this store's own, drawn when it was made: it tells apart the stores that
    /// share a result store.
    fn identity(&self) -> u64;

    /// A counter that moves when there may be new work to claim or a lease was taken away.
    /// A hint that saves waiting; polling is the truth.
    fn changes(&self) -> watch::Receiver<u64>;
}

/// Both stores of one deployment, opened together.
#[derive(Clone, Debug)]
pub struct Stores {
    /// Tasks.
    pub tasks: Arc<dyn TaskStore>,
    /// API keys.
    pub keys: Arc<dyn KeyStore>,
    /// What was there when they were opened.
    pub holds: Holds,
}

/// What a store held when it was opened: what must then be there beside it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holds {
    /// Whether there is any task.
    pub tasks: bool,
    /// Keys of the videos of a few completed tasks, those that are kept longest; none where no task has a result.
    pub results: Vec<String>,
}

/// Why a store did not do what it was asked to.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The lease's token is stale: the task was cancelled, deleted, taken over or finished.
    #[error("the lease is lost: {0}")]
    LeaseLost(LeaseLost),
    /// Full disk, closed store, broken connection: worth trying again later.
    #[error("the store is unavailable: {0}")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// What is stored cannot be understood; trying again will not help.
    #[error("the store holds what this version cannot read: {0}")]
    Corrupt(String),
}
