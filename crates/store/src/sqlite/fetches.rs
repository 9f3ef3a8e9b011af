//! What the fetch stage does: take tasks whose references are wanted, and say what came of it. Only that they
//! are at hand is written down.

use std::sync::Arc;

use kinora_contract::State;

use super::batch::Batch;
use super::fault::Done;
use super::record::{Record, References};
use super::rows;
use super::times;
use super::writer::{Job, Operation, unattended};
use crate::{Fetch, FetchRequest, Fetched, LeaseLost};

/// Tasks that become fetchable again in one transaction, so that submits never wait for long.
const BACK_MAX: usize = 500;

impl Operation for FetchRequest {
    type Output = Vec<Fetch>;

    fn apply(&self, batch: &mut Batch<'_>) -> Done<Vec<Fetch>> {
        for record in batch.index().back(self.steady_ms, BACK_MAX) {
            let tries = record.references.tries();
            let wanted = record.with_references(References::Wanted { tries });
            batch.note(record.task.id, Some(wanted));
        }
        let mut taken = Vec::new();
        while taken.len() < self.count {
            let next = batch.index().next_fetch(&self.models, self.project_max);
            let Some(before) = next.cloned() else {
                break;
            };
            let token = batch.next_fetch_token();
            let tries = before.references.tries().saturating_add(1);
            let after = before.with_references(References::Away {
                tries,
                until_ms: self.steady_ms.saturating_add(self.lease_ms),
                token: Some(token),
            });
            taken.push(Fetch {
                task: after.task.clone(),
                token,
                tries,
            });
            batch.note(after.task.id, Some(after));
        }
        Ok(taken)
    }

    /// A fetch stage that went away while it asked would hold its tasks until the lease ran out.
    fn unclaimed(fetches: Vec<Fetch>) -> Vec<Box<dyn Job>> {
        let back = |fetch| {
            let fetched = Fetched::Back { not_before_ms: 0 };
            unattended(Settle { fetch, fetched })
        };
        fetches.into_iter().map(back).collect()
    }
}

/// Ends a fetch.
#[derive(Debug)]
pub(super) struct Settle {
    pub(super) fetch: Fetch,
    pub(super) fetched: Fetched,
}

impl Operation for Settle {
    type Output = Result<(), LeaseLost>;

    fn apply(&self, batch: &mut Batch<'_>) -> Done<Self::Output> {
        let id = self.fetch.task.id;
        let before = match self.held(batch)? {
            Ok(record) => record,
            Err(lost) => return Ok(Err(lost)),
        };
        match &self.fetched {
            Fetched::AtHand => {
                rows::set_references_ready(batch.conn, before.seq)?;
                batch.note(id, Some(before.with_references(References::AtHand)));
            }
            Fetched::Failed {
                failure,
                now_ms,
                expires_at_ms,
            } => {
                let after = before.with(None, |task| {
                    task.state = State::Failed(failure.clone());
                    times::end(task, *now_ms, *expires_at_ms);
                });
                batch.update(&before, after)?;
            }
            Fetched::Back { not_before_ms } => {
                let away = References::Away {
                    tries: before.references.tries(),
                    until_ms: *not_before_ms,
                    token: None,
                };
                batch.note(id, Some(before.with_references(away)));
            }
        }
        Ok(Ok(()))
    }
}

impl Settle {
    /// The waiting record whose fetch this is.
    fn held(&self, batch: &Batch<'_>) -> Done<Result<Arc<Record>, LeaseLost>> {
        let found = batch.find(self.fetch.task.id)?;
        let unfinished = found.filter(|record| record.is_unfinished());
        Ok(match unfinished {
            None => Err(LeaseLost::Withdrawn),
            Some(record)
                if record.is_waiting() && record.references.fetch() == Some(self.fetch.token) =>
            {
                Ok(record)
            }
            Some(_) => Err(LeaseLost::Superseded),
        })
    }
}
