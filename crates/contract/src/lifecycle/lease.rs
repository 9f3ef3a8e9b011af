//! Leases: the right of one worker to one task until a time, with a fencing token that
//! grows at every claim, so that a late worker's write changes nothing.

use std::fmt;

use crate::id::TaskId;
use crate::time::{SteadyMs, UnixMs};

/// A worker's right to a task. `renew`, `finish` and `release` carry it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lease {
    /// The leased task.
    pub task: TaskId,
    /// Fencing token: larger than that of every earlier lease of this store.
    pub token: u64,
}

/// A lease as a store keeps it. Both ends are times of the store's clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// Fencing token.
    pub token: u64,
    /// End of the lease by the wall clock, for operators.
    pub until_ms: UnixMs,
    /// End of the lease by the clock that is never set, which alone counts. 0 of a lease that an
    /// earlier process of an embedded store gave: it is over.
    pub until_steady_ms: SteadyMs,
    /// Name of the worker.
    pub worker: String,
}

/// How an attempt counts whose task goes back to the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// It counts: something broke.
    Counts,
    /// It does not count, but its project has had its turn: an orderly stop, or a fault of this machine.
    Forgiven,
    /// It is as if it had not been, and the task's references are to be fetched again: they are gone.
    ReferencesLost,
}

/// How a lease was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseLost {
    /// The task was cancelled or deleted by its owner.
    Withdrawn,
    /// The lease ran out, and the task went back to the queue or to another worker, or it is
    /// already finished.
    Superseded,
}

impl fmt::Display for LeaseLost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Withdrawn => "withdrawn by its owner",
            Self::Superseded => "superseded",
        })
    }
}
