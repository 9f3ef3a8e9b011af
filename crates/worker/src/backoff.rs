//! Holds claims back after a fault of this machine, so that a full disk does not have the same task
//! rendered again and again: one claim at a time, with doubling pauses, until a task is completed.

use std::error::Error;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// How a worker fares with its machine; clones share one state.
#[derive(Clone, Debug, Default)]
pub struct Backoff(Arc<Mutex<Option<Trouble>>>);

/// There was a fault, and no task was completed since.
#[derive(Clone, Copy, Debug)]
struct Trouble {
    pause: Duration,
    until: Instant,
    /// Whether a task was claimed to see how things stand, and has not failed yet.
    probing: bool,
}

/// What may be claimed now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// As much as there are slots for.
    All,
    /// One task, to see whether the fault is over.
    One,
    /// Nothing for so long.
    Wait(Duration),
}

impl Backoff {
    /// Notes that a fault of this machine ended a run. Several that meet it together count as one.
    pub(crate) fn note_fault(&self, error: &dyn Error) {
        self.note_fault_at(Instant::now(), error);
    }

    /// Notes that a task was completed.
    pub(crate) fn note_success(&self) {
        if self.state().take().is_some() {
            tracing::info!("storage recovered; claiming tasks again");
        }
    }

    /// What may be claimed now.
    pub(crate) fn turn(&self) -> Turn {
        self.turn_at(Instant::now())
    }

    fn note_fault_at(&self, now: Instant, error: &dyn Error) {
        let mut state = self.state();
        let pause = match *state {
            None => {
                tracing::error!(%error, "storage failing; claims are held back until it recovers");
                PAUSE_MIN
            }
            Some(Trouble { pause, probing, .. }) if probing => (pause * 2).min(PAUSE_MAX),
            // Others that met the same fault.
            Some(_) => return,
        };
        *state = Some(Trouble {
            pause,
            until: now + pause,
            probing: false,
        });
    }

    fn turn_at(&self, now: Instant) -> Turn {
        let mut state = self.state();
        let Some(trouble) = state.as_mut() else {
            return Turn::All;
        };
        if now < trouble.until {
            return Turn::Wait(trouble.until - now);
        }
        trouble.until = now + trouble.pause;
        trouble.probing = true;
        Turn::One
    }

    fn state(&self) -> MutexGuard<'_, Option<Trouble>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full() -> std::io::Error {
        std::io::ErrorKind::StorageFull.into()
    }

    #[test]
    fn pauses_double_up_to_their_bound_and_end_with_a_success() {
        let (backoff, mut now) = (Backoff::default(), Instant::now());
        assert_eq!(backoff.turn_at(now), Turn::All);
        let mut pause = PAUSE_MIN;
        for _ in 0..8 {
            // Two runs meet the same fault.
            backoff.note_fault_at(now, &full());
            backoff.note_fault_at(now, &full());
            assert_eq!(backoff.turn_at(now), Turn::Wait(pause));
            now += pause;
            assert_eq!(backoff.turn_at(now), Turn::One);
            // While the one task runs there is no other.
            assert_eq!(backoff.turn_at(now), Turn::Wait(pause));
            pause = (pause * 2).min(PAUSE_MAX);
        }
        assert_eq!(pause, PAUSE_MAX);
        backoff.note_success();
        assert_eq!(backoff.turn_at(now), Turn::All);
        backoff.note_fault_at(now, &full());
        assert_eq!(backoff.turn_at(now), Turn::Wait(PAUSE_MIN));
    }
}
