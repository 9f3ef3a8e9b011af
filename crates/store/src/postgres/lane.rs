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

use super::batch::Batch;
use super::batch::{Origin, begin};
use super::cache::Begun;
use super::commit::Ended;
use super::connect::{Backoff, Connector};
use super::fault::{
    Done, Fault, NO_ANSWER, again, answered, closed, is_broken, is_outdated, is_passing, told,
    unavailable,
};
use super::session::Session;
use super::session::{BEGIN, SYNCED, Statement};
use super::shared::{Committed, Shared};
use crate::backend::{Needs, Operation};
use crate::work::LeasedChange;
use crate::{StoreError, metered};

/// Maximum number of queued requests; callers beyond it wait for a place.
const QUEUED_MAX: usize = 4_096;
/// Maximum number of requests in one transaction: bounds the work repeated after a neighbour fails.
const BATCH_MAX: usize = 512;
/// Maximum number of bytes that one transaction sends, apart from its last request: bounds its
/// memory here and at the server.
const BATCH_BYTES_MAX: usize = 16 << 20;

/// The handle of a lane. Dropping it lets the lane finish its queued jobs.
#[derive(Clone, Debug)]
pub(super) struct Lane {
    jobs: mpsc::Sender<Box<dyn Job>>,
}

impl Lane {
    /// Starts a lane whose row has this id.
    pub(super) fn start(connector: Arc<Connector>, shared: Arc<Shared>, id: u64) -> Self {
        let (jobs, queue) = mpsc::channel(QUEUED_MAX);
        let state = State {
            writer: Writer::new(connector.clone(), shared, id),
            own: jobs.downgrade(),
        };
        connector.spawn(state.serve(queue));
        Self { jobs }
    }

    /// Does `operation`; returns once it is committed.
    pub(super) async fn call<O: LaneStep>(&self, operation: O) -> Result<O::Output, StoreError> {
        let (job, answer) = call(operation);
        self.jobs.send(job).await.map_err(|_| closed())?;
        answer.await.map_err(|_| closed())?
    }

    /// As [`Self::call`], with a time limit for clients. After a timeout the operation may still be done, as
    /// after any lost answer.
    pub(super) async fn call_soon<O: LaneStep>(
        &self,
        operation: O,
    ) -> Result<O::Output, StoreError> {
        let limit = Duration::from_secs(STORE_ANSWER_SECONDS);
        answered(limit, self.call(operation)).await
    }

    /// Queues `operation` without waiting, unless the lane is too busy.
    pub(super) fn try_send<O: LaneStep>(&self, operation: O) {
        // Callers of this can do without the operation.
        let _ = self.jobs.try_send(call(operation).0);
    }
}

/// The state that a lane owns.
struct State {
    writer: Writer,
    own: mpsc::WeakSender<Box<dyn Job>>,
}

impl State {
    async fn serve(mut self, mut queue: mpsc::Receiver<Box<dyn Job>>) {
        let mut jobs: Vec<Box<dyn Job>> = Vec::new();
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
            fill(&mut jobs, &mut queue);
            let failures = self.writer.catch_up_and_commit(&mut jobs).await;
            for (job, failure) in jobs.drain(..).zip(failures) {
                self.send_all(job.answer(failure));
            }
        }
    }

    /// The next job; `Some(None)` when it is time to check whether the server accepts writes again and to
    /// catch up; `None` when the lane is closed.
    async fn next_job(
        &mut self,
        queue: &mut mpsc::Receiver<Box<dyn Job>>,
    ) -> Option<Option<Box<dyn Job>>> {
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
        let mut jobs: Vec<Box<dyn Job>> = vec![call(Probe).0];
        self.writer.catch_up_and_commit(&mut jobs).await;
    }

    fn send_all(&self, jobs: Vec<Box<dyn Job>>) {
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
fn fill(jobs: &mut Vec<Box<dyn Job>>, queue: &mut mpsc::Receiver<Box<dyn Job>>) {
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
struct Probe;

impl LaneStep for Probe {
    type Output = ();

    async fn apply(&self, batch: &mut Batch<'_>) -> Done<()> {
        // The start of each transaction writes the lane's row, and an empty batch would roll that back
        // and prove nothing: this makes it commit.
        batch.wrote = true;
        Ok(())
    }
}

/// A change by a lane, which can be retried after a rollback: an [`Operation`], or what only this
/// database does. A failed one has changed nothing in the batch.
pub(super) trait LaneStep: Send + Sync + 'static {
    type Output: Send + 'static;

    /// As [`Operation::needs`].
    fn needs(&self, _needs: &mut Needs) {}

    /// As [`Operation::bytes`].
    fn bytes(&self) -> usize {
        0
    }

    fn apply(&self, batch: &mut Batch<'_>) -> impl Future<Output = Done<Self::Output>> + Send;

    /// As [`Operation::unclaimed`]; also used if the caller was answered with an error.
    fn unclaimed(_output: Self::Output) -> Vec<LeasedChange> {
        Vec::new()
    }
}

impl<O: Operation> LaneStep for O {
    type Output = O::Output;

    fn needs(&self, needs: &mut Needs) {
        Operation::needs(self, needs);
    }

    fn bytes(&self) -> usize {
        Operation::bytes(self)
    }

    async fn apply(&self, batch: &mut Batch<'_>) -> Done<O::Output> {
        Operation::apply(self, batch).await
    }

    fn unclaimed(output: O::Output) -> Vec<LeasedChange> {
        O::unclaimed(output)
    }
}

/// A step with its caller, without its type.
#[async_trait]
pub(super) trait Job: Send {
    fn needs(&self, needs: &mut Needs);
    fn bytes(&self) -> usize;
    async fn run(&mut self, batch: &mut Batch<'_>) -> Done<()>;
    /// The jobs to run if the last run was committed although its caller is told that it failed.
    fn undo(&mut self) -> Vec<Box<dyn Job>>;
    /// Answers with the result of the last run, or with the failure.
    fn answer(self: Box<Self>, failure: Option<StoreError>) -> Vec<Box<dyn Job>>;
}

struct Call<O: LaneStep> {
    operation: O,
    output: Option<O::Output>,
    reply: oneshot::Sender<Result<O::Output, StoreError>>,
}

#[async_trait]
impl<O: LaneStep> Job for Call<O> {
    fn needs(&self, needs: &mut Needs) {
        self.operation.needs(needs);
    }

    fn bytes(&self) -> usize {
        self.operation.bytes()
    }

    async fn run(&mut self, batch: &mut Batch<'_>) -> Done<()> {
        self.output = None;
        self.output = Some(self.operation.apply(batch).await?);
        Ok(())
    }

    fn undo(&mut self) -> Vec<Box<dyn Job>> {
        self.output.take().map(jobs_of::<O>).unwrap_or_default()
    }

    fn answer(self: Box<Self>, failure: Option<StoreError>) -> Vec<Box<dyn Job>> {
        let answer = match (failure, self.output) {
            (None, Some(output)) => Ok(output),
            (failure, _) => Err(failure.unwrap_or_else(closed)),
        };
        match self.reply.send(answer) {
            Err(Ok(output)) => jobs_of::<O>(output),
            _ => Vec::new(),
        }
    }
}

fn jobs_of<O: LaneStep>(unclaimed: O::Output) -> Vec<Box<dyn Job>> {
    let changes = O::unclaimed(unclaimed).into_iter();
    changes.map(|change| call(change).0).collect()
}

/// The channel for the answer to an operation.
type Answer<T> = oneshot::Receiver<Result<T, StoreError>>;

/// A job, and its answer.
fn call<O: LaneStep>(operation: O) -> (Box<dyn Job>, Answer<O::Output>) {
    let (reply, answer) = oneshot::channel();
    let call = Call {
        operation,
        output: None,
        reply,
    };
    (Box::new(call), answer)
}

/// The connection of a lane.
struct Link {
    connector: Arc<Connector>,
    shared: Arc<Shared>,
    /// The lane's row.
    lane: u64,
    session: Option<Session>,
    backoff: Backoff,
}

impl Link {
    fn new(connector: Arc<Connector>, shared: Arc<Shared>, lane: u64) -> Self {
        Self {
            connector,
            shared,
            lane,
            session: None,
            backoff: Backoff::default(),
        }
    }

    /// The pause before the next attempt.
    fn pause(&self) -> Duration {
        self.backoff.pause()
    }

    /// Keeps a connection for the next transaction.
    fn keep(&mut self, session: Session) {
        self.session = Some(session);
    }

    /// Takes the connection; connects if there is none.
    async fn connected(&mut self) -> Result<Session, StoreError> {
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
    fn patience(&self) -> Duration {
        3 * self.statement_timeout()
    }

    fn statement_timeout(&self) -> Duration {
        Duration::from_millis(self.shared.options.statement_timeout_ms.into())
    }

    /// Whether the lane's last transaction, with this number, was committed; `None` if that cannot be found
    /// out in time. The lane's row stays locked until the transaction has ended, so the result is final.
    async fn was_committed(&mut self, batch: u64) -> Option<bool> {
        let found = tokio::time::timeout(self.patience(), self.search(batch)).await;
        found.ok()
    }

    /// As [`Self::was_committed`], without a time limit.
    async fn search(&mut self, batch: u64) -> bool {
        // The lane's row names its last committed transaction. Example: transaction 17 wrote 17 into it as
        // its first statement. If the row has 17 afterwards, the commit has worked; with 16 it was rolled
        // back. The lookup takes the row's lock, and so waits for 17 if it is still running.
        loop {
            match self.last_batch().await {
                Ok(last) if last != batch => return false,
                Ok(_) if self.replicate().await.is_ok() => return true,
                Ok(_) | Err(_) => {}
            }
            // A failover takes a while. Callers get no answer until then, rather than a wrong one.
            tokio::time::sleep(self.backoff.pause()).await;
        }
    }

    /// Waits until the synchronous standbys have everything that was committed before. A restarted server
    /// shows a commit that was still waiting for them, and a failover could yet take it away. A commit of our
    /// own waits for all before it.
    async fn replicate(&mut self) -> Result<(), StoreError> {
        let session = self.connected().await?;
        let write = [
            Statement::new(BEGIN),
            Statement::new(format!("SELECT {SYNCED}")),
            Statement::new("UPDATE lanes SET batch = batch WHERE id = $1").int(self.lane),
            Statement::new("COMMIT"),
        ];
        let written = session.run_all(&write).await;
        written.map_err(|error| unavailable(&told(&error)))?;
        self.keep(session);
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
            Statement::new(BEGIN),
            Statement::new("SELECT set_config('statement_timeout', $1, true)")
                .text(timeout_ms.to_string()),
            Statement::new(
                "INSERT INTO lanes (id, batch, at_ms) VALUES ($1, 0, 0) \
                 ON CONFLICT (id) DO UPDATE SET batch = lanes.batch RETURNING batch",
            )
            .int(self.lane),
            Statement::new("ROLLBACK"),
        ];
        let asked = tokio::time::timeout(2 * self.statement_timeout(), session.run_all(&ask)).await;
        let answers = asked.map_err(|_| unavailable(NO_ANSWER))?;
        let answers = answers.map_err(|error| unavailable(&told(&error)))?;
        let row = answers.get(2).and_then(|rows| rows.first());
        let batch = row.map_or(Ok(0), |row| row.try_get::<_, i64>(0));
        self.keep(session);
        let batch = batch.map_err(|error| StoreError::from(Fault::Sql(error)))?;
        Ok(batch.unsigned_abs())
    }
}

/// Attempts at a transaction that deadlocks or loses its connection.
const ATTEMPTS_MAX: u32 = 4;

/// The state that transactions share.
struct Writer {
    shared: Arc<Shared>,
    link: Link,
    origin: Origin,
    /// The last transaction, if its outcome is not known yet.
    unknown: Option<Unknown>,
    /// Jobs that undo committed work whose callers got an error; they run before all others.
    owed: Vec<Box<dyn Job>>,
}

/// Progress of an attempt at a transaction.
#[derive(Default)]
struct Tried {
    failures: Failures,
    /// Tasks that were read but not changed, which answers may contain.
    unchanged: Vec<TaskId>,
    /// The changes, once the commit was sent.
    sent: Option<Committed>,
}

/// The error of each job of a transaction, if it failed.
type Failures = Vec<Option<StoreError>>;

/// Why an attempt at a transaction failed.
enum Missed {
    /// Retry at once, with the connection if there still is one.
    Again(String),
    /// The server refuses a statement of one of the jobs.
    Refused(String),
    Failed(StoreError),
}

/// A transaction with unknown outcome, whose callers got an error.
struct Unknown {
    tried: Tried,
    begun: Begun,
    undo: Vec<Box<dyn Job>>,
}

impl Writer {
    /// The writer of the lane whose row has this id.
    fn new(connector: Arc<Connector>, shared: Arc<Shared>, lane: u64) -> Self {
        Self {
            link: Link::new(connector, shared.clone(), lane),
            shared,
            origin: Origin { lane, batch: 0 },
            unknown: None,
            owed: Vec::new(),
        }
    }

    /// Commits the jobs, and returns the result of each.
    async fn commit(&mut self, jobs: &mut [Box<dyn Job>]) -> Failures {
        match self.together(jobs).await {
            Ok(failures) => failures,
            // One job has a statement that the server refuses, and nobody knows which: a pipeline fails as
            // a whole. Alone, each job finds its own result.
            Err(Missed::Refused(_)) if jobs.len() > 1 => {
                let mut failures = Vec::with_capacity(jobs.len());
                for job in jobs {
                    let one = std::slice::from_mut(job);
                    let alone = self
                        .together(one)
                        .await
                        .unwrap_or_else(|missed| vec![Some(missed.into())]);
                    failures.extend(alone);
                }
                failures
            }
            Err(missed) => {
                let error = StoreError::from(missed);
                jobs.iter().map(|_| Some(again(&error))).collect()
            }
        }
    }

    /// Runs one transaction, repeating it as long as that may help.
    async fn together(&mut self, jobs: &mut [Box<dyn Job>]) -> Result<Failures, Missed> {
        let mut last = None;
        for _ in 0..ATTEMPTS_MAX {
            match self.attempt(jobs).await {
                Err(Missed::Again(why)) => last = Some(why),
                ended => return ended,
            }
        }
        Err(Missed::Failed(unavailable(&last.unwrap_or_default())))
    }

    async fn attempt(&mut self, jobs: &mut [Box<dyn Job>]) -> Result<Failures, Missed> {
        if self.unknown.is_some() {
            // Another transaction would overwrite the lane's row, and with it the number by which the
            // outcome of the unknown one is looked up.
            return Err(Missed::Failed(unavailable(NO_ANSWER)));
        }
        let session = self.link.connected().await.map_err(Missed::Failed)?;
        self.origin.batch += 1;
        let mut tried = Tried::default();
        // Server-side timeouts do not fire when the server itself hangs, and a commit may wait for a standby
        // without any. This one bounds the whole transaction.
        let limit = self.link.patience();
        let watch = Stopwatch::start(&self.shared.clock);
        let begun = self.shared.cache.begin();
        let transacted = self.transact(&session, jobs, &mut tried);
        let fault = match tokio::time::timeout(limit, transacted).await {
            Ok(Ok(Ended::Unknown(error))) => {
                drop(session);
                return self.look_up(jobs, tried, begun, &told(&error)).await;
            }
            Ok(Ok(Ended::Committed | Ended::Empty)) => {
                self.link.keep(session);
                if tried.sent.is_some() {
                    metered::commit_took(watch.elapsed());
                    self.shared.set_writable(None);
                }
                return Ok(self.publish(tried, begun));
            }
            Ok(Err(fault)) => fault,
            Err(_) => {
                drop(session);
                return self.look_up(jobs, tried, begun, NO_ANSWER).await;
            }
        };
        Err(self.miss(session, fault).await)
    }

    /// Cleans up after a transaction that was not committed; returns whether to retry.
    async fn miss(&mut self, session: Session, fault: Fault) -> Missed {
        let error = match fault {
            Fault::Job(error) => {
                self.put_back(session).await;
                return Missed::Failed(error);
            }
            Fault::Sql(error) => error,
        };
        let why = told(&error);
        if is_broken(&error) || session.is_closed() {
            drop(session);
            self.shared.set_writable(Some(&why));
            return Missed::Again(why);
        }
        if is_outdated(&error) {
            drop(session);
            return Missed::Again(why);
        }
        self.put_back(session).await;
        if error.code() == Some(&SqlState::QUERY_CANCELED) {
            // The statement timed out; retrying the jobs one by one would time out too.
            self.shared.set_writable(Some(&why));
            return Missed::Failed(unavailable(&why));
        }
        if is_passing(&error) {
            Missed::Again(why)
        } else {
            Missed::Refused(why)
        }
    }

    /// Makes the changes of a transaction visible to readers; returns the result of each job.
    fn publish(&self, tried: Tried, begun: Begun) -> Failures {
        // Operations have answered with tasks that they only read. A client that saw this state must not
        // see an older one in its next poll.
        let unchanged = tried.unchanged.into_iter().map(|id| (id, None));
        self.shared.cache.compare(unchanged);
        if let Some(committed) = tried.sent {
            self.shared.publish(committed, begun);
        }
        tried.failures
    }

    async fn transact(
        &mut self,
        session: &Session,
        jobs: &mut [Box<dyn Job>],
        tried: &mut Tried,
    ) -> Done<Ended> {
        let mut needs = Needs::default();
        jobs.iter().for_each(|job| job.needs(&mut needs));
        let mut batch = begin(session, &needs, self.origin, &self.shared).await?;
        for job in jobs {
            match job.run(&mut batch).await {
                Ok(()) => tried.failures.push(None),
                Err(Fault::Job(error)) => tried.failures.push(Some(error)),
                Err(fault) => return Err(fault),
            }
        }
        tried.unchanged = batch.unchanged(needs.tasks.iter().copied());
        batch.commit(&mut tried.sent).await
    }

    /// Keeps a connection after a failed transaction.
    async fn put_back(&mut self, session: Session) {
        if session.run(&Statement::new("ROLLBACK")).await.is_ok() {
            self.link.keep(session);
        }
    }

    /// Finds out whether a transaction was committed, if its commit was sent.
    async fn look_up(
        &mut self,
        jobs: &mut [Box<dyn Job>],
        tried: Tried,
        begun: Begun,
        why: &str,
    ) -> Result<Failures, Missed> {
        self.shared.set_writable(Some(why));
        if tried.sent.is_none() {
            return Err(Missed::Failed(unavailable(why)));
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
            Some(false) => Err(Missed::Again(why.to_owned())),
            // The callers hear of a failure now and will try again or give up. If the commit turns out to
            // have worked, what it did for them (a claim that nobody runs) has to be undone.
            None => {
                let undo = jobs.iter_mut().flat_map(|job| job.undo()).collect();
                self.unknown = Some(Unknown { tried, begun, undo });
                Err(Missed::Failed(unavailable(why)))
            }
        }
    }

    /// Whether no transaction with unknown outcome, and nothing of one, is left to handle.
    fn is_caught_up(&self) -> bool {
        self.unknown.is_none() && self.owed.is_empty()
    }

    /// Commits the jobs once an earlier transaction with unknown outcome is dealt with; returns the result of
    /// each.
    async fn catch_up_and_commit(&mut self, jobs: &mut [Box<dyn Job>]) -> Failures {
        match self.catch_up().await {
            Ok(()) => self.commit(jobs).await,
            Err(error) => jobs.iter().map(|_| Some(again(&error))).collect(),
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

impl From<Missed> for StoreError {
    fn from(missed: Missed) -> Self {
        match missed {
            Missed::Again(why) | Missed::Refused(why) => unavailable(&why),
            Missed::Failed(error) => error,
        }
    }
}

#[cfg(test)]
mod tests;
