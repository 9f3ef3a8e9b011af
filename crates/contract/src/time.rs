//! Time as a value: everything that needs the hour is handed a [`Clock`].
//! The clock of the machine lives in the binary; tests hold a [`ManualClock`].

use std::sync::atomic::{AtomicU64, Ordering};

/// Milliseconds since 1970-01-01 00:00 UTC.
pub type UnixMs = u64;

/// Milliseconds by a clock that is never set, since a moment of its own. It says nothing to another
/// process.
pub type SteadyMs = u64;

/// 2026-01-01, or the day of the last release in `CHANGELOG.md` (a test compares them): a wall clock that
/// shows less is wrong. A constant of the source, so that builds are reproducible.
pub const RELEASED_MS: UnixMs = 1_767_225_600_000;

/// Tells wall time, which may jump, and steady time, by which durations are measured.
pub trait Clock: Send + Sync + std::fmt::Debug {
    /// The present, in milliseconds since 1970.
    fn now_ms(&self) -> UnixMs;

    /// The present by a monotonic clock.
    fn steady_ms(&self) -> SteadyMs;
}

/// A clock that moves only when it is told to.
#[derive(Debug, Default)]
pub struct ManualClock {
    wall: AtomicU64,
    steady: AtomicU64,
}

impl ManualClock {
    /// A clock that stands at `now_ms`.
    pub const fn at(now_ms: UnixMs) -> Self {
        Self {
            wall: AtomicU64::new(now_ms),
            steady: AtomicU64::new(0),
        }
    }

    /// Sets the wall clock, forward or back, while no time passes.
    pub fn set(&self, now_ms: UnixMs) {
        self.wall.store(now_ms, Ordering::SeqCst);
    }

    /// Lets time pass.
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
}
