//! The time limits of one fetch. Waiting for a turn is not the host's fault, so it has a limit of
//! its own.

use std::sync::Arc;
use std::time::Duration;

use kinora_contract::{Clock, Stopwatch};
use tokio::time::timeout;

use crate::error::{FetchCause, FetchError};
use crate::options::FetchOptions;
use crate::turns::{HostKey, HostTurn, HostTurns};

/// The time that a fetch has left.
#[derive(Debug)]
pub(crate) struct FetchTimer {
    clock: Arc<dyn Clock>,
    /// When the whole fetch times out, by the clock's steady time.
    total: Duration,
    /// When it times out while the size is unknown.
    unsized_until: Duration,
    turns_left: Duration,
}

impl FetchTimer {
    pub(crate) fn new(options: &FetchOptions, clock: &Arc<dyn Clock>) -> Self {
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
    /// `Later` if no turn became free in time.
    pub(crate) async fn turn(
        &mut self,
        turns: &HostTurns,
        key: HostKey,
        project: &str,
    ) -> Result<HostTurn, FetchError> {
        let begun = self.stopwatch();
        let turn = turns.take(key.clone(), project, self.turns_left).await;
        let waited = begun.elapsed();
        self.turns_left = self.turns_left.saturating_sub(waited);
        self.total += waited;
        self.unsized_until += waited;
        turn.ok_or_else(|| FetchError::Later(FetchCause::HostBusy(key.to_string())))
    }

    /// Starts a time measurement.
    pub(crate) fn stopwatch(&self) -> Stopwatch {
        Stopwatch::start(&self.clock)
    }

    /// The time left for connecting, but at most `limit`.
    pub(crate) fn at_most(&self, limit: Duration) -> Duration {
        limit.min(self.left_until(self.unsized_until))
    }

    /// Runs `work`, which learns the size.
    ///
    /// # Errors
    /// `Timeout` once the time for an unknown size is over.
    pub(crate) async fn unsized_time<T>(
        &self,
        work: impl Future<Output = Result<T, FetchError>>,
    ) -> Result<T, FetchError> {
        within(self.left_until(self.unsized_until), work).await
    }

    /// Runs `work`, within `limit` if the size is known.
    ///
    /// # Errors
    /// `Timeout` once that limit or the time of the whole fetch is over.
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
    timeout(left, work)
        .await
        .map_err(|_| FetchError::Timeout(FetchCause::TotalTimeout))?
}
