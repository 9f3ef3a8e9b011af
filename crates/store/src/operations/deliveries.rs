//! Deliveries of webhooks: take those that are due, and remove those that are too many.

use std::collections::BTreeMap;

use crate::backend::{Operation, Transaction};
use crate::tables::webhooks;
use crate::{DeliveryRequest, DueDelivery};

impl Operation for DeliveryRequest {
    type Output = Vec<DueDelivery>;

    async fn apply<T: Transaction>(&self, tx: &mut T) -> Result<Vec<DueDelivery>, T::Fault> {
        let now_ms = tx.now().wall_ms;
        let due = tx.query(webhooks::due(T::DIALECT, self, now_ms)).await?;
        if due.is_empty() {
            return Ok(Vec::new());
        }
        let numbers = due.iter().map(|row| row.get(0));
        let numbers = numbers.collect::<Result<Vec<u64>, _>>()?;
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

/// Removes deliveries beyond the limits of their webhooks ([`webhooks::excess`]). Returns the number of
/// pending ones, which are counted as dropped.
#[derive(Debug)]
pub(crate) struct TrimDeliveries(pub(crate) Vec<(bool, u64)>);

impl Operation for TrimDeliveries {
    type Output = u64;

    async fn apply<T: Transaction>(&self, tx: &mut T) -> Result<u64, T::Fault> {
        let mut dropped = BTreeMap::<String, u64>::new();
        for is_pending in [false, true] {
            let numbers = self.0.iter().filter(|(pending, _)| *pending == is_pending);
            let numbers: Vec<u64> = numbers.map(|(_, number)| *number).collect();
            let remove = webhooks::remove(T::DIALECT, is_pending, &numbers);
            for row in tx.write(remove).await?.iter().filter(|_| is_pending) {
                *dropped.entry(row.get(0)?).or_default() += 1;
            }
        }
        tx.write(webhooks::count_dropped(T::DIALECT, &dropped))
            .await?;
        Ok(dropped.values().sum())
    }
}
