//! How long one task waits for its server: until a cancel, a silence that is too long, or the end of its
//! time. Each sign of life starts the silence anew.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::backoff::Backoff;
use crate::cause::Cause;
use crate::text::chain;
use crate::timer::Timer;

/// The shortest wait for a server without a change: one whose slots are taken says no time.
const WAIT_MIN: Duration = Duration::from_millis(500);

/// The limits of one task's run.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The first wait after a failure; later waits double.
    pub backoff_first: Duration,
    /// Maximum wait after a failure, unless the server requests a longer one.
    pub backoff_max: Duration,
    /// Maximum time without a sign of life.
    pub silence_max: Duration,
    /// Maximum time in all.
    pub run_max: Duration,
}

/// The patience of one run.
pub struct Patience<'a> {
    timer: &'a dyn Timer,
    cancel: &'a CancellationToken,
    backoff: Backoff,
    limits: Limits,
    /// The time of the last sign of life.
    heard: Duration,
    ends: Duration,
}

/// Why a run waits no longer.
#[derive(Debug)]
pub enum Impatience {
    /// It was cancelled.
    Cancelled,
    /// No sign of life for the maximum time.
    Silent {
        /// The maximum time.
        silence_max: Duration,
        /// The last error.
        cause: Cause,
    },
    /// It took longer than this in all.
    Overdue(Duration),
}

impl<'a> Patience<'a> {
    /// The patience of a run that starts now; its waits are spread by `key`.
    pub fn new(
        timer: &'a dyn Timer,
        cancel: &'a CancellationToken,
        limits: Limits,
        key: &str,
    ) -> Self {
        let now = timer.now();
        Self {
            timer,
            cancel,
            backoff: Backoff::new(limits.backoff_first, limits.backoff_max, key),
            limits,
            heard: now,
            ends: now + limits.run_max,
        }
    }

    /// Records a sign of life.
    pub fn hear(&mut self) {
        self.heard = self.timer.now();
    }

    /// Checks whether the run still has time.
    ///
    /// # Errors
    /// [`Impatience::Overdue`].
    pub fn check_end(&self) -> Result<(), Impatience> {
        if self.time_left().is_zero() {
            return Err(self.overdue());
        }
        Ok(())
    }

    /// The time left before the silence is too long.
    ///
    /// # Errors
    /// [`Impatience::Silent`] with `cause` if there is none.
    pub fn wait_left(&self, cause: Cause) -> Result<(Duration, Cause), Impatience> {
        let silence_max = self.limits.silence_max;
        let silent = self.timer.now().saturating_sub(self.heard);
        let left = silence_max.saturating_sub(silent);
        if left.is_zero() {
            return Err(Impatience::Silent { silence_max, cause });
        }
        Ok((left, cause))
    }

    /// The time left in all.
    pub fn time_left(&self) -> Duration {
        self.ends.saturating_sub(self.timer.now())
    }

    /// The error of a run that took too long in all.
    pub const fn overdue(&self) -> Impatience {
        Impatience::Overdue(self.limits.run_max)
    }

    /// Waits until `changed` completes, at most for `wish` and not beyond the silence limit.
    ///
    /// # Errors
    /// [`Impatience`], with `cause` if there has been no sign of life for too long.
    pub async fn wait_for(
        &self,
        changed: impl Future<Output = ()>,
        wish: Duration,
        cause: Cause,
    ) -> Result<(), Impatience> {
        let (left, _) = self.wait_left(cause)?;
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(Impatience::Cancelled),
            () = changed => Ok(()),
            () = self.timer.sleep(wish.max(WAIT_MIN).min(left)) => Ok(()),
        }
    }

    /// Waits before the next attempt: as long as the server requests and back-off demands, but not
    /// beyond the silence limit, to allow a last attempt.
    ///
    /// # Errors
    /// [`Impatience`].
    pub async fn rest(
        &self,
        wish: Duration,
        cause: Cause,
        failures: u32,
    ) -> Result<(), Impatience> {
        let (left, cause) = self.wait_left(cause)?;
        let wait = wish.max(self.backoff.wait(failures)).min(left);
        tracing::warn!(
            error = chain(&cause),
            wait_ms = wait.as_millis(),
            "upstream call failed; retrying"
        );
        self.sleep(wait).await
    }

    /// Waits.
    ///
    /// # Errors
    /// [`Impatience::Cancelled`], at once.
    pub async fn sleep(&self, duration: Duration) -> Result<(), Impatience> {
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(Impatience::Cancelled),
            () = self.timer.sleep(duration) => Ok(()),
        }
    }
}
