//! Logs an outage with only two lines, however many calls fail: one at its start, and one at its
//! end with the number of failed calls.

use std::fmt::Display;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kinora_contract::Clock;

/// A success ends an outage only after this long without a failure: on a disk that accepts small
/// writes and refuses large ones, calls alternate between success and failure.
const QUIET: Duration = Duration::from_secs(5);

/// The outage, if any, of calls of one kind. A successful call costs one atomic load.
#[derive(Debug)]
pub struct OutageLog {
    calls: &'static str,
    clock: Arc<dyn Clock>,
    lasts: AtomicBool,
    state: Mutex<Option<OutageState>>,
}

/// An outage, from its first failure to its last, by the steady time of the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OutageState {
    began: Duration,
    last: Duration,
    failures: u64,
}

impl OutageLog {
    /// No outage yet. `calls` names the calls in the log, in the plural; `clock` measures durations.
    pub fn new(calls: &'static str, clock: &Arc<dyn Clock>) -> Self {
        Self {
            calls,
            clock: clock.clone(),
            lasts: AtomicBool::new(false),
            state: Mutex::new(None),
        }
    }

    /// Records a failed call. Logs the start of an outage, if this is one.
    pub fn record_failure(&self, error: &dyn Display) {
        if self.failed_at(self.clock.steady()) {
            tracing::error!(%error, "{} failing", self.calls);
        }
    }

    /// Records a successful call. Logs the end of an outage, if this is one.
    pub fn record_success(&self) {
        // The usual case, for every successful call of the process: no lock, no clock.
        if !self.lasts.load(Ordering::Acquire) {
            return;
        }
        if let Some(over) = self.succeeded_at(self.clock.steady()) {
            let (failures, lasted) = (over.failures, over.last.saturating_sub(over.began));
            tracing::info!(failures, ?lasted, "{} recovered", self.calls);
        }
    }

    fn failed_at(&self, now: Duration) -> bool {
        let mut state = self.state();
        let begins = state.is_none();
        let outage = state.get_or_insert(OutageState {
            began: now,
            last: now,
            failures: 0,
        });
        // Another thread may have read the clock later but arrived here first.
        outage.last = outage.last.max(now);
        outage.failures = outage.failures.saturating_add(1);
        self.lasts.store(true, Ordering::Release);
        begins
    }

    fn succeeded_at(&self, now: Duration) -> Option<OutageState> {
        let mut state = self.state();
        let over = state.take_if(|outage| now.saturating_sub(outage.last) >= QUIET)?;
        self.lasts.store(false, Ordering::Release);
        Some(over)
    }

    fn state(&self) -> MutexGuard<'_, Option<OutageState>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use kinora_contract::ManualClock;

    use super::*;

    #[test]
    fn an_outage_lasts_by_the_clock_that_it_is_given() {
        let manual = Arc::new(ManualClock::at(0));
        let clock: Arc<dyn Clock> = manual.clone();
        let outage = OutageLog::new("calls", &clock);
        let lasts = || outage.lasts.load(Ordering::Acquire);
        outage.record_failure(&"away");
        manual.advance(QUIET.as_millis() as u64 - 1);
        outage.record_success();
        assert!(lasts());
        manual.advance(1);
        outage.record_success();
        assert!(!lasts());
    }

    #[test]
    fn an_outage_begins_once_and_is_over_once() {
        let clock: Arc<dyn Clock> = Arc::new(ManualClock::at(0));
        let (outage, began) = (OutageLog::new("calls", &clock), Duration::ZERO);
        for round in [began, began + 100 * QUIET] {
            assert!(!outage.lasts.load(Ordering::Acquire));
            assert_eq!(outage.succeeded_at(round), None);
            assert!(outage.failed_at(round));
            for second in 1..=60 {
                let now = round + Duration::from_secs(second);
                assert!(!outage.failed_at(now));
                assert!(outage.lasts.load(Ordering::Acquire));
                // A success between two failures does not end it.
                assert_eq!(outage.succeeded_at(now + QUIET / 2), None);
            }
            let last = round + Duration::from_secs(60);
            let expected = OutageState {
                began: round,
                last,
                failures: 61,
            };
            assert_eq!(outage.succeeded_at(last + QUIET), Some(expected));
            assert_eq!(outage.succeeded_at(last + 2 * QUIET), None);
        }
    }
}
