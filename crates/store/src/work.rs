//! The store as workers see it.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::watch;

use crate::{
    Attempt, Claim, ClaimRequest, Fetch, FetchRequest, Fetched, Lease, LeaseLost, Outcome, Reads,
    Renewal, StoreError,
};

/// The operations of workers. Leases are lengths: the store's clock says when one runs out, and a worker's own
/// clock has no part in it.
#[async_trait]
pub trait Work: Reads {
    /// Leases waiting tasks whose references are not at hand, for the fetch stage: up to `request.count`, by
    /// projects in turn, the project with the fewest leased fetches first, among several the one whose last
    /// fetch is longest ago; its oldest task first. No project holds more than `request.project_max`. A
    /// fetch whose lease has run out is leased again.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot change now.
    async fn take_fetches(&self, request: FetchRequest) -> Result<Vec<Fetch>, StoreError>;

    /// Ends a fetch: the task becomes claimable (durably), fails, or waits for another try.
    ///
    /// # Errors
    /// [`StoreError::LeaseLost`] when the fetch is not the task's current one, or the task has ended: nothing
    /// was changed.
    async fn settle_fetch(&self, fetch: &Fetch, fetched: Fetched) -> Result<(), StoreError>;

    /// Records the stored size of an unfinished task's references, in bytes;
    /// until then an allowance is counted. Without effect on any other task.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot change now.
    async fn charge_references(
        &self,
        task: kinora_contract::TaskId,
        bytes: u64,
    ) -> Result<(), StoreError>;

    /// Leases up to `request.count` waiting tasks whose references are at hand, by projects in turn. Turns are
    /// weighted by the estimated cost of the tasks started ([`kinora_contract::VideoSpec::cost`]), as in
    /// start-time fair queueing: the project that was given the least work comes first, and one that was away
    /// starts where the others are; its oldest task first. A task that is given back has had its turn. A project
    /// that runs its share of the worker's slots ([`ClaimRequest::project_slots_max`]) is passed over. Each lease
    /// gets a fresh, larger token.
    ///
    /// A task that was running at a death of its worker, and has one attempt left, is claimed only by a worker
    /// that runs nothing else, which claims nothing else meanwhile; one whose turn it is holds back further
    /// claims until that is so.
    ///
    /// Claims whose caller went away before the answer go back to the queue by themselves.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot change now.
    async fn claim(&self, request: ClaimRequest) -> Result<Vec<Claim>, StoreError>;

    /// Extends a lease to `lease_ms` from now and records progress (never downward), the engine's name, what has
    /// been decided of the spec, a ticket for later attempts, and warnings.
    ///
    /// # Errors
    /// [`StoreError::LeaseLost`] when the token is stale: nothing was changed.
    async fn renew(&self, lease: &Lease, lease_ms: u64, renewal: Renewal)
    -> Result<(), StoreError>;

    /// Shows an encoded picture of the work in progress, in the place of an earlier one. It goes with the lease,
    /// and need not outlive the process. Without effect under a lease that is lost.
    ///
    /// # Errors
    /// [`StoreError`] when it cannot be stored now.
    async fn put_preview(&self, lease: &Lease, preview: Arc<[u8]>) -> Result<(), StoreError>;

    /// Those of these leases that are lost, each with how, by their places in `leases`. Cheap: from memory where
    /// the process is the only writer, one query otherwise.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot say.
    async fn lost(&self, leases: &[Lease]) -> Result<Vec<(usize, LeaseLost)>, StoreError>;

    /// Ends a running task by compare-and-set on (id, token, running), and keeps it for `retention_ms`.
    ///
    /// # Errors
    /// [`StoreError::LeaseLost`] when the token is stale: nothing was changed.
    async fn finish(
        &self,
        lease: &Lease,
        outcome: Outcome,
        retention_ms: u64,
    ) -> Result<(), StoreError>;

    /// Gives a running task back to the queue, in its old place. The caller says whether the attempt counts,
    /// and gives back no last one that does.
    ///
    /// # Errors
    /// [`StoreError::LeaseLost`] when the token is stale: nothing was changed.
    async fn release(&self, lease: &Lease, attempt: Attempt) -> Result<(), StoreError>;

    /// Starts in a row, that of this process included, that followed a death of the process before: 0 after a
    /// clean stop, and where many processes share the store. A completed task ends the row. Until it ends, no
    /// task is claimed for its last attempt after a death, which another death would end.
    fn unclean_starts(&self) -> u64;

    /// Ends the row of unclean starts: this process lives long enough.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot change now.
    async fn settle(&self) -> Result<(), StoreError>;

    /// A counter that moves when there may be something to claim or to fetch.
    /// A hint that saves waiting; polling is the truth.
    fn work_hints(&self) -> watch::Receiver<u64>;

    /// A counter that moves when a lease was taken away by the task's owner.
    /// A hint that saves waiting; polling is the truth.
    fn withdrawals(&self) -> watch::Receiver<u64>;
}
