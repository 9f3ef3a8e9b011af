//! A lane's connection: made anew where there is none, and asked for the outcome of a commit whose answer was lost or does
//! not come.

use std::sync::Arc;
use std::time::Duration;

use super::super::connect::{Backoff, Connector};
use super::super::durability::SYNCED;
use super::super::fault::{Fault, NO_ANSWER, told, unavailable};
use super::super::session::Session;
use super::super::shared::Shared;
use super::super::statement::{BEGIN, Statement};
use crate::StoreError;

/// The connection of a lane.
pub(super) struct Link {
    connector: Arc<Connector>,
    shared: Arc<Shared>,
    /// The lane's row.
    lane: u64,
    session: Option<Session>,
    backoff: Backoff,
}

impl Link {
    pub(super) fn new(connector: Arc<Connector>, shared: Arc<Shared>, lane: u64) -> Self {
        Self {
            connector,
            shared,
            lane,
            session: None,
            backoff: Backoff::default(),
        }
    }

    /// The pause before the next attempt.
    pub(super) fn pause(&self) -> Duration {
        self.backoff.pause()
    }

    /// Keeps a connection for the next transaction.
    pub(super) fn keep(&mut self, session: Session) {
        self.session = Some(session);
    }

    /// The connection, made where there is none.
    pub(super) async fn connected(&mut self) -> Result<Session, StoreError> {
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

    /// Maximum time for a transaction, or for the lookup of its outcome.
    pub(super) fn patience(&self) -> Duration {
        3 * self.statement_timeout()
    }

    fn statement_timeout(&self) -> Duration {
        Duration::from_millis(self.shared.options.statement_timeout_ms.into())
    }

    /// Whether the lane's last transaction, of this number, was committed, if that can be found out in time. Its row
    /// stays locked until it has ended, so the result is final.
    pub(super) async fn was_committed(&mut self, batch: u64) -> Option<bool> {
        let found = tokio::time::timeout(self.patience(), self.search(batch)).await;
        found.ok()
    }

    /// The same, as soon as a server returns it.
    async fn search(&mut self, batch: u64) -> bool {
        loop {
            match self.last_batch().await {
                Ok(last) if last != batch => return false,
                Ok(_) if self.replicate().await.is_ok() => return true,
                Ok(_) | Err(_) => {}
            }
            // A failover takes a while; until then no caller gets an answer.
            tokio::time::sleep(self.backoff.pause()).await;
        }
    }

    /// Returns when the standbys that a commit waits for have everything that was committed before. A server that has
    /// started again shows a commit that still waited for them.
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
        // The server's own limit, so that none of its connections waits for the lock after we have gone. A write, since
        // a query would not wait for a transaction that has inserted the row. No commit, which would wait for a standby.
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
