//! The transactions of a lane. If the answer to a commit is lost or does not come, the outcome is looked up. While nothing
//! is found, the lane has one such transaction and begins no other. Its callers were told that it failed: if it was
//! committed after all, the lane gives back what they claimed before it does anything else, so that no sweep of this process
//! takes it for lost.

use std::sync::Arc;

use kinora_contract::{Stopwatch, TaskId};
use tokio_postgres::error::SqlState;

use super::super::begin::{Judges, Origin, begin};
use super::super::cache::Begun;
use super::super::commit::{Committed, Ended};
use super::super::connect::Connector;
use super::super::fault::{
    Done, Fault, NO_ANSWER, again, is_broken, is_outdated, is_passing, told, unavailable,
};
use super::super::job::Job;
use super::super::session::Session;
use super::super::shared::Shared;
use super::super::statement::Statement;
use super::link::Link;
use crate::backend::Needs;
use crate::{StoreError, metered};

/// Attempts at a transaction that deadlocks or loses its connection.
const ATTEMPTS_MAX: u32 = 4;

/// The state that transactions share.
pub(super) struct Writer {
    pub(super) shared: Arc<Shared>,
    pub(super) link: Link,
    origin: Origin,
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

/// A transaction that may have been committed, although its callers were told that it failed.
struct Unknown {
    tried: Tried,
    begun: Begun,
    undo: Vec<Box<dyn Job>>,
}

impl Writer {
    /// The writer of the lane whose row has this id.
    pub(super) fn new(connector: Arc<Connector>, shared: Arc<Shared>, lane: u64) -> Self {
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
        let session = self.link.connected().await.map_err(Missed::Failed)?;
        self.origin.batch += 1;
        let mut tried = Tried::default();
        // Each statement has its limit, but a hanging server enforces none, and a commit may wait for a standby.
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
            clock: &self.shared.server_clock,
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
            self.link.keep(session);
        }
    }

    /// Finds out whether a transaction was committed, as far as its commit was sent.
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
            None => {
                let undo = jobs.iter_mut().flat_map(|job| job.undo()).collect();
                self.unknown = Some(Unknown { tried, begun, undo });
                Err(Missed::Failed(unavailable(why)))
            }
        }
    }

    /// Whether nothing is left of a transaction without an outcome.
    pub(super) fn is_caught_up(&self) -> bool {
        self.unknown.is_none() && self.owed.is_empty()
    }

    /// Commits the jobs, after everything that is left of an earlier transaction; returns the result of each.
    pub(super) async fn catch_up_and_commit(&mut self, jobs: &mut [Box<dyn Job>]) -> Failures {
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
        let is_left =
            |failure: &Option<StoreError>| matches!(failure, Some(StoreError::Unavailable(_)));
        // A repetition of one that was committed has no effect.
        let left = owed.into_iter().zip(failures);
        let left = left.filter(|(_, failure)| is_left(failure));
        self.owed = left.map(|(job, _)| job).collect();
        match self.owed.is_empty() {
            true => Ok(()),
            false => Err(unavailable(NO_ANSWER)),
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
