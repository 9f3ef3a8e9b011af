//! The outcome of a commit whose answer was lost or does not come. The transaction's row of the lane stays locked until it
//! has ended, so what is found there is final. While nothing is found, the lane has one such transaction and begins no
//! other. Its callers were told that it failed: if it was committed after all, the lane gives back what they claimed before
//! it does anything else, so that no sweep of this process takes it for lost.

use std::time::Duration;

use super::super::cache::Begun;
use super::super::fault::{Fault, again, told, unavailable};
use super::super::job::Job;
use super::super::statement::Statement;
use super::{Failures, Missed, NO_ANSWER, State, Tried};
use crate::StoreError;

/// A transaction that may have been committed, although its callers were told that it failed.
pub(super) struct Unknown {
    tried: Tried,
    begun: Begun,
    undo: Vec<Box<dyn Job>>,
}

impl State {
    /// Finds out whether a transaction was committed, as far as its commit was sent.
    pub(super) async fn look_up(
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
        match self.was_committed().await {
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

    /// As [`State::commit`], after everything that is left of an earlier transaction.
    pub(super) async fn catch_up_and_commit(&mut self, jobs: &mut [Box<dyn Job>]) -> Failures {
        match self.catch_up().await {
            Ok(()) => self.commit(jobs).await,
            Err(error) => jobs.iter().map(|_| Some(again(&error))).collect(),
        }
    }

    async fn catch_up(&mut self) -> Result<(), StoreError> {
        if let Some(unknown) = self.unknown.take() {
            match self.was_committed().await {
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

    /// Maximum time for a transaction, or for the lookup of its outcome.
    pub(super) fn patience(&self) -> Duration {
        3 * self.statement_timeout()
    }

    fn statement_timeout(&self) -> Duration {
        Duration::from_millis(self.shared.options.statement_timeout_ms.into())
    }

    /// Whether the last transaction was committed, if that can be found out in time.
    async fn was_committed(&mut self) -> Option<bool> {
        let found = tokio::time::timeout(self.patience(), self.search()).await;
        found.ok().map(|batch| batch == self.origin.batch)
    }

    /// The number of the lane's last committed transaction, 0 if there is none, as soon as a server returns it.
    async fn search(&mut self) -> u64 {
        loop {
            if let Ok(batch) = self.last_batch().await {
                return batch;
            }
            // A failover takes a while; until then no caller gets an answer.
            tokio::time::sleep(self.backoff.pause()).await;
        }
    }

    async fn last_batch(&mut self) -> Result<u64, StoreError> {
        let session = self.connected().await?;
        let timeout_ms = self.shared.options.statement_timeout_ms;
        // The server's own limit, so that none of its connections waits for the lock after we have gone. A write, since
        // a query would not wait for a transaction that has inserted the row. No commit, which would wait for a standby.
        let ask = [
            Statement::new("BEGIN"),
            Statement::new("SELECT set_config('statement_timeout', $1, true)")
                .text(timeout_ms.to_string()),
            Statement::new(
                "INSERT INTO lanes (id, batch, at_ms) VALUES ($1, 0, 0) \
                 ON CONFLICT (id) DO UPDATE SET batch = lanes.batch RETURNING batch",
            )
            .int(self.origin.lane),
            Statement::new("ROLLBACK"),
        ];
        let asked = tokio::time::timeout(2 * self.statement_timeout(), session.run_all(&ask)).await;
        let answers = asked.map_err(|_| unavailable(NO_ANSWER))?;
        let answers = answers.map_err(|error| unavailable(&told(&error)))?;
        let row = answers.get(2).and_then(|rows| rows.first());
        let batch = row.map_or(Ok(0), |row| row.try_get::<_, i64>(0));
        self.session = Some(session);
        let batch = batch.map_err(|error| StoreError::from(Fault::Sql(error)))?;
        Ok(batch.unsigned_abs())
    }
}
