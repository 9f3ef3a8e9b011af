//! The fetch stage's part of the interface. A task with references is claimed only after a worker has fetched
//! them and said so. Fetches are leased like runs, but their leases live in memory alone: the process that
//! holds them is the one that dies with them.

use std::sync::Arc;

use kinora_contract::lifecycle::{Event, FetchOutcome, Record, References};
use kinora_contract::{Failure, Task};

use crate::present::Present;

/// Maximum pause before the next fetch, in milliseconds.
pub const FETCH_PAUSE_MS_MAX: u64 = 600_000;

/// A fetch stage's request for tasks.
#[derive(Clone, Debug)]
pub struct FetchRequest {
    /// The models that this worker serves.
    pub models: Vec<String>,
    /// Maximum number of tasks.
    pub count: usize,
    /// Maximum number of tasks of one project that are fetched at a time, in total.
    pub project_max: usize,
    /// Length of a fetch's lease in milliseconds: a task that is not settled by then may be taken
    /// again.
    pub lease_ms: u64,
}

impl FetchRequest {
    /// Whether a fetch under a token, or a pause without one, is over.
    pub(crate) fn is_over(&self, away: References, now: &Present) -> bool {
        let References::Away {
            until_ms, token, ..
        } = away
        else {
            return false;
        };
        let length_ms = token.map_or(FETCH_PAUSE_MS_MAX, |_| self.lease_ms);
        now.is_over(until_ms, length_ms)
    }

    /// The event that begins a fetch under this token, at this time of the store's clock.
    pub(crate) const fn begun(&self, token: u64, now: &Present) -> Event {
        Event::FetchBegun {
            token,
            until_ms: now.lease_ms.saturating_add(self.lease_ms),
        }
    }
}

/// A task whose references must be fetched, with the right to settle the fetch.
#[derive(Clone, Debug)]
pub struct Fetch {
    /// The waiting task.
    pub task: Arc<Task>,
    /// Distinguishes this lease from earlier and later ones of the same task.
    pub token: u64,
    /// Number of times the task was taken since its references were last complete, including this
    /// one.
    pub tries: u32,
}

impl Fetch {
    /// For a task whose fetch has just begun under this token.
    pub(crate) fn of(begun: &Record, token: u64) -> Self {
        Self {
            task: begun.task.clone(),
            token,
            tries: begun.references.tries(),
        }
    }
}

/// The outcome of a fetch.
#[derive(Clone, Debug)]
pub enum Fetched {
    /// Every reference is stored: workers can claim the task, even after a restart.
    AtHand,
    /// A reference cannot be fetched: the task fails.
    Failed {
        /// The failure of the task.
        failure: Failure,
        /// How long to keep the failed task, in milliseconds.
        retention_ms: u64,
    },
    /// A fault of this service, or of a host for the moment: the task may be taken again later.
    Back {
        /// Minimum pause in milliseconds.
        pause_ms: u64,
    },
}

impl Fetched {
    /// The outcome as an event, at this time of the store's clock.
    pub(crate) fn at(&self, now: &Present) -> FetchOutcome {
        match self {
            Self::AtHand => FetchOutcome::AtHand,
            Self::Failed {
                failure,
                retention_ms,
            } => FetchOutcome::Failed {
                failure: failure.clone(),
                now_ms: now.wall_ms,
                retention_ms: *retention_ms,
            },
            Self::Back { pause_ms } => FetchOutcome::Back {
                not_before_ms: now.lease_ms.saturating_add(*pause_ms),
            },
        }
    }
}
