//! Workers' requests for runs, and the store's answers.

use kinora_contract::lifecycle::{Held, Lease, Record};
use kinora_contract::{Reading, Task};

/// A worker's request for tasks.
#[derive(Clone, Debug)]
pub struct ClaimRequest {
    /// Worker name, for logs and operators: host and process.
    pub worker: String,
    /// The models that this worker serves; tasks of other models are ignored.
    pub models: Vec<String>,
    /// Maximum number of tasks.
    pub count: usize,
    /// Maximum number of concurrent tasks of this worker.
    pub slots: usize,
    /// Maximum number of concurrent tasks of one project at this worker. 0: all slots, or all but
    /// one while another project has a claimable task; with a single slot, that one.
    pub project_slots_max: usize,
    /// Maximum number of runs of one task: the last one after a death runs alone.
    pub attempts_max: u32,
    /// Length of the lease in milliseconds.
    pub lease_ms: u64,
}

impl ClaimRequest {
    /// The lease for a claim at this time.
    pub(crate) fn held(&self, token: u64, now: Reading) -> Held {
        Held {
            token,
            until_ms: now.wall_ms.saturating_add(self.lease_ms),
            until_steady_ms: now.steady_ms.saturating_add(self.lease_ms),
            worker: self.worker.clone(),
        }
    }
}

/// A leased task.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The task as it stands after the claim; `task.attempt` counts this claim.
    pub task: Task,
    /// The lease.
    pub lease: Lease,
    /// The ticket of an earlier attempt ([`crate::Renewal::ticket`]).
    pub ticket: Option<String>,
}

impl Claim {
    /// For a task that was just claimed under this token.
    pub(crate) fn of(claimed: &Record, token: u64) -> Self {
        let task = Task::clone(&claimed.task);
        let lease = Lease {
            task: task.id,
            token,
        };
        Self {
            task,
            lease,
            ticket: claimed.ticket.as_deref().map(str::to_owned),
        }
    }
}
