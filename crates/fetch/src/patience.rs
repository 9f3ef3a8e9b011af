//! The time of one fetch. Waiting for a turn is no fault of the host that is asked, so it counts
//! to a bound of its own.

use std::sync::Arc;
use std::time::Duration;

use kinora_contract::{Clock, Stopwatch};
use tokio::time::timeout;

use crate::error::{Cause, FetchError};
use crate::options::Options;
use crate::turns::{HostKey, Turn, Turns};

/// What is left of the time of a fetch.
#[derive(Debug)]
pub(crate) struct Patience {
    clock: Arc<dyn Clock>,
    /// When it is over, whatever the size, by the steady time of the clock.
    total: Duration,
    /// When it is over while the size is not known.
    unsized_until: Duration,
    turns_left: Duration,
}

impl Patience {
    pub(crate) fn new(options: &Options, clock: &Arc<dyn Clock>) -> Self {
        let now = clock.steady();
        Self {
            clock: clock.clone(),
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
        let begun = self.stopwatch();
        let turn = turns.take(key.clone(), project, self.turns_left).await;
        let waited = begun.elapsed();
        self.turns_left = self.turns_left.saturating_sub(waited);
        self.total += waited;
        self.unsized_until += waited;
        turn.ok_or_else(|| FetchError::Later(Cause::HostBusy(key.to_string())))
    }

    /// Measures a part of the time.
    pub(crate) fn stopwatch(&self) -> Stopwatch {
        Stopwatch::start(&self.clock)
    }

    /// How long connecting may take, if it may take `limit` at most.
    pub(crate) fn at_most(&self, limit: Duration) -> Duration {
        limit.min(self.left_until(self.unsized_until))
    }

    /// The outcome of `work`, which tells the size.
    ///
    /// # Errors
    /// `Timeout` once the time without a size is over.
    pub(crate) async fn unsized_time<T>(
        &self,
        work: impl Future<Output = Result<T, FetchError>>,
    ) -> Result<T, FetchError> {
        within(self.left_until(self.unsized_until), work).await
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
        let left = match limit {
            Some(limit) => limit.min(self.left_until(self.total)),
            None => self.left_until(self.unsized_until),
        };
        within(left, work).await
    }

    fn left_until(&self, deadline: Duration) -> Duration {
        deadline.saturating_sub(self.clock.steady())
    }
}

async fn within<T>(
    left: Duration,
    work: impl Future<Output = Result<T, FetchError>>,
) -> Result<T, FetchError> {
    let over = |_| FetchError::Timeout(Cause::TotalTimeout);
    timeout(left, work).await.map_err(over)?
}
