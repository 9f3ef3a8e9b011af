//! A lane: a task that owns one writing connection. It takes all queued jobs into one transaction,
//! commits it, makes the result visible to readers of this process, and only then answers. A job
//! that fails does not fail its neighbours. If the answer to a commit is lost, the lane looks up the
//! outcome before it answers.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kinora_contract::limits::STORE_ANSWER_SECONDS;
use kinora_contract::{Stopwatch, TaskId};
use tokio::sync::{mpsc, oneshot};
use tokio_postgres::error::SqlState;

use super::batch::LaneTransaction;
use super::batch::{LaneBatch, begin};
use super::cache::ReadStamp;
use super::commit::CommitOutcome;
use super::connect::{ReconnectBackoff, ServerConnector};
use super::fault::{
    NO_ANSWER, PostgresFault, PostgresResult, closed_error, duplicate, is_broken, is_outdated,
    is_transient, message_of, unavailable, with_timeout,
};
use super::session::ServerSession;
use super::session::{BEGIN, SYNCED, SqlStatement};
use super::shared::{CommittedChanges, SharedState};
use crate::backend::{RowNeeds, StoreOperation};
use crate::work::LeasedChange;
use crate::{StoreError, commit_metrics};

/// Maximum number of queued requests; callers beyond it wait for a place.
const QUEUED_MAX: usize = 4_096;
/// Maximum number of requests in one transaction: bounds the work repeated after a neighbour fails.
const BATCH_MAX: usize = 512;
/// Maximum number of bytes that one transaction sends, apart from its last request: bounds its
/// memory here and at the server.
const BATCH_BYTES_MAX: usize = 16 << 20;

/// The handle of a lane. Dropping it lets the lane finish its queued jobs.
#[derive(Clone, Debug)]
pub(super) struct WriteLane {
    jobs: mpsc::Sender<Box<dyn LaneJob>>,
}

impl WriteLane {
    /// Starts a lane whose row has this id.
    pub(super) fn start(
        connector: Arc<ServerConnector>,
        shared: Arc<SharedState>,
        id: u64,
    ) -> Self {
        let (jobs, queue) = mpsc::channel(QUEUED_MAX);
        let state = LaneLoop {
            writer: LaneWriter::new(connector.clone(), shared, id),
            own: jobs.downgrade(),
        };
        connector.spawn(state.serve(queue));
        Self { jobs }
    }

    /// Does `operation`; returns once it is committed.
    pub(super) async fn call<O: LaneStep>(&self, operation: O) -> Result<O::Output, StoreError> {
        let (job, answer) = job_for(operation);
        self.jobs.send(job).await.map_err(|_| closed_error())?;
        answer.await.map_err(|_| closed_error())?
    }

    /// As [`Self::call`], with a time limit for clients. After a timeout the operation may still be done, as
    /// after any lost answer.
    pub(super) async fn call_with_limit<O: LaneStep>(
        &self,
        operation: O,
    ) -> Result<O::Output, StoreError> {
        let limit = Duration::from_secs(STORE_ANSWER_SECONDS);
        with_timeout(limit, self.call(operation)).await
    }

    /// Queues `operation` without waiting, unless the lane is too busy.
    pub(super) fn try_send<O: LaneStep>(&self, operation: O) {
        // Callers of this can do without the operation.
        let _ = self.jobs.try_send(job_for(operation).0);
    }
}

/// The state that a lane owns.
struct LaneLoop {
    writer: LaneWriter,
    own: mpsc::WeakSender<Box<dyn LaneJob>>,
}

impl LaneLoop {
    async fn serve(mut self, mut queue: mpsc::Receiver<Box<dyn LaneJob>>) {
        let mut jobs: Vec<Box<dyn LaneJob>> = Vec::new();
        loop {
            match self.next_job(&mut queue).await {
                Some(Some(job)) => jobs.push(job),
                Some(None) => {
                    self.probe().await;
                    continue;
                }
                None => return,
            }
            // Group commit: everything that is queued goes into one transaction, and so shares its two
            // round trips and its sync. The callers that were just answered often have their next job
            // ready: one yield lets them queue it, so that it does not wait for a whole transaction.
            tokio::task::yield_now().await;
            take_queued(&mut jobs, &mut queue);
            let failures = self.writer.catch_up_and_commit(&mut jobs).await;
            for (job, failure) in jobs.drain(..).zip(failures) {
                self.send_all(job.respond(failure));
            }
        }
    }

    /// The next job; `Some(None)` when it is time to check whether the server accepts writes again and to
    /// catch up; `None` when the lane is closed.
    async fn next_job(
        &mut self,
        queue: &mut mpsc::Receiver<Box<dyn LaneJob>>,
    ) -> Option<Option<Box<dyn LaneJob>>> {
        if self.writer.shared.is_writable() && self.writer.is_caught_up() {
            return queue.recv().await.map(Some);
        }
        match tokio::time::timeout(self.writer.link.pause(), queue.recv()).await {
            Ok(job) => job.map(Some),
            Err(_) => Some(None),
        }
    }

    /// Writes only the lane's own row.
    async fn probe(&mut self) {
        let mut jobs: Vec<Box<dyn LaneJob>> = vec![job_for(WriteProbe).0];
        self.writer.catch_up_and_commit(&mut jobs).await;
    }

    fn send_all(&self, jobs: Vec<Box<dyn LaneJob>>) {
        for job in jobs {
            if let Some(own) = self.own.upgrade() {
                // Not awaited: the lane would wait for itself. If its queue is full, the lease expires by
                // itself.
                let _ = own.try_send(job);
            }
        }
    }
}

/// Adds queued jobs, as far as they fit into one transaction.
fn take_queued(jobs: &mut Vec<Box<dyn LaneJob>>, queue: &mut mpsc::Receiver<Box<dyn LaneJob>>) {
    let mut bytes: usize = jobs.iter().map(|job| job.bytes()).sum();
    while jobs.len() < BATCH_MAX
        && bytes < BATCH_BYTES_MAX
        && let Ok(job) = queue.try_recv()
    {
        bytes += job.bytes();
        jobs.push(job);
    }
}

/// Checks whether the server accepts writes.
struct WriteProbe;

impl LaneStep for WriteProbe {
    type Output = ();

    async fn apply(&self, batch: &mut LaneTransaction<'_>) -> PostgresResult<()> {
        // The start of each transaction writes the lane's row, and an empty batch would roll that back
        // and prove nothing: this makes it commit.
        batch.wrote = true;
        Ok(())
    }
}

/// A change by a lane, which can be retried after a rollback: a [`StoreOperation`], or what only this
/// database does. A failed one has changed nothing in the batch.
pub(super) trait LaneStep: Send + Sync + 'static {
    type Output: Send + 'static;

    /// As [`StoreOperation::needs`].
    fn needs(&self, _needs: &mut RowNeeds) {}

    /// As [`StoreOperation::bytes`].
    fn bytes(&self) -> usize {
        0
    }

    fn apply(
        &self,
        batch: &mut LaneTransaction<'_>,
    ) -> impl Future<Output = PostgresResult<Self::Output>> + Send;

    /// As [`StoreOperation::return_grants`]; also used if the caller was answered with an error.
    fn unclaimed(_output: Self::Output) -> Vec<LeasedChange> {
        Vec::new()
    }
}

impl<O: StoreOperation> LaneStep for O {
    type Output = O::Output;

    fn needs(&self, needs: &mut RowNeeds) {
        StoreOperation::needs(self, needs);
    }

    fn bytes(&self) -> usize {
        StoreOperation::bytes(self)
    }

    async fn apply(&self, batch: &mut LaneTransaction<'_>) -> PostgresResult<O::Output> {
        StoreOperation::apply(self, batch).await
    }

    fn unclaimed(output: O::Output) -> Vec<LeasedChange> {
        O::return_grants(output)
    }
}

/// A step with its caller, without its type.
#[async_trait]
trait LaneJob: Send {
    fn needs(&self, needs: &mut RowNeeds);
    fn bytes(&self) -> usize;
    async fn run(&mut self, batch: &mut LaneTransaction<'_>) -> PostgresResult<()>;
    /// The jobs to run if the last run was committed although its caller is told that it failed.
    fn undo(&mut self) -> Vec<Box<dyn LaneJob>>;
    /// Answers with the result of the last run, or with the failure.
    fn respond(self: Box<Self>, failure: Option<StoreError>) -> Vec<Box<dyn LaneJob>>;
}

struct LaneCall<O: LaneStep> {
    operation: O,
    output: Option<O::Output>,
    reply: oneshot::Sender<Result<O::Output, StoreError>>,
}

#[async_trait]
impl<O: LaneStep> LaneJob for LaneCall<O> {
    fn needs(&self, needs: &mut RowNeeds) {
        self.operation.needs(needs);
    }

    fn bytes(&self) -> usize {
        self.operation.bytes()
    }

    async fn run(&mut self, batch: &mut LaneTransaction<'_>) -> PostgresResult<()> {
        self.output = None;
        self.output = Some(self.operation.apply(batch).await?);
        Ok(())
    }

    fn undo(&mut self) -> Vec<Box<dyn LaneJob>> {
        self.output.take().map(undo_jobs::<O>).unwrap_or_default()
    }

    fn respond(self: Box<Self>, failure: Option<StoreError>) -> Vec<Box<dyn LaneJob>> {
        let answer = match (failure, self.output) {
            (None, Some(output)) => Ok(output),
            (failure, _) => Err(failure.unwrap_or_else(closed_error)),
        };
        match self.reply.send(answer) {
            Err(Ok(output)) => undo_jobs::<O>(output),
            _ => Vec::new(),
        }
    }
}

fn undo_jobs<O: LaneStep>(unclaimed: O::Output) -> Vec<Box<dyn LaneJob>> {
    let changes = O::unclaimed(unclaimed).into_iter();
    changes.map(|change| job_for(change).0).collect()
}

/// The channel for the answer to an operation.
type LaneAnswer<T> = oneshot::Receiver<Result<T, StoreError>>;

/// A job, and its answer.
fn job_for<O: LaneStep>(operation: O) -> (Box<dyn LaneJob>, LaneAnswer<O::Output>) {
    let (reply, answer) = oneshot::channel();
    let call = LaneCall {
        operation,
        output: None,
        reply,
    };
    (Box::new(call), answer)
}

/// The connection of a lane.
struct LaneConnection {
    connector: Arc<ServerConnector>,
    shared: Arc<SharedState>,
    /// The lane's row.
    lane: u64,
    session: Option<ServerSession>,
    backoff: ReconnectBackoff,
}

impl LaneConnection {
    fn new(connector: Arc<ServerConnector>, shared: Arc<SharedState>, lane: u64) -> Self {
        Self {
            connector,
            shared,
            lane,
            session: None,
            backoff: ReconnectBackoff::default(),
        }
    }

    /// The pause before the next attempt.
    fn pause(&self) -> Duration {
        self.backoff.pause()
    }

    /// Keeps a connection for the next transaction.
    fn store(&mut self, session: ServerSession) {
        self.session = Some(session);
    }

    /// Takes the connection; connects if there is none.
    async fn connected(&mut self) -> Result<ServerSession, StoreError> {
        let kept = self.session.take();
        if let Some(session) = kept.filter(|session| !session.is_closed()) {
            return Ok(session);
        }
        match self.connector.session().await {
            Ok(session) => {
                self.backoff.reset();
                // The new connection may lead to another server, whose row versions mean other rows.
                self.shared.runs.clear();
                Ok(session)
            }
            Err(error) => {
                self.backoff.fail();
                let error = StoreError::from(error);
                self.shared.set_writable(Some(&error.to_string()));
                Err(error)
            }
        }
    }

    /// Maximum time for a transaction, or for the lookup of its outcome.
    fn transaction_limit(&self) -> Duration {
        3 * self.statement_timeout()
    }

    fn statement_timeout(&self) -> Duration {
        Duration::from_millis(self.shared.options.statement_timeout_ms.into())
    }

    /// Whether the lane's last transaction, with this number, was committed; `None` if that cannot be found
    /// out in time. The lane's row stays locked until the transaction has ended, so the result is final.
    async fn was_committed(&mut self, batch: u64) -> Option<bool> {
        let found = tokio::time::timeout(self.transaction_limit(), self.find_outcome(batch)).await;
        found.ok()
    }

    /// As [`Self::was_committed`], without a time limit.
    async fn find_outcome(&mut self, batch: u64) -> bool {
        // The lane's row names its last committed transaction. Example: transaction 17 wrote 17 into it as
        // its first statement. If the row has 17 afterwards, the commit has worked; with 16 it was rolled
        // back. The lookup takes the row's lock, and so waits for 17 if it is still running.
        loop {
            match self.last_batch().await {
                Ok(last) if last != batch => return false,
                Ok(_) if self.wait_for_standbys().await.is_ok() => return true,
                Ok(_) | Err(_) => {}
            }
            // A failover takes a while. Callers get no answer until then, rather than a wrong one.
            tokio::time::sleep(self.backoff.pause()).await;
        }
    }

    /// Waits until the synchronous standbys have everything that was committed before. A restarted server
    /// shows a commit that was still waiting for them, and a failover could yet take it away. A commit of our
    /// own waits for all before it.
    async fn wait_for_standbys(&mut self) -> Result<(), StoreError> {
        let session = self.connected().await?;
        let write = [
            SqlStatement::new(BEGIN),
            SqlStatement::new(format!("SELECT {SYNCED}")),
            SqlStatement::new("UPDATE lanes SET batch = batch WHERE id = $1").int(self.lane),
            SqlStatement::new("COMMIT"),
        ];
        let written = session.run_all(&write).await;
        written.map_err(|error| unavailable(&message_of(&error)))?;
        self.store(session);
        Ok(())
    }

    /// The number of the lane's last committed transaction, 0 if there is none.
    async fn last_batch(&mut self) -> Result<u64, StoreError> {
        let session = self.connected().await?;
        let timeout_ms = self.shared.options.statement_timeout_ms;
        // A limit at the server too, so that none of its connections waits for the lock after we have
        // gone. A write instead of a query, which would not wait for a transaction that is inserting the
        // row. A rollback instead of a commit, which would wait for a standby.
        let ask = [
            SqlStatement::new(BEGIN),
            SqlStatement::new("SELECT set_config('statement_timeout', $1, true)")
                .text(timeout_ms.to_string()),
            SqlStatement::new(
                "INSERT INTO lanes (id, batch, at_ms) VALUES ($1, 0, 0) \
                 ON CONFLICT (id) DO UPDATE SET batch = lanes.batch RETURNING batch",
            )
            .int(self.lane),
            SqlStatement::new("ROLLBACK"),
        ];
        let asked = tokio::time::timeout(2 * self.statement_timeout(), session.run_all(&ask)).await;
        let answers = asked.map_err(|_| unavailable(NO_ANSWER))?;
        let answers = answers.map_err(|error| unavailable(&message_of(&error)))?;
        let row = answers.get(2).and_then(|rows| rows.first());
        let batch = row.map_or(Ok(0), |row| row.try_get::<_, i64>(0));
        self.store(session);
        let batch = batch.map_err(|error| StoreError::from(PostgresFault::Sql(error)))?;
        Ok(batch.unsigned_abs())
    }
}

/// Attempts at a transaction that deadlocks or loses its connection.
const ATTEMPTS_MAX: u32 = 4;

/// The state that transactions share.
struct LaneWriter {
    shared: Arc<SharedState>,
    link: LaneConnection,
    origin: LaneBatch,
    /// The last transaction, if its outcome is not known yet.
    unknown: Option<UnknownCommit>,
    /// Jobs that undo committed work whose callers got an error; they run before all others.
    owed: Vec<Box<dyn LaneJob>>,
}

/// Progress of an attempt at a transaction.
#[derive(Default)]
struct AttemptProgress {
    failures: JobFailures,
    /// Tasks that were read but not changed, which answers may contain.
    unchanged: Vec<TaskId>,
    /// The changes, once the commit was sent.
    sent: Option<CommittedChanges>,
}

/// The error of each job of a transaction, if it failed.
type JobFailures = Vec<Option<StoreError>>;

/// Why an attempt at a transaction failed.
enum AttemptFailure {
    /// Retry at once, with the connection if there still is one.
    Again(String),
    /// The server refuses a statement of one of the jobs.
    Refused(String),
    Failed(StoreError),
}

/// A transaction with unknown outcome, whose callers got an error.
struct UnknownCommit {
    tried: AttemptProgress,
    begun: ReadStamp,
    undo: Vec<Box<dyn LaneJob>>,
}

impl LaneWriter {
    /// The writer of the lane whose row has this id.
    fn new(connector: Arc<ServerConnector>, shared: Arc<SharedState>, lane: u64) -> Self {
        Self {
            link: LaneConnection::new(connector, shared.clone(), lane),
            shared,
            origin: LaneBatch { lane, batch: 0 },
            unknown: None,
            owed: Vec::new(),
        }
    }

    /// Commits the jobs, and returns the result of each.
    async fn commit(&mut self, jobs: &mut [Box<dyn LaneJob>]) -> JobFailures {
        match self.commit_together(jobs).await {
            Ok(failures) => failures,
            // One job has a statement that the server refuses, and nobody knows which: a pipeline fails as
            // a whole. Alone, each job finds its own result.
            Err(AttemptFailure::Refused(_)) if jobs.len() > 1 => {
                let mut failures = Vec::with_capacity(jobs.len());
                for job in jobs {
                    let one = std::slice::from_mut(job);
                    let alone = self
                        .commit_together(one)
                        .await
                        .unwrap_or_else(|missed| vec![Some(missed.into())]);
                    failures.extend(alone);
                }
                failures
            }
            Err(missed) => {
                let error = StoreError::from(missed);
                jobs.iter().map(|_| Some(duplicate(&error))).collect()
            }
        }
    }

    /// Runs one transaction, repeating it as long as that may help.
    async fn commit_together(
        &mut self,
        jobs: &mut [Box<dyn LaneJob>],
    ) -> Result<JobFailures, AttemptFailure> {
        let mut last = None;
        for _ in 0..ATTEMPTS_MAX {
            match self.attempt(jobs).await {
                Err(AttemptFailure::Again(why)) => last = Some(why),
                ended => return ended,
            }
        }
        Err(AttemptFailure::Failed(unavailable(
            &last.unwrap_or_default(),
        )))
    }

    async fn attempt(
        &mut self,
        jobs: &mut [Box<dyn LaneJob>],
    ) -> Result<JobFailures, AttemptFailure> {
        if self.unknown.is_some() {
            // Another transaction would overwrite the lane's row, and with it the number by which the
            // outcome of the unknown one is looked up.
            return Err(AttemptFailure::Failed(unavailable(NO_ANSWER)));
        }
        let session = self
            .link
            .connected()
            .await
            .map_err(AttemptFailure::Failed)?;
        self.origin.batch += 1;
        let mut tried = AttemptProgress::default();
        // Server-side timeouts do not fire when the server itself hangs, and a commit may wait for a standby
        // without any. This one bounds the whole transaction.
        let limit = self.link.transaction_limit();
        let watch = Stopwatch::start(&self.shared.clock);
        let begun = self.shared.cache.begin();
        let transacted = self.transact(&session, jobs, &mut tried);
        let fault = match tokio::time::timeout(limit, transacted).await {
            Ok(Ok(CommitOutcome::Unknown(error))) => {
                drop(session);
                return self
                    .look_up_outcome(jobs, tried, begun, &message_of(&error))
                    .await;
            }
            Ok(Ok(CommitOutcome::Committed | CommitOutcome::Empty)) => {
                self.link.store(session);
                if tried.sent.is_some() {
                    commit_metrics::commit_took(watch.elapsed());
                    self.shared.set_writable(None);
                }
                return Ok(self.publish(tried, begun));
            }
            Ok(Err(fault)) => fault,
            Err(_) => {
                drop(session);
                return self.look_up_outcome(jobs, tried, begun, NO_ANSWER).await;
            }
        };
        Err(self.handle_failure(session, fault).await)
    }

    /// Cleans up after a transaction that was not committed; returns whether to retry.
    async fn handle_failure(
        &mut self,
        session: ServerSession,
        fault: PostgresFault,
    ) -> AttemptFailure {
        let error = match fault {
            PostgresFault::Job(error) => {
                self.roll_back(session).await;
                return AttemptFailure::Failed(error);
            }
            PostgresFault::Sql(error) => error,
        };
        let why = message_of(&error);
        if is_broken(&error) || session.is_closed() {
            drop(session);
            self.shared.set_writable(Some(&why));
            return AttemptFailure::Again(why);
        }
        if is_outdated(&error) {
            drop(session);
            return AttemptFailure::Again(why);
        }
        self.roll_back(session).await;
        if error.code() == Some(&SqlState::QUERY_CANCELED) {
            // The statement timed out; retrying the jobs one by one would time out too.
            self.shared.set_writable(Some(&why));
            return AttemptFailure::Failed(unavailable(&why));
        }
        if is_transient(&error) {
            AttemptFailure::Again(why)
        } else {
            AttemptFailure::Refused(why)
        }
    }

    /// Makes the changes of a transaction visible to readers; returns the result of each job.
    fn publish(&self, tried: AttemptProgress, begun: ReadStamp) -> JobFailures {
        // Operations have answered with tasks that they only read. A client that saw this state must not
        // see an older one in its next poll.
        let unchanged = tried.unchanged.into_iter().map(|id| (id, None));
        self.shared.cache.drop_outdated(unchanged);
        if let Some(committed) = tried.sent {
            self.shared.publish(committed, begun);
        }
        tried.failures
    }

    async fn transact(
        &mut self,
        session: &ServerSession,
        jobs: &mut [Box<dyn LaneJob>],
        tried: &mut AttemptProgress,
    ) -> PostgresResult<CommitOutcome> {
        let mut needs = RowNeeds::default();
        jobs.iter().for_each(|job| job.needs(&mut needs));
        let mut batch = begin(session, &needs, self.origin, &self.shared).await?;
        for job in jobs {
            match job.run(&mut batch).await {
                Ok(()) => tried.failures.push(None),
                Err(PostgresFault::Job(error)) => tried.failures.push(Some(error)),
                Err(fault) => return Err(fault),
            }
        }
        tried.unchanged = batch.unchanged_tasks(needs.tasks.iter().copied());
        batch.commit(&mut tried.sent).await
    }

    /// Keeps a connection after a failed transaction.
    async fn roll_back(&mut self, session: ServerSession) {
        if session.run(&SqlStatement::new("ROLLBACK")).await.is_ok() {
            self.link.store(session);
        }
    }

    /// Finds out whether a transaction was committed, if its commit was sent.
    async fn look_up_outcome(
        &mut self,
        jobs: &mut [Box<dyn LaneJob>],
        tried: AttemptProgress,
        begun: ReadStamp,
        why: &str,
    ) -> Result<JobFailures, AttemptFailure> {
        self.shared.set_writable(Some(why));
        if tried.sent.is_none() {
            return Err(AttemptFailure::Failed(unavailable(why)));
        }
        tracing::warn!(
            error = why,
            "answer to a commit lost; looking up the outcome"
        );
        match self.link.was_committed(self.origin.batch).await {
            Some(true) => {
                self.shared.set_writable(None);
                Ok(self.publish(tried, begun))
            }
            Some(false) => Err(AttemptFailure::Again(why.to_owned())),
            // The callers hear of a failure now and will try again or give up. If the commit turns out to
            // have worked, what it did for them (a claim that nobody runs) has to be undone.
            None => {
                let undo = jobs.iter_mut().flat_map(|job| job.undo()).collect();
                self.unknown = Some(UnknownCommit { tried, begun, undo });
                Err(AttemptFailure::Failed(unavailable(why)))
            }
        }
    }

    /// Whether no transaction with unknown outcome, and nothing of one, is left to handle.
    fn is_caught_up(&self) -> bool {
        self.unknown.is_none() && self.owed.is_empty()
    }

    /// Commits the jobs once an earlier transaction with unknown outcome is dealt with; returns the result of
    /// each.
    async fn catch_up_and_commit(&mut self, jobs: &mut [Box<dyn LaneJob>]) -> JobFailures {
        match self.catch_up().await {
            Ok(()) => self.commit(jobs).await,
            Err(error) => jobs.iter().map(|_| Some(duplicate(&error))).collect(),
        }
    }

    async fn catch_up(&mut self) -> Result<(), StoreError> {
        if let Some(unknown) = self.unknown.take() {
            match self.link.was_committed(self.origin.batch).await {
                Some(true) => {
                    tracing::info!(undone = unknown.undo.len(), "commit found after all");
                    self.publish(unknown.tried, unknown.begun);
                    self.owed.extend(unknown.undo);
                }
                Some(false) => {}
                None => {
                    self.unknown = Some(unknown);
                    return Err(unavailable(NO_ANSWER));
                }
            }
        }
        if self.owed.is_empty() {
            return Ok(());
        }
        let mut owed = std::mem::take(&mut self.owed);
        let failures = self.commit(&mut owed).await;
        // Any of these jobs may run twice without harm: its lease is gone the second time.
        let left = owed.into_iter().zip(failures);
        let left = left.filter(|(_, failure)| matches!(failure, Some(StoreError::Unavailable(_))));
        self.owed = left.map(|(job, _)| job).collect();
        if self.owed.is_empty() {
            Ok(())
        } else {
            Err(unavailable(NO_ANSWER))
        }
    }
}

impl From<AttemptFailure> for StoreError {
    fn from(missed: AttemptFailure) -> Self {
        match missed {
            AttemptFailure::Again(why) | AttemptFailure::Refused(why) => unavailable(&why),
            AttemptFailure::Failed(error) => error,
        }
    }
}

#[cfg(test)]
mod tests;
