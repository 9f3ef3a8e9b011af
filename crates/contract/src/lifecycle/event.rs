//! Everything that can happen to a stored task after its insert.

use crate::error::Failure;
use crate::lifecycle::deaths::Verdict;
use crate::lifecycle::lease::{Attempt, Held, LeaseLost};
use crate::spec::VideoSpec;
use crate::task::Artifact;
use crate::time::{SteadyMs, UnixMs};
use crate::warning::Warning;

/// An event in a task's life. Tokens identify who acts; times are those of the store's clock.
#[derive(Clone, Debug)]
pub enum Event {
    /// A worker takes the task.
    Claimed {
        /// The new lease.
        held: Held,
        /// The present.
        now_ms: UnixMs,
    },
    /// The worker reports, and extends its lease.
    Renewed {
        /// Of its lease.
        token: u64,
        /// New end of the lease by the wall clock.
        until_ms: UnixMs,
        /// New end of the lease by the steady clock.
        until_steady_ms: SteadyMs,
        /// Its report.
        renewal: Renewal,
    },
    /// The worker ends the task.
    Finished {
        /// Of its lease.
        token: u64,
        /// The result or the reason why there is none.
        outcome: Outcome,
        /// The present.
        now_ms: UnixMs,
        /// How long an ended task is kept, in milliseconds.
        retention_ms: u64,
    },
    /// The worker gives the task back.
    Released {
        /// Of its lease.
        token: u64,
        /// Whether the attempt counts.
        attempt: Attempt,
    },
    /// The lease ran out, or the worker died.
    WorkerLost {
        /// The verdict on the task ([`crate::lifecycle::judge_death`]).
        verdict: Verdict,
        /// The present.
        now_ms: UnixMs,
        /// How long an ended task is kept, in milliseconds.
        retention_ms: u64,
    },
    /// A fetch of the task's references begins.
    FetchBegun {
        /// Tells this fetch from earlier and later ones.
        token: u64,
        /// End of its lease by the steady clock.
        until_ms: SteadyMs,
    },
    /// The pause before the next fetch of the references is over.
    FetchDue,
    /// A fetch ended.
    FetchEnded {
        /// Of the fetch.
        token: u64,
        /// How.
        outcome: FetchOutcome,
    },
    /// The references were stored, and take so many bytes.
    ReferencesStored {
        /// Of all references together.
        bytes: u64,
    },
    /// The owner cancels the task.
    Cancelled {
        /// The failure of the task.
        failure: Failure,
        /// The present.
        now_ms: UnixMs,
        /// How long an ended task is kept, in milliseconds.
        retention_ms: u64,
    },
    /// The task has waited longer than it may for its first worker.
    WaitedTooLong {
        /// The present.
        now_ms: UnixMs,
        /// How long an ended task is kept, in milliseconds.
        retention_ms: u64,
    },
    /// The time for which the task was kept is over.
    Expired {
        /// The present, from which a tombstone's time counts.
        now_ms: UnixMs,
    },
    /// The task is kept until another time.
    Postponed {
        /// The new expiry.
        expires_at_ms: UnixMs,
    },
    /// The task is removed.
    Deleted {
        /// By the wall clock.
        now_ms: UnixMs,
    },
}

/// How a run ended.
pub type Outcome = Result<Artifact, Failure>;

/// How a fetch ended.
#[derive(Clone, Debug)]
pub enum FetchOutcome {
    /// Every reference is stored: the task can be claimed.
    AtHand,
    /// A reference cannot be fetched or used: the task fails.
    Failed {
        /// The failure of the task.
        failure: Failure,
        /// The present.
        now_ms: UnixMs,
        /// How long an ended task is kept, in milliseconds.
        retention_ms: u64,
    },
    /// The server is at fault: the references may be fetched again later.
    Back {
        /// Not before then, by the steady clock.
        not_before_ms: SteadyMs,
    },
}

/// A worker's report with a renewal.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Renewal {
    /// 0 to 99; less than before changes nothing.
    pub progress: u8,
    /// The engine at work, as `name/version`.
    pub engine: Option<String>,
    /// The spec with the choices that were left to the engine or to a reference (length, shape); it replaces the
    /// task's. Nothing else of it may differ.
    pub decided: Option<Box<VideoSpec>>,
    /// The engine's own text for a later attempt at this task, in the place of an earlier one. It goes when the
    /// task ends, and no client sees it.
    pub ticket: Option<String>,
    /// What the engine will not or cannot do of the request, in the place of what was known before; `None` leaves
    /// that as it is.
    pub warnings: Option<Vec<Warning>>,
}

/// Why an event did not happen. The task is as before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The token is not the one of the task's present run or fetch.
    #[error("the lease is lost: {0}")]
    LeaseLost(LeaseLost),
    /// The task has reached its end.
    #[error("the task has ended")]
    Ended,
    /// The task is in no state in which this can happen.
    #[error("not possible in the task's present state")]
    Impossible,
}

impl From<LeaseLost> for Refused {
    fn from(lost: LeaseLost) -> Self {
        Self::LeaseLost(lost)
    }
}
