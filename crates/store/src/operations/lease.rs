//! Changes by the holder of a lease (of a run or of a fetch) to its task.

use kinora_contract::TaskId;
use kinora_contract::lifecycle::{Event, Refused};

use crate::backend::{Needs, Operation, Transaction, TransactionFault as _};
use crate::present::Present;
use crate::{Attempt, Claim, Fetch, Fetched, Lease, LeaseLost, Outcome, Renewal};

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
    fn at(&self, now: &Present) -> Event {
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

impl Operation for LeasedChange {
    type Output = Result<(), LeaseLost>;

    fn needs(&self, needs: &mut Needs) {
        needs.tasks.insert(self.task);
    }

    /// A lease must be renewed even while the runtime is blocked.
    fn is_urgent(&self) -> bool {
        matches!(self.action, LeaseAction::Renew { .. })
    }

    async fn apply<T: Transaction>(&self, tx: &mut T) -> Result<Self::Output, T::Fault> {
        let Some(before) = tx.find(self.task)? else {
            return Ok(Err(LeaseLost::Withdrawn));
        };
        let event = self.action.at(tx.now());
        match tx.apply(&before, event)? {
            Ok(_) => Ok(Ok(())),
            Err(Refused::LeaseLost(lost)) => Ok(Err(lost)),
            Err(refused) => Err(T::Fault::corrupt(format!("{}: {refused}", self.task))),
        }
    }
}
