//! Limits concurrent jobs per engine, and pauses restarts after consecutive crashes. Waiting
//! callers report progress and can be cancelled.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kinora_contract::Clock;
use kinora_engine::{Control, EngineError, Stage};

use crate::backoff::Backoff;
use crate::process::EngineProcess;

/// How often a waiting caller checks for a cancel.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

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

/// The right to use one process. The process ends with it unless [`Seat::leave_to_next`] is called.
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

    /// Waits for a seat, and, if it has no idle process, until one may be started.
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
            let waited = self.changed.wait_timeout(state, POLL_INTERVAL);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// An idle process that is still alive.
    fn living(&mut self) -> Option<EngineProcess> {
        while let Some(mut process) = self.idle.pop() {
            if process.is_alive() {
                return Some(process);
            }
            // No order killed it, so it may be replaced at once.
            tracing::warn!("idle engine process died");
        }
        None
    }
}

impl Seat<'_> {
    /// Returns the process for the next job, and resets the back-off.
    pub(crate) fn leave_to_next(self, process: EngineProcess) {
        let mut state = self.0.state();
        state.backoff.reset();
        state.idle.push(process);
    }

    /// Records that the process crashed.
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
