//! A lane: a task that owns one writing connection. It takes all queued jobs into one transaction,
//! commits it, makes the result visible to readers of this process, and only then answers. A job
//! that fails does not fail its neighbours. If the connection breaks during a commit, the lane
//! looks up the outcome before it answers.

use std::sync::Arc;
use std::time::Duration;

use kinora_contract::Stopwatch;
use tokio::sync::mpsc;
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

use super::begin::{Judges, Origin, begin};
use super::cache::Begun;
use super::commit::{Committed, Ended};
use super::connect::{Backoff, Connector};
use super::fault::{
    Done, Fault, again, closed, is_broken, is_outdated, is_passing, told, unavailable,
};
use super::job::{Job, Needs, Operation, call};
use super::session::Session;
use super::shared::Shared;
use super::statement::Statement;
use crate::{StoreError, metered};

/// Maximum number of queued requests; callers beyond it wait for a place.
const QUEUED_MAX: usize = 4_096;
/// Maximum number of requests in one transaction: bounds the work repeated after a neighbour fails.
const BATCH_MAX: usize = 512;
/// Maximum number of bytes that one transaction sends, apart from its last request: bounds its
/// memory here and at the server.
const BATCH_BYTES_MAX: usize = 16 << 20;
/// Attempts at a transaction that deadlocks or loses its connection.
const ATTEMPTS_MAX: u32 = 4;

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
            backoff: Backoff::default(),
            connector: connector.clone(),
            shared,
            session: None,
            origin: Origin { lane: id, batch: 0 },
            own: jobs.downgrade(),
        };
        connector.spawn(state.serve(queue));
        Self { jobs }
    }

    /// Does `operation`; returns once it is committed.
    pub(super) async fn call<O: Operation>(&self, operation: O) -> Result<O::Output, StoreError> {
        let (job, answer) = call(operation);
        self.jobs.send(job).await.map_err(|_| closed())?;
        answer.await.map_err(|_| closed())?
    }

    /// Queues `operation` without waiting, unless the lane is too busy.
    pub(super) fn try_send<O: Operation>(&self, operation: O) {
        // Callers of this can do without the operation.
        let _ = self.jobs.try_send(call(operation).0);
    }
}

/// The state that a lane owns.
struct State {
    connector: Arc<Connector>,
    shared: Arc<Shared>,
    session: Option<Session>,
    backoff: Backoff,
    origin: Origin,
    own: mpsc::WeakSender<Box<dyn Job>>,
}

/// For each job of a transaction, why it failed.
type Failures = Vec<Option<StoreError>>;

/// Why an attempt at a transaction failed.
enum Missed {
    /// Retry at once, with the connection if there still is one.
    Again(Error),
    /// The server refuses a statement of one of the jobs.
    Refused(Error),
    Failed(StoreError),
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
            // The callers just answered may have more.
            tokio::task::yield_now().await;
            fill(&mut jobs, &mut queue);
            let failures = self.commit(&mut jobs).await;
            for (job, failure) in jobs.drain(..).zip(failures) {
                self.send_all(job.answer(failure));
            }
        }
    }

    /// The next job; `Some(None)` when it is time to check whether the server accepts writes again.
    async fn next_job(
        &self,
        queue: &mut mpsc::Receiver<Box<dyn Job>>,
    ) -> Option<Option<Box<dyn Job>>> {
        if self.shared.is_writable() {
            return queue.recv().await.map(Some);
        }
        match tokio::time::timeout(self.backoff.pause(), queue.recv()).await {
            Ok(job) => job.map(Some),
            Err(_) => Some(None),
        }
    }

    /// Writes only the lane's own row.
    async fn probe(&mut self) {
        let mut jobs: Vec<Box<dyn Job>> = vec![call(Probe).0];
        self.commit(&mut jobs).await;
    }

    fn send_all(&self, jobs: Vec<Box<dyn Job>>) {
        for job in jobs {
            if let Some(own) = self.own.upgrade() {
                // A full or closed lane accepts no more; the lease expires by itself.
                let _ = own.try_send(job);
            }
        }
    }

    /// Commits the jobs, and returns the result of each.
    async fn commit(&mut self, jobs: &mut [Box<dyn Job>]) -> Failures {
        match self.together(jobs).await {
            Ok(failures) => failures,
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
                Err(Missed::Again(error)) => last = Some(error),
                ended => return ended,
            }
        }
        let text = last.map_or_else(String::new, |error| told(&error));
        Err(Missed::Failed(unavailable(&text)))
    }

    async fn attempt(&mut self, jobs: &mut [Box<dyn Job>]) -> Result<Failures, Missed> {
        let session = self.connected().await.map_err(Missed::Failed)?;
        self.origin.batch += 1;
        let mut failures = Vec::with_capacity(jobs.len());
        // Each statement has its limit, but a hanging server enforces none.
        let limit = self.patience();
        let watch = Stopwatch::start(&self.shared.clock);
        let begun = self.shared.cache.begin();
        let transacted = self.transact(&session, jobs, &mut failures);
        let Ok(ended) = tokio::time::timeout(limit, transacted).await else {
            let error = unavailable("the server does not answer");
            self.shared.set_writable(Some(&error.to_string()));
            return Err(Missed::Failed(error));
        };
        let committed = match ended {
            Ok(Ended::Committed(committed)) => Ok(Some(committed)),
            Ok(Ended::Empty) => Ok(None),
            Ok(Ended::Unknown(committed, error)) => {
                drop(session);
                return self.look_up(committed, begun, error, failures).await;
            }
            Err(fault) => Err(fault),
        };
        match committed {
            Ok(committed) => {
                self.session = Some(session);
                if let Some(committed) = committed {
                    metered::commit_took(watch.elapsed());
                    self.shared.set_writable(None);
                    self.shared.publish(committed, begun);
                }
                Ok(failures)
            }
            Err(Fault::Job(error)) => {
                self.put_back(session).await;
                Err(Missed::Failed(error))
            }
            Err(Fault::Sql(error)) if is_broken(&error) || session.is_closed() => {
                drop(session);
                self.shared.set_writable(Some(&told(&error)));
                Err(Missed::Again(error))
            }
            Err(Fault::Sql(error)) if is_outdated(&error) => {
                drop(session);
                Err(Missed::Again(error))
            }
            Err(Fault::Sql(error)) if error.code() == Some(&SqlState::QUERY_CANCELED) => {
                // It took too long: each of the jobs would.
                self.put_back(session).await;
                self.shared.set_writable(Some(&told(&error)));
                Err(Missed::Failed(unavailable(&told(&error))))
            }
            Err(Fault::Sql(error)) => {
                self.put_back(session).await;
                match is_passing(&error) {
                    true => Err(Missed::Again(error)),
                    false => Err(Missed::Refused(error)),
                }
            }
        }
    }

    async fn transact(
        &self,
        session: &Session,
        jobs: &mut [Box<dyn Job>],
        failures: &mut Failures,
    ) -> Done<Ended> {
        let mut needs = Needs::default();
        jobs.iter().for_each(|job| job.needs(&mut needs));
        let judges = Judges {
            options: &self.shared.options,
            clock: &*self.shared.clock,
            summed: &self.shared.summed,
            runs: &self.shared.runs,
        };
        let mut batch = begin(session, &needs, self.origin, judges).await?;
        for job in jobs {
            match job.run(&mut batch).await {
                Ok(()) => failures.push(None),
                Err(Fault::Job(error)) => failures.push(Some(error)),
                Err(fault) => return Err(fault),
            }
        }
        let unchanged = batch.unchanged(needs.tasks.iter().copied());
        let ended = batch.commit().await?;
        // Its answers show them as they were here, and no poll may show them as they were before.
        let unchanged = unchanged.into_iter().map(|id| (id, None));
        self.shared.cache.compare(unchanged);
        Ok(ended)
    }

    /// Keeps a connection after a failed transaction.
    async fn put_back(&mut self, session: Session) {
        if session.run(&Statement::new("ROLLBACK")).await.is_ok() {
            self.session = Some(session);
        }
    }

    /// Finds out whether the transaction with the lost answer was committed. Its row of the lane
    /// stays locked until it has ended, so the result is final.
    async fn look_up(
        &mut self,
        committed: Committed,
        begun: Begun,
        lost: Error,
        failures: Failures,
    ) -> Result<Failures, Missed> {
        tracing::warn!(
            error = told(&lost),
            "answer to a commit lost; looking up the outcome"
        );
        self.shared.set_writable(Some(&told(&lost)));
        let found = tokio::time::timeout(self.patience(), self.search()).await;
        match found {
            Ok(batch) if batch == Some(self.origin.batch) => {
                self.shared.set_writable(None);
                self.shared.publish(committed, begun);
                Ok(failures)
            }
            Ok(_) => Err(Missed::Again(lost)),
            Err(_) => Err(Missed::Failed(unavailable(&told(&lost)))),
        }
    }

    /// Maximum time for a transaction, or for the lookup of its outcome.
    fn patience(&self) -> Duration {
        3 * Duration::from_millis(self.shared.options.statement_timeout_ms.into())
    }

    /// The number of the lane's last committed transaction, as soon as a server returns it.
    async fn search(&mut self) -> Option<u64> {
        loop {
            if let Ok(batch) = self.last_batch().await {
                return batch;
            }
            // A failover takes a while; until then no caller gets an answer.
            tokio::time::sleep(self.backoff.pause()).await;
        }
    }

    async fn last_batch(&mut self) -> Result<Option<u64>, StoreError> {
        let session = self.connected().await?;
        let ask = "SELECT batch FROM lanes WHERE id = $1 FOR UPDATE";
        let ask = Statement::new(ask).int(self.origin.lane);
        let ask = session.run(&ask);
        let limit = Duration::from_millis(self.shared.options.statement_timeout_ms.into());
        let asked = tokio::time::timeout(limit, ask).await;
        let rows = asked.map_err(|_| unavailable("the server does not answer"))?;
        let rows = rows.map_err(|error| StoreError::from(Fault::Sql(error)))?;
        let row = rows.first().map(|row| row.try_get::<_, i64>(0));
        self.session = Some(session);
        let batch = row
            .transpose()
            .map_err(|error| StoreError::from(Fault::Sql(error)))?;
        Ok(batch.map(i64::unsigned_abs))
    }

    /// The connection, made where there is none.
    async fn connected(&mut self) -> Result<Session, StoreError> {
        let kept = self.session.take();
        if let Some(session) = kept.filter(|session| !session.is_closed()) {
            return Ok(session);
        }
        match self.connector.session().await {
            Ok(session) => {
                self.backoff.reset();
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

impl From<Missed> for StoreError {
    fn from(missed: Missed) -> Self {
        match missed {
            Missed::Again(error) | Missed::Refused(error) => unavailable(&told(&error)),
            Missed::Failed(error) => error,
        }
    }
}

/// Checks whether the server accepts writes.
struct Probe;

impl Operation for Probe {
    type Output = ();

    async fn apply(&self, batch: &mut super::batch::Batch<'_>) -> Done<()> {
        // The lane's own row is already written.
        batch.wrote = true;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
