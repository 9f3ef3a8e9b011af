//! The fetch stage's part of the interface. A task with references is claimed only after a worker has fetched
//! them and said so. Fetches are leased like runs, but their leases live in memory alone: the process that
//! holds them is the one that dies with them.

use std::sync::Arc;

use kinora_contract::{Failure, SteadyMs, Task, UnixMs};

/// What the fetch stage of a worker asks for.
#[derive(Clone, Debug)]
pub struct FetchRequest {
    /// The models that this worker serves.
    pub models: Vec<String>,
    /// Maximum number of tasks.
    pub count: usize,
    /// Maximum number of tasks of one project that are being fetched at a time, in all.
    pub project_max: usize,
    /// The present by the clock that is never set, which alone judges fetches.
    pub steady_ms: SteadyMs,
    /// How long a fetch is leased: a task that is not settled by then may be taken again.
    pub lease_ms: u64,
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

/// What became of a fetch.
#[derive(Clone, Debug)]
pub enum Fetched {
    /// Every reference is stored: the task can be claimed, also after a restart.
    AtHand,
    /// A reference cannot be had: the task fails.
    Failed {
        /// What the client is told.
        failure: Failure,
        /// The present.
        now_ms: UnixMs,
        /// The failed task expires then.
        expires_at_ms: UnixMs,
    },
    /// A fault of ours: the task may be taken again later.
    Back {
        /// Not before then, by the clock that is never set; at most one lease ahead.
        not_before_ms: SteadyMs,
    },
}
