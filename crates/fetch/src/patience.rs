//! The time of one fetch. Waiting for a turn is no fault of the host that is asked, so it counts
//! to a bound of its own.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use crate::error::{Cause, FetchError};
use crate::options::Options;
use crate::turns::{HostKey, Turn, Turns};

/// What is left of the time of a fetch.
#[derive(Debug)]
pub(crate) struct Patience {
    /// When it is over, whatever the size.
    total: Instant,
    /// When it is over while the size is not known.
    unsized_until: Instant,
    turns_left: Duration,
}

impl Patience {
    pub(crate) fn new(options: &Options) -> Self {
        let now = Instant::now();
        Self {
            total: now + options.total_timeout,
            unsized_until: now + options.unsized_timeout.min(options.total_timeout),
            turns_left: options.turn_timeout,
        }
    }

    /// Waits for a turn at a host.
    ///
    /// # Errors
    /// `Later` when there is none in time.
    pub(crate) async fn turn(
        &mut self,
        turns: &Turns,
        key: HostKey,
        project: &str,
    ) -> Result<Turn, FetchError> {
        let begun = Instant::now();
        let turn = turns.take(key.clone(), project, self.turns_left).await;
        let waited = begun.elapsed();
        self.turns_left = self.turns_left.saturating_sub(waited);
        self.total += waited;
        self.unsized_until += waited;
        turn.ok_or_else(|| FetchError::Later(Cause::HostBusy(key.to_string())))
    }

    /// How long connecting may take, if it may take `limit` at most.
    pub(crate) fn at_most(&self, limit: Duration) -> Duration {
        limit.min(self.unsized_until.saturating_duration_since(Instant::now()))
    }

    /// The outcome of `work`, which tells the size.
    ///
    /// # Errors
    /// `Timeout` once the time without a size is over.
    pub(crate) async fn unsized_time<T>(
        &self,
        work: impl Future<Output = Result<T, FetchError>>,
    ) -> Result<T, FetchError> {
        within(self.unsized_until, work).await
    }

    /// The outcome of `work`, which may take `limit` from now on where the size is known.
    ///
    /// # Errors
    /// `Timeout` once that is over, or the time of the whole fetch.
    pub(crate) async fn sized_time<T>(
        &self,
        limit: Option<Duration>,
        work: impl Future<Output = Result<T, FetchError>>,
    ) -> Result<T, FetchError> {
        let deadline = match limit {
            Some(limit) => self.total.min(Instant::now() + limit),
            None => self.unsized_until,
        };
        within(deadline, work).await
    }
}

async fn within<T>(
    deadline: Instant,
    work: impl Future<Output = Result<T, FetchError>>,
) -> Result<T, FetchError> {
    let over = |_| FetchError::Timeout(Cause::TotalTimeout);
    timeout_at(deadline, work).await.map_err(over)?
}
