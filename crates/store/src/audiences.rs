//! The audience traits, implemented once for all databases. Each method runs an operation, asks a
//! question, or reads data that the database has at hand; rules are in the operations, not here.

use std::collections::HashSet;
use std::sync::Arc;

use async_trait::async_trait;
use kinora_contract::lifecycle::TaskRecord;
use kinora_contract::{ClockReading, Failure, FileId, Status, Task, TaskId, UnixMs, day_of};
use tokio::sync::watch;

use crate::backend::{StoreBackend, StoreTables};
use crate::operations::cancel::{CANCELLED_AT_ONCE, CancelQueued, CancelTask, DeleteTask};
use crate::operations::chores::CompleteChores;
use crate::operations::chores::TrimDeliveries;
use crate::operations::claim::ChargeReferences;
use crate::operations::claim::IsClaimable;
use crate::operations::submit::{SubmitOutcome, SubmitTask};
use crate::operations::uploads::{ConfirmFile, DeleteFile, SweepFiles};
use crate::sql::TypedQuery;
use crate::tables::keys::{AddFirstKey, AddKey, RevokeKey, RotateKey};
use crate::tables::keys::{AddSigningKey, ReplaceSigningKey, signing_key};
use crate::tables::pauses::{BeginPause, EndPause};
use crate::tables::spending::SetBudgetDay;
use crate::tables::{keys, operators, pauses, spending, uploads, webhooks};
use crate::work::{LeaseAction, LeasedChange};
use crate::{
    AddFileOutcome, ApiKey, CancelOutcome, ChangeReceiver, Chore, ChoreDone, ChoreRequest,
    ChoreStore, ClaimRequest, ClaimedTask, DeleteOutcome, DeliveryDone, DeliveryRequest,
    DeliveryStore, DueDelivery, EndedRequest, EndedTasks, ExpiryCursor, FetchReport, FetchRequest,
    FilePage, FilePageRequest, FileStore, IdempotencyKey, InsertOutcome, KeyAction, KeyActor,
    KeyRotation, KeyStore, Lease, LeaseLost, LeaseRenewal, LoggedDelivery, NewFile, NewKey,
    NewTask, OperatorStore, PageRequest, Pause, PauseStore, Pauses, PostponeRequest, QueueCounts,
    QueuedCancel, QuotaUsage, ReferenceFetch, ReleasedAttempt, RunOutcome, SecretKey, SecretStore,
    ServiceOverview, Spending, StoreError, SweepReport, SweepRequest, TallyRequest, TallyRow,
    TaskGlance, TaskPage, TaskReader, TaskStore, UploadedFile, Webhook, WebhookChange,
    WebhookStore, WorkerStore,
};

/// The task of a record, if it belongs to this project.
fn own_task(found: Option<Arc<TaskRecord>>, project: &str) -> Option<Arc<Task>> {
    let own = found.filter(|record| record.task.project == project);
    own.map(|record| record.task.clone())
}

#[async_trait]
impl<B: StoreBackend> TaskReader for B {
    async fn task(&self, id: TaskId) -> Result<Option<Arc<Task>>, StoreError> {
        let found = self.find(None, id).await?;
        Ok(found.map(|record| record.task.clone()))
    }
}

#[async_trait]
impl<B: StoreBackend> TaskStore for B {
    async fn insert(&self, new: NewTask) -> Result<InsertOutcome, StoreError> {
        let estimates = self.estimates();
        let (project, bounds) = (new.project.clone(), new.bounds);
        let now_ms = self.process_ms();
        // A refused client was told when to return. Until then its place counts as taken for all
        // others; otherwise those that never wait would take every place that becomes free.
        let reserved = estimates.reserved(&project, now_ms);
        Ok(match self.commit(SubmitTask { new, reserved }).await? {
            SubmitOutcome::Accepted(record) => {
                estimates.admitted(&project, now_ms);
                InsertOutcome::Inserted(record.task.clone())
            }
            SubmitOutcome::Replayed(record) => InsertOutcome::Replayed(record.task.clone()),
            SubmitOutcome::KeyReused => InsertOutcome::KeyReused,
            SubmitOutcome::FileGone(id) => InsertOutcome::FileGone(id),
            SubmitOutcome::OverBudget(over) => InsertOutcome::OverBudget(over),
            SubmitOutcome::Refused(full) => {
                // Only a refusal needs the estimates, so an accepted submit pays nothing for them.
                self.refresh_estimates().await?;
                estimates.refuse(&project, now_ms, bounds, full)
            }
        })
    }

    async fn find_twin(
        &self,
        project: &str,
        idempotency: &IdempotencyKey,
    ) -> Result<Option<Arc<Task>>, StoreError> {
        let found = StoreBackend::find_twin(self, project, idempotency).await?;
        Ok(found.map(|record| record.task.clone()))
    }

    async fn get(&self, project: &str, id: TaskId) -> Result<Option<Arc<Task>>, StoreError> {
        Ok(own_task(self.find(Some(project), id).await?, project))
    }

    async fn poll(&self, project: &str, id: TaskId) -> Result<Option<Arc<Task>>, StoreError> {
        Ok(own_task(
            self.find_recent(Some(project), id).await?,
            project,
        ))
    }

    async fn list(&self, request: PageRequest) -> Result<TaskPage, StoreError> {
        StoreBackend::list(self, request).await
    }

    async fn positions(&self, ids: &[TaskId]) -> Result<Vec<Option<u64>>, StoreError> {
        self.refresh_estimates().await?;
        let records = self.find_waiting(ids).await?;
        let positions = records
            .into_iter()
            .map(|record| self.estimates().position(&*record?));
        Ok(positions.collect())
    }

    async fn glance(&self, ids: &[TaskId]) -> Result<Vec<Option<TaskGlance>>, StoreError> {
        StoreBackend::glance(self, ids).await
    }

    async fn unfinished(&self, project: &str) -> Result<Vec<TaskGlance>, StoreError> {
        StoreBackend::unfinished(self, project).await
    }

    async fn ended(&self, request: EndedRequest) -> Result<EndedTasks, StoreError> {
        StoreBackend::ended(self, request).await
    }

    fn changes(&self) -> ChangeReceiver {
        self.signals().followers.subscribe()
    }

    async fn preview(&self, id: TaskId) -> Result<Option<Arc<[u8]>>, StoreError> {
        StoreBackend::preview(self, id).await
    }

    async fn cancel(
        &self,
        project: &str,
        id: TaskId,
        failure: Failure,
        retention_ms: u64,
    ) -> Result<CancelOutcome, StoreError> {
        let cancel = CancelTask {
            project: project.to_owned(),
            id,
            failure,
            retention_ms,
        };
        self.commit(cancel).await
    }

    async fn cancel_queued(&self, request: QueuedCancel) -> Result<u64, StoreError> {
        // Only those that wait when the call begins, so that submits cannot prolong it.
        let unfinished = StoreBackend::unfinished(self, &request.project).await?;
        let queued = unfinished
            .iter()
            .filter(|glance| glance.status == Status::Queued);
        let queued: Vec<TaskId> = queued.map(|glance| glance.id).collect();
        let mut cancelled = 0;
        for ids in queued.chunks(CANCELLED_AT_ONCE) {
            let (request, ids) = (request.clone(), ids.to_vec());
            cancelled += self.commit(CancelQueued { request, ids }).await?;
        }
        Ok(cancelled)
    }

    async fn delete(&self, project: &str, id: TaskId) -> Result<DeleteOutcome, StoreError> {
        let project = project.to_owned();
        self.commit(DeleteTask { project, id }).await
    }

    async fn complete_deletion(&self, done: Vec<ChoreDone>) -> Result<(), StoreError> {
        self.commit(CompleteChores(done)).await
    }

    async fn usage(&self, project: &str) -> Result<QuotaUsage, StoreError> {
        StoreBackend::usage(self, project).await
    }

    async fn spending(&self, project: &str, key: &str) -> Result<Spending, StoreError> {
        let now_ms = StoreBackend::clock(self).await?.wall_ms;
        let rows = self.ask(TypedQuery {
            query: spending::find(project, key),
            read: |row| Ok(row.clone()),
        });
        let (spending, _) = spending::read(&rows.await?, key, now_ms)?;
        Ok(spending)
    }

    async fn counts(&self) -> Result<QueueCounts, StoreError> {
        StoreBackend::counts(self).await
    }

    fn is_writable(&self) -> bool {
        StoreBackend::is_writable(self)
    }
}

/// Makes a change under a lease.
async fn change<B: StoreBackend>(
    backend: &B,
    task: TaskId,
    action: LeaseAction,
) -> Result<(), StoreError> {
    let answer = backend.commit(LeasedChange { task, action }).await?;
    answer.map_err(StoreError::LeaseLost)
}

#[async_trait]
impl<B: StoreBackend> WorkerStore for B {
    async fn lease_fetches(
        &self,
        request: FetchRequest,
    ) -> Result<Vec<ReferenceFetch>, StoreError> {
        // The fetch stage asks after every submit, and most submits have no references: answer from
        // memory instead of running a transaction.
        if !self.may_fetch() {
            return Ok(Vec::new());
        }
        self.commit(request).await
    }

    async fn complete_fetch(
        &self,
        fetch: &ReferenceFetch,
        fetched: FetchReport,
    ) -> Result<(), StoreError> {
        let LeasedChange { task, action } = LeasedChange::complete_fetch(fetch, fetched);
        change(self, task, action).await
    }

    async fn charge_references(&self, task: TaskId, bytes: u64) -> Result<(), StoreError> {
        self.commit(ChargeReferences { task, bytes }).await
    }

    async fn claim(&self, request: ClaimRequest) -> Result<Vec<ClaimedTask>, StoreError> {
        // The request says which models this worker claims together and how many slots it has,
        // which is all that the estimates know of workers.
        self.estimates().learn(&request);
        let request = request.without_paused();
        if request.models.is_empty() {
            return Ok(Vec::new());
        }
        self.commit(request).await
    }

    async fn has_claimable(&self, request: &ClaimRequest) -> Result<bool, StoreError> {
        // An idle worker asks often and usually nothing waits. That is cheap to see; the turns, shares and
        // holds that a claim obeys are not.
        let request = request.clone().without_paused();
        Ok(self.may_claim(&request.models).await? && self.commit(IsClaimable(request)).await?)
    }

    async fn renew(
        &self,
        lease: &Lease,
        lease_ms: u64,
        renewal: LeaseRenewal,
    ) -> Result<(), StoreError> {
        let action = LeaseAction::Renew {
            token: lease.token,
            lease_ms,
            renewal,
        };
        change(self, lease.task, action).await
    }

    async fn put_preview(&self, lease: &Lease, preview: Arc<[u8]>) -> Result<(), StoreError> {
        StoreBackend::put_preview(self, lease, preview).await
    }

    async fn find_lost(&self, leases: &[Lease]) -> Result<Vec<(usize, LeaseLost)>, StoreError> {
        let ids: Vec<TaskId> = leases.iter().map(|lease| lease.task).collect();
        let found = self.find_all(&ids).await?;
        let mut lost = Vec::new();
        for (place, (lease, record)) in leases.iter().zip(found).enumerate() {
            // An unreadable record is an error for the whole call, not a lost lease: stopping a run
            // because of a read error would waste it.
            if let Err(how) = TaskRecord::check_lease(record?.as_deref(), lease) {
                lost.push((place, how));
            }
        }
        Ok(lost)
    }

    async fn finish(
        &self,
        lease: &Lease,
        outcome: RunOutcome,
        retention_ms: u64,
    ) -> Result<(), StoreError> {
        let action = LeaseAction::Finish {
            token: lease.token,
            outcome: Box::new(outcome),
            retention_ms,
        };
        change(self, lease.task, action).await
    }

    async fn release(&self, lease: &Lease, attempt: ReleasedAttempt) -> Result<(), StoreError> {
        let token = lease.token;
        change(self, lease.task, LeaseAction::Release { token, attempt }).await
    }

    fn unclean_starts(&self) -> Option<u64> {
        StoreBackend::unclean_starts(self)
    }

    async fn confirm_start(&self) -> Result<(), StoreError> {
        self.confirm_start().await
    }

    fn work_hints(&self) -> watch::Receiver<u64> {
        self.signals().work.subscribe()
    }

    fn withdrawals(&self) -> watch::Receiver<u64> {
        self.signals().withdrawn.subscribe()
    }
}

#[async_trait]
impl<B: StoreBackend> ChoreStore for B {
    async fn clock(&self) -> Result<ClockReading, StoreError> {
        StoreBackend::clock(self).await
    }

    async fn sweep(&self, request: SweepRequest) -> Result<SweepReport, StoreError> {
        // Sweeps run regularly in one of the processes anyway: a good moment for writes that nobody
        // waits for.
        self.write_key_uses().await;
        let mut swept = self.commit(request).await?;
        if let Some(now_ms) = request.due_ms {
            // A reader looks, so that a sweep writes nothing but at midnight.
            let today = day_of(now_ms);
            if !self.ask(spending::other_day(today)).await?.is_empty() {
                self.commit(SetBudgetDay(today)).await?;
            }
            // In a transaction of its own, which locks the projects of the files that a reader finds.
            let files = self.ask(uploads::due(now_ms, request.batch)).await?;
            swept.more |= files.len() >= request.batch;
            if !files.is_empty() {
                swept.files = self.commit(SweepFiles { files, now_ms }).await?;
            }
        }
        Ok(swept)
    }

    async fn postpone(&self, request: PostponeRequest) -> Result<Option<ExpiryCursor>, StoreError> {
        self.commit(request).await
    }

    async fn lease_chores(&self, request: ChoreRequest) -> Result<Vec<Chore>, StoreError> {
        self.commit(request).await
    }

    async fn complete_chores(&self, done: Vec<ChoreDone>) -> Result<(), StoreError> {
        self.commit(CompleteChores(done)).await
    }

    async fn find_tasks(
        &self,
        ids: &[TaskId],
    ) -> Result<Vec<Result<Option<Arc<Task>>, StoreError>>, StoreError> {
        let found = self.find_all(ids).await?.into_iter();
        let tasks = found.map(|found| Ok(found?.map(|record| record.task.clone())));
        Ok(tasks.collect())
    }

    async fn find_uploads(&self, keys: &[String]) -> Result<HashSet<String>, StoreError> {
        let used = self.ask(uploads::used_keys(B::DIALECT, keys)).await?;
        Ok(used.into_iter().collect())
    }

    fn identity(&self) -> u64 {
        StoreBackend::identity(self)
    }
}

#[async_trait]
impl<B: StoreBackend> FileStore for B {
    async fn add_file(&self, new: NewFile) -> Result<AddFileOutcome, StoreError> {
        self.commit(new).await
    }

    async fn confirm_file(&self, id: FileId) -> Result<Option<UploadedFile>, StoreError> {
        // The operation must name the project whose lock it needs.
        match self.ask(uploads::project(id)).await?.pop() {
            Some(project) => self.commit(ConfirmFile { project, id }).await,
            None => Ok(None),
        }
    }

    async fn file(&self, project: &str, id: FileId) -> Result<Option<UploadedFile>, StoreError> {
        let now_ms = StoreBackend::clock(self).await?.wall_ms;
        Ok(self
            .ask(uploads::visible(Some(project), id, now_ms))
            .await?
            .pop())
    }

    async fn any_file(&self, id: FileId) -> Result<Option<UploadedFile>, StoreError> {
        let now_ms = StoreBackend::clock(self).await?.wall_ms;
        Ok(self.ask(uploads::visible(None, id, now_ms)).await?.pop())
    }

    async fn list_files(&self, request: FilePageRequest) -> Result<FilePage, StoreError> {
        let now_ms = StoreBackend::clock(self).await?.wall_ms;
        let mut files = self.ask(uploads::page(&request, now_ms)).await?;
        let has_more = files.len() > request.limit;
        files.truncate(request.limit);
        Ok(FilePage { files, has_more })
    }

    async fn delete_file(&self, project: &str, id: FileId) -> Result<bool, StoreError> {
        let project = project.to_owned();
        self.commit(DeleteFile { project, id }).await
    }
}

#[async_trait]
impl<B: StoreBackend> OperatorStore for B {
    async fn tallies(&self, request: &TallyRequest) -> Result<Vec<TallyRow>, StoreError> {
        self.ask(operators::sums(request)).await
    }

    async fn key_log(&self, project: Option<&str>) -> Result<Vec<KeyAction>, StoreError> {
        self.ask(keys::log(project)).await
    }

    async fn overview(&self) -> Result<ServiceOverview, StoreError> {
        StoreBackend::overview(self).await
    }
}

#[async_trait]
impl<B: StoreBackend> SecretStore for B {
    async fn signing_key(&self) -> Result<Option<SecretKey>, StoreError> {
        Ok(self.ask(signing_key()).await?.pop())
    }

    async fn store_signing_key(&self, offered: SecretKey) -> Result<SecretKey, StoreError> {
        self.commit(AddSigningKey(offered)).await
    }
}

#[async_trait]
impl<T: StoreTables> KeyStore for T {
    async fn add_key(&self, key: NewKey, by: &KeyActor) -> Result<ApiKey, StoreError> {
        let added = self.run(AddKey(key, by.clone())).await;
        // Even after an error: the change may be committed although its answer was lost.
        self.forget_keys();
        added
    }

    async fn add_first_key(&self, key: NewKey, by: &KeyActor) -> Result<bool, StoreError> {
        let added = self.run(AddFirstKey(key, by.clone())).await;
        self.forget_keys();
        added
    }

    async fn list_keys(&self) -> Result<Vec<ApiKey>, StoreError> {
        StoreTables::list_keys(self).await
    }

    async fn find_key(
        &self,
        sha256: &[u8; 32],
        now_ms: UnixMs,
    ) -> Result<Option<Arc<ApiKey>>, StoreError> {
        StoreTables::find_key(self, sha256, now_ms).await
    }

    async fn revoke_key(
        &self,
        id: &str,
        now_ms: UnixMs,
        by: &KeyActor,
    ) -> Result<bool, StoreError> {
        let revoke = RevokeKey(id.to_owned(), now_ms, by.clone());
        let revoked = self.run(revoke).await;
        self.forget_keys();
        revoked
    }

    async fn rotate_key(
        &self,
        rotation: KeyRotation,
        by: &KeyActor,
    ) -> Result<Option<ApiKey>, StoreError> {
        let rotated = self.run(RotateKey(rotation, by.clone())).await;
        self.forget_keys();
        rotated
    }

    async fn replace_signing_key(&self, new: SecretKey) -> Result<(), StoreError> {
        self.run(ReplaceSigningKey(new)).await
    }
}

#[async_trait]
impl<T: StoreTables> PauseStore for T {
    async fn pauses(&self) -> Result<Pauses, StoreError> {
        Ok(self.ask(pauses::current()).await?.into_iter().collect())
    }

    async fn pause(&self, pause: Pause) -> Result<(), StoreError> {
        self.run(BeginPause(pause)).await
    }

    async fn resume(&self, model: Option<&str>, now_ms: UnixMs) -> Result<bool, StoreError> {
        self.run(EndPause(model.map(str::to_owned), now_ms)).await
    }
}

#[async_trait]
impl<T: StoreTables> WebhookStore for T {
    async fn webhooks(&self) -> Result<Vec<Webhook>, StoreError> {
        self.ask(webhooks::all()).await
    }

    async fn change_webhook(&self, change: WebhookChange) -> Result<bool, StoreError> {
        self.run(change).await
    }

    async fn deliveries(
        &self,
        webhook: &str,
        count: usize,
    ) -> Result<Vec<LoggedDelivery>, StoreError> {
        self.ask(webhooks::log(webhook, count)).await
    }
}

#[async_trait]
impl<B: StoreBackend> DeliveryStore for B {
    async fn lease_deliveries(
        &self,
        request: DeliveryRequest,
    ) -> Result<Vec<DueDelivery>, StoreError> {
        self.commit(request).await
    }

    async fn complete_delivery(&self, done: DeliveryDone) -> Result<(), StoreError> {
        self.commit(done).await
    }

    async fn trim_deliveries(&self) -> Result<u64, StoreError> {
        // A reader searches, so that the writer, which every submit waits for, only removes. Deliveries that
        // change in between are checked again by the removal.
        let excess = self.ask(webhooks::excess(B::DIALECT)).await?;
        if excess.is_empty() {
            return Ok(0);
        }
        self.commit(TrimDeliveries(excess)).await
    }

    fn delivery_hints(&self) -> watch::Receiver<u64> {
        self.signals().ended.subscribe()
    }
}
