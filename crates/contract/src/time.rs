//! Time as a value: code that needs the time takes a [`Clock`]. The binary holds the machine's
//! clock; tests use a [`ManualClock`].

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Milliseconds since 1970-01-01 00:00 UTC.
pub type UnixMs = u64;

/// Milliseconds of a clock that is never set, from an arbitrary start. Meaningless in another
/// process.
pub type SteadyMs = u64;

/// Milliseconds of the clock that a store's leases and pauses run by: the steady clock of a process
/// that embeds its store, the server's clock where several processes share a database.
pub type LeaseMs = u64;

/// 2026-01-01, or the day of the last release in `CHANGELOG.md` (a test compares them): a wall
/// clock that shows an earlier time is wrong. A constant in the source, so that builds are
/// reproducible.
pub const RELEASED_MS: UnixMs = 1_767_225_600_000;

/// Provides wall time, which may jump, and steady time, which measures durations.
pub trait Clock: Send + Sync + std::fmt::Debug {
    /// The current time, in milliseconds since 1970.
    fn now_ms(&self) -> UnixMs;

    /// The current time of the monotonic clock.
    fn steady_ms(&self) -> SteadyMs;

    /// The current time of the monotonic clock, since an arbitrary start.
    fn steady(&self) -> Duration {
        Duration::from_millis(self.steady_ms())
    }
}

/// Measures a duration with a clock's steady time.
#[derive(Clone, Debug)]
pub struct Stopwatch {
    clock: Arc<dyn Clock>,
    begun: Duration,
}

impl Stopwatch {
    /// Starts measuring now.
    pub fn start(clock: &Arc<dyn Clock>) -> Self {
        Self {
            clock: clock.clone(),
            begun: clock.steady(),
        }
    }

    /// The time since the start.
    pub fn elapsed(&self) -> Duration {
        self.clock.steady().saturating_sub(self.begun)
    }

    /// Starts again now.
    pub fn restart(&mut self) {
        self.begun = self.clock.steady();
    }
}

/// Both clocks at one moment: wall time of the store, steady time of this process, by which a step of
/// the former shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Wall time.
    pub wall_ms: UnixMs,
    /// Steady time.
    pub steady_ms: SteadyMs,
}

impl dyn Clock + '_ {
    /// Both clocks, wall time first.
    pub fn read(&self) -> Reading {
        Reading {
            wall_ms: self.now_ms(),
            steady_ms: self.steady_ms(),
        }
    }
}

/// A clock that moves only when its methods are called.
#[derive(Debug, Default)]
pub struct ManualClock {
    wall: AtomicU64,
    steady: AtomicU64,
}

impl ManualClock {
    /// A clock stopped at `now_ms`.
    pub const fn at(now_ms: UnixMs) -> Self {
        Self {
            wall: AtomicU64::new(now_ms),
            steady: AtomicU64::new(0),
        }
    }

    /// Sets the wall clock, forward or back; no steady time passes.
    pub fn set(&self, now_ms: UnixMs) {
        self.wall.store(now_ms, Ordering::SeqCst);
    }

    /// Lets time pass on both clocks.
    pub fn advance(&self, by_ms: u64) {
        self.steady.fetch_add(by_ms, Ordering::SeqCst);
        self.wall.fetch_add(by_ms, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now_ms(&self) -> UnixMs {
        self.wall.load(Ordering::SeqCst)
    }

    fn steady_ms(&self) -> SteadyMs {
        self.steady.load(Ordering::SeqCst)
    }
}

/// A manual clock whose steady time also follows another clock. For tests that wait in real time.
pub struct RunningClock {
    manual: ManualClock,
    passed: Box<dyn Fn() -> Duration + Send + Sync>,
}

impl RunningClock {
    /// A clock at `now_ms`; `passed` returns the time since its creation.
    pub fn at(now_ms: UnixMs, passed: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        Self {
            manual: ManualClock::at(now_ms),
            passed: Box::new(passed),
        }
    }
}

impl fmt::Debug for RunningClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RunningClock({:?})", self.manual)
    }
}

impl Deref for RunningClock {
    type Target = ManualClock;

    fn deref(&self) -> &ManualClock {
        &self.manual
    }
}

impl Clock for RunningClock {
    fn now_ms(&self) -> UnixMs {
        self.manual.now_ms()
    }

    fn steady_ms(&self) -> SteadyMs {
        let passed = (self.passed)().as_millis();
        self.manual.steady_ms() + u64::try_from(passed).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manual_clock_is_set_apart_from_the_time_that_passes() {
        let clock = ManualClock::at(1_000);
        clock.advance(5);
        clock.set(400);
        clock.advance(7);
        assert_eq!((clock.now_ms(), clock.steady_ms()), (407, 12));
    }

    #[test]
    fn a_stopwatch_follows_the_steady_time_alone() {
        let manual = Arc::new(ManualClock::at(1_000));
        let clock: Arc<dyn Clock> = manual.clone();
        let mut watch = Stopwatch::start(&clock);
        manual.advance(5);
        manual.set(400_000);
        assert_eq!(watch.elapsed(), Duration::from_millis(5));
        watch.restart();
        manual.set(0);
        assert_eq!(watch.elapsed(), Duration::ZERO);
    }

    #[test]
    fn a_running_clock_passes_with_another_and_by_hand() {
        let clock = RunningClock::at(1_000, || Duration::from_millis(40));
        clock.advance(2);
        assert_eq!((clock.now_ms(), clock.steady_ms()), (1_002, 42));
    }
}
