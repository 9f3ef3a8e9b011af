//! Leases: the right of one worker to one task until a time, with a fencing token that
//! grows at every claim, so that a late worker's write changes nothing.

use std::fmt;

use kinora_contract::{Task, TaskId, UnixMs};

/// A worker's right to a task. `renew`, `finish` and `release` carry it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Lease {
    /// The leased task.
    pub task: TaskId,
    /// Fencing token: larger than that of every earlier lease of this store.
    pub token: u64,
}

impl Lease {
    /// The blob keys of what a run under this lease publishes: video, thumbnail, spritesheet.
    /// They carry the token, so that no two attempts share one. Both sides know them: the worker
    /// puts the files there, and the store notes them as garbage once the lease ended otherwise
    /// than in a completed task.
    #[must_use]
    pub fn file_keys(&self) -> [String; 3] {
        ["video.mp4", "thumbnail.webp", "spritesheet.jpg"]
            .map(|name| format!("videos/{}/{}/{name}", self.task, self.token))
    }
}

/// What a worker asks for.
#[derive(Clone, Debug)]
pub struct ClaimRequest {
    /// Who asks, for people who look: host and process.
    pub worker: String,
    /// The models that this worker serves; others are left alone.
    pub models: Vec<String>,
    /// How many tasks at most.
    pub count: usize,
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
