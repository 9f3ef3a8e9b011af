//! The fetch stage's part of the interface. A task with references is claimed only after a worker has fetched
//! them and said so. Fetches are leased like runs, but their leases live in memory alone: the process that
//! holds them is the one that dies with them.

use std::sync::Arc;

use kinora_contract::lifecycle::{Event, FetchOutcome, Record};
use kinora_contract::{Failure, Reading, Task};

/// What the fetch stage of a worker asks for.
#[derive(Clone, Debug)]
pub struct FetchRequest {
    /// The models that this worker serves.
    pub models: Vec<String>,
    /// Maximum number of tasks.
    pub count: usize,
    /// Maximum number of tasks of one project that are being fetched at a time, in all.
    pub project_max: usize,
    /// How long a fetch is leased, in milliseconds: a task that is not settled by then may be taken again.
    pub lease_ms: u64,
}

impl FetchRequest {
    /// The beginning of a fetch under this token, at this time of the store's clock.
    pub(crate) const fn begun(&self, token: u64, now: Reading) -> Event {
        Event::FetchBegun {
            token,
            until_ms: now.steady_ms.saturating_add(self.lease_ms),
        }
    }
}

/// A task whose references are to be fetched, and the right to settle it.
#[derive(Clone, Debug)]
pub struct Fetch {
    /// The waiting task.
    pub task: Arc<Task>,
    /// Tells this lease from earlier and later ones of the same task.
    pub token: u64,
    /// How often the task was taken since its references were last at hand, this time included.
    pub tries: u32,
}

impl Fetch {
    /// Of a task whose fetch has just begun under this token.
    pub(crate) fn of(begun: &Record, token: u64) -> Self {
        Self {
            task: begun.task.clone(),
            token,
            tries: begun.references.tries(),
        }
    }
}

/// What became of a fetch.
#[derive(Clone, Debug)]
pub enum Fetched {
    /// Every reference is stored: the task can be claimed, also after a restart.
    AtHand,
    /// A reference cannot be had: the task fails.
    Failed {
        /// What the task fails with.
        failure: Failure,
        /// How long the failed task is kept, in milliseconds.
        retention_ms: u64,
    },
    /// A fault of ours: the task may be taken again later.
    Back {
        /// Not before so many milliseconds have passed.
        pause_ms: u64,
    },
}

impl Fetched {
    /// The same as what happens to the task, at this time of the store's clock.
    pub(crate) fn at(&self, now: Reading) -> FetchOutcome {
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
                not_before_ms: now.steady_ms.saturating_add(*pause_ms),
            },
        }
    }
}
