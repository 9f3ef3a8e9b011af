//! Changes for workers: claims and fetches lease waiting tasks by the turns of the projects, and the
//! holder of a lease renews, finishes or releases it. A stale lease changes nothing.

use std::sync::Arc;

use kinora_contract::TaskId;
use kinora_contract::lifecycle::{EventRefusal, TaskEvent, TaskRecord};

use crate::backend::{
    CommitChannel, RowNeeds, StoreOperation, StoreTransaction, TransactionFault as _,
};
use crate::queue::{ClaimProgress, QueueIndex};
use crate::work::{LeaseAction, LeasedChange};
use crate::{ClaimRequest, ClaimedTask, FetchReport, FetchRequest, LeaseLost, ReferenceFetch};

impl StoreOperation for ClaimRequest {
    type Output = Vec<ClaimedTask>;

    fn channel(&self) -> CommitChannel<'_> {
        CommitChannel::Queue
    }

    fn needs(&self, needs: &mut RowNeeds) {
        needs.claims = needs.claims.saturating_add(self.count);
    }

    async fn apply<T: StoreTransaction>(&self, tx: &mut T) -> Result<Vec<ClaimedTask>, T::Fault> {
        let Some(mut claiming) = begin_claim(self, tx).await? else {
            return Ok(Vec::new());
        };
        // One task per round, since each claim moves the turns. Example: two projects wait, and a
        // worker with two free slots asks. The first round claims from the project that is furthest
        // behind, which advances its clock by the task's cost; so the second round usually claims
        // from the other.
        while claiming.is_open() && tx.reach(self, claiming.long_tasks()).await? {
            let next = tx.claimable();
            let next = next.and_then(|queue| queue.next(self, claiming.long_tasks()));
            let Some(before) = next.cloned() else {
                break;
            };
            if let Err(next) = claiming.admit(&before) {
                tx.record_waiting_alone(next)?;
                break;
            }
            let token = tx.next_token()?;
            // `None` is a damaged row: the next round no longer sees it, so it cannot stop the
            // loop.
            if let Some(after) = tx.claim(&before, claiming.event(token))? {
                claiming.add(&after, token);
            }
        }
        Ok(claiming.claims())
    }

    /// Without this, a worker that disappeared before the answer would hold its tasks until their leases
    /// end.
    fn return_grants(claims: Vec<ClaimedTask>) -> Vec<LeasedChange> {
        claims.iter().map(LeasedChange::return_claim).collect()
    }
}

async fn begin_claim<'r, T: StoreTransaction>(
    request: &'r ClaimRequest,
    tx: &mut T,
) -> Result<Option<ClaimProgress<'r>>, T::Fault> {
    if request.count == 0 || !tx.reach(request, request.long_tasks).await? {
        return Ok(None);
    }
    let awaited = find_awaited(request, tx).await?;
    // Of all workers: the claim looks for this worker's own runs among them, since one that runs
    // alone, or a task that waits for the worker to be idle, closes it.
    let running = tx.claimable().into_iter().flat_map(QueueIndex::running);
    let running = running.map(|record| &**record);
    Ok(Some(ClaimProgress::begin(
        request,
        tx.now(),
        running,
        awaited.as_deref(),
    )))
}

/// The task that waits for this worker to be idle. One of a paused model would keep an idle worker
/// waiting until the model is resumed.
async fn find_awaited<T: StoreTransaction>(
    request: &ClaimRequest,
    tx: &mut T,
) -> Result<Option<Arc<TaskRecord>>, T::Fault> {
    let awaited = tx.awaited(request).await?;
    Ok(awaited.filter(|record| !request.paused.contains(&record.task.spec.model)))
}

/// Whether a claim would get a task. Reads the same rows as the claim, so that both come to the same
/// answer, and changes nothing.
#[derive(Debug)]
pub(crate) struct IsClaimable(pub(crate) ClaimRequest);

impl StoreOperation for IsClaimable {
    type Output = bool;

    fn channel(&self) -> CommitChannel<'_> {
        CommitChannel::Queue
    }

    fn needs(&self, needs: &mut RowNeeds) {
        self.0.needs(needs);
    }

    async fn apply<T: StoreTransaction>(&self, tx: &mut T) -> Result<bool, T::Fault> {
        let request = &self.0;
        if request.count == 0 || !tx.reach(request, request.long_tasks).await? {
            return Ok(false);
        }
        let awaited = find_awaited(request, tx).await?;
        let Some(queue) = tx.claimable() else {
            return Ok(false);
        };
        Ok(ClaimProgress::leads_to_task(
            request,
            tx.now(),
            queue.running().map(|record| &**record),
            awaited.as_deref(),
            queue.next(request, request.long_tasks).is_some(),
        ))
    }
}

/// Maximum number of fetches in one transaction, which keeps it short.
pub(crate) const TAKEN_MAX: usize = 256;

impl StoreOperation for FetchRequest {
    type Output = Vec<ReferenceFetch>;

    fn channel(&self) -> CommitChannel<'_> {
        CommitChannel::Queue
    }

    async fn apply<T: StoreTransaction>(
        &self,
        tx: &mut T,
    ) -> Result<Vec<ReferenceFetch>, T::Fault> {
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
            let begun = self.begin_event(token, tx.now());
            if let Some(after) = tx.begin_fetch(&before, begun, token)? {
                taken.push(ReferenceFetch::new(&after, token));
            }
        }
        Ok(taken)
    }

    /// Without this, a fetch stage that disappeared before the answer would hold its tasks until their
    /// leases end.
    fn return_grants(fetches: Vec<ReferenceFetch>) -> Vec<LeasedChange> {
        let back = FetchReport::Back { pause_ms: 0 };
        fetches
            .iter()
            .map(|fetch| LeasedChange::complete_fetch(fetch, back.clone()))
            .collect()
    }
}

impl StoreOperation for LeasedChange {
    type Output = Result<(), LeaseLost>;

    fn needs(&self, needs: &mut RowNeeds) {
        needs.tasks.insert(self.task);
    }

    /// A lease must be renewed even while the runtime is blocked.
    fn is_urgent(&self) -> bool {
        matches!(self.action, LeaseAction::Renew { .. })
    }

    async fn apply<T: StoreTransaction>(&self, tx: &mut T) -> Result<Self::Output, T::Fault> {
        // A task that is gone was deleted by its owner: the worker must stop, as after a cancel.
        let Some(before) = tx.find(self.task)? else {
            return Ok(Err(LeaseLost::Withdrawn));
        };
        let event = self.action.event_at(tx.now());
        match tx.apply(&before, event)? {
            Ok(_) => Ok(Ok(())),
            Err(EventRefusal::LeaseLost(lost)) => Ok(Err(lost)),
            // The token matched, so the holder runs the task: no other refusal is possible unless
            // the row is damaged.
            Err(refused) => Err(T::Fault::corrupt(format!("{}: {refused}", self.task))),
        }
    }
}

/// Charges a task for its references. Has no effect on a task that has ended.
#[derive(Debug)]
pub(crate) struct ChargeReferences {
    pub(crate) task: TaskId,
    pub(crate) bytes: u64,
}

impl StoreOperation for ChargeReferences {
    type Output = ();

    fn needs(&self, needs: &mut RowNeeds) {
        needs.tasks.insert(self.task);
    }

    async fn apply<T: StoreTransaction>(&self, tx: &mut T) -> Result<(), T::Fault> {
        if let Some(before) = tx.find(self.task)?
            && before.reference_bytes != self.bytes
        {
            // A task that ended meanwhile refuses the event. Its references are garbage then and
            // cost nothing, so there is nothing to report.
            let _ = tx.apply(&before, TaskEvent::ReferencesStored { bytes: self.bytes })?;
        }
        Ok(())
    }
}
