//! How long one task waits for its server: until a cancel, a silence that is too long, or the end of its
//! time. Each sign of life starts the silence anew. Waits come from a server's headers or double; a [`WaitTimer`]
//! has the time, so tests can control it. Socket deadlines do not use it.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use hyper::HeaderMap;
use kinora_contract::Clock;
use kinora_http::Backoff;
use tokio_util::sync::CancellationToken;

use super::cause::{CallError, chain};
use super::error::UpstreamError;
use super::options::ServerOptions;

/// The shortest wait for a server without a change: one whose slots are taken says no time.
const WAIT_MIN: Duration = Duration::from_millis(500);

/// The patience of one run.
pub(crate) struct TaskPatience<'a> {
    timer: &'a dyn WaitTimer,
    options: &'a ServerOptions,
    cancel: &'a CancellationToken,
    backoff: SpreadBackoff,
    /// The time of the last sign of life.
    heard: Duration,
    ends: Duration,
}

impl<'a> TaskPatience<'a> {
    /// The patience of a run that starts now; its waits are spread by `key`.
    pub(crate) fn new(
        timer: &'a dyn WaitTimer,
        options: &'a ServerOptions,
        cancel: &'a CancellationToken,
        key: &str,
    ) -> Self {
        let now = timer.now();
        Self {
            timer,
            options,
            cancel,
            backoff: SpreadBackoff::new(options, key),
            heard: now,
            ends: now + options.run_max,
        }
    }

    /// Records a sign of life.
    pub(crate) fn record_activity(&mut self) {
        self.heard = self.timer.now();
    }

    /// Checks whether the run still has time.
    pub(crate) fn check_end(&self) -> Result<(), UpstreamError> {
        if self.time_left().is_zero() {
            return Err(self.overdue());
        }
        Ok(())
    }

    /// Waits for `working` until the run has no more time, in real time like the limits of sockets.
    pub(crate) async fn within_time<T>(
        &self,
        working: impl Future<Output = Result<T, UpstreamError>>,
    ) -> Result<T, UpstreamError> {
        let worked = tokio::time::timeout(self.time_left(), working).await;
        worked.unwrap_or_else(|_| Err(self.overdue()))
    }

    /// The time left before the silence is too long; an error with `cause` if there is none.
    pub(crate) fn wait_left(
        &self,
        cause: CallError,
    ) -> Result<(Duration, CallError), UpstreamError> {
        let silence_max = self.options.silence_max;
        let silent = self.timer.now().saturating_sub(self.heard);
        let left = silence_max.saturating_sub(silent);
        if left.is_zero() {
            return Err(UpstreamError::Silent { silence_max, cause });
        }
        Ok((left, cause))
    }

    /// The time left in all.
    fn time_left(&self) -> Duration {
        self.ends.saturating_sub(self.timer.now())
    }

    /// The error of a run that took too long in all.
    const fn overdue(&self) -> UpstreamError {
        UpstreamError::Overdue(self.options.run_max)
    }

    /// Waits until `changed` completes, at most for `wish` and not beyond the silence limit.
    pub(crate) async fn wait_for(
        &self,
        changed: impl Future<Output = ()>,
        wish: Duration,
        cause: CallError,
    ) -> Result<(), UpstreamError> {
        let (left, _) = self.wait_left(cause)?;
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(UpstreamError::Cancelled),
            () = changed => Ok(()),
            () = self.timer.sleep(wish.max(WAIT_MIN).min(left)) => Ok(()),
        }
    }

    /// Waits before the next attempt: as long as the server requests and back-off demands, but not
    /// beyond the silence limit, to allow a last attempt.
    pub(crate) async fn wait_to_retry(
        &self,
        wish: Duration,
        cause: CallError,
        failures: u32,
    ) -> Result<(), UpstreamError> {
        let (left, cause) = self.wait_left(cause)?;
        let wait = wish.max(self.backoff.wait(failures)).min(left);
        tracing::warn!(
            error = chain(&cause),
            wait_ms = wait.as_millis(),
            "upstream call failed; retrying"
        );
        self.sleep(wait).await
    }

    /// Waits before the next attempt if `error` is one that passes, and counts the failure; otherwise returns it.
    pub(crate) async fn retry(
        &self,
        error: UpstreamError,
        failures: &mut u32,
    ) -> Result<(), UpstreamError> {
        let UpstreamError::Busy { after, cause } = error else {
            return Err(error);
        };
        self.wait_to_retry(after, cause, *failures).await?;
        *failures += 1;
        Ok(())
    }

    /// Waits until the next poll is due.
    pub(crate) async fn wait_for_poll(&self) -> Result<(), UpstreamError> {
        self.sleep(self.options.poll_every).await
    }

    /// Waits.
    pub(crate) async fn sleep(&self, duration: Duration) -> Result<(), UpstreamError> {
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(UpstreamError::Cancelled),
            () = self.timer.sleep(duration) => Ok(()),
        }
    }
}

/// Waits of one series of attempts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SpreadBackoff {
    waits: Backoff,
    salt: u64,
}

impl SpreadBackoff {
    /// The waits of these options, spread by `salt`.
    pub(crate) fn new(options: &ServerOptions, salt: &str) -> Self {
        Self {
            waits: Backoff {
                first: options.backoff_first,
                max: options.backoff_max,
            },
            salt: hash(salt),
        }
    }

    /// The wait after failure number `attempt`, counted from 0: 75 to 125 % of `first * 2^attempt`,
    /// limited to `max` before spreading.
    pub(crate) fn wait(&self, attempt: u32) -> Duration {
        let share = hash((self.salt, attempt)) % 1000;
        self.waits.spread(attempt, share as f64 / 1000.0)
    }
}

/// The standard hasher with fixed keys: the same in every process.
fn hash(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Tells the time and waits.
#[async_trait]
pub trait WaitTimer: Send + Sync + fmt::Debug {
    /// Time since some fixed moment; it never decreases.
    fn now(&self) -> Duration;

    /// Returns once `duration` has passed.
    async fn sleep(&self, duration: Duration);
}

/// The real timer: reads a clock and waits in real time.
#[derive(Debug)]
pub struct SystemTimer(Arc<dyn Clock>);

impl SystemTimer {
    /// A timer based on the steady time of `clock`.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self(clock)
    }
}

#[async_trait]
impl WaitTimer for SystemTimer {
    fn now(&self) -> Duration {
        self.0.steady()
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}

/// Maximum wait; longer requests are cut to this.
const HINT_MAX: Duration = Duration::from_hours(1);

/// The wait before the next poll (`openai-poll-after-ms`), otherwise [`retry_after`].
pub(crate) fn poll_after(headers: &HeaderMap) -> Option<Duration> {
    milliseconds(headers, "openai-poll-after-ms").or_else(|| retry_after(headers))
}

/// The wait before a refused call may be repeated: `retry-after-ms`, otherwise `Retry-After`.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    milliseconds(headers, "retry-after-ms").or_else(|| kinora_http::retry_after(headers))
}

fn milliseconds(headers: &HeaderMap, name: &str) -> Option<Duration> {
    let value = headers.get(name)?.to_str().ok()?;
    let seconds = value.trim().parse::<f64>().ok()? / 1000.0;
    let is_wish = seconds.is_finite() && seconds >= 0.0;
    is_wish.then(|| Duration::from_secs_f64(seconds.min(HINT_MAX.as_secs_f64())))
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    #[test]
    fn waits_double_up_to_a_bound_and_differ_between_tasks() {
        let options = ServerOptions {
            backoff_max: Duration::from_secs(30),
            ..ServerOptions::new(Vec::new())
        };
        let of = |salt| SpreadBackoff::new(&options, salt);
        for attempt in 0..40 {
            let wait = of("a").wait(attempt).as_secs_f64();
            let middle = f64::from(1 << attempt.min(20)).min(30.0);
            assert!(
                (0.75 * middle..1.25 * middle).contains(&wait),
                "{attempt}: {wait}"
            );
        }
        assert_eq!(of("a").wait(3), of("a").wait(3));
        assert_ne!(of("a").wait(3), of("b").wait(3));
    }

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &'static str)| {
            (name.parse().unwrap(), HeaderValue::from_static(value))
        };
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn milliseconds_go_before_seconds() {
        for (given, seconds) in [
            (&[("retry-after", "7")][..], Some(7.0)),
            (
                &[("retry-after-ms", "1500"), ("retry-after", "9")],
                Some(1.5),
            ),
            (
                &[("retry-after-ms", "soon"), ("retry-after", "9")],
                Some(9.0),
            ),
            (&[("retry-after-ms", "-1")], None),
            (&[("retry-after-ms", "1e30")], Some(3600.0)),
            (&[], None),
        ] {
            let wish = retry_after(&headers(given));
            assert_eq!(wish, seconds.map(Duration::from_secs_f64), "{given:?}");
        }
        let both = headers(&[("openai-poll-after-ms", "250"), ("retry-after", "9")]);
        assert_eq!(poll_after(&both), Some(Duration::from_millis(250)));
        assert_eq!(poll_after(&HeaderMap::new()), None);
    }
}
