//! Postpones the expiry of ended tasks whose times come from a clock that has been corrected since.

use kinora_contract::lifecycle::Event;

use crate::backend::{Channel, Operation, Transaction};
use crate::{ExpiryCursor, Postpone};

impl Operation for Postpone {
    type Output = Option<ExpiryCursor>;

    fn channel(&self) -> Channel<'_> {
        Channel::Queue
    }

    async fn apply<T: Transaction>(&self, tx: &mut T) -> Result<Option<ExpiryCursor>, T::Fault> {
        // Last ones first: a postponed task ends up behind the place where the next call continues.
        // One that is not meant counts too: a call must not search the whole store for the last one.
        let found = tx.postponable(self).await?;
        let is_full = found.len() == self.batch;
        let last = found.last().map(|(place, _)| *place);
        for (place, before) in found {
            let Some(before) = before else {
                continue;
            };
            let ended_at_ms = before.task.finished_at_ms;
            let expires_at_ms = self.moved(place.expires_at_ms, ended_at_ms);
            tx.expect_unless_damaged(&before, Event::Postponed { expires_at_ms })?;
        }
        Ok(last.filter(|_| is_full))
    }
}
