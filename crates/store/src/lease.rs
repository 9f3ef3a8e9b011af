//! What workers ask of the store for runs, and what they get.

use kinora_contract::Task;
use kinora_contract::lifecycle::Lease;

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
    /// Runs of one task at most: the last one after a death is made alone.
    pub attempts_max: u32,
    /// How long the lease lasts, in milliseconds.
    pub lease_ms: u64,
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
