//! The fetch stage takes tasks whose references are missing.

use crate::backend::{Channel, Operation, Transaction};
use crate::lease::LeasedChange;
use crate::{Fetch, FetchRequest, Fetched};

/// Maximum number of fetches in one transaction, which keeps it short.
pub(crate) const TAKEN_MAX: usize = 256;

impl Operation for FetchRequest {
    type Output = Vec<Fetch>;

    fn channel(&self) -> Channel<'_> {
        Channel::Queue
    }

    async fn apply<T: Transaction>(&self, tx: &mut T) -> Result<Vec<Fetch>, T::Fault> {
        let mut taken = Vec::new();
        if self.count == 0 || !tx.reach_fetches(self).await? {
            return Ok(taken);
        }
        while taken.len() < self.count.min(TAKEN_MAX) {
            let next = tx.fetchable();
            let next = next.and_then(|queue| queue.next_fetch(&self.models, self.project_max));
            let Some(before) = next.cloned() else {
                break;
            };
            let token = tx.next_fetch_token()?;
            let begun = self.begun(token, tx.now());
            if let Some(after) = tx.begin_fetch(&before, begun, token)? {
                taken.push(Fetch::of(&after, token));
            }
        }
        Ok(taken)
    }

    /// Otherwise a fetch stage that disappeared while it asked would hold its tasks until the lease
    /// ends.
    fn unclaimed(fetches: Vec<Fetch>) -> Vec<LeasedChange> {
        let back = Fetched::Back { pause_ms: 0 };
        fetches
            .iter()
            .map(|fetch| LeasedChange::settle(fetch, back.clone()))
            .collect()
    }
}
