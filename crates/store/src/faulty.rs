//! A [`TaskStore`] around another that fails before doing, fails after having done, or lets
//! others go first, as its [`Plan`] says. For tests: it adds nothing and hides nothing else.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use async_trait::async_trait;
use kinora_contract::{Artifact, Failure, TaskId, UnixMs};
pub use kinora_faulty::{Fault, Injected, Plan, Rates};
use tokio::sync::watch;

use crate::{
    Attempt, Cancellation, Claim, ClaimRequest, Deletion, Fetch, FetchRequest, Fetched, Gap,
    Idempotency, Insertion, Lease, NewTask, Page, PageRequest, Place, Postpone, Renewed,
    StoreError, SweepRequest, Swept, TaskStore, TaskView, Usage,
};

/// The methods of [`TaskStore`] that may go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Method {
    /// [`TaskStore::insert`].
    Insert,
    /// [`TaskStore::find_twin`].
    FindTwin,
    /// [`TaskStore::get`].
    Get,
    /// [`TaskStore::get_of_any_project`].
    GetOfAnyProject,
    /// [`TaskStore::list`].
    List,
    /// [`TaskStore::cancel`].
    Cancel,
    /// [`TaskStore::delete`].
    Delete,
    /// [`TaskStore::take_fetches`].
    TakeFetches,
    /// [`TaskStore::settle_fetch`].
    SettleFetch,
    /// [`TaskStore::claim`].
    Claim,
    /// [`TaskStore::renew`].
    Renew,
    /// [`TaskStore::check`].
    Check,
    /// [`TaskStore::finish`].
    Finish,
    /// [`TaskStore::release`].
    Release,
    /// [`TaskStore::sweep`].
    Sweep,
    /// [`TaskStore::postpone`].
    Postpone,
    /// [`TaskStore::newest_below`].
    NewestBelow,
    /// [`TaskStore::forget_files`].
    ForgetFiles,
    /// [`TaskStore::forget_abandoned`].
    ForgetAbandoned,
    /// [`TaskStore::charge_references`].
    ChargeReferences,
    /// [`TaskStore::usage`].
    Usage,
    /// [`TaskStore::settle`].
    Settle,
    /// [`TaskStore::close_gaps`].
    CloseGaps,
}

impl Method {
    /// Those that only read.
    pub const READS: [Self; 7] = [
        Self::NewestBelow,
        Self::FindTwin,
        Self::Get,
        Self::GetOfAnyProject,
        Self::List,
        Self::Check,
        Self::Usage,
    ];
}

/// A task store with faults.
#[derive(Debug)]
pub struct FaultyStore {
    inner: Arc<dyn TaskStore>,
    plan: Arc<Plan<Method>>,
}

impl FaultyStore {
    /// `inner`, with the faults of `plan`.
    pub fn new(inner: Arc<dyn TaskStore>, plan: Arc<Plan<Method>>) -> Self {
        Self { inner, plan }
    }

    /// Does `call`, which is not begun before it is awaited, as the plan says.
    async fn call<T>(
        &self,
        method: Method,
        call: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        self.plan.call(method, call, injected).await
    }
}

fn injected(how: &str) -> StoreError {
    StoreError::Unavailable(format!("an injected fault: {how}").into())
}

#[async_trait]
impl TaskStore for FaultyStore {
    async fn insert(&self, new: NewTask) -> Result<Insertion, StoreError> {
        self.call(Method::Insert, self.inner.insert(new)).await
    }

    async fn find_twin(
        &self,
        project: &str,
        idempotency: &Idempotency,
    ) -> Result<Option<TaskView>, StoreError> {
        let call = self.inner.find_twin(project, idempotency);
        self.call(Method::FindTwin, call).await
    }

    async fn get(&self, project: &str, id: TaskId) -> Result<Option<TaskView>, StoreError> {
        self.call(Method::Get, self.inner.get(project, id)).await
    }

    async fn get_of_any_project(&self, id: TaskId) -> Result<Option<TaskView>, StoreError> {
        let call = self.inner.get_of_any_project(id);
        self.call(Method::GetOfAnyProject, call).await
    }

    async fn list(&self, request: PageRequest) -> Result<Page, StoreError> {
        self.call(Method::List, self.inner.list(request)).await
    }

    async fn cancel(
        &self,
        project: &str,
        id: TaskId,
        failure: Failure,
        now_ms: UnixMs,
        expires_at_ms: UnixMs,
    ) -> Result<Cancellation, StoreError> {
        let call = self
            .inner
            .cancel(project, id, failure, now_ms, expires_at_ms);
        self.call(Method::Cancel, call).await
    }

    async fn delete(&self, project: &str, id: TaskId) -> Result<Deletion, StoreError> {
        self.call(Method::Delete, self.inner.delete(project, id))
            .await
    }

    async fn take_fetches(&self, request: FetchRequest) -> Result<Vec<Fetch>, StoreError> {
        let call = self.inner.take_fetches(request);
        self.call(Method::TakeFetches, call).await
    }

    async fn settle_fetch(&self, fetch: &Fetch, fetched: Fetched) -> Result<(), StoreError> {
        let call = self.inner.settle_fetch(fetch, fetched);
        self.call(Method::SettleFetch, call).await
    }

    async fn claim(&self, request: ClaimRequest) -> Result<Vec<Claim>, StoreError> {
        self.call(Method::Claim, self.inner.claim(request)).await
    }

    async fn renew(&self, lease: &Lease, renewed: Renewed) -> Result<(), StoreError> {
        self.call(Method::Renew, self.inner.renew(lease, renewed))
            .await
    }

    async fn check(&self, lease: &Lease) -> Result<(), StoreError> {
        self.call(Method::Check, self.inner.check(lease)).await
    }

    async fn finish(
        &self,
        lease: &Lease,
        outcome: Result<Artifact, Failure>,
        now_ms: UnixMs,
        expires_at_ms: UnixMs,
    ) -> Result<(), StoreError> {
        let call = self.inner.finish(lease, outcome, now_ms, expires_at_ms);
        self.call(Method::Finish, call).await
    }

    async fn release(&self, lease: &Lease, attempt: Attempt) -> Result<(), StoreError> {
        let call = self.inner.release(lease, attempt);
        self.call(Method::Release, call).await
    }

    async fn sweep(&self, request: SweepRequest) -> Result<Swept, StoreError> {
        self.call(Method::Sweep, self.inner.sweep(request)).await
    }

    async fn postpone(&self, request: Postpone) -> Result<Option<Place>, StoreError> {
        self.call(Method::Postpone, self.inner.postpone(request))
            .await
    }

    async fn newest_below(&self, bound: TaskId) -> Result<Option<TaskId>, StoreError> {
        self.call(Method::NewestBelow, self.inner.newest_below(bound))
            .await
    }

    async fn forget_files(&self, keys: &[String]) -> Result<(), StoreError> {
        self.call(Method::ForgetFiles, self.inner.forget_files(keys))
            .await
    }

    async fn forget_abandoned(&self, tasks: &[TaskId]) -> Result<(), StoreError> {
        let call = self.inner.forget_abandoned(tasks);
        self.call(Method::ForgetAbandoned, call).await
    }

    async fn charge_references(&self, task: TaskId, bytes: u64) -> Result<(), StoreError> {
        let call = self.inner.charge_references(task, bytes);
        self.call(Method::ChargeReferences, call).await
    }

    async fn usage(&self, project: &str) -> Result<Usage, StoreError> {
        let call = self.inner.usage(project);
        self.call(Method::Usage, call).await
    }

    fn is_writable(&self) -> bool {
        self.inner.is_writable()
    }

    fn unclean_starts(&self) -> u64 {
        self.inner.unclean_starts()
    }

    async fn settle(&self) -> Result<(), StoreError> {
        self.call(Method::Settle, self.inner.settle()).await
    }

    fn gaps(&self) -> Vec<Gap> {
        self.inner.gaps()
    }

    async fn close_gaps(&self, gaps: &[Gap]) -> Result<(), StoreError> {
        self.call(Method::CloseGaps, self.inner.close_gaps(gaps))
            .await
    }

    fn identity(&self) -> u64 {
        self.inner.identity()
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.inner.changes()
    }
}
