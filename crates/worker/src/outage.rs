//! Logs an outage twice, however often a call is tried meanwhile: when it begins, and when it is over with
//! the number of tries that failed.

use std::fmt::Display;
use std::sync::atomic::{AtomicU64, Ordering};

/// The outage, if there is one, of calls of one kind.
#[derive(Debug)]
pub(crate) struct Outage {
    calls: &'static str,
    failures: AtomicU64,
}

impl Outage {
    /// None yet, of calls with this name for the log, in the plural.
    pub(crate) const fn of(calls: &'static str) -> Self {
        Self {
            calls,
            failures: AtomicU64::new(0),
        }
    }

    /// Notes a call that failed. Returns whether an outage begins with it.
    pub(crate) fn note_failure(&self, error: &dyn Display) -> bool {
        let begins = self.failures.fetch_add(1, Ordering::Relaxed) == 0;
        if begins {
            tracing::warn!(%error, "{} failing; trying again until they succeed", self.calls);
        }
        begins
    }

    /// Notes a call that succeeded. Returns how many had failed before it.
    pub(crate) fn note_success(&self) -> u64 {
        let failures = self.failures.swap(0, Ordering::Relaxed);
        if failures > 0 {
            tracing::info!(failures, "{} recovered", self.calls);
        }
        failures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_begins_once_and_is_over_once() {
        let outage = Outage::of("calls");
        for _ in 0..2 {
            assert_eq!(outage.note_success(), 0);
            let begun = [(); 3].map(|()| outage.note_failure(&"away"));
            assert_eq!(begun, [true, false, false]);
            assert_eq!(outage.note_success(), 3);
        }
    }
}
