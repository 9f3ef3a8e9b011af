//! Chores and deliveries: takes those that are due under a lease, settles chores, trims deliveries.
//! Their times are wall time, since they outlive the process.

use std::collections::BTreeMap;

use crate::backend::{StoreOperation, StoreTransaction};
use crate::chores::DELETION_LEASE_MS;
use crate::tables::{chores, webhooks};
use crate::{Chore, ChoreDone, ChoreRequest, DeliveryRequest, DueDelivery};

impl StoreOperation for ChoreRequest {
    type Output = Vec<Chore>;

    async fn apply<T: StoreTransaction>(&self, tx: &mut T) -> Result<Vec<Chore>, T::Fault> {
        let now_ms = tx.now().wall_ms;
        let found = tx.query(chores::due(T::DIALECT, self, now_ms)).await?;
        if found.is_empty() {
            return Ok(Vec::new());
        }
        let tokens = tx.chore_tokens(found.len()).await?;
        let until_ms = now_ms.saturating_add(self.lease_ms);
        // Damaged chores are leased too: they wait for their next turn behind the others, instead of being
        // found first by every call.
        let lease = chores::lease(T::DIALECT, &found, &tokens, until_ms)?;
        tx.write(lease).await?;
        Ok(chores::read(&found, &tokens)?)
    }
}

/// Takes the chores that remove these files, leased to the process that deleted their task.
pub(super) async fn lease_files<T: StoreTransaction>(
    tx: &mut T,
    keys: &[String],
) -> Result<Vec<Chore>, T::Fault> {
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let until_ms = tx.now().wall_ms.saturating_add(DELETION_LEASE_MS);
    let tokens = tx.chore_tokens(keys.len()).await?;
    let take = chores::lease_files(T::DIALECT, keys, &tokens, until_ms);
    let taken = tx.write(take).await?;
    let tokens: Vec<u64> = taken
        .iter()
        .map(|row| row.get(6))
        .collect::<Result<_, _>>()?;
    Ok(chores::read(&taken, &tokens)?)
}

/// Settles chores: removes those that are done, and gives the others back.
#[derive(Debug)]
pub(crate) struct CompleteChores(pub(crate) Vec<ChoreDone>);

impl StoreOperation for CompleteChores {
    type Output = ();

    async fn apply<T: StoreTransaction>(&self, tx: &mut T) -> Result<(), T::Fault> {
        let now_ms = tx.now().wall_ms;
        // Two statements for any number of chores. Each row is matched by its token as well: if the
        // lease has ended and another process holds the chore, its row does not match and stays.
        let (mut done, mut later) = (Vec::new(), Vec::new());
        for one in &self.0 {
            let (number, token) = (one.chore.number, one.chore.token);
            match one.again_after_ms {
                None => done.push((number, token)),
                Some(after_ms) => later.push((number, token, now_ms.saturating_add(after_ms))),
            }
        }
        if !done.is_empty() {
            tx.write(chores::remove(T::DIALECT, &done)).await?;
        }
        if !later.is_empty() {
            tx.write(chores::postpone(T::DIALECT, &later)).await?;
        }
        Ok(())
    }
}

impl StoreOperation for DeliveryRequest {
    type Output = Vec<DueDelivery>;

    async fn apply<T: StoreTransaction>(&self, tx: &mut T) -> Result<Vec<DueDelivery>, T::Fault> {
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
        // The rows come in any order; the turns of the webhooks are in that of `numbers`.
        taken.sort_by_key(|one| numbers.iter().position(|number| *number == one.number));
        Ok(taken)
    }
}

/// Removes deliveries beyond the limits of their webhooks ([`webhooks::excess`]). Returns the number of
/// pending ones, which are counted as dropped.
#[derive(Debug)]
pub(crate) struct TrimDeliveries(pub(crate) Vec<(bool, u64)>);

impl StoreOperation for TrimDeliveries {
    type Output = u64;

    async fn apply<T: StoreTransaction>(&self, tx: &mut T) -> Result<u64, T::Fault> {
        let mut dropped = BTreeMap::<String, u64>::new();
        // Finished ones are only a log; dropped pending ones are events that a receiver will miss,
        // so they are counted for the operator.
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
