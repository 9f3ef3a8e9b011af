//! Who may use an engine's processes, and when one may be started: so many jobs at a time, and a
//! pause after deaths in a row. Whoever waits gives signs of life and can be cancelled.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kinora_contract::Clock;
use kinora_engine::{Control, EngineError, Stage};

use crate::backoff::Backoff;
use crate::hosted::EngineProcess;

/// How often whoever waits looks for a cancel.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// All seats of one engine.
#[derive(Debug)]
pub(crate) struct Seats {
    state: Mutex<State>,
    changed: Condvar,
    clock: Arc<dyn Clock>,
}

#[derive(Debug)]
struct State {
    free: usize,
    idle: Vec<EngineProcess>,
    backoff: Backoff,
}

/// The right to use one process. Without [`Seat::leave_to_next`] the process ends with it.
#[derive(Debug)]
pub(crate) struct Seat<'a>(&'a Seats);

impl Seats {
    pub(crate) fn new(count: usize, clock: Arc<dyn Clock>) -> Self {
        Self {
            state: Mutex::new(State {
                free: count,
                idle: Vec::new(),
                backoff: Backoff::default(),
            }),
            changed: Condvar::new(),
            clock,
        }
    }

    /// Waits for a seat, and for the time when a process may be started if none waits there.
    ///
    /// # Errors
    /// [`EngineError::Cancelled`].
    pub(crate) fn take(
        &self,
        control: &Control,
    ) -> Result<(Seat<'_>, Option<EngineProcess>), EngineError> {
        let mut state = self.state();
        loop {
            control.report(Stage::Preparing, 0.0)?;
            if state.free > 0 {
                let process = state.living();
                if process.is_some() || !state.backoff.holds(self.clock.steady()) {
                    state.free -= 1;
                    return Ok((Seat(self), process));
                }
            }
            let waited = self.changed.wait_timeout(state, LOOK_EVERY);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// An idle process that has not died meanwhile.
    fn living(&mut self) -> Option<EngineProcess> {
        while let Some(mut process) = self.idle.pop() {
            if process.is_alive() {
                return Some(process);
            }
            // Not by what it was told to do: it may be replaced at once.
            tracing::warn!("an engine's process died while it waited for work");
        }
        None
    }
}

impl Seat<'_> {
    /// The process did well, and the next may have it.
    pub(crate) fn leave_to_next(self, process: EngineProcess) {
        let mut state = self.0.state();
        state.backoff.reset();
        state.idle.push(process);
    }

    /// The process died.
    pub(crate) fn record_crash(self) {
        let now = self.0.clock.steady();
        self.0.state().backoff.died(now);
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        self.0.state().free += 1;
        self.0.changed.notify_one();
    }
}
