//! Everything that can happen to a stored task after its insert, and the leases under which it happens:
//! the right of one worker to one task for a limited time, with a fencing token that grows with every
//! claim, so that a late worker's write changes nothing. Events are values; they carry every time that
//! they need.

use std::fmt;

use crate::error::Failure;
use crate::error::Warning;
use crate::id::TaskId;
use crate::lifecycle::deaths::DeathVerdict;
use crate::money::Money;
use crate::spec::VideoSpec;
use crate::task::Artifact;
use crate::time::{LeaseMs, UnixMs};

/// An event in a task's life. Tokens identify the actor; times are those of the store's clock.
#[derive(Clone, Debug)]
pub enum TaskEvent {
    /// A worker takes the task.
    Claimed {
        /// The new lease.
        held: StoredLease,
        /// The current time.
        now_ms: UnixMs,
    },
    /// The worker reports, and extends its lease.
    Renewed {
        /// Token of its lease.
        token: u64,
        /// New end of the lease by the wall clock.
        until_ms: UnixMs,
        /// New end of the lease by the clock of leases.
        ends_ms: LeaseMs,
        /// Its report.
        renewal: LeaseRenewal,
    },
    /// The worker ends the task.
    Finished {
        /// Token of its lease.
        token: u64,
        /// The result, or the failure.
        outcome: Box<RunOutcome>,
        /// The current time.
        now_ms: UnixMs,
        /// How long to keep an ended task, in milliseconds.
        retention_ms: u64,
    },
    /// The worker gives the task back.
    Released {
        /// Token of its lease.
        token: u64,
        /// Whether the attempt counts.
        attempt: ReleasedAttempt,
    },
    /// The lease ran out, or the worker died.
    WorkerLost {
        /// The verdict on the task ([`crate::lifecycle::evaluate_death`]).
        verdict: DeathVerdict,
        /// The current time.
        now_ms: UnixMs,
        /// How long to keep an ended task, in milliseconds.
        retention_ms: u64,
    },
    /// A fetch of the task's references begins.
    FetchBegun {
        /// Distinguishes this fetch from earlier and later ones.
        token: u64,
        /// End of its lease by the clock of leases.
        until_ms: LeaseMs,
    },
    /// The pause before the next fetch of the references is over.
    FetchDue,
    /// A fetch ended.
    FetchEnded {
        /// Token of the fetch.
        token: u64,
        /// How the fetch ended.
        outcome: FetchOutcome,
    },
    /// The references were stored, with their total size.
    ReferencesStored {
        /// Size of all references.
        bytes: u64,
    },
    /// The owner cancels the task.
    Cancelled {
        /// The failure of the task.
        failure: Failure,
        /// The current time.
        now_ms: UnixMs,
        /// How long to keep an ended task, in milliseconds.
        retention_ms: u64,
    },
    /// The task has exceeded its maximum wait for the first worker.
    WaitedTooLong {
        /// The current time.
        now_ms: UnixMs,
        /// How long to keep an ended task, in milliseconds.
        retention_ms: u64,
    },
    /// The retention of the task is over.
    Expired {
        /// The current time, from which the tombstone's time counts.
        now_ms: UnixMs,
    },
    /// The task's expiry is postponed.
    Postponed {
        /// The new expiry.
        expires_at_ms: UnixMs,
    },
    /// The task is removed.
    Deleted {
        /// The current time, by the wall clock.
        now_ms: UnixMs,
    },
}

/// How a run ended.
pub type RunOutcome = Result<Artifact, Failure>;

/// How a fetch ended.
#[derive(Clone, Debug)]
pub enum FetchOutcome {
    /// Every reference is stored: workers can claim the task.
    AtHand,
    /// A reference cannot be fetched or used: the task fails.
    Failed {
        /// The failure of the task.
        failure: Failure,
        /// The current time.
        now_ms: UnixMs,
        /// How long to keep an ended task, in milliseconds.
        retention_ms: u64,
    },
    /// The server is at fault, or a host for the moment: another fetch of the references may follow.
    Back {
        /// Earliest time of that fetch, by the clock of leases.
        not_before_ms: LeaseMs,
    },
}

/// A worker's report with a renewal.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LeaseRenewal {
    /// 0 to 99; a lower value than before changes nothing.
    pub progress: u8,
    /// The engine at work, as `name/version`.
    pub engine: Option<String>,
    /// The spec with the values that an engine or a reference determined (length, shape); it
    /// replaces the task's. It may differ in nothing else.
    pub decided: Option<Box<VideoSpec>>,
    /// The engine's own text for a later attempt at this task; it replaces an earlier one, and an empty one removes it.
    /// It is dropped when the task ends, and clients never see it.
    pub ticket: Option<String>,
    /// Parts of the request that the engine will not or cannot satisfy; they replace the previous
    /// ones. `None` changes nothing.
    pub warnings: Option<Vec<Warning>>,
    /// What a provider said that it charges for the task; it replaces the previous amount.
    pub charged: Option<Money>,
}

/// Why an event was refused. The task is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EventRefusal {
    /// The token is not that of the task's current run or fetch.
    #[error("the lease is lost: {0}")]
    LeaseLost(LeaseLost),
    /// The task has ended.
    #[error("the task has ended")]
    Ended,
    /// The task's state does not allow the event.
    #[error("not possible in the task's present state")]
    Impossible,
}

impl From<LeaseLost> for EventRefusal {
    fn from(lost: LeaseLost) -> Self {
        Self::LeaseLost(lost)
    }
}

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
pub struct StoredLease {
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

/// Whether the attempt of a task that returns to the queue counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReleasedAttempt {
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
