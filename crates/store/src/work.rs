//! The store's interface for workers.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::watch;

use crate::{
    Attempt, Claim, ClaimRequest, Fetch, FetchRequest, Fetched, Lease, LeaseLost, Outcome, Reads,
    Renewal, StoreError,
};

/// Operations for workers. Leases are given as lengths: the store's clock decides when one ends,
/// and a worker's own clock does not matter.
#[async_trait]
pub trait Work: Reads {
    /// Leases waiting tasks whose references are not stored, for the fetch stage: up to
    /// `request.count`, by projects in turn: the project with the fewest leased fetches first, then
    /// the one whose last fetch is longest ago; its oldest task first. No project holds more than
    /// `request.project_max`. A fetch whose lease has ended is leased again.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be written now.
    async fn take_fetches(&self, request: FetchRequest) -> Result<Vec<Fetch>, StoreError>;

    /// Ends a fetch: the task becomes claimable (durably), fails, or waits for another try.
    ///
    /// # Errors
    /// [`StoreError::LeaseLost`] if the fetch is not the task's current one, or the task has ended:
    /// nothing was changed.
    async fn settle_fetch(&self, fetch: &Fetch, fetched: Fetched) -> Result<(), StoreError>;

    /// Records the stored size of an unfinished task's references, in bytes, which replaces the
    /// allowance. No effect on any other task.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be written now.
    async fn charge_references(
        &self,
        task: kinora_contract::TaskId,
        bytes: u64,
    ) -> Result<(), StoreError>;

    /// Leases up to `request.count` waiting tasks whose references are stored, by projects in turn.
    /// Turns are weighted by the estimated cost of the started tasks
    /// ([`kinora_contract::VideoSpec::cost`]), as in start-time fair queueing: the project that got
    /// the least work comes first, and one that was idle starts level with the others; its oldest
    /// task first. A task that is given back has used its turn. A project at its share of the
    /// worker's slots ([`ClaimRequest::project_slots_max`]) is skipped. Each lease gets a new,
    /// larger token.
    ///
    /// A task that was running when a worker died, and has one attempt left, is claimed only by a
    /// worker that runs nothing else, which then claims nothing else; when such a task's turn
    /// comes, it holds back further claims until that is possible.
    ///
    /// If the caller has gone before the answer, the claims return to the queue.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be written now.
    async fn claim(&self, request: ClaimRequest) -> Result<Vec<Claim>, StoreError>;

    /// Whether this claim would get a task now, by the same rules. Also true for a task that must run alone while the
    /// worker runs others: the claim gets nothing yet, but holds the worker back until it can. Claims nothing itself, so
    /// another worker may be faster.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read.
    async fn has_claimable(&self, request: &ClaimRequest) -> Result<bool, StoreError>;

    /// Extends a lease to `lease_ms` from now and records progress (which never falls), the
    /// engine's name, the decided parts of the spec, a ticket for later attempts, and warnings.
    ///
    /// # Errors
    /// [`StoreError::LeaseLost`] if the token is stale: nothing was changed.
    async fn renew(&self, lease: &Lease, lease_ms: u64, renewal: Renewal)
    -> Result<(), StoreError>;

    /// Stores an encoded preview in place of an earlier one. It is dropped with the lease, and need
    /// not survive the process. No effect under a lost lease.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be stored now.
    async fn put_preview(&self, lease: &Lease, preview: Arc<[u8]>) -> Result<(), StoreError>;

    /// The lost ones among these leases, by their index in `leases`, each with how it was lost.
    /// Cheap: from memory if the process is the only writer, otherwise one query.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot answer.
    async fn lost(&self, leases: &[Lease]) -> Result<Vec<(usize, LeaseLost)>, StoreError>;

    /// Ends a running task by compare-and-set on (id, token, running), and keeps it for
    /// `retention_ms`.
    ///
    /// # Errors
    /// [`StoreError::LeaseLost`] if the token is stale: nothing was changed.
    async fn finish(
        &self,
        lease: &Lease,
        outcome: Outcome,
        retention_ms: u64,
    ) -> Result<(), StoreError>;

    /// Returns a running task to its old place in the queue. The caller says whether the attempt
    /// counts, and must not return a last attempt that does.
    ///
    /// # Errors
    /// [`StoreError::LeaseLost`] if the token is stale: nothing was changed.
    async fn release(&self, lease: &Lease, attempt: Attempt) -> Result<(), StoreError>;

    /// Number of starts in a row, including this one, that followed a death of the previous
    /// process: 0 after a clean stop. `None` if many processes share the store: nothing is known of
    /// this one.
    fn unclean_starts(&self) -> Option<u64>;

    /// Ends the series of unclean starts: this process has lived long enough.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be written now.
    async fn settle(&self) -> Result<(), StoreError>;

    /// A counter that moves when a task may be ready to claim or to fetch. Only a hint that
    /// shortens waiting; polling must be enough.
    fn work_hints(&self) -> watch::Receiver<u64>;

    /// A counter that moves when a task's owner has withdrawn a lease. Only a hint that shortens
    /// waiting; polling must be enough.
    fn withdrawals(&self) -> watch::Receiver<u64>;
}
