//! Limits concurrent jobs per engine, and pauses restarts after consecutive crashes. Waiting
//! callers report progress and can be cancelled.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kinora_contract::Clock;
use kinora_engine::{Control, EngineError, Stage};

use crate::backoff::Backoff;
use crate::process::EngineProcess;
use crate::protocol::Introduction;

/// How often a waiting caller checks for a cancel.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// A process whose engine is open.
#[derive(Debug)]
pub(crate) struct Ready {
    pub(crate) process: EngineProcess,
    pub(crate) introduction: Introduction,
}

/// All seats of one engine.
#[derive(Debug)]
pub(crate) struct Seats {
    state: Mutex<State>,
    changed: Condvar,
    clock: Arc<dyn Clock>,
}

#[derive(Debug)]
struct State {
    /// Those that nobody has.
    free: Vec<Place>,
    backoff: Backoff,
}

/// Where one process can be.
#[derive(Debug)]
struct Place {
    device: Option<String>,
    /// The process of the last job.
    idle: Option<Ready>,
}

/// The right to use one process. The process ends with it unless [`Seat::leave_to_next`] is called.
#[derive(Debug)]
pub(crate) struct Seat<'a> {
    seats: &'a Seats,
    place: Place,
}

impl Seats {
    /// A seat for each device; `None` is a process that finds its device itself.
    pub(crate) fn new(devices: Vec<Option<String>>, clock: Arc<dyn Clock>) -> Self {
        let free = devices
            .into_iter()
            .map(|device| Place { device, idle: None });
        Self {
            state: Mutex::new(State {
                free: free.collect(),
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
    pub(crate) fn take(&self, control: &Control) -> Result<(Seat<'_>, Option<Ready>), EngineError> {
        let mut state = self.state();
        loop {
            control.report(Stage::Preparing, 0.0)?;
            let may_start = !state.backoff.holds(self.clock.steady());
            if let Some((place, ready)) = state.take(may_start) {
                return Ok((Seat { seats: self, place }, ready));
            }
            let waited = self.changed.wait_timeout(state, POLL_INTERVAL);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Takes the processes that have no job.
    pub(crate) fn take_idle(&self) -> Vec<Ready> {
        let mut state = self.state();
        let places = state.free.iter_mut();
        places.filter_map(|place| place.idle.take()).collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// A free place, if possible one with a living process; otherwise one where a process `may_start`.
    fn take(&mut self, may_start: bool) -> Option<(Place, Option<Ready>)> {
        for place in &mut self.free {
            // No order killed it, so it may be replaced at once.
            if place
                .idle
                .take_if(|ready| !ready.process.is_alive())
                .is_some()
            {
                tracing::warn!("idle engine process died");
            }
        }
        let living = self.free.iter().position(|place| place.idle.is_some());
        let index = living.or_else(|| (may_start && !self.free.is_empty()).then_some(0))?;
        let mut place = self.free.remove(index);
        let ready = place.idle.take();
        Some((place, ready))
    }
}

impl Seat<'_> {
    /// The device of its process.
    pub(crate) const fn device(&self) -> Option<&String> {
        self.place.device.as_ref()
    }

    /// Returns the process for the next job, and resets the back-off.
    pub(crate) fn leave_to_next(mut self, ready: Ready) {
        self.seats.state().backoff.reset();
        self.place.idle = Some(ready);
    }

    /// Records that the process crashed.
    pub(crate) fn record_crash(self) {
        let now = self.seats.clock.steady();
        self.seats.state().backoff.died(now);
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        let place = Place {
            device: self.place.device.take(),
            idle: self.place.idle.take(),
        };
        self.seats.state().free.push(place);
        self.seats.changed.notify_one();
    }
}
