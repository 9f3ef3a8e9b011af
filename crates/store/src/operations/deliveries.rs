//! Deliveries of webhooks: take those that are due.

use crate::backend::{Operation, Transaction};
use crate::tables::webhooks;
use crate::{DeliveryRequest, DueDelivery};

impl Operation for DeliveryRequest {
    type Output = Vec<DueDelivery>;

    async fn apply<T: Transaction>(&self, tx: &mut T) -> Result<Vec<DueDelivery>, T::Fault> {
        let numbers = tx.due_deliveries(self).await?;
        if numbers.is_empty() {
            return Ok(Vec::new());
        }
        let now_ms = tx.now().wall_ms;
        let tokens = tx.chore_tokens(numbers.len()).await?;
        let until_ms = now_ms.saturating_add(self.lease_ms);
        tx.write(webhooks::lease(T::DIALECT, &numbers, &tokens, until_ms))
            .await?;
        let mut taken = Vec::with_capacity(numbers.len());
        for row in tx.query(webhooks::leased(T::DIALECT, &numbers)).await? {
            taken.extend(webhooks::read_due(&row, now_ms)?);
        }
        let place = |one: &DueDelivery| numbers.iter().position(|number| *number == one.number);
        taken.sort_by_key(place);
        Ok(taken)
    }
}
