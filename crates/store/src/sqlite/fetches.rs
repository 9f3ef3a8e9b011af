//! Operations of the fetch stage: take tasks whose references are missing, and settle the fetches.
//! The database records only whether the references are stored.

use kinora_contract::lifecycle::Event;

use super::batch::Batch;
use super::fault::Done;
use super::job::{Job, Operation, unattended};
use super::leases::Leased;
use crate::act::Act;
use crate::{Fetch, FetchRequest, Fetched};

/// Maximum number of tasks that become fetchable again in one transaction, so that submits never
/// wait for long.
const BACK_MAX: usize = 500;

impl Operation for FetchRequest {
    type Output = Vec<Fetch>;

    fn apply(&self, batch: &mut Batch<'_>) -> Done<Vec<Fetch>> {
        for record in batch.queue().back(batch.now.lease_ms, BACK_MAX) {
            batch.expect(&record, Event::FetchDue)?;
        }
        let mut taken = Vec::new();
        while taken.len() < self.count {
            let next = batch.queue().next_fetch(&self.models, self.project_max);
            let Some(before) = next.cloned() else {
                break;
            };
            let token = batch.next_fetch_token();
            let after = batch.expect(&before, self.begun(token, &batch.now))?;
            taken.push(Fetch::of(&after, token));
        }
        Ok(taken)
    }

    /// Otherwise a fetch stage that disappeared while it asked would hold its tasks until the lease
    /// ends.
    fn unclaimed(fetches: Vec<Fetch>) -> Vec<Box<dyn Job>> {
        let back = |fetch: Fetch| unattended(settle(&fetch, Fetched::Back { pause_ms: 0 }));
        fetches.into_iter().map(back).collect()
    }
}

/// Ends a fetch.
pub(super) fn settle(fetch: &Fetch, fetched: Fetched) -> Leased {
    Leased {
        task: fetch.task.id,
        act: Act::SettleFetch {
            token: fetch.token,
            fetched,
        },
    }
}
