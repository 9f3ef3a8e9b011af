//! Wraps a store, and makes calls fail before or after they take effect, or delays them, according
//! to its [`Plan`]. For tests: it changes nothing else.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use async_trait::async_trait;
use kinora_contract::{ClockReading, Failure, FileId, Task, TaskId, UnixMs};
pub use kinora_testkit::faults::{Fault, Injected, Plan, Rates};
use tokio::sync::watch;

use crate::changes::ChangeSender;
use crate::{
    AddFileOutcome, CancelOutcome, ChangeReceiver, Chore, ChoreDone, ChoreRequest, ChoreStore,
    ClaimRequest, ClaimedTask, DeleteOutcome, EndedRequest, EndedTasks, ExpiryCursor, FetchReport,
    FetchRequest, FilePage, FilePageRequest, FileStore, IdempotencyKey, InsertOutcome, Lease,
    LeaseLost, LeaseRenewal, LivingWorker, NewFile, NewTask, PageRequest, Pause, PauseStore,
    Pauses, PostponeRequest, QueueCounts, QueuedCancel, QuotaUsage, ReferenceFetch,
    ReleasedAttempt, RunOutcome, Spending, StoreError, StoreHandles, SweepReport, SweepRequest,
    TaskGlance, TaskPage, TaskReader, TaskStore, UploadedFile, WorkerAnnouncement, WorkerDirectory,
    WorkerStore,
};

/// The methods that can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StoreMethod {
    /// [`crate::TaskStore::insert`].
    Insert,
    /// [`crate::TaskStore::find_twin`].
    FindTwin,
    /// [`crate::TaskStore::get`].
    Get,
    /// [`crate::TaskReader::task`].
    Task,
    /// [`crate::TaskStore::list`].
    List,
    /// [`crate::TaskStore::positions`].
    Positions,
    /// [`crate::TaskStore::glance`].
    Glance,
    /// [`crate::TaskStore::unfinished`].
    Unfinished,
    /// [`crate::TaskStore::ended`].
    Ended,
    /// [`crate::TaskStore::preview`].
    Preview,
    /// [`crate::TaskStore::cancel`].
    Cancel,
    /// [`crate::TaskStore::cancel_queued`].
    CancelQueued,
    /// [`crate::TaskStore::delete`].
    Delete,
    /// [`crate::TaskStore::complete_deletion`].
    CompleteDeletion,
    /// [`crate::TaskStore::usage`].
    Usage,
    /// [`crate::TaskStore::spending`].
    Spending,
    /// [`crate::TaskStore::counts`].
    Counts,
    /// [`crate::WorkerStore::lease_fetches`].
    LeaseFetches,
    /// [`crate::WorkerStore::complete_fetch`].
    CompleteFetch,
    /// [`crate::WorkerStore::charge_references`].
    ChargeReferences,
    /// [`crate::WorkerStore::claim`].
    Claim,
    /// [`crate::WorkerStore::has_claimable`].
    HasClaimable,
    /// [`crate::WorkerStore::renew`].
    Renew,
    /// [`crate::WorkerStore::renew`] with a ticket to store.
    StoreTicket,
    /// [`crate::WorkerStore::put_preview`].
    PutPreview,
    /// [`crate::WorkerStore::find_lost`].
    FindLost,
    /// [`crate::WorkerStore::finish`].
    Finish,
    /// [`crate::WorkerStore::release`].
    Release,
    /// [`crate::WorkerStore::confirm_start`].
    ConfirmStart,
    /// [`crate::ChoreStore::clock`].
    Clock,
    /// [`crate::ChoreStore::sweep`].
    Sweep,
    /// [`crate::ChoreStore::postpone`].
    Postpone,
    /// [`crate::ChoreStore::lease_chores`].
    LeaseChores,
    /// [`crate::ChoreStore::complete_chores`].
    CompleteChores,
    /// [`crate::ChoreStore::find_tasks`].
    FindTasks,
    /// [`crate::ChoreStore::find_uploads`].
    FindUploads,
    /// [`crate::FileStore::add_file`].
    AddFile,
    /// [`crate::FileStore::confirm_file`].
    ConfirmFile,
    /// [`crate::FileStore::file`] and [`crate::FileStore::any_file`].
    File,
    /// [`crate::FileStore::list_files`].
    ListFiles,
    /// [`crate::FileStore::delete_file`].
    DeleteFile,
    /// [`crate::WorkerDirectory::announce`].
    Announce,
    /// [`crate::WorkerDirectory::withdraw`].
    Withdraw,
    /// [`crate::WorkerDirectory::living`].
    Living,
    /// [`crate::WorkerDirectory::served_models`].
    ServedModels,
    /// [`crate::PauseStore::pauses`].
    Pauses,
}

impl StoreMethod {
    /// The methods that only read.
    pub const READS: [Self; 22] = [
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
        Self::Spending,
        Self::Counts,
        Self::HasClaimable,
        Self::FindLost,
        Self::Clock,
        Self::FindTasks,
        Self::FindUploads,
        Self::File,
        Self::ListFiles,
        Self::Living,
        Self::ServedModels,
        Self::Pauses,
    ];
}

/// A store with faults.
#[derive(Debug)]
pub struct FaultyStore {
    inner: StoreHandles,
    plan: Arc<Plan<StoreMethod>>,
    /// Whether its handle receives no hints.
    deaf: bool,
}

impl FaultyStore {
    /// Wraps `inner` with the faults of `plan`. API keys, webhooks, operators' queries, shared
    /// secrets and allowances work normally.
    pub fn wrap(inner: StoreHandles, plan: Arc<Plan<StoreMethod>>) -> StoreHandles {
        Self::wrap_with(inner, plan, false)
    }

    /// Like [`FaultyStore::wrap`], for a handle that receives no hints, as if the connection for
    /// notifications were down: polling must be enough.
    pub fn wrap_deaf(inner: StoreHandles, plan: Arc<Plan<StoreMethod>>) -> StoreHandles {
        Self::wrap_with(inner, plan, true)
    }

    fn wrap_with(inner: StoreHandles, plan: Arc<Plan<StoreMethod>>, deaf: bool) -> StoreHandles {
        // Only the parts that run tasks fail. A fault in a login or in an operator's query would
        // end a test before it comes to its point.
        let (keys, secrets) = (inner.keys.clone(), inner.secrets.clone());
        let webhooks = inner.webhooks.clone();
        let operations = inner.operations.clone();
        let (holds, allowances) = (inner.holds.clone(), inner.allowances.clone());
        let faulty = Arc::new(Self { inner, plan, deaf });
        StoreHandles {
            tasks: faulty.clone(),
            work: faulty.clone(),
            chores: faulty.clone(),
            files: faulty.clone(),
            workers: faulty.clone(),
            pauses: faulty,
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
        method: StoreMethod,
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
impl TaskReader for FaultyStore {
    async fn task(&self, id: TaskId) -> Result<Option<Arc<Task>>, StoreError> {
        let call = self.inner.tasks.task(id);
        self.call(StoreMethod::Task, call).await
    }
}

#[async_trait]
impl TaskStore for FaultyStore {
    async fn insert(&self, new: NewTask) -> Result<InsertOutcome, StoreError> {
        let call = self.inner.tasks.insert(new);
        self.call(StoreMethod::Insert, call).await
    }

    async fn find_twin(
        &self,
        project: &str,
        idempotency: &IdempotencyKey,
    ) -> Result<Option<Arc<Task>>, StoreError> {
        let call = self.inner.tasks.find_twin(project, idempotency);
        self.call(StoreMethod::FindTwin, call).await
    }

    async fn get(&self, project: &str, id: TaskId) -> Result<Option<Arc<Task>>, StoreError> {
        let call = self.inner.tasks.get(project, id);
        self.call(StoreMethod::Get, call).await
    }

    async fn poll(&self, project: &str, id: TaskId) -> Result<Option<Arc<Task>>, StoreError> {
        let call = self.inner.tasks.poll(project, id);
        self.call(StoreMethod::Get, call).await
    }

    async fn list(&self, request: PageRequest) -> Result<TaskPage, StoreError> {
        let call = self.inner.tasks.list(request);
        self.call(StoreMethod::List, call).await
    }

    async fn positions(&self, ids: &[TaskId]) -> Result<Vec<Option<u64>>, StoreError> {
        let call = self.inner.tasks.positions(ids);
        self.call(StoreMethod::Positions, call).await
    }

    async fn glance(&self, ids: &[TaskId]) -> Result<Vec<Option<TaskGlance>>, StoreError> {
        let call = self.inner.tasks.glance(ids);
        self.call(StoreMethod::Glance, call).await
    }

    async fn unfinished(&self, project: &str) -> Result<Vec<TaskGlance>, StoreError> {
        let call = self.inner.tasks.unfinished(project);
        self.call(StoreMethod::Unfinished, call).await
    }

    async fn ended(&self, request: EndedRequest) -> Result<EndedTasks, StoreError> {
        let call = self.inner.tasks.ended(request);
        self.call(StoreMethod::Ended, call).await
    }

    fn changes(&self) -> ChangeReceiver {
        if self.deaf {
            // The sender is dropped here, so this follower hears nothing.
            ChangeSender::default().subscribe()
        } else {
            self.inner.tasks.changes()
        }
    }

    async fn preview(&self, id: TaskId) -> Result<Option<Arc<[u8]>>, StoreError> {
        let call = self.inner.tasks.preview(id);
        self.call(StoreMethod::Preview, call).await
    }

    async fn cancel(
        &self,
        project: &str,
        id: TaskId,
        failure: Failure,
        retention_ms: u64,
    ) -> Result<CancelOutcome, StoreError> {
        let call = self.inner.tasks.cancel(project, id, failure, retention_ms);
        self.call(StoreMethod::Cancel, call).await
    }

    async fn cancel_queued(&self, request: QueuedCancel) -> Result<u64, StoreError> {
        let call = self.inner.tasks.cancel_queued(request);
        self.call(StoreMethod::CancelQueued, call).await
    }

    async fn delete(&self, project: &str, id: TaskId) -> Result<DeleteOutcome, StoreError> {
        let call = self.inner.tasks.delete(project, id);
        self.call(StoreMethod::Delete, call).await
    }

    async fn complete_deletion(&self, done: Vec<ChoreDone>) -> Result<(), StoreError> {
        let call = self.inner.tasks.complete_deletion(done);
        self.call(StoreMethod::CompleteDeletion, call).await
    }

    async fn usage(&self, project: &str) -> Result<QuotaUsage, StoreError> {
        let call = self.inner.tasks.usage(project);
        self.call(StoreMethod::Usage, call).await
    }

    async fn spending(&self, project: &str, key: &str) -> Result<Spending, StoreError> {
        let call = self.inner.tasks.spending(project, key);
        self.call(StoreMethod::Spending, call).await
    }

    async fn counts(&self) -> Result<QueueCounts, StoreError> {
        let call = self.inner.tasks.counts();
        self.call(StoreMethod::Counts, call).await
    }

    fn is_writable(&self) -> bool {
        self.inner.tasks.is_writable()
    }
}

#[async_trait]
impl WorkerStore for FaultyStore {
    async fn lease_fetches(
        &self,
        request: FetchRequest,
    ) -> Result<Vec<ReferenceFetch>, StoreError> {
        let call = self.inner.work.lease_fetches(request);
        self.call(StoreMethod::LeaseFetches, call).await
    }

    async fn complete_fetch(
        &self,
        fetch: &ReferenceFetch,
        fetched: FetchReport,
    ) -> Result<(), StoreError> {
        let call = self.inner.work.complete_fetch(fetch, fetched);
        self.call(StoreMethod::CompleteFetch, call).await
    }

    async fn charge_references(&self, task: TaskId, bytes: u64) -> Result<(), StoreError> {
        let call = self.inner.work.charge_references(task, bytes);
        self.call(StoreMethod::ChargeReferences, call).await
    }

    async fn claim(&self, request: ClaimRequest) -> Result<Vec<ClaimedTask>, StoreError> {
        let call = self.inner.work.claim(request);
        self.call(StoreMethod::Claim, call).await
    }

    async fn has_claimable(&self, request: &ClaimRequest) -> Result<bool, StoreError> {
        let call = self.inner.work.has_claimable(request);
        self.call(StoreMethod::HasClaimable, call).await
    }

    async fn renew(
        &self,
        lease: &Lease,
        lease_ms: u64,
        renewal: LeaseRenewal,
    ) -> Result<(), StoreError> {
        // A lost ticket makes a later attempt start a second job upstream; tests fail it apart from
        // plain renewals.
        let method = match renewal.ticket {
            Some(_) => StoreMethod::StoreTicket,
            None => StoreMethod::Renew,
        };
        let call = self.inner.work.renew(lease, lease_ms, renewal);
        self.call(method, call).await
    }

    async fn put_preview(&self, lease: &Lease, preview: Arc<[u8]>) -> Result<(), StoreError> {
        let call = self.inner.work.put_preview(lease, preview);
        self.call(StoreMethod::PutPreview, call).await
    }

    async fn find_lost(&self, leases: &[Lease]) -> Result<Vec<(usize, LeaseLost)>, StoreError> {
        let call = self.inner.work.find_lost(leases);
        self.call(StoreMethod::FindLost, call).await
    }

    async fn finish(
        &self,
        lease: &Lease,
        outcome: RunOutcome,
        retention_ms: u64,
    ) -> Result<(), StoreError> {
        let call = self.inner.work.finish(lease, outcome, retention_ms);
        self.call(StoreMethod::Finish, call).await
    }

    async fn release(&self, lease: &Lease, attempt: ReleasedAttempt) -> Result<(), StoreError> {
        let call = self.inner.work.release(lease, attempt);
        self.call(StoreMethod::Release, call).await
    }

    fn unclean_starts(&self) -> Option<u64> {
        self.inner.work.unclean_starts()
    }

    async fn confirm_start(&self) -> Result<(), StoreError> {
        let call = self.inner.work.confirm_start();
        self.call(StoreMethod::ConfirmStart, call).await
    }

    fn work_hints(&self) -> watch::Receiver<u64> {
        self.hints(self.inner.work.work_hints())
    }

    fn withdrawals(&self) -> watch::Receiver<u64> {
        self.hints(self.inner.work.withdrawals())
    }
}

#[async_trait]
impl ChoreStore for FaultyStore {
    async fn clock(&self) -> Result<ClockReading, StoreError> {
        let call = self.inner.chores.clock();
        self.call(StoreMethod::Clock, call).await
    }

    async fn sweep(&self, request: SweepRequest) -> Result<SweepReport, StoreError> {
        let call = self.inner.chores.sweep(request);
        self.call(StoreMethod::Sweep, call).await
    }

    async fn postpone(&self, request: PostponeRequest) -> Result<Option<ExpiryCursor>, StoreError> {
        let call = self.inner.chores.postpone(request);
        self.call(StoreMethod::Postpone, call).await
    }

    async fn lease_chores(&self, request: ChoreRequest) -> Result<Vec<Chore>, StoreError> {
        let call = self.inner.chores.lease_chores(request);
        self.call(StoreMethod::LeaseChores, call).await
    }

    async fn complete_chores(&self, done: Vec<ChoreDone>) -> Result<(), StoreError> {
        let call = self.inner.chores.complete_chores(done);
        self.call(StoreMethod::CompleteChores, call).await
    }

    async fn find_tasks(
        &self,
        ids: &[TaskId],
    ) -> Result<Vec<Result<Option<Arc<Task>>, StoreError>>, StoreError> {
        let call = self.inner.chores.find_tasks(ids);
        self.call(StoreMethod::FindTasks, call).await
    }

    async fn find_uploads(&self, keys: &[String]) -> Result<HashSet<String>, StoreError> {
        let call = self.inner.chores.find_uploads(keys);
        self.call(StoreMethod::FindUploads, call).await
    }

    fn identity(&self) -> u64 {
        self.inner.chores.identity()
    }
}

#[async_trait]
impl FileStore for FaultyStore {
    async fn add_file(&self, new: NewFile) -> Result<AddFileOutcome, StoreError> {
        let call = self.inner.files.add_file(new);
        self.call(StoreMethod::AddFile, call).await
    }

    async fn confirm_file(&self, id: FileId) -> Result<Option<UploadedFile>, StoreError> {
        let call = self.inner.files.confirm_file(id);
        self.call(StoreMethod::ConfirmFile, call).await
    }

    async fn file(&self, project: &str, id: FileId) -> Result<Option<UploadedFile>, StoreError> {
        let call = self.inner.files.file(project, id);
        self.call(StoreMethod::File, call).await
    }

    async fn any_file(&self, id: FileId) -> Result<Option<UploadedFile>, StoreError> {
        let call = self.inner.files.any_file(id);
        self.call(StoreMethod::File, call).await
    }

    async fn list_files(&self, request: FilePageRequest) -> Result<FilePage, StoreError> {
        let call = self.inner.files.list_files(request);
        self.call(StoreMethod::ListFiles, call).await
    }

    async fn delete_file(&self, project: &str, id: FileId) -> Result<bool, StoreError> {
        let call = self.inner.files.delete_file(project, id);
        self.call(StoreMethod::DeleteFile, call).await
    }
}

#[async_trait]
impl WorkerDirectory for FaultyStore {
    async fn announce(&self, worker: &WorkerAnnouncement, for_ms: u64) -> Result<(), StoreError> {
        let call = self.inner.workers.announce(worker, for_ms);
        self.call(StoreMethod::Announce, call).await
    }

    async fn withdraw(&self, id: &str) -> Result<(), StoreError> {
        let call = self.inner.workers.withdraw(id);
        self.call(StoreMethod::Withdraw, call).await
    }

    async fn living(&self) -> Result<Vec<LivingWorker>, StoreError> {
        let call = self.inner.workers.living();
        self.call(StoreMethod::Living, call).await
    }

    async fn served_models(&self) -> Result<BTreeSet<String>, StoreError> {
        let call = self.inner.workers.served_models();
        self.call(StoreMethod::ServedModels, call).await
    }
}

/// Operators' changes work normally.
#[async_trait]
impl PauseStore for FaultyStore {
    async fn pauses(&self) -> Result<Pauses, StoreError> {
        let call = self.inner.pauses.pauses();
        self.call(StoreMethod::Pauses, call).await
    }

    async fn pause(&self, pause: Pause) -> Result<(), StoreError> {
        self.inner.pauses.pause(pause).await
    }

    async fn resume(&self, model: Option<&str>, now_ms: UnixMs) -> Result<bool, StoreError> {
        self.inner.pauses.resume(model, now_ms).await
    }
}

#[cfg(test)]
mod tests;
