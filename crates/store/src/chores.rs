//! The store's interface for cleaning up: expiry, and work to do elsewhere.

use std::sync::Arc;

use async_trait::async_trait;
use kinora_contract::lifecycle::CallOff;
use kinora_contract::{Reading, Task, TaskId};

use crate::{ExpiryCursor, Postpone, Reads, StoreError, SweepRequest, Swept};

/// Maximum time until a chore is due: longer than every lease and pause.
pub(crate) const AHEAD_MS_MAX: u64 = 2 * 60 * 60 * 1000;
/// Lease of the chores that a deletion gives to its caller.
pub(crate) const DELETION_LEASE_MS: u64 = 60_000;

/// Work that any process may do for the store. Chores are leased: no two processes do the same one
/// at the same time, and another process takes over from a holder that died.
#[async_trait]
pub trait Chores: Reads {
    /// Both clocks of the store, which determine all of its times.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be reached.
    async fn clock(&self) -> Result<Reading, StoreError>;

    /// Cleans up: expired leases go back to the queue or, after the last attempt, fail with
    /// `worker_lost`. If the same worker ran other tasks at the time, which may be the cause, the
    /// attempt is forgiven instead, and the task runs alone from then on. Tasks that waited too
    /// long fail with `task_expired`; finished tasks past `expires_at` become `Expired`, and much
    /// later are removed; old idempotency keys are removed. Leases are judged by steady time, and
    /// those of an earlier process are over; everything else by the wall clock, if it is trusted.
    /// No task expires and is removed in the same sweep: a tombstone's time counts from the sweep
    /// that made it.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be written now.
    async fn sweep(&self, request: SweepRequest) -> Result<Swept, StoreError>;

    /// Postpones the expiry of ended tasks, those that expire last first. Returns where to
    /// continue, or `None` when all are postponed.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be written now.
    async fn postpone(&self, request: Postpone) -> Result<Option<ExpiryCursor>, StoreError>;

    /// Leases due chores, oldest first.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be written now.
    async fn take_chores(&self, request: ChoreRequest) -> Result<Vec<Chore>, StoreError>;

    /// Reports the outcome of chores. If a chore's lease has ended and another process holds it,
    /// nothing changes.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be written now.
    async fn settle_chores(&self, done: Vec<ChoreDone>) -> Result<(), StoreError>;

    /// Looks up the tasks with these ids, in order. A task that this version cannot read gives an
    /// error for that id alone.
    ///
    /// # Errors
    /// [`StoreError`] if they cannot be read.
    async fn known(
        &self,
        ids: &[TaskId],
    ) -> Result<Vec<Result<Option<Arc<Task>>, StoreError>>, StoreError>;

    /// This store's own random number: it distinguishes stores that share a result store.
    fn identity(&self) -> u64;
}

/// A request for chores.
#[derive(Clone, Debug)]
pub struct ChoreRequest {
    /// Kind of chore.
    pub kind: ChoreKind,
    /// Maximum number of chores.
    pub count: usize,
    /// Length of the lease in milliseconds. A chore that is not settled by then may be taken again.
    pub lease_ms: u64,
}

/// The kinds of chores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChoreKind {
    /// Files to remove from the blob store.
    RemoveFile,
    /// Upstream jobs to cancel, for models that the caller serves.
    CallOff {
        /// The models.
        models: Vec<String>,
    },
    /// The search for orphaned files: a single chore that recurs.
    LookForOrphans,
}

/// A leased chore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chore {
    /// Number of its row.
    pub number: u64,
    /// Distinguishes this lease from earlier and later ones of the same chore.
    pub token: u64,
    /// Number of times it was taken, including this one.
    pub attempts: u32,
    /// The work.
    pub work: ChoreWork,
}

/// The work of a chore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChoreWork {
    /// Remove the file with this blob key. It may be gone already.
    RemoveFile(String),
    /// Cancel an upstream job.
    CallOff(CallOff),
    /// Search for files that no task refers to.
    LookForOrphans,
}

/// The outcome of a chore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChoreDone {
    /// The chore.
    pub chore: Chore,
    /// `None`: done for good. Otherwise the chore is due again after this many milliseconds.
    pub again_after_ms: Option<u64>,
}

impl Chore {
    /// The outcome that it is done for good.
    #[must_use]
    pub const fn done(self) -> ChoreDone {
        ChoreDone {
            chore: self,
            again_after_ms: None,
        }
    }

    /// The outcome that it must be repeated after a pause.
    #[must_use]
    pub const fn again(self, after_ms: u64) -> ChoreDone {
        ChoreDone {
            chore: self,
            again_after_ms: Some(after_ms),
        }
    }
}
