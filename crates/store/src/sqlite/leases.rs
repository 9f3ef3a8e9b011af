//! What workers do with runs: claim tasks, and let events happen to those that they hold.

use kinora_contract::lifecycle::{Event, Held, Record, Refused};
use kinora_contract::{Reading, State, TaskId};

use super::alone;
use super::batch::Batch;
use super::fault::{Done, Fault};
use super::index::Share;
use super::starts;
use super::writer::{Job, Operation, unattended};
use crate::{Attempt, Claim, ClaimRequest, Fetched, Lease, LeaseLost, Outcome, Renewal};

impl Operation for ClaimRequest {
    type Output = Vec<Claim>;

    fn apply(&self, batch: &mut Batch<'_>) -> Done<Vec<Claim>> {
        let share = Share {
            slots: self.slots,
            project_max: self.project_slots_max,
        };
        let mut claims = Vec::new();
        let mut alone = alone::is_held_back(batch.index(), self, batch.now.steady_ms);
        let unsettled = batch.index().unsettled;
        while claims.len() < self.count && !alone {
            let is_held = |record: &Record| unsettled && alone::must_wait(record, self);
            let next = batch.index().next(&self.models, share, is_held);
            let Some(before) = next.cloned() else {
                break;
            };
            alone = alone::must_wait(&before, self);
            if alone && alone::works(batch.index(), self, batch.now.steady_ms) {
                batch.wait_alone(alone::Next::of(self, &before));
                break;
            }
            let token = batch.next_token()?;
            let held = Held {
                token,
                until_ms: batch.now.wall_ms.saturating_add(self.lease_ms),
                until_steady_ms: batch.now.steady_ms.saturating_add(self.lease_ms),
                worker: self.worker.clone(),
            };
            let now_ms = batch.now.wall_ms;
            let claimed = Event::Claimed { held, now_ms };
            let claimed = batch.apart(|batch| batch.expect(&before, claimed))?;
            let Some(after) = claimed else {
                batch.set_aside(&before);
                continue;
            };
            let task = (*after.task).clone();
            claims.push(Claim {
                lease: Lease {
                    task: task.id,
                    token,
                },
                ticket: after.ticket.as_deref().map(str::to_owned),
                task,
            });
        }
        Ok(claims)
    }

    /// A worker that went away while it asked would hold its tasks until the lease ran out.
    fn unclaimed(claims: Vec<Claim>) -> Vec<Box<dyn Job>> {
        claims
            .into_iter()
            .map(|claim| unattended(release(claim.lease)))
            .collect()
    }
}

/// What the holder of a lease, of a run or of a fetch, does with its task.
#[derive(Debug)]
pub(super) struct Leased {
    pub(super) task: TaskId,
    pub(super) act: Act,
}

/// An event whose time is not known yet: it is that of the transaction.
#[derive(Debug)]
pub(super) enum Act {
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

impl Act {
    fn at(&self, now: Reading) -> Event {
        let now_ms = now.wall_ms;
        match self {
            Self::Renew {
                token,
                lease_ms,
                renewal,
            } => Event::Renewed {
                token: *token,
                until_ms: now_ms.saturating_add(*lease_ms),
                until_steady_ms: now.steady_ms.saturating_add(*lease_ms),
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

impl Operation for Leased {
    type Output = Result<(), LeaseLost>;

    /// A lease must be kept also while the runtime is blocked.
    fn is_urgent(&self) -> bool {
        matches!(self.act, Act::Renew { .. })
    }

    fn apply(&self, batch: &mut Batch<'_>) -> Done<Self::Output> {
        let Some(before) = batch.find(self.task)? else {
            return Ok(Err(LeaseLost::Withdrawn));
        };
        match batch.apply(&before, self.act.at(batch.now))? {
            Ok(after) => {
                if matches!(after.task.state, State::Completed(_)) {
                    // A process that completes a task is in no crash loop.
                    starts::Settle.apply(batch)?;
                }
                Ok(Ok(()))
            }
            Err(Refused::LeaseLost(lost)) => Ok(Err(lost)),
            Err(refused) => Err(Fault::Corrupt(format!("{}: {refused}", self.task))),
        }
    }
}

/// Gives a task back that was claimed for nobody.
fn release(lease: Lease) -> Leased {
    Leased {
        task: lease.task,
        act: Act::Release {
            token: lease.token,
            attempt: Attempt::Forgiven,
        },
    }
}
