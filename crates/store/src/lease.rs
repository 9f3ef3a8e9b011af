//! What workers ask of the store for runs, and what they get.

use kinora_contract::lifecycle::{Held, Lease, Record};
use kinora_contract::{Reading, Task};

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
    /// Tasks of one project that this worker runs at most. 0: all slots, or all but one while another project has a task
    /// that could be claimed instead; of a single slot, that one.
    pub project_slots_max: usize,
    /// Runs of one task at most: the last one after a death is made alone.
    pub attempts_max: u32,
    /// How long the lease lasts, in milliseconds.
    pub lease_ms: u64,
}

impl ClaimRequest {
    /// The lease that a claim at this time is given.
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
    /// The right to it.
    pub lease: Lease,
    /// The ticket of an earlier attempt ([`crate::Renewal::ticket`]).
    pub ticket: Option<String>,
}

impl Claim {
    /// Of a task that was just claimed under this token.
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
