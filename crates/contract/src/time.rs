//! Time as a value: everything that needs the hour is handed a [`Clock`].
//! The clock of the machine lives in the binary; tests hold a [`ManualClock`].

use std::sync::atomic::{AtomicU64, Ordering};

/// Milliseconds since 1970-01-01 00:00 UTC.
pub type UnixMs = u64;

/// Tells wall time. Durations are never measured with it, since it may jump.
pub trait Clock: Send + Sync + std::fmt::Debug {
    /// The present, in milliseconds since 1970.
    fn now_ms(&self) -> UnixMs;
}

/// A clock that moves only when it is told to.
#[derive(Debug, Default)]
pub struct ManualClock(AtomicU64);

impl ManualClock {
    /// A clock that stands at `now_ms`.
    pub const fn at(now_ms: UnixMs) -> Self {
        Self(AtomicU64::new(now_ms))
    }

    /// Moves the clock, forward or back.
    pub fn set(&self, now_ms: UnixMs) {
        self.0.store(now_ms, Ordering::SeqCst);
    }

    /// Moves the clock forward.
    pub fn advance(&self, by_ms: u64) {
        self.0.fetch_add(by_ms, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now_ms(&self) -> UnixMs {
        self.0.load(Ordering::SeqCst)
    }
}
