//! The store as those see it who clean up: what ends by time, and what is left to be done elsewhere.

use std::sync::Arc;

use async_trait::async_trait;
use kinora_contract::lifecycle::CallOff;
use kinora_contract::{Reading, Task, TaskId};

use crate::{ExpiryCursor, Gap, Postpone, Reads, StoreError, SweepRequest, Swept};

/// No chore is due later than this from now: longer than every lease and pause.
pub(crate) const AHEAD_MS_MAX: u64 = 2 * 60 * 60 * 1000;
/// Lease of the chores that a deletion hands to its caller.
pub(crate) const DELETION_LEASE_MS: u64 = 60_000;

/// Work for the store that any process may do. Chores are leased: no two processes do the same one at the same time,
/// and another process takes over a chore whose holder died.
#[async_trait]
pub trait Chores: Reads {
    /// Both clocks of the store, by which everything in it is judged.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be reached.
    async fn clock(&self) -> Result<Reading, StoreError>;

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
    async fn postpone(&self, request: Postpone) -> Result<Option<ExpiryCursor>, StoreError>;

    /// Leases chores that are due, oldest first.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot change now.
    async fn take_chores(&self, request: ChoreRequest) -> Result<Vec<Chore>, StoreError>;

    /// Says what became of chores. One whose lease has run out, and that another holds, is left to that one.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot change now.
    async fn settle_chores(&self, done: Vec<ChoreDone>) -> Result<(), StoreError>;

    /// The tasks with these ids, each in its place. One that this version cannot read is an error of its own.
    ///
    /// # Errors
    /// [`StoreError`] when they cannot be read.
    async fn known(
        &self,
        ids: &[TaskId],
    ) -> Result<Vec<Result<Option<Arc<Task>>, StoreError>>, StoreError>;

    /// The largest task id of all projects below `bound`.
    ///
    /// # Errors
    /// [`StoreError`] when it cannot be read.
    async fn newest_below(&self, bound: TaskId) -> Result<Option<TaskId>, StoreError>;

    /// What this store cannot know: creation times between which it accepted no task itself, so that
    /// files of such tasks come from a copy of it. They are left until an operator says otherwise.
    ///
    /// # Errors
    /// [`StoreError`] when they cannot be read.
    async fn gaps(&self) -> Result<Vec<Gap>, StoreError>;

    /// Confirms that a look at all files found none of a task in these gaps.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot change now.
    async fn close_gaps(&self, gaps: &[Gap]) -> Result<(), StoreError>;

    /// A number that is this store's own, drawn when it was made: it tells apart the stores that
    /// share a result store.
    fn identity(&self) -> u64;
}

/// Which chores to take.
#[derive(Clone, Debug)]
pub struct ChoreRequest {
    /// Of which kind.
    pub kind: ChoreKind,
    /// How many at most.
    pub count: usize,
    /// How long the lease lasts, in milliseconds. A chore that is not settled by then may be taken again.
    pub lease_ms: u64,
}

/// The kinds of chores, and who may take them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChoreKind {
    /// Files to be removed from the blob store.
    RemoveFile,
    /// Upstream jobs to be called off, of models that the caller serves.
    CallOff {
        /// The models.
        models: Vec<String>,
    },
    /// The look for files that no task names. There is one such chore, which comes again and again.
    LookForOrphans,
}

/// A leased chore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chore {
    /// Which row.
    pub number: u64,
    /// Tells this lease from earlier and later ones of the same chore.
    pub token: u64,
    /// How often it was taken, this time included.
    pub attempts: u32,
    /// What is to be done.
    pub work: ChoreWork,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChoreWork {
    /// Remove the file with this blob key. It may be gone already.
    RemoveFile(String),
    /// Call off an upstream job.
    CallOff(CallOff),
    /// Look for files that no task names.
    LookForOrphans,
}

/// What became of a chore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChoreDone {
    /// The chore.
    pub chore: Chore,
    /// `None`: it is done for good. Otherwise it is due again after so many milliseconds.
    pub again_after_ms: Option<u64>,
}

impl Chore {
    /// It is done for good.
    #[must_use]
    pub const fn done(self) -> ChoreDone {
        ChoreDone {
            chore: self,
            again_after_ms: None,
        }
    }

    /// It is to be done again after a pause.
    #[must_use]
    pub const fn again(self, after_ms: u64) -> ChoreDone {
        ChoreDone {
            chore: self,
            again_after_ms: Some(after_ms),
        }
    }
}
