//! The store for the owners of tasks: the trait [`TaskStore`], its requests and answers, lists, and the
//! usage that limits are compared with. Takes validated specs only, never a raw request.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use async_trait::async_trait;
use kinora_contract::lifecycle::TaskRecord;
use kinora_contract::limits::PAGE_BYTES_MAX;
use kinora_contract::{
    Failure, FileId, Priority, Task, TaskCost, TaskId, TaskState, TraceContext, UnixMs, VideoSpec,
    listed_bytes,
};

use crate::{
    ChangeReceiver, Chore, ChoreDone, EndedRequest, EndedTasks, ExceededBudget, Spending,
    StoreError, SubmitBudgets, TaskCallback, TaskGlance, TaskReader,
};

/// Operations for the owners of tasks. A changing method returns only after the change is synced to
/// disk.
#[async_trait]
pub trait TaskStore: TaskReader {
    /// Adds a waiting task, if it is within the queue's limits and its idempotency key is free. On
    /// `Ok` the task (or its earlier twin) is on disk. Checking the limits and the key, and the
    /// insert, are one transaction. A failed call may have inserted the task: the caller chose the
    /// id and can look it up.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be written now.
    async fn insert(&self, new: NewTask) -> Result<InsertOutcome, StoreError>;

    /// The task that the same request under the same key created in this project, if any: a repeated
    /// request gets its first answer even if it would be refused now. Does not find a twin that is
    /// still being stored; [`TaskStore::insert`] does, in its transaction.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read.
    async fn find_twin(
        &self,
        project: &str,
        idempotency: &IdempotencyKey,
    ) -> Result<Option<Arc<Task>>, StoreError>;

    /// The task with this id in this project; `None` for an unknown id and for another project's
    /// alike. Never scans.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read.
    async fn get(&self, project: &str, id: TaskId) -> Result<Option<Arc<Task>>, StoreError>;

    /// Like [`TaskStore::get`], for a client that polls. If several processes serve the store, the answer
    /// may miss a change that another process made a moment ago to an unfinished task. It is never
    /// older than an answer that this process has given, or a change that it has made.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read.
    async fn poll(&self, project: &str, id: TaskId) -> Result<Option<Arc<Task>>, StoreError> {
        self.get(project, id).await
    }

    /// One page of a project's unexpired tasks, by creation. A page is cut short where its tasks would
    /// take more than [`kinora_contract::limits::PAGE_BYTES_MAX`] together
    /// ([`kinora_contract::listed_bytes`]), but has at least one. A task that cannot be read is logged
    /// and skipped. Blocks no thread that serves other calls.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read.
    async fn list(&self, request: PageRequest) -> Result<TaskPage, StoreError>;

    /// The number of tasks expected to start before each of these; `None` for a task that does not
    /// wait for its first worker, and for one too far back in a long queue. Up to a second old.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read.
    async fn positions(&self, ids: &[TaskId]) -> Result<Vec<Option<u64>>, StoreError>;

    /// The short states of these tasks, in order; `None` for one that is expired or does not exist.
    /// Cheap enough for frequent calls.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read.
    async fn glance(&self, ids: &[TaskId]) -> Result<Vec<Option<TaskGlance>>, StoreError>;

    /// The short states of a project's unfinished tasks, by creation. As cheap as [`TaskStore::glance`].
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read.
    async fn unfinished(&self, project: &str) -> Result<Vec<TaskGlance>, StoreError>;

    /// The tasks of a project that ended recently and are not expired. Never scans.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read.
    async fn ended(&self, request: EndedRequest) -> Result<EndedTasks, StoreError>;

    /// Reports every change of a task's [`TaskGlance`] from now on, once it can be read. Only a hint
    /// that shortens waiting; polling must be enough.
    fn changes(&self) -> ChangeReceiver;

    /// The latest encoded preview of a running task.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read.
    async fn preview(&self, id: TaskId) -> Result<Option<Arc<[u8]>>, StoreError>;

    /// Makes an unfinished task `failed` with `failure`, immediately and finally, and keeps it for
    /// `retention_ms`. A worker that runs it loses its lease, and its finish is refused.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be written now.
    async fn cancel(
        &self,
        project: &str,
        id: TaskId,
        failure: Failure,
        retention_ms: u64,
    ) -> Result<CancelOutcome, StoreError>;

    /// Cancels, like [`TaskStore::cancel`], the tasks of a project that wait for their first run, in
    /// bounded steps. Returns how many. A task that is accepted after the call began may stay. After
    /// an error some may be cancelled; a repeated call cancels the others.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be read or written now.
    async fn cancel_queued(&self, request: QueuedCancel) -> Result<u64, StoreError>;

    /// Removes a task in any phase. Its result files become chores leased to the caller, so that a
    /// crash leaks none.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be written now.
    async fn delete(&self, project: &str, id: TaskId) -> Result<DeleteOutcome, StoreError>;

    /// As [`crate::ChoreStore::complete_chores`], for the chores of a deletion.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be written now.
    async fn complete_deletion(&self, done: Vec<ChoreDone>) -> Result<(), StoreError>;

    /// A project's stored data.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read.
    async fn usage(&self, project: &str) -> Result<QuotaUsage, StoreError>;

    /// What the tasks of a project, and of one of its keys, have cost today and this month.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read.
    async fn spending(&self, project: &str, key: &str) -> Result<Spending, StoreError>;

    /// Numbers of waiting and running tasks.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read.
    async fn counts(&self) -> Result<QueueCounts, StoreError>;

    /// Whether the last change was stored. While it was not, the store retries by itself, so this
    /// becomes true again without any caller.
    fn is_writable(&self) -> bool;
}

/// A task to add.
#[derive(Clone, Debug)]
pub struct NewTask {
    /// Drawn by the caller. The store accepts the task under this id or a later one, so that the ids
    /// of a project sort in the order of acceptance even if several processes draw them
    /// ([`TaskId::following`]).
    pub id: TaskId,
    /// The project that owns it.
    pub project: String,
    /// The video to make.
    pub spec: VideoSpec,
    /// The caller's own notes.
    pub metadata: BTreeMap<String, String>,
    /// Priority within the project.
    pub priority: Priority,
    /// The request's idempotency key, if it has one.
    pub idempotency: Option<IdempotencyKey>,
    /// The webhook to notify of its end, besides those of its project.
    pub callback: Option<TaskCallback>,
    /// The uploaded files that it names. They stay until it has ended.
    pub files: Vec<FileId>,
    /// The span of its submit, if its trace is recorded.
    pub trace: Option<TraceContext>,
    /// The limits of the queue.
    pub bounds: QueueBounds,
    /// What it will cost, if its model has prices.
    pub cost: Option<TaskCost>,
    /// The budgets that the cost counts against.
    pub budgets: SubmitBudgets,
}

impl NewTask {
    /// The task in its initial state, under the id that the store gave it.
    pub(crate) fn accepted(&self, id: TaskId, now_ms: UnixMs) -> Task {
        Task {
            id,
            project: self.project.clone(),
            spec: self.spec.clone(),
            metadata: self.metadata.clone(),
            priority: self.priority,
            state: TaskState::Waiting,
            progress: 0,
            created_at_ms: now_ms,
            started_at_ms: None,
            finished_at_ms: None,
            expires_at_ms: None,
            attempt: 0,
            engine: None,
            warnings: Vec::new(),
            trace: self.trace,
            cost: self.cost.clone(),
        }
    }
}

/// An `Idempotency-Key`, scoped to the project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotencyKey {
    /// The key as the client sent it.
    pub key: String,
    /// SHA-256 of the normalised request; a different request under the same key is refused.
    pub fingerprint: [u8; 32],
    /// How long the key is bound, in milliseconds. The first sweep after that frees it, or a later
    /// one ([`crate::SweepRequest::keys_kept_ms`]).
    pub bound_ms: u64,
}

/// The limits of the queue, checked in the transaction of the insert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueBounds {
    /// Waiting tasks of all projects.
    pub waiting_max: u64,
    /// Unfinished tasks of the project.
    pub project_unfinished_max: u64,
    /// Unexpired tasks of the project.
    pub project_tasks_max: u64,
    /// Stored bytes of the project: rows, references, results, uploaded files.
    pub project_bytes_max: u64,
    /// Stored bytes of all projects.
    pub bytes_max: u64,
}

impl QueueBounds {
    /// No limits.
    pub const NONE: Self = Self {
        waiting_max: u64::MAX,
        project_unfinished_max: u64::MAX,
        project_tasks_max: u64::MAX,
        project_bytes_max: u64::MAX,
        bytes_max: u64::MAX,
    };

    /// Why a task of this size does not fit in addition to this load; `None` if it does.
    pub(crate) const fn refusal(&self, bytes: u64, load: QueueLoad) -> Option<ExceededLimit> {
        // The order decides which limit is named if several are exceeded. Limits that free
        // themselves as tasks end, with a time to return, come before those on stored data, which
        // only a deletion or an expiry frees. A task that is too large by itself comes before the
        // quotas that other tasks fill: freeing space would not help it.
        if load.waiting >= self.waiting_max {
            Some(ExceededLimit::Queue)
        } else if load.unfinished >= self.project_unfinished_max {
            Some(ExceededLimit::Project)
        } else if bytes > self.project_bytes_max || bytes > self.bytes_max {
            Some(ExceededLimit::Quota(ExceededQuota::Task))
        } else if load.own.tasks >= self.project_tasks_max {
            Some(ExceededLimit::Quota(ExceededQuota::ProjectTasks))
        } else if load.own.bytes.saturating_add(bytes) > self.project_bytes_max {
            Some(ExceededLimit::Quota(ExceededQuota::ProjectBytes))
        } else if load.bytes.saturating_add(bytes) > self.bytes_max {
            Some(ExceededLimit::Quota(ExceededQuota::Bytes))
        } else {
            None
        }
    }
}

/// The load when a task is submitted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueueLoad {
    /// Waiting tasks of all projects, and places promised to other projects.
    pub(crate) waiting: u64,
    /// Unfinished tasks of the project.
    pub(crate) unfinished: u64,
    /// Usage of the project.
    pub(crate) own: QuotaUsage,
    /// Stored bytes of all projects.
    pub(crate) bytes: u64,
}

/// The limit that a task would exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExceededLimit {
    /// [`QueueBounds::waiting_max`].
    Queue,
    /// [`QueueBounds::project_unfinished_max`].
    Project,
    /// A limit on stored data.
    Quota(ExceededQuota),
}

/// The limit on stored data that a task would exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExceededQuota {
    /// [`QueueBounds::project_bytes_max`] or [`QueueBounds::bytes_max`], by this task alone:
    /// freeing space does not help.
    Task,
    /// [`QueueBounds::project_tasks_max`].
    ProjectTasks,
    /// [`QueueBounds::project_bytes_max`].
    ProjectBytes,
    /// [`QueueBounds::bytes_max`].
    Bytes,
}

/// A project's stored data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuotaUsage {
    /// Bytes of its rows, references, results and uploaded files. References count with an allowance until they are
    /// fetched, and texts by their length.
    pub bytes: u64,
    /// Number of unexpired tasks.
    pub tasks: u64,
}

/// The outcome of an insert.
#[derive(Clone, Debug)]
pub enum InsertOutcome {
    /// The task is stored.
    Inserted(Arc<Task>),
    /// The same request was stored before under this idempotency key, as this task.
    Replayed(Arc<Task>),
    /// The idempotency key belongs to another request. Nothing was stored.
    KeyReused,
    /// The queue is full. Nothing was stored.
    QueueFull(RetryAfter),
    /// The project has reached its maximum of unfinished tasks. Nothing was stored.
    ProjectFull(RetryAfter),
    /// A limit on stored data is reached. Nothing was stored.
    QuotaFull(ExceededQuota),
    /// The project does not have this uploaded file, or no longer has it. Nothing was stored.
    FileGone(FileId),
    /// A budget does not have the amount left. Nothing was stored.
    OverBudget(ExceededBudget),
}

/// When a place for the refused project is expected: estimated from measured service times, the
/// tasks ahead, and the places promised to others before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryAfter {
    /// Milliseconds from now, at least 1.
    pub millis: u64,
}

/// Numbers of waiting and running tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueCounts {
    /// Numbers by model.
    pub models: BTreeMap<String, PhaseCounts>,
    /// Numbers by project.
    pub projects: BTreeMap<String, PhaseCounts>,
    /// Age of the oldest waiting task of each model that has any, in milliseconds by the store's wall
    /// clock.
    pub oldest_waiting_ms: BTreeMap<String, u64>,
}

impl QueueCounts {
    /// Counts all unfinished tasks, at this time of the store's wall clock.
    pub(crate) fn from_records<'a>(
        unfinished: impl Iterator<Item = &'a TaskRecord>,
        now_ms: UnixMs,
    ) -> Self {
        let mut counts = Self::default();
        for record in unfinished {
            let task = &record.task;
            let models = counts.models.entry(task.spec.model.clone()).or_default();
            let projects = counts.projects.entry(task.project.clone()).or_default();
            let one = PhaseCounts::from_record(record);
            models.add(one);
            projects.add(one);
            if record.is_waiting() {
                counts.add_waiting(&task.spec.model, task.created_at_ms, now_ms);
            }
        }
        counts
    }

    /// Adds a task that waits for `model` and was created at `at_ms`.
    pub(crate) fn add_waiting(&mut self, model: &str, at_ms: UnixMs, now_ms: UnixMs) {
        let waited_ms = now_ms.saturating_sub(at_ms);
        let oldest_ms = self.oldest_waiting_ms.entry(model.to_owned()).or_default();
        *oldest_ms = waited_ms.max(*oldest_ms);
    }
}

/// Numbers for one model or project.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PhaseCounts {
    /// Tasks that wait for references or for a worker.
    pub waiting: u64,
    /// Waiting tasks whose references must be fetched.
    pub unfetched: u64,
    /// Waiting tasks whose references are being fetched.
    pub fetching: u64,
    /// Running tasks.
    pub running: u64,
}

impl PhaseCounts {
    /// Counts one unfinished task.
    fn from_record(record: &TaskRecord) -> Self {
        if record.is_running() {
            return Self {
                running: 1,
                ..Self::default()
            };
        }
        // A pause between two fetches has no token: such a task counts as unfetched, like one that
        // no fetch has begun for.
        let is_fetched_for = record.references.fetch_token().is_some();
        Self {
            waiting: 1,
            unfetched: (!record.is_claimable() && !is_fetched_for).into(),
            fetching: is_fetched_for.into(),
            running: 0,
        }
    }

    pub(crate) const fn add(&mut self, other: Self) {
        self.waiting += other.waiting;
        self.unfetched += other.unfetched;
        self.fetching += other.fetching;
        self.running += other.running;
    }
}

/// The outcome of a cancel.
#[derive(Clone, Debug)]
pub enum CancelOutcome {
    /// The task is now failed.
    Cancelled(Arc<Task>),
    /// It was already finished; this is its state.
    AlreadyFinished(Arc<Task>),
    /// No such task in this project.
    NotFound,
}

/// A cancel of all queued tasks of a project.
#[derive(Clone, Debug)]
pub struct QueuedCancel {
    /// The project.
    pub project: String,
    /// Only tasks of this model, by its canonical identifier.
    pub model: Option<String>,
    /// The failure of the tasks.
    pub failure: Failure,
    /// How long to keep them, in milliseconds.
    pub retention_ms: u64,
}

/// The outcome of a delete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeleteOutcome {
    /// The task was deleted. Its result files must be removed: these chores are leased to the
    /// caller.
    Deleted {
        /// One chore per file.
        files: Vec<Chore>,
    },
    /// No such task in this project.
    NotFound,
}

/// Order of a list, by creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListOrder {
    /// Oldest first.
    Ascending,
    /// Newest first.
    Descending,
}

/// A query for tasks.
#[derive(Clone, Debug)]
pub struct PageRequest {
    /// The project.
    pub project: String,
    /// Only tasks after this one in the order. It need not exist any more.
    pub after: Option<TaskId>,
    /// Maximum number; a page may hold fewer, see [`crate::TaskStore::list`].
    pub limit: usize,
    /// The order.
    pub order: ListOrder,
}

impl PageRequest {
    /// Whether the list includes a task.
    pub(crate) fn lists(&self, task: &Task) -> bool {
        task.project == self.project && task.status().is_some()
    }
}

/// A page of tasks.
#[derive(Clone, Debug, Default)]
pub struct TaskPage {
    /// The tasks, in the requested order.
    pub tasks: Vec<Arc<Task>>,
    /// Whether there are more after them, even if the page holds fewer than requested.
    pub has_more: bool,
}

/// A page being filled.
#[derive(Debug)]
pub(crate) struct PageBuilder {
    page: TaskPage,
    limit: usize,
    bytes: usize,
}

impl PageBuilder {
    /// An empty page for up to `limit` tasks.
    pub(crate) fn with_limit(limit: usize) -> Self {
        Self {
            page: TaskPage::default(),
            limit,
            bytes: 0,
        }
    }

    /// Adds the next task of the list; `false` if it does not fit, so that the page is complete.
    pub(crate) fn add(&mut self, task: &Arc<Task>) -> bool {
        let tasks = &mut self.page.tasks;
        self.bytes += listed_bytes(task);
        // The first task is added even if it exceeds the limit by itself: an empty page with
        // `has_more` would give the client no cursor to go on from.
        let over = self.bytes > PAGE_BYTES_MAX && !tasks.is_empty();
        if over || tasks.len() == self.limit {
            self.page.has_more = true;
            return false;
        }
        tasks.push(task.clone());
        true
    }

    /// The finished page.
    pub(crate) fn page(self) -> TaskPage {
        self.page
    }
}

/// A change of a project's usage.
#[derive(Clone, Debug)]
pub(crate) struct UsageCharge {
    pub(crate) project: Arc<str>,
    pub(crate) bytes: i64,
    pub(crate) tasks: i64,
}

impl UsageCharge {
    pub(crate) fn new(project: &str, bytes: i64, tasks: i64) -> Self {
        Self {
            project: project.into(),
            bytes,
            tasks,
        }
    }

    pub(crate) fn reversed(self) -> Self {
        Self {
            bytes: -self.bytes,
            tasks: -self.tasks,
            ..self
        }
    }

    pub(crate) const fn is_nothing(&self) -> bool {
        self.bytes == 0 && self.tasks == 0
    }
}

/// The usage of all projects: sums in memory, which a store writes in the transaction that changes
/// them, so that they always match its rows. A submit is checked against them without a query.
#[derive(Debug, Default)]
pub(crate) struct UsageSums {
    projects: HashMap<Arc<str>, QuotaUsage>,
    bytes: u64,
}

impl UsageSums {
    /// The usage of one project.
    pub(crate) fn project_usage(&self, project: &str) -> QuotaUsage {
        self.projects.get(project).copied().unwrap_or_default()
    }

    /// Stored bytes of all projects.
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn charge(&mut self, charge: &UsageCharge) {
        let usage = self.projects.entry(charge.project.clone()).or_default();
        usage.bytes = usage.bytes.saturating_add_signed(charge.bytes);
        usage.tasks = usage.tasks.saturating_add_signed(charge.tasks);
        // Saturating: sums that do not match must not stop the writer, which every change of the
        // store goes through.
        self.bytes = self.bytes.saturating_add_signed(charge.bytes);
        // Projects come and go; the map holds only those that store anything.
        if *usage == QuotaUsage::default() {
            self.projects.remove(&charge.project);
        }
    }
}

impl FromIterator<(String, QuotaUsage)> for UsageSums {
    fn from_iter<I: IntoIterator<Item = (String, QuotaUsage)>>(projects: I) -> Self {
        let mut usages = Self::default();
        for (project, usage) in projects {
            usages.bytes = usages.bytes.saturating_add(usage.bytes);
            usages.projects.insert(project.into(), usage);
        }
        usages
    }
}
