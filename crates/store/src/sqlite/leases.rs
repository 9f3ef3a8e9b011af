//! Runs: claims, and the events that lease holders apply to their tasks.

use kinora_contract::TaskId;
use kinora_contract::lifecycle::Refused;

use super::batch::Batch;
use super::fault::{Done, Fault};
use super::job::{Job, Operation, unattended};
use crate::act::Act;
use crate::queue::Claiming;
use crate::{Attempt, Claim, ClaimRequest, Lease, LeaseLost};

impl Operation for ClaimRequest {
    type Output = Vec<Claim>;

    fn apply(&self, batch: &mut Batch<'_>) -> Done<Vec<Claim>> {
        let queue = batch.queue();
        let running = queue.running().map(|record| &**record);
        let mut claiming = Claiming::begin(self, &batch.now, running, queue.awaiting(self));
        while claiming.is_open()
            && let Some(before) = batch.queue().next(self, claiming.long_tasks()).cloned()
        {
            if let Err(next) = claiming.admit(&before) {
                batch.wait_alone(next);
                break;
            }
            let token = batch.next_token()?;
            let claimed = claiming.event(token);
            match batch.apart(|batch| batch.expect(&before, claimed))? {
                Some(after) => claiming.add(&after, token),
                None => batch.set_aside(&before),
            }
        }
        Ok(claiming.claims())
    }

    /// Otherwise a worker that disappeared while it asked would hold its tasks until the lease
    /// ends.
    fn unclaimed(claims: Vec<Claim>) -> Vec<Box<dyn Job>> {
        claims
            .into_iter()
            .map(|claim| unattended(release(claim.lease)))
            .collect()
    }
}

/// Whether a claim leads to a task.
#[derive(Debug)]
pub(super) struct Claimable(pub(super) ClaimRequest);

impl Operation for Claimable {
    type Output = bool;

    fn apply(&self, batch: &mut Batch<'_>) -> Done<bool> {
        let (request, queue) = (&self.0, batch.queue());
        let running = queue.running().map(|record| &**record);
        let awaited = queue.awaiting(request);
        let has_next = queue.next(request, request.long_tasks).is_some();
        Ok(Claiming::leads_to_task(
            request, &batch.now, running, awaited, has_next,
        ))
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

    /// A lease must be renewed even while the runtime is blocked.
    fn is_urgent(&self) -> bool {
        matches!(self.act, Act::Renew { .. })
    }

    fn apply(&self, batch: &mut Batch<'_>) -> Done<Self::Output> {
        let Some(before) = batch.find(self.task)? else {
            return Ok(Err(LeaseLost::Withdrawn));
        };
        match batch.apply(&before, self.act.at(&batch.now))? {
            Ok(_) => Ok(Ok(())),
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
