//! Chores: take, and settle. Their times are wall time, since chores outlive the process.

use crate::backend::{Operation, Transaction};
use crate::chores::DELETION_LEASE_MS;
use crate::tables::chores;
use crate::{Chore, ChoreDone, ChoreRequest};

impl Operation for ChoreRequest {
    type Output = Vec<Chore>;

    async fn apply<T: Transaction>(&self, tx: &mut T) -> Result<Vec<Chore>, T::Fault> {
        let now_ms = tx.now().wall_ms;
        let found = tx.query(chores::due(T::DIALECT, self, now_ms)).await?;
        if found.is_empty() {
            return Ok(Vec::new());
        }
        let tokens = tx.chore_tokens(found.len()).await?;
        let until_ms = now_ms.saturating_add(self.lease_ms);
        // A damaged one is leased too: it waits for its next turn, behind the others.
        let lease = chores::lease(T::DIALECT, &found, &tokens, until_ms)?;
        tx.write(lease).await?;
        Ok(chores::read(&found, &tokens)?)
    }
}

/// Takes the chores that remove these files, leased to the process that deleted their task.
pub(super) async fn take_files<T: Transaction>(
    tx: &mut T,
    keys: &[String],
) -> Result<Vec<Chore>, T::Fault> {
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let until_ms = tx.now().wall_ms.saturating_add(DELETION_LEASE_MS);
    let tokens = tx.chore_tokens(keys.len()).await?;
    let take = chores::take_files(T::DIALECT, keys, &tokens, until_ms);
    let taken = tx.write(take).await?;
    let tokens: Vec<u64> = taken
        .iter()
        .map(|row| row.get(6))
        .collect::<Result<_, _>>()?;
    Ok(chores::read(&taken, &tokens)?)
}

/// Settles chores: removes those that are done, and gives the others back.
#[derive(Debug)]
pub(crate) struct SettleChores(pub(crate) Vec<ChoreDone>);

impl Operation for SettleChores {
    type Output = ();

    async fn apply<T: Transaction>(&self, tx: &mut T) -> Result<(), T::Fault> {
        let now_ms = tx.now().wall_ms;
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
