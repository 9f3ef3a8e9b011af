//! A lane: a task that owns one writing connection. It takes all queued jobs into one transaction,
//! commits it, makes the result visible to readers of this process, and only then answers. A job
//! that fails does not fail its neighbours. If the answer to a commit is lost or does not come, the lane
//! looks up the outcome before it answers ([`outcome`]).

mod outcome;

use std::sync::Arc;

use kinora_contract::{Stopwatch, TaskId};
use tokio::sync::mpsc;
use tokio_postgres::error::SqlState;

use self::outcome::Unknown;
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
const NO_ANSWER: &str = "the server does not answer";

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
            unknown: None,
            owed: Vec::new(),
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
    /// The last transaction, if nobody knows yet whether it was committed.
    unknown: Option<Unknown>,
    /// Jobs that undo what callers were told had failed; they come before all others.
    owed: Vec<Box<dyn Job>>,
}

/// What a transaction has come to so far.
#[derive(Default)]
struct Tried {
    failures: Failures,
    /// Tasks that answers show as they were.
    unchanged: Vec<TaskId>,
    /// Its changes, from when its commit is sent.
    sent: Option<Committed>,
}

/// For each job of a transaction, why it failed.
type Failures = Vec<Option<StoreError>>;

/// Why an attempt at a transaction failed.
enum Missed {
    /// Retry at once, with the connection if there still is one.
    Again(String),
    /// The server refuses a statement of one of the jobs.
    Refused(String),
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
            let failures = self.catch_up_and_commit(&mut jobs).await;
            for (job, failure) in jobs.drain(..).zip(failures) {
                self.send_all(job.answer(failure));
            }
        }
    }

    /// The next job; `Some(None)` when it is time to check whether the server accepts writes again, and what is left
    /// to catch up on.
    async fn next_job(
        &mut self,
        queue: &mut mpsc::Receiver<Box<dyn Job>>,
    ) -> Option<Option<Box<dyn Job>>> {
        if self.shared.is_writable() && self.is_caught_up() {
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
        self.catch_up_and_commit(&mut jobs).await;
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
                Err(Missed::Again(why)) => last = Some(why),
                ended => return ended,
            }
        }
        Err(Missed::Failed(unavailable(&last.unwrap_or_default())))
    }

    async fn attempt(&mut self, jobs: &mut [Box<dyn Job>]) -> Result<Failures, Missed> {
        if self.unknown.is_some() {
            // Its row of the lane has the number by which its outcome is looked up.
            return Err(Missed::Failed(unavailable(NO_ANSWER)));
        }
        let session = self.connected().await.map_err(Missed::Failed)?;
        self.origin.batch += 1;
        let mut tried = Tried::default();
        // Each statement has its limit, but a hanging server enforces none, and a commit may wait for a standby.
        let limit = self.patience();
        let watch = Stopwatch::start(&self.shared.clock);
        let begun = self.shared.cache.begin();
        let transacted = self.transact(&session, jobs, &mut tried);
        let fault = match tokio::time::timeout(limit, transacted).await {
            Ok(Ok(Ended::Unknown(error))) => {
                drop(session);
                return self.look_up(jobs, tried, begun, &told(&error)).await;
            }
            Ok(Ok(Ended::Committed | Ended::Empty)) => {
                self.session = Some(session);
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

    /// What to do after a transaction that was not committed.
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
            // It took too long: each of the jobs would.
            self.shared.set_writable(Some(&why));
            return Missed::Failed(unavailable(&why));
        }
        match is_passing(&error) {
            true => Missed::Again(why),
            false => Missed::Refused(why),
        }
    }

    /// Makes what a transaction has stored visible; returns the result of each job.
    fn publish(&self, tried: Tried, begun: Begun) -> Failures {
        // Its answers show them as they were here, and no poll may show them as they were before.
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
        let judges = Judges {
            options: &self.shared.options,
            clock: &*self.shared.clock,
            summed: &self.shared.summed,
            runs: &self.shared.runs,
        };
        let mut batch = begin(session, &needs, self.origin, judges).await?;
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
            self.session = Some(session);
        }
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
            Missed::Again(why) | Missed::Refused(why) => unavailable(&why),
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
