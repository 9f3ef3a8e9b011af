//! Workers' requests for runs, and the store's answers.

use kinora_contract::lifecycle::{Event, Held, Lease, Record};
use kinora_contract::{Task, TaskId};

use crate::present::Present;
use crate::{Attempt, Fetch, Fetched, Outcome, Renewal};

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
    /// Limits the long tasks of the claim; `None`: any task may be claimed.
    pub long_tasks: Option<LongTasks>,
    /// Maximum number of runs of one task: the last one after a death runs alone.
    pub attempts_max: u32,
    /// Whether the worker's process has lived for long enough, or follows a clean stop, so that it may make a task's last
    /// run after a death. Otherwise such a task waits, and with it those behind it in its project.
    pub is_settled: bool,
    /// Length of the lease in milliseconds.
    pub lease_ms: u64,
}

impl ClaimRequest {
    /// The lease for a claim at this time.
    pub(crate) fn held(&self, token: u64, now: &Present) -> Held {
        Held {
            token,
            until_ms: now.wall_ms.saturating_add(self.lease_ms),
            ends_ms: now.lease_ms.saturating_add(self.lease_ms),
            worker: self.worker.clone(),
        }
    }
}

/// How many long tasks a claim may take, so that the worker's last slot remains for short ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongTasks {
    /// A task is long if its estimated cost ([`kinora_contract::VideoSpec::cost`]) is above this.
    pub cost_over: u64,
    /// Maximum number of long tasks in this claim.
    pub count: usize,
}

impl LongTasks {
    /// Whether the task must wait until a long one has ended. A task with a ticket never does: its job is running at
    /// another server already.
    pub(crate) fn hold_back(&self, record: &Record) -> bool {
        self.count == 0 && self.is_long(record) && record.ticket.is_none()
    }

    /// The cost of tasks that may be claimed, if no long one may be.
    pub(crate) fn cost_max(&self) -> Option<u64> {
        (self.count == 0).then_some(self.cost_over)
    }

    /// Counts a claimed task.
    pub(crate) fn charge(&mut self, record: &Record) {
        self.count -= usize::from(self.count > 0 && self.is_long(record));
    }

    fn is_long(&self, record: &Record) -> bool {
        record.task.spec.cost() > self.cost_over
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

/// A change under a lease. Fails if the lease is lost, without an effect.
#[derive(Debug)]
pub(crate) struct LeasedChange {
    pub(crate) task: TaskId,
    pub(crate) action: LeaseAction,
}

/// An event without its time: the time of the transaction applies.
#[derive(Debug)]
pub(crate) enum LeaseAction {
    Renew {
        token: u64,
        lease_ms: u64,
        renewal: Renewal,
    },
    Finish {
        token: u64,
        outcome: Outcome,
        retention_ms: u64,
    },
    Release {
        token: u64,
        attempt: Attempt,
    },
    SettleFetch {
        token: u64,
        fetched: Fetched,
    },
}

impl LeasedChange {
    /// Gives back a task whose claimant has gone.
    pub(crate) const fn give_back(claim: &Claim) -> Self {
        let Lease { task, token } = claim.lease;
        Self {
            task,
            action: LeaseAction::Release {
                token,
                attempt: Attempt::Forgiven,
            },
        }
    }

    /// Ends a fetch.
    pub(crate) fn settle(fetch: &Fetch, fetched: Fetched) -> Self {
        Self {
            task: fetch.task.id,
            action: LeaseAction::SettleFetch {
                token: fetch.token,
                fetched,
            },
        }
    }
}

impl LeaseAction {
    /// The event at this time.
    pub(crate) fn at(&self, now: &Present) -> Event {
        let now_ms = now.wall_ms;
        match self {
            Self::Renew {
                token,
                lease_ms,
                renewal,
            } => Event::Renewed {
                token: *token,
                until_ms: now_ms.saturating_add(*lease_ms),
                ends_ms: now.lease_ms.saturating_add(*lease_ms),
                renewal: renewal.clone(),
            },
            Self::Finish {
                token,
                outcome,
                retention_ms,
            } => Event::Finished {
                token: *token,
                outcome: outcome.clone(),
                now_ms,
                retention_ms: *retention_ms,
            },
            Self::Release { token, attempt } => Event::Released {
                token: *token,
                attempt: *attempt,
            },
            Self::SettleFetch { token, fetched } => Event::FetchEnded {
                token: *token,
                outcome: fetched.at(now),
            },
        }
    }
}
