//! Claims: which waiting tasks a worker gets, by the turns of the projects.

use crate::backend::{Channel, Needs, Operation, Transaction};
use crate::lease::LeasedChange;
use crate::queue::{Claiming, Index};
use crate::{Claim, ClaimRequest};

impl Operation for ClaimRequest {
    type Output = Vec<Claim>;

    fn channel(&self) -> Channel<'_> {
        Channel::Queue
    }

    fn needs(&self, needs: &mut Needs) {
        needs.claims = needs.claims.saturating_add(self.count);
    }

    async fn apply<T: Transaction>(&self, tx: &mut T) -> Result<Vec<Claim>, T::Fault> {
        let Some(mut claiming) = begin(self, tx).await? else {
            return Ok(Vec::new());
        };
        while claiming.is_open() && tx.reach(self, claiming.long_tasks()).await? {
            let next = tx.claimable();
            let next = next.and_then(|queue| queue.next(self, claiming.long_tasks()));
            let Some(before) = next.cloned() else {
                break;
            };
            if let Err(next) = claiming.admit(&before) {
                tx.wait_alone(next)?;
                break;
            }
            let token = tx.next_token()?;
            if let Some(after) = tx.claim(&before, claiming.event(token))? {
                claiming.add(&after, token);
            }
        }
        Ok(claiming.claims())
    }

    /// Otherwise a worker that disappeared while it asked would hold its tasks until the lease
    /// ends.
    fn unclaimed(claims: Vec<Claim>) -> Vec<LeasedChange> {
        claims.iter().map(LeasedChange::give_back).collect()
    }
}

async fn begin<'r, T: Transaction>(
    request: &'r ClaimRequest,
    tx: &mut T,
) -> Result<Option<Claiming<'r>>, T::Fault> {
    if request.count == 0 || !tx.reach(request, request.long_tasks).await? {
        return Ok(None);
    }
    let awaited = tx.awaited(request).await?;
    let running = tx.claimable().into_iter().flat_map(Index::running);
    let running = running.map(|record| &**record);
    Ok(Some(Claiming::begin(
        request,
        tx.now(),
        running,
        awaited.as_deref(),
    )))
}

/// Whether a claim leads to a task. Reads as the claim does, so that it sees the same, and changes
/// nothing.
#[derive(Debug)]
pub(crate) struct IsClaimable(pub(crate) ClaimRequest);

impl Operation for IsClaimable {
    type Output = bool;

    fn channel(&self) -> Channel<'_> {
        Channel::Queue
    }

    fn needs(&self, needs: &mut Needs) {
        self.0.needs(needs);
    }

    async fn apply<T: Transaction>(&self, tx: &mut T) -> Result<bool, T::Fault> {
        let request = &self.0;
        if request.count == 0 || !tx.reach(request, request.long_tasks).await? {
            return Ok(false);
        }
        let awaited = tx.awaited(request).await?;
        let Some(queue) = tx.claimable() else {
            return Ok(false);
        };
        Ok(Claiming::leads_to_task(
            request,
            tx.now(),
            queue.running().map(|record| &**record),
            awaited.as_deref(),
            queue.next(request, request.long_tasks).is_some(),
        ))
    }
}
