//! Runs: claims, and the events that lease holders apply to their tasks.

use kinora_contract::lifecycle::{Event, Record, Refused};
use kinora_contract::{State, TaskId};

use super::batch::Batch;
use super::fault::{Done, Fault};
use super::starts;
use super::writer::{Job, Operation, unattended};
use crate::act::Act;
use crate::queue::{Share, alone};
use crate::{Attempt, Claim, ClaimRequest, Lease, LeaseLost};

impl Operation for ClaimRequest {
    type Output = Vec<Claim>;

    fn apply(&self, batch: &mut Batch<'_>) -> Done<Vec<Claim>> {
        let (share, steady_ms) = (Share::of(self), batch.now.steady_ms);
        let mut claims = Vec::new();
        let index = batch.index();
        let runs = index.runs_of(self, steady_ms);
        let mut alone = alone::is_held_back(&runs, index.awaiting(self), self);
        let unsettled = index.unsettled;
        while claims.len() < self.count && !alone {
            let is_held = |record: &Record| unsettled && alone::must_wait(record, self);
            let next = batch.index().next(&self.models, share, is_held);
            let Some(before) = next.cloned() else {
                break;
            };
            alone = alone::must_wait(&before, self);
            if alone && !batch.index().runs_of(self, steady_ms).is_empty() {
                batch.wait_alone(alone::Next::of(self, &before));
                break;
            }
            let token = batch.next_token()?;
            let held = self.held(token, batch.now);
            let now_ms = batch.now.wall_ms;
            let claimed = Event::Claimed { held, now_ms };
            let claimed = batch.apart(|batch| batch.expect(&before, claimed))?;
            let Some(after) = claimed else {
                batch.set_aside(&before);
                continue;
            };
            claims.push(Claim::of(&after, token));
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

/// An action of a lease holder (a run or a fetch) on its task.
#[derive(Debug)]
pub(super) struct Leased {
    pub(super) task: TaskId,
    pub(super) act: Act,
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

/// Gives back a task whose claimant has gone.
fn release(lease: Lease) -> Leased {
    Leased {
        task: lease.task,
        act: Act::Release {
            token: lease.token,
            attempt: Attempt::Forgiven,
        },
    }
}
