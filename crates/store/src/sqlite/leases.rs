//! What workers do: claim, renew, finish, release. Every write but the claim is a
//! compare-and-set on (id, token, running).

use std::sync::Arc;

use kinora_contract::{Artifact, Failure, State, UnixMs};

use super::alone;
use super::batch::Batch;
use super::fault::Done;
use super::index::Share;
use super::record::{Held, Record, References};
use super::starts;
use super::times;
use super::writer::{Job, Operation, unattended};
use crate::{Attempt, Claim, ClaimRequest, Lease, LeaseLost, Renewed};

impl Operation for ClaimRequest {
    type Output = Vec<Claim>;

    fn apply(&self, batch: &mut Batch<'_>) -> Done<Vec<Claim>> {
        let share = Share {
            slots: self.slots,
            project_max: self.project_slots_max,
        };
        let mut claims = Vec::new();
        let mut alone = alone::is_held_back(batch.index(), self);
        let unsettled = batch.index().unsettled;
        while claims.len() < self.count && !alone {
            let is_held = |record: &Record| unsettled && alone::must_wait(record, self);
            let next = batch.index().next(&self.models, share, is_held);
            let Some(before) = next.cloned() else {
                break;
            };
            alone = alone::must_wait(&before, self);
            if alone && alone::works(batch.index(), self) {
                batch.wait_alone(alone::Next::of(self, &before));
                break;
            }
            let token = batch.next_token()?;
            let held = Held {
                token,
                until_ms: self.now_ms.saturating_add(self.lease_ms),
                until_steady_ms: self.steady_ms.saturating_add(self.lease_ms),
                worker: self.worker.clone(),
            };
            let after = before.with(Some(held), |task| {
                task.state = State::Running;
                task.attempt = task.attempt.saturating_add(1);
                times::start(task, self.now_ms);
            });
            let updated = batch.apart(|batch| batch.update(&before, after.clone()))?;
            if updated.is_none() {
                batch.set_aside(&before);
                continue;
            }
            let task = (*after.task).clone();
            claims.push(Claim {
                lease: Lease {
                    task: task.id,
                    token,
                },
                kept: after.kept.as_deref().map(str::to_owned),
                task,
            });
        }
        Ok(claims)
    }

    /// A worker that went away while it asked would hold its tasks until the lease ran out.
    fn unclaimed(claims: Vec<Claim>) -> Vec<Box<dyn Job>> {
        claims
            .into_iter()
            .map(|claim| unattended(Release(claim.lease, Attempt::Forgiven)))
            .collect()
    }
}

/// Extends a lease.
#[derive(Debug)]
pub(super) struct Renew(pub(super) Lease, pub(super) Renewed);

impl Operation for Renew {
    type Output = Result<(), LeaseLost>;

    fn apply(&self, batch: &mut Batch<'_>) -> Done<Self::Output> {
        let Self(lease, renewed) = self;
        let before = match held(batch, lease)? {
            Ok(record) => record,
            Err(lost) => return Ok(Err(lost)),
        };
        let renewal = before.lease.clone().map(|lease| Held {
            until_ms: renewed.until_ms,
            until_steady_ms: renewed.until_steady_ms,
            ..lease
        });
        let mut after = before.with(renewal, |task| {
            task.progress = task.progress.max(renewed.progress.min(99));
            if renewed.engine.is_some() {
                task.engine.clone_from(&renewed.engine);
            }
            if let Some(decided) = &renewed.decided {
                task.spec.clone_from(decided);
            }
            if let Some(warnings) = &renewed.warnings {
                task.warnings.clone_from(warnings);
            }
        });
        let record = Arc::make_mut(&mut after);
        if let Some(kept) = &renewed.kept {
            record.kept = Some(kept.as_str().into());
        }
        if renewed.preview.is_some() {
            record.preview.clone_from(&renewed.preview);
        }
        batch.renew(&before, after)?;
        Ok(Ok(()))
    }
}

/// Ends a running task.
#[derive(Debug)]
pub(super) struct Finish {
    pub(super) lease: Lease,
    pub(super) outcome: Result<Artifact, Failure>,
    pub(super) now_ms: UnixMs,
    pub(super) expires_at_ms: UnixMs,
}

impl Operation for Finish {
    type Output = Result<(), LeaseLost>;

    fn apply(&self, batch: &mut Batch<'_>) -> Done<Self::Output> {
        let before = match held(batch, &self.lease)? {
            Ok(record) => record,
            Err(lost) => return Ok(Err(lost)),
        };
        let after = before.with(None, |task| {
            task.state = match self.outcome.clone() {
                Ok(artifact) => State::Completed(Box::new(artifact)),
                Err(failure) => State::Failed(failure),
            };
            if self.outcome.is_ok() {
                task.progress = 100;
            }
            times::end(task, self.now_ms, self.expires_at_ms);
        });
        if self.outcome.is_ok() {
            // A process that completes a task is in no crash loop.
            starts::Settle.apply(batch)?;
        }
        batch.update(&before, after)?;
        Ok(Ok(()))
    }
}

/// Gives a running task back.
#[derive(Debug)]
pub(super) struct Release(pub(super) Lease, pub(super) Attempt);

impl Operation for Release {
    type Output = Result<(), LeaseLost>;

    fn apply(&self, batch: &mut Batch<'_>) -> Done<Self::Output> {
        let before = match held(batch, &self.0)? {
            Ok(record) => record,
            Err(lost) => return Ok(Err(lost)),
        };
        let mut after = before.with(None, |task| {
            task.state = State::Waiting;
            if self.1 != Attempt::Counts {
                task.attempt = task.attempt.saturating_sub(1);
            }
        });
        if self.1 == Attempt::ReferencesLost {
            let lost = References::stored(false, &after.task);
            Arc::make_mut(&mut after).references = lost;
        }
        batch.update(&before, after)?;
        Ok(Ok(()))
    }
}

/// The running record that this lease is for.
fn held(batch: &Batch<'_>, lease: &Lease) -> Done<Result<Arc<Record>, LeaseLost>> {
    let record = batch.find(lease.task)?;
    Ok(judge(record.as_deref(), lease).and(record.ok_or(LeaseLost::Withdrawn)))
}

/// Whether this record is held by this lease, or how the lease was lost.
pub(super) fn judge(record: Option<&Record>, lease: &Lease) -> Result<(), LeaseLost> {
    match record {
        None => Err(LeaseLost::Withdrawn),
        Some(record) if record.token() != Some(lease.token) => Err(LeaseLost::Superseded),
        Some(record) if record.is_running() => Ok(()),
        // Only a cancel keeps the token of a task that it ends.
        Some(_) => Err(LeaseLost::Withdrawn),
    }
}
