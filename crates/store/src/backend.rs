//! The seam between operations and databases. A [`StoreOperation`] is one change of the store, written
//! once; a [`StoreTransaction`] is what it needs of a database to make that change, and SQLite and
//! PostgreSQL each provide one.
//!
//! SQLite answers every call at once, from its writer's memory or its file, so an operation never
//! waits there. PostgreSQL loads what [`StoreOperation::needs`] names in one round trip before the
//! operation runs, and most calls are answered from that; only those that search (claims, sweeps,
//! chores) send further statements.

use std::collections::{BTreeSet, HashMap};
use std::future::Future;
use std::sync::Arc;

use kinora_contract::lifecycle::{EventRefusal, TaskEvent, TaskRecord};
use kinora_contract::{ClockReading, TaskId, TaskPhase, UnixMs};

use crate::changes::WakeSignals;
use crate::present_time::PresentTime;
use crate::queue::{QueueEstimates, QueueIndex, claiming};
use crate::sql::{SqlDialect, SqlQuery, SqlRow, SqlScript, TypedQuery, UnreadableValue};
use crate::tables::keys;
use crate::tasks::QueueLoad;
use crate::work::LeasedChange;
use crate::{
    ApiKey, ClaimRequest, EndedRequest, EndedTasks, ExpiryCursor, FetchRequest, IdempotencyKey,
    Lease, LongTasks, PageRequest, PostponeRequest, QueueCounts, QuotaUsage, ServiceOverview,
    StoreError, SweepRequest, TaskCallback, TaskGlance, TaskPage,
};

/// A change of the store in one transaction. It may run several times (after a lost connection, or
/// by itself after the group that it shared a transaction with has failed): each run starts from the
/// stored state, because a failed transaction leaves nothing behind.
pub(crate) trait StoreOperation: Send + Sync + 'static {
    type Output: Send + 'static;

    /// Adds the rows that [`StoreOperation::apply`] will look for.
    fn needs(&self, _needs: &mut RowNeeds) {}

    /// Approximate number of bytes that the operation sends to a server, if they may be many.
    fn bytes(&self) -> usize {
        0
    }

    /// The connection of a server that carries the operation.
    fn channel(&self) -> CommitChannel<'_> {
        CommitChannel::Changes
    }

    /// Whether a client waits for the answer. The call fails then if a server does not answer within
    /// [`kinora_contract::limits::STORE_ANSWER_SECONDS`].
    fn has_client(&self) -> bool {
        false
    }

    /// Whether the answer must arrive even while the runtime in which the store was opened is blocked.
    fn is_urgent(&self) -> bool {
        false
    }

    /// Makes the change. An error undoes it.
    fn apply<T: StoreTransaction>(
        &self,
        tx: &mut T,
    ) -> impl Future<Output = Result<Self::Output, T::Fault>> + Send;

    /// The changes that return the grants of this output to the queue, for a caller that has gone
    /// before the answer.
    fn return_grants(_output: Self::Output) -> Vec<LeasedChange> {
        Vec::new()
    }
}

/// A connection of a server. Each kind of work has its own, so that none delays another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommitChannel<'a> {
    /// Accepts tasks of this project.
    Submits(&'a str),
    /// Changes single tasks and chores.
    Changes,
    /// Claims and sweeps, which may have to wait for other processes.
    Queue,
}

/// The rows that a server reads and locks at the start of a transaction.
#[derive(Debug, Default)]
pub(crate) struct RowNeeds {
    /// Tasks to change.
    pub(crate) tasks: BTreeSet<TaskId>,
    /// Projects that accept tasks, or whose uploaded files change.
    pub(crate) projects: BTreeSet<String>,
    /// Idempotency keys to bind, by project.
    pub(crate) keys: BTreeSet<(String, String)>,
    /// Number of places for new tasks.
    pub(crate) places: u64,
    /// Whether a bound over all projects is set.
    pub(crate) totals: bool,
    /// Number of tasks to claim.
    pub(crate) claims: usize,
}

/// An error inside a transaction.
pub(crate) trait TransactionFault:
    From<UnreadableValue> + From<serde_json::Error> + Send
{
    /// Stored data cannot be read or is inconsistent; a retry is useless.
    fn corrupt(text: String) -> Self;

    /// The description of the damage, if stored data is at fault.
    fn damage(&self) -> Option<&str>;
}

/// The task and the request to which an idempotency key is bound.
#[derive(Clone, Debug)]
pub(crate) struct KeyBinding {
    pub(crate) fingerprint: Vec<u8>,
    pub(crate) task: TaskId,
}

/// A transaction of a database, as operations use it. The calls that may send a statement to a server
/// are `async`.
pub(crate) trait StoreTransaction: Send {
    type Fault: TransactionFault;

    /// The SQL that differs between the databases.
    const DIALECT: SqlDialect;

    /// The time at which it began.
    fn now(&self) -> &PresentTime;

    /// Runs a statement that only reads.
    fn query(
        &mut self,
        query: SqlQuery,
    ) -> impl Future<Output = Result<Vec<SqlRow>, Self::Fault>> + Send;

    /// Runs a statement that changes a row for each row that it returns.
    fn write(
        &mut self,
        query: SqlQuery,
    ) -> impl Future<Output = Result<Vec<SqlRow>, Self::Fault>> + Send;

    /// Keeps other transactions from writing to a table.
    fn lock_table(
        &mut self,
        table: &'static str,
    ) -> impl Future<Output = Result<(), Self::Fault>> + Send;

    // Tasks by id.

    /// The task with the changes of this transaction, if it exists and was loaded.
    fn find(&mut self, id: TaskId) -> Result<Option<Arc<TaskRecord>>, Self::Fault>;

    /// Applies `event` to a task, and stores the task and the effects. Returns `None` for a task
    /// that the event removes. A refused event changes nothing.
    #[allow(clippy::type_complexity)]
    fn apply(
        &mut self,
        before: &Arc<TaskRecord>,
        event: TaskEvent,
    ) -> Result<Result<Option<Arc<TaskRecord>>, EventRefusal>, Self::Fault>;

    /// Applies an event that the task's state allows.
    fn expect(
        &mut self,
        before: &Arc<TaskRecord>,
        event: TaskEvent,
    ) -> Result<Option<Arc<TaskRecord>>, Self::Fault> {
        self.apply(before, event)?
            .map_err(|refused| Self::Fault::corrupt(format!("{}: {refused}", before.task.id)))
    }

    /// Like [`StoreTransaction::expect`], for one of several tasks: a damaged row is logged and left as
    /// it is, and must not block the others. Returns whether the event was applied.
    fn expect_unless_damaged(
        &mut self,
        before: &Arc<TaskRecord>,
        event: TaskEvent,
    ) -> Result<bool, Self::Fault>;

    /// Removes a task whose row cannot be read, if it belongs to `project` (or any). Returns the
    /// keys of its files, or `None` if there is no such task.
    fn remove_unreadable(
        &mut self,
        id: TaskId,
        project: Option<&str>,
    ) -> impl Future<Output = Result<Option<Vec<String>>, Self::Fault>> + Send;

    /// Expires a task whose row cannot be read, and records its files for removal. It stays charged.
    fn expire_unreadable(
        &mut self,
        id: TaskId,
        now_ms: UnixMs,
    ) -> impl Future<Output = Result<(), Self::Fault>> + Send;

    // Accepting tasks.

    /// A place in the queue behind all others.
    fn next_place(&mut self) -> Result<u64, Self::Fault>;

    /// The id under which a task is accepted: `drawn`, or a later one if the project already has a
    /// later one.
    fn next_id(&mut self, project: &str, drawn: TaskId) -> Result<TaskId, Self::Fault>;

    /// The load that limits are compared with, including the tasks accepted in this transaction.
    fn load(&self, project: &str) -> QueueLoad;

    /// The binding of an idempotency key.
    fn key_binding(&mut self, project: &str, key: &str) -> Result<Option<KeyBinding>, Self::Fault>;

    /// Binds an idempotency key to a new task.
    fn bind_key(
        &mut self,
        record: &TaskRecord,
        idempotency: &IdempotencyKey,
    ) -> Result<(), Self::Fault>;

    /// Adds a task, and the callback to notify of its end.
    fn insert(
        &mut self,
        record: Arc<TaskRecord>,
        callback: Option<&TaskCallback>,
    ) -> Result<(), Self::Fault>;

    // Uploaded files.

    /// Changes the stored bytes of a project by those of uploaded files, and records blobs for removal. The
    /// project must be one of [`RowNeeds::projects`].
    fn charge_files(&mut self, project: &str, bytes: i64, garbage: &[String]);

    // Claims and fetches.

    /// Makes the part of the queue visible that a claim can reach next ([`StoreTransaction::claimable`]).
    /// Returns whether anything may be claimed at all.
    fn reach(
        &mut self,
        request: &ClaimRequest,
        long: Option<LongTasks>,
    ) -> impl Future<Output = Result<bool, Self::Fault>> + Send;

    /// The queue as far as it was reached.
    fn claimable(&self) -> Option<&QueueIndex>;

    /// The task that waits for this worker to be idle.
    fn awaited(
        &mut self,
        request: &ClaimRequest,
    ) -> impl Future<Output = Result<Option<Arc<TaskRecord>>, Self::Fault>> + Send;

    /// A fencing token larger than all others.
    fn next_token(&mut self) -> Result<u64, Self::Fault>;

    /// Claims a task by `event`. Returns `None` for a damaged row, which is out of the reach of later
    /// claims then.
    fn claim(
        &mut self,
        before: &Arc<TaskRecord>,
        event: TaskEvent,
    ) -> Result<Option<Arc<TaskRecord>>, Self::Fault>;

    /// Records that a task waits to run alone.
    fn record_waiting_alone(&mut self, next: claiming::WaitingAlone) -> Result<(), Self::Fault>;

    /// Ends the pauses and leases of fetches that are over, and makes the tasks visible that may be
    /// fetched next ([`StoreTransaction::fetchable`]). Returns whether there are any.
    fn reach_fetches(
        &mut self,
        request: &FetchRequest,
    ) -> impl Future<Output = Result<bool, Self::Fault>> + Send;

    /// The queue as far as fetches reach.
    fn fetchable(&self) -> Option<&QueueIndex>;

    /// A token of a fetch, larger than all others.
    fn next_fetch_token(&mut self) -> Result<u64, Self::Fault>;

    /// Begins a fetch by `event`, under this token.
    fn begin_fetch(
        &mut self,
        before: &Arc<TaskRecord>,
        event: TaskEvent,
        token: u64,
    ) -> Result<Option<Arc<TaskRecord>>, Self::Fault>;

    // Sweeps. All of these skip rows that another process is changing.

    /// All running tasks, if the lease of any may be over.
    fn running(
        &mut self,
        lease_ms: u64,
    ) -> impl Future<Output = Result<Vec<Arc<TaskRecord>>, Self::Fault>> + Send;

    /// Loads these running tasks for a change; leaves out those whose lease has changed since they
    /// were read, such as by a renewal, and those whose worker lives and has longer leases.
    fn reload_lost(
        &mut self,
        lost: Vec<Arc<TaskRecord>>,
    ) -> impl Future<Output = Result<HashMap<TaskId, Arc<TaskRecord>>, Self::Fault>> + Send;

    /// Loads waiting tasks that may have waited too long ([`SweepRequest::late`]), without those of the
    /// `spared` models.
    fn late(
        &mut self,
        request: &SweepRequest,
        spared: &[String],
        now_ms: UnixMs,
    ) -> impl Future<Output = Result<Vec<Arc<TaskRecord>>, Self::Fault>> + Send;

    /// Loads tasks of a phase that expire at or before `until_ms`, oldest first.
    fn due(
        &mut self,
        phase: TaskPhase,
        until_ms: UnixMs,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<TaskId>, Self::Fault>> + Send;

    /// Loads a batch of ended tasks to postpone, those that expire last first. `None` stands for a task
    /// that the request does not concern, or that cannot be read.
    #[allow(clippy::type_complexity)]
    fn postponable(
        &mut self,
        request: &PostponeRequest,
    ) -> impl Future<Output = Result<Vec<(ExpiryCursor, Option<Arc<TaskRecord>>)>, Self::Fault>> + Send;

    /// Removes old data of tables that only this database has.
    fn sweep_own(&mut self) -> impl Future<Output = Result<(), Self::Fault>> + Send;

    // Chores and deliveries.

    /// Tokens for the leases of chores or deliveries, larger than all others that are in use.
    fn chore_tokens(
        &mut self,
        count: usize,
    ) -> impl Future<Output = Result<Vec<u64>, Self::Fault>> + Send;
}

impl<S: SqlScript> StoreOperation for S {
    type Output = S::Output;

    async fn apply<T: StoreTransaction>(&self, tx: &mut T) -> Result<S::Output, T::Fault> {
        // The statements are known before any of them has run, so a script needs no rows loaded:
        // `needs` stays empty, and the lock is all that it waits for.
        if let Some(table) = self.locked_table() {
            tx.lock_table(table).await?;
        }
        let mut answers = Vec::new();
        for query in self.statements(tx.now().wall_ms) {
            answers.push(tx.write(query).await?);
        }
        Ok(self.output(&answers)?)
    }
}

/// The tables of a store, for the process that serves it and for commands beside it.
pub(crate) trait StoreTables: std::fmt::Debug + Send + Sync + 'static {
    /// The SQL that differs between the databases.
    const DIALECT: SqlDialect;

    /// Answers a question.
    fn ask<T: Send + 'static>(&self, question: TypedQuery<T>) -> impl StoreFuture<Vec<T>>;

    /// Makes a change in one transaction.
    fn run<S: SqlScript>(&self, script: S) -> impl StoreFuture<S::Output>;

    /// The key with this hash. A serving process caches it for a moment, and records its use.
    fn find_key(
        &self,
        sha256: &[u8; 32],
        _now_ms: UnixMs,
    ) -> impl StoreFuture<Option<Arc<ApiKey>>> {
        let answer = self.ask(keys::find(sha256));
        async move { Ok(answer.await?.pop().map(Arc::new)) }
    }

    /// All keys, oldest first.
    fn list_keys(&self) -> impl StoreFuture<Vec<ApiKey>> {
        self.ask(keys::all(Self::DIALECT))
    }

    /// Makes a change of keys visible to this process at once.
    fn forget_keys(&self) {}
}

/// A database that serves a store. The audience traits are implemented for it in
/// [`crate::audiences`].
pub(crate) trait StoreBackend: StoreTables {
    /// Makes a change; returns once it is on disk.
    fn commit<O: StoreOperation>(
        &self,
        operation: O,
    ) -> impl Future<Output = Result<O::Output, StoreError>> + Send;

    /// Both clocks of the store.
    fn clock(&self) -> impl StoreFuture<ClockReading>;

    /// The wall time of this process, for state that only this process has.
    fn process_ms(&self) -> UnixMs;

    /// The counters that wake the waiting parts of this process.
    fn signals(&self) -> &WakeSignals;

    /// The estimates of queue positions and waiting times.
    fn estimates(&self) -> &QueueEstimates;

    /// Brings [`StoreBackend::estimates`] up to date with other processes.
    fn refresh_estimates(&self) -> impl StoreFuture<()>;

    /// A number that no other store has.
    fn identity(&self) -> u64;

    /// As [`crate::WorkerStore::unclean_starts`].
    fn unclean_starts(&self) -> Option<u64>;

    /// As [`crate::WorkerStore::confirm_start`].
    fn confirm_start(&self) -> impl StoreFuture<()>;

    /// Whether the last change was stored.
    fn is_writable(&self) -> bool;

    // Tasks.

    /// The task as it is now. The read counts against the read capacity of `project`.
    fn find(&self, project: Option<&str>, id: TaskId) -> impl StoreFuture<Option<Arc<TaskRecord>>>;

    /// Like [`StoreBackend::find`], but may return a slightly older state of an unfinished task.
    fn find_recent(
        &self,
        project: Option<&str>,
        id: TaskId,
    ) -> impl StoreFuture<Option<Arc<TaskRecord>>> {
        self.find(project, id)
    }

    /// Several tasks as they are now. A damaged one gives an error of its own.
    #[allow(clippy::type_complexity)]
    fn find_all(
        &self,
        ids: &[TaskId],
    ) -> impl StoreFuture<Vec<Result<Option<Arc<TaskRecord>>, StoreError>>>;

    /// The tasks with these ids; `None` for one that does not wait or cannot be read.
    fn find_waiting(&self, ids: &[TaskId]) -> impl StoreFuture<Vec<Option<Arc<TaskRecord>>>>;

    /// As [`crate::TaskStore::find_twin`].
    fn find_twin(
        &self,
        project: &str,
        idempotency: &IdempotencyKey,
    ) -> impl StoreFuture<Option<Arc<TaskRecord>>>;

    /// As [`crate::TaskStore::list`].
    fn list(&self, request: PageRequest) -> impl StoreFuture<TaskPage>;

    /// As [`crate::TaskStore::glance`].
    fn glance(&self, ids: &[TaskId]) -> impl StoreFuture<Vec<Option<TaskGlance>>>;

    /// As [`crate::TaskStore::unfinished`].
    fn unfinished(&self, project: &str) -> impl StoreFuture<Vec<TaskGlance>>;

    /// As [`crate::TaskStore::ended`].
    fn ended(&self, request: EndedRequest) -> impl StoreFuture<EndedTasks>;

    /// As [`crate::TaskStore::preview`].
    fn preview(&self, id: TaskId) -> impl StoreFuture<Option<Arc<[u8]>>>;

    /// As [`crate::WorkerStore::put_preview`].
    fn put_preview(&self, lease: &Lease, preview: Arc<[u8]>) -> impl StoreFuture<()>;

    /// As [`crate::TaskStore::usage`].
    fn usage(&self, project: &str) -> impl StoreFuture<QuotaUsage>;

    /// As [`crate::TaskStore::counts`].
    fn counts(&self) -> impl StoreFuture<QueueCounts>;

    /// As [`crate::OperatorStore::overview`].
    fn overview(&self) -> impl StoreFuture<ServiceOverview>;

    /// Whether there may be a task of these models to claim.
    fn may_claim(&self, models: &[String]) -> impl StoreFuture<bool>;

    /// Whether there may be references to fetch.
    fn may_fetch(&self) -> bool;

    // Upkeep.

    /// Writes the last uses of keys. They are exact only to a minute, so a failure is ignored.
    fn write_key_uses(&self) -> impl Future<Output = ()> + Send;
}

/// The future of an answer.
pub(crate) trait StoreFuture<T>: Future<Output = Result<T, StoreError>> + Send {}

impl<T, F: Future<Output = Result<T, StoreError>> + Send> StoreFuture<T> for F {}
