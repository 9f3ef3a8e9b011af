//! A failure that lasts is logged twice: when it begins, and when it is over. [`Outage`] says when
//! these are, and counts the failures between them. It writes nothing itself: its owner has the words.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A success ends an outage only after so long without a failure: a disk that takes small writes
/// and refuses large ones would otherwise begin an outage and end it with every second call.
const QUIET: Duration = Duration::from_secs(5);

/// Whether something fails at present. Shared by reference; a success costs one load.
#[derive(Debug, Default)]
pub struct Outage {
    lasts: AtomicBool,
    state: Mutex<Option<State>>,
}

#[derive(Clone, Copy, Debug)]
struct State {
    began: Instant,
    last: Instant,
    failures: u64,
}

/// An outage that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Over {
    /// How often it failed, the first failure included.
    pub failures: u64,
    /// From the first failure to the last.
    pub lasted: Duration,
}

impl Outage {
    /// Notes `failures`. Returns whether an outage begins with them: then it is time to log it.
    pub fn failed(&self, failures: u64) -> bool {
        self.failed_at(Instant::now(), failures)
    }

    /// Notes a success. Returns the outage that it ends, if any: then it is time to log that.
    pub fn succeeded(&self) -> Option<Over> {
        if !self.lasts.load(Ordering::Acquire) {
            return None;
        }
        self.succeeded_at(Instant::now())
    }

    fn failed_at(&self, now: Instant, failures: u64) -> bool {
        let mut state = self.state();
        let begins = state.is_none();
        let outage = state.get_or_insert(State {
            began: now,
            last: now,
            failures: 0,
        });
        outage.last = now;
        outage.failures = outage.failures.saturating_add(failures);
        self.lasts.store(true, Ordering::Release);
        begins
    }

    fn succeeded_at(&self, now: Instant) -> Option<Over> {
        let mut state = self.state();
        let over = state.take_if(|outage| now.saturating_duration_since(outage.last) >= QUIET)?;
        self.lasts.store(false, Ordering::Release);
        Some(Over {
            failures: over.failures,
            lasted: over.last - over.began,
        })
    }

    fn state(&self) -> MutexGuard<'_, Option<State>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_is_told_when_it_begins_and_when_it_is_over() {
        let (outage, began) = (Outage::default(), Instant::now());
        assert_eq!(outage.succeeded(), None);
        for round in [began, began + 100 * QUIET] {
            assert!(outage.failed_at(round, 1));
            for second in 1..=60 {
                let now = round + Duration::from_secs(second);
                assert!(!outage.failed_at(now, 2));
                // What goes well in between does not end it.
                assert_eq!(outage.succeeded_at(now + QUIET / 2), None);
            }
            let over = outage.succeeded_at(round + Duration::from_secs(60) + QUIET);
            let expected = Over {
                failures: 121,
                lasted: Duration::from_secs(60),
            };
            assert_eq!(over, Some(expected));
            assert_eq!(outage.succeeded_at(round + 50 * QUIET), None);
            assert_eq!(outage.succeeded(), None);
        }
    }
}
