//! Leases: the right of one worker to one task until a time, with a fencing token that
//! grows at every claim, so that a late worker's write changes nothing.

use std::fmt;
use std::sync::Arc;

use kinora_contract::{Task, TaskId, UnixMs, VideoSpec, Warning};

/// A worker's right to a task. `renew`, `finish` and `release` carry it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Lease {
    /// The leased task.
    pub task: TaskId,
    /// Fencing token: larger than that of every earlier lease of this store.
    pub token: u64,
}

/// What a worker asks for.
#[derive(Clone, Debug)]
pub struct ClaimRequest {
    /// Worker name, for logs and operators: host and process.
    pub worker: String,
    /// The models that this worker serves; others are left alone.
    pub models: Vec<String>,
    /// How many tasks at most.
    pub count: usize,
    /// Tasks that this worker runs at a time.
    pub slots: usize,
    /// Running tasks of one project at most. 0: all slots, or all but one while another project has a task
    /// that could be claimed instead; of a single slot, that one.
    pub project_slots_max: usize,
    /// The present.
    pub now_ms: UnixMs,
    /// How long the lease lasts.
    pub lease_ms: u64,
}

/// A leased task.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The task as it stands after the claim; `task.attempt` counts this claim.
    pub task: Task,
    /// The right to it.
    pub lease: Lease,
    /// What an earlier attempt kept last ([`Renewed::kept`]).
    pub kept: Option<String>,
}

/// What a renewal records.
#[derive(Clone, Debug)]
pub struct Renewed {
    /// 0 to 99.
    pub progress: u8,
    /// The engine at work, as `name/version`.
    pub engine: Option<String>,
    /// The lease lasts until then.
    pub until_ms: UnixMs,
    /// The spec with what was left to the engine or to a reference (length, shape) decided, once
    /// it is; it replaces the task's. Nothing else of it may differ.
    pub decided: Option<Box<VideoSpec>>,
    /// A token that a later attempt at this task is to be given, in the place of an earlier one.
    /// It goes when the task ends, and no client sees it.
    pub kept: Option<String>,
    /// What the engine will not or cannot do of the request, in the place of what was known before;
    /// `None` leaves that as it is.
    pub warnings: Option<Vec<Warning>>,
    /// A picture of what is being made, encoded, in the place of an earlier one. It goes with the
    /// lease, and need not outlive the process.
    pub preview: Option<Arc<[u8]>>,
}

/// What becomes of an attempt whose task is given back.
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
