//! Leases: the right of one worker to one task for a limited time, with a fencing token that grows
//! with every claim, so that a late worker's write changes nothing.

use std::fmt;

use crate::id::TaskId;
use crate::time::{LeaseMs, UnixMs};

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
    /// End of the lease by the clock of leases; only this one decides. 0 for a lease from an earlier
    /// process of an embedded store: it is over.
    pub ends_ms: LeaseMs,
    /// Name of the worker.
    pub worker: String,
}

/// Whether an attempt counts whose task returns to the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// It counts: something broke.
    Counts,
    /// It does not count, but its project has used its turn: an orderly stop, or a fault of this
    /// machine.
    Forgiven,
    /// It does not count at all, and the task's references must be fetched again, since they are
    /// lost.
    ReferencesLost,
}

/// How a lease was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseLost {
    /// The owner cancelled or deleted the task.
    Withdrawn,
    /// The lease expired and the task returned to the queue or went to another worker, or the task
    /// is already finished.
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
