//! Wraps a store, and makes calls fail before or after they take effect, or delays them, according
//! to its [`Plan`]. For tests: it changes nothing else.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use kinora_contract::{Failure, Reading, Task, TaskId};
pub use kinora_testkit::faults::{Fault, Injected, Plan, Rates};
use tokio::sync::watch;

use crate::changes::Followers;
use crate::{
    Announcement, Attempt, Cancellation, Changes, Chore, ChoreDone, ChoreRequest, Chores, Claim,
    ClaimRequest, Counts, Deletion, Ended, EndedRequest, ExpiryCursor, Fetch, FetchRequest,
    Fetched, Glance, Idempotency, Insertion, Lease, LeaseLost, LivingWorker, NewTask, Outcome,
    Page, PageRequest, Postpone, Reads, Renewal, StoreError, Stores, SweepRequest, Swept, Tasks,
    Usage, Work, Workers,
};

/// The methods that can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Method {
    /// [`crate::Tasks::insert`].
    Insert,
    /// [`crate::Tasks::find_twin`].
    FindTwin,
    /// [`crate::Tasks::get`].
    Get,
    /// [`crate::Reads::task`].
    Task,
    /// [`crate::Tasks::list`].
    List,
    /// [`crate::Tasks::positions`].
    Positions,
    /// [`crate::Tasks::glance`].
    Glance,
    /// [`crate::Tasks::unfinished`].
    Unfinished,
    /// [`crate::Tasks::ended`].
    Ended,
    /// [`crate::Tasks::preview`].
    Preview,
    /// [`crate::Tasks::cancel`].
    Cancel,
    /// [`crate::Tasks::delete`].
    Delete,
    /// [`crate::Tasks::settle_deleted`].
    SettleDeleted,
    /// [`crate::Tasks::usage`].
    Usage,
    /// [`crate::Tasks::counts`].
    Counts,
    /// [`crate::Work::take_fetches`].
    TakeFetches,
    /// [`crate::Work::settle_fetch`].
    SettleFetch,
    /// [`crate::Work::charge_references`].
    ChargeReferences,
    /// [`crate::Work::claim`].
    Claim,
    /// [`crate::Work::has_claimable`].
    HasClaimable,
    /// [`crate::Work::renew`].
    Renew,
    /// [`crate::Work::renew`] with a ticket to store.
    KeepTicket,
    /// [`crate::Work::put_preview`].
    PutPreview,
    /// [`crate::Work::lost`].
    Lost,
    /// [`crate::Work::finish`].
    Finish,
    /// [`crate::Work::release`].
    Release,
    /// [`crate::Work::settle`].
    Settle,
    /// [`crate::Chores::clock`].
    Clock,
    /// [`crate::Chores::sweep`].
    Sweep,
    /// [`crate::Chores::postpone`].
    Postpone,
    /// [`crate::Chores::take_chores`].
    TakeChores,
    /// [`crate::Chores::settle_chores`].
    SettleChores,
    /// [`crate::Chores::known`].
    Known,
    /// [`crate::Workers::announce`].
    Announce,
    /// [`crate::Workers::withdraw`].
    Withdraw,
    /// [`crate::Workers::living`].
    Living,
    /// [`crate::Workers::served_models`].
    ServedModels,
}

impl Method {
    /// The methods that only read.
    pub const READS: [Self; 17] = [
        Self::Task,
        Self::FindTwin,
        Self::Get,
        Self::List,
        Self::Positions,
        Self::Glance,
        Self::Unfinished,
        Self::Ended,
        Self::Preview,
        Self::Usage,
        Self::Counts,
        Self::HasClaimable,
        Self::Lost,
        Self::Clock,
        Self::Known,
        Self::Living,
        Self::ServedModels,
    ];
}

/// A store with faults.
#[derive(Debug)]
pub struct FaultyStore {
    inner: Stores,
    plan: Arc<Plan<Method>>,
    /// Whether its handle receives no hints.
    deaf: bool,
}

impl FaultyStore {
    /// Wraps `inner` with the faults of `plan`. API keys, webhooks, operators' queries, shared
    /// secrets and allowances work normally.
    pub fn wrap(inner: Stores, plan: Arc<Plan<Method>>) -> Stores {
        Self::around(inner, plan, false)
    }

    /// Like [`FaultyStore::wrap`], for a handle that receives no hints, as if the connection for
    /// notifications were down: polling must be enough.
    pub fn wrap_deaf(inner: Stores, plan: Arc<Plan<Method>>) -> Stores {
        Self::around(inner, plan, true)
    }

    fn around(inner: Stores, plan: Arc<Plan<Method>>, deaf: bool) -> Stores {
        // Only the parts that run tasks fail. A fault in a login or in an operator's query would
        // end a test before it comes to its point.
        let (keys, secrets) = (inner.keys.clone(), inner.secrets.clone());
        let webhooks = inner.webhooks.clone();
        let operations = inner.operations.clone();
        let (holds, allowances) = (inner.holds.clone(), inner.allowances.clone());
        let faulty = Arc::new(Self { inner, plan, deaf });
        Stores {
            tasks: faulty.clone(),
            work: faulty.clone(),
            chores: faulty.clone(),
            workers: faulty,
            operations,
            keys,
            webhooks,
            secrets,
            allowances,
            holds,
        }
    }

    /// Runs `call`, which starts only when awaited, according to the plan.
    async fn call<T>(
        &self,
        method: Method,
        call: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        self.plan.call(method, call, injected).await
    }

    fn hints(&self, hints: watch::Receiver<u64>) -> watch::Receiver<u64> {
        if self.deaf { silence() } else { hints }
    }
}

/// Hints that never come, since their sender is dropped.
fn silence() -> watch::Receiver<u64> {
    watch::Sender::new(0).subscribe()
}

fn injected(how: &str) -> StoreError {
    StoreError::Unavailable(format!("an injected fault: {how}").into())
}

#[async_trait]
impl Reads for FaultyStore {
    async fn task(&self, id: TaskId) -> Result<Option<Arc<Task>>, StoreError> {
        let call = self.inner.tasks.task(id);
        self.call(Method::Task, call).await
    }
}

#[async_trait]
impl Tasks for FaultyStore {
    async fn insert(&self, new: NewTask) -> Result<Insertion, StoreError> {
        let call = self.inner.tasks.insert(new);
        self.call(Method::Insert, call).await
    }

    async fn find_twin(
        &self,
        project: &str,
        idempotency: &Idempotency,
    ) -> Result<Option<Arc<Task>>, StoreError> {
        let call = self.inner.tasks.find_twin(project, idempotency);
        self.call(Method::FindTwin, call).await
    }

    async fn get(&self, project: &str, id: TaskId) -> Result<Option<Arc<Task>>, StoreError> {
        let call = self.inner.tasks.get(project, id);
        self.call(Method::Get, call).await
    }

    async fn poll(&self, project: &str, id: TaskId) -> Result<Option<Arc<Task>>, StoreError> {
        let call = self.inner.tasks.poll(project, id);
        self.call(Method::Get, call).await
    }

    async fn list(&self, request: PageRequest) -> Result<Page, StoreError> {
        let call = self.inner.tasks.list(request);
        self.call(Method::List, call).await
    }

    async fn positions(&self, ids: &[TaskId]) -> Result<Vec<Option<u64>>, StoreError> {
        let call = self.inner.tasks.positions(ids);
        self.call(Method::Positions, call).await
    }

    async fn glance(&self, ids: &[TaskId]) -> Result<Vec<Option<Glance>>, StoreError> {
        let call = self.inner.tasks.glance(ids);
        self.call(Method::Glance, call).await
    }

    async fn unfinished(&self, project: &str) -> Result<Vec<Glance>, StoreError> {
        let call = self.inner.tasks.unfinished(project);
        self.call(Method::Unfinished, call).await
    }

    async fn ended(&self, request: EndedRequest) -> Result<Ended, StoreError> {
        let call = self.inner.tasks.ended(request);
        self.call(Method::Ended, call).await
    }

    fn changes(&self) -> Changes {
        if self.deaf {
            // The sender is dropped here, so this follower hears nothing.
            Followers::default().join()
        } else {
            self.inner.tasks.changes()
        }
    }

    async fn preview(&self, id: TaskId) -> Result<Option<Arc<[u8]>>, StoreError> {
        let call = self.inner.tasks.preview(id);
        self.call(Method::Preview, call).await
    }

    async fn cancel(
        &self,
        project: &str,
        id: TaskId,
        failure: Failure,
        retention_ms: u64,
    ) -> Result<Cancellation, StoreError> {
        let call = self.inner.tasks.cancel(project, id, failure, retention_ms);
        self.call(Method::Cancel, call).await
    }

    async fn delete(&self, project: &str, id: TaskId) -> Result<Deletion, StoreError> {
        let call = self.inner.tasks.delete(project, id);
        self.call(Method::Delete, call).await
    }

    async fn settle_deleted(&self, done: Vec<ChoreDone>) -> Result<(), StoreError> {
        let call = self.inner.tasks.settle_deleted(done);
        self.call(Method::SettleDeleted, call).await
    }

    async fn usage(&self, project: &str) -> Result<Usage, StoreError> {
        let call = self.inner.tasks.usage(project);
        self.call(Method::Usage, call).await
    }

    async fn counts(&self) -> Result<Counts, StoreError> {
        let call = self.inner.tasks.counts();
        self.call(Method::Counts, call).await
    }

    fn is_writable(&self) -> bool {
        self.inner.tasks.is_writable()
    }
}

#[async_trait]
impl Work for FaultyStore {
    async fn take_fetches(&self, request: FetchRequest) -> Result<Vec<Fetch>, StoreError> {
        let call = self.inner.work.take_fetches(request);
        self.call(Method::TakeFetches, call).await
    }

    async fn settle_fetch(&self, fetch: &Fetch, fetched: Fetched) -> Result<(), StoreError> {
        let call = self.inner.work.settle_fetch(fetch, fetched);
        self.call(Method::SettleFetch, call).await
    }

    async fn charge_references(&self, task: TaskId, bytes: u64) -> Result<(), StoreError> {
        let call = self.inner.work.charge_references(task, bytes);
        self.call(Method::ChargeReferences, call).await
    }

    async fn claim(&self, request: ClaimRequest) -> Result<Vec<Claim>, StoreError> {
        let call = self.inner.work.claim(request);
        self.call(Method::Claim, call).await
    }

    async fn has_claimable(&self, request: &ClaimRequest) -> Result<bool, StoreError> {
        let call = self.inner.work.has_claimable(request);
        self.call(Method::HasClaimable, call).await
    }

    async fn renew(
        &self,
        lease: &Lease,
        lease_ms: u64,
        renewal: Renewal,
    ) -> Result<(), StoreError> {
        // A lost ticket makes a later attempt start a second job upstream; tests fail it apart from
        // plain renewals.
        let method = match renewal.ticket {
            Some(_) => Method::KeepTicket,
            None => Method::Renew,
        };
        let call = self.inner.work.renew(lease, lease_ms, renewal);
        self.call(method, call).await
    }

    async fn put_preview(&self, lease: &Lease, preview: Arc<[u8]>) -> Result<(), StoreError> {
        let call = self.inner.work.put_preview(lease, preview);
        self.call(Method::PutPreview, call).await
    }

    async fn lost(&self, leases: &[Lease]) -> Result<Vec<(usize, LeaseLost)>, StoreError> {
        let call = self.inner.work.lost(leases);
        self.call(Method::Lost, call).await
    }

    async fn finish(
        &self,
        lease: &Lease,
        outcome: Outcome,
        retention_ms: u64,
    ) -> Result<(), StoreError> {
        let call = self.inner.work.finish(lease, outcome, retention_ms);
        self.call(Method::Finish, call).await
    }

    async fn release(&self, lease: &Lease, attempt: Attempt) -> Result<(), StoreError> {
        let call = self.inner.work.release(lease, attempt);
        self.call(Method::Release, call).await
    }

    fn unclean_starts(&self) -> Option<u64> {
        self.inner.work.unclean_starts()
    }

    async fn settle(&self) -> Result<(), StoreError> {
        let call = self.inner.work.settle();
        self.call(Method::Settle, call).await
    }

    fn work_hints(&self) -> watch::Receiver<u64> {
        self.hints(self.inner.work.work_hints())
    }

    fn withdrawals(&self) -> watch::Receiver<u64> {
        self.hints(self.inner.work.withdrawals())
    }
}

#[async_trait]
impl Chores for FaultyStore {
    async fn clock(&self) -> Result<Reading, StoreError> {
        let call = self.inner.chores.clock();
        self.call(Method::Clock, call).await
    }

    async fn sweep(&self, request: SweepRequest) -> Result<Swept, StoreError> {
        let call = self.inner.chores.sweep(request);
        self.call(Method::Sweep, call).await
    }

    async fn postpone(&self, request: Postpone) -> Result<Option<ExpiryCursor>, StoreError> {
        let call = self.inner.chores.postpone(request);
        self.call(Method::Postpone, call).await
    }

    async fn take_chores(&self, request: ChoreRequest) -> Result<Vec<Chore>, StoreError> {
        let call = self.inner.chores.take_chores(request);
        self.call(Method::TakeChores, call).await
    }

    async fn settle_chores(&self, done: Vec<ChoreDone>) -> Result<(), StoreError> {
        let call = self.inner.chores.settle_chores(done);
        self.call(Method::SettleChores, call).await
    }

    async fn known(
        &self,
        ids: &[TaskId],
    ) -> Result<Vec<Result<Option<Arc<Task>>, StoreError>>, StoreError> {
        let call = self.inner.chores.known(ids);
        self.call(Method::Known, call).await
    }

    fn identity(&self) -> u64 {
        self.inner.chores.identity()
    }
}

#[async_trait]
impl Workers for FaultyStore {
    async fn announce(&self, worker: &Announcement, for_ms: u64) -> Result<(), StoreError> {
        let call = self.inner.workers.announce(worker, for_ms);
        self.call(Method::Announce, call).await
    }

    async fn withdraw(&self, id: &str) -> Result<(), StoreError> {
        let call = self.inner.workers.withdraw(id);
        self.call(Method::Withdraw, call).await
    }

    async fn living(&self) -> Result<Vec<LivingWorker>, StoreError> {
        let call = self.inner.workers.living();
        self.call(Method::Living, call).await
    }

    async fn served_models(&self) -> Result<BTreeSet<String>, StoreError> {
        let call = self.inner.workers.served_models();
        self.call(Method::ServedModels, call).await
    }
}

#[cfg(test)]
mod tests;
