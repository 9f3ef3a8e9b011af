//! One process for each place of an engine, kept between jobs. [`Places`] decides which one takes
//! the next job and when a process may be started. Waiting callers report progress and can be
//! cancelled.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kinora_contract::Clock;
use kinora_engine::places::{PlaceChoice, PlaceRules, PlaceVisit, PlaceWish, Places};
use kinora_engine::{EngineError, JobControl, WorkStage};

use crate::process::EngineProcess;
use crate::protocol::EngineIntroduction;

/// How often a waiting caller checks for a cancel.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Number of failures in a row that quarantine a device.
const FAILURES_MAX: u32 = 3;
/// The pause after the second failure in a row; it doubles with each further one.
const PAUSE_FIRST: Duration = Duration::from_secs(1);
/// The longest pause of an only device.
const PAUSE_MAX: Duration = Duration::from_secs(60);
/// The longest pause of one of several devices: each trial delays a task.
const PAUSE_BESIDE_OTHERS_MAX: Duration = Duration::from_secs(300);

/// A process with an open engine.
#[derive(Debug)]
pub(crate) struct OpenProcess {
    pub process: EngineProcess,
    pub introduction: EngineIntroduction,
}

/// All seats of one engine.
#[derive(Debug)]
pub(crate) struct ProcessSeats {
    /// `None`: the process chooses its device.
    devices: Vec<Option<String>>,
    places: Arc<Places>,
    /// Idle processes, by place.
    idle: Mutex<Vec<Option<OpenProcess>>>,
    freed: Condvar,
}

/// The right to use one process. The process ends with it unless [`ProcessSeat::release_with`] is called.
#[derive(Debug)]
pub(crate) struct ProcessSeat<'a> {
    seats: &'a ProcessSeats,
    /// Ended before the next caller is woken.
    visit: Option<PlaceVisit>,
    index: usize,
}

impl ProcessSeats {
    /// A seat for each device.
    pub(crate) fn new(devices: Vec<Option<String>>, clock: Arc<dyn Clock>) -> Self {
        let pause_max = if devices.len() > 1 {
            PAUSE_BESIDE_OTHERS_MAX
        } else {
            PAUSE_MAX
        };
        let names = devices
            .iter()
            .enumerate()
            .map(|(index, device)| match device {
                Some(device) => format!("device {device}"),
                None => format!("process {index}"),
            })
            .collect();
        let rules = PlaceRules {
            jobs_max: Some(1),
            failures_max: FAILURES_MAX,
            pause: Box::new(move |failures| pause(failures, pause_max)),
            probes: false,
            are_shared: false,
        };
        Self {
            idle: Mutex::new(devices.iter().map(|_| None).collect()),
            places: Places::new(names, rules, move || clock.steady()),
            devices,
            freed: Condvar::new(),
        }
    }

    /// The places of the seats, which track failures.
    pub(crate) const fn places(&self) -> &Arc<Places> {
        &self.places
    }

    /// Waits for a seat that `control` does not avoid and, if it has no idle process, until one
    /// may be started.
    ///
    /// # Errors
    /// [`EngineError::Cancelled`].
    pub(crate) fn claim(
        &self,
        control: &JobControl,
    ) -> Result<(ProcessSeat<'_>, Option<OpenProcess>), EngineError> {
        let avoid = control.place.avoided();
        let mut idle = self.idle();
        loop {
            control.report(WorkStage::Preparing, 0.0)?;
            remove_dead(&mut idle);
            // A seat with a living process is preferred: loading weights again may take minutes.
            let choice = self.places.choose(&PlaceWish {
                may: &|_| true,
                prefers: &|index| idle[index].is_some(),
                avoid: &avoid,
            });
            if let PlaceChoice::Take(visit) = choice {
                let index = visit.index;
                control.place.set_chosen(&self.places, index);
                // A process to be replaced is dropped below, after the lock: its drop waits for it to exit.
                let found = idle[index].take();
                drop(idle);
                let ready = found.filter(|_| !visit.must_restart);
                let visit = Some(visit);
                let seats = self;
                return Ok((
                    ProcessSeat {
                        seats,
                        visit,
                        index,
                    },
                    ready,
                ));
            }
            // A timeout rather than a plain wait: a cancel and the end of a pause notify nobody.
            let waited = self.freed.wait_timeout(idle, POLL_INTERVAL);
            idle = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Takes every free seat that has no living process.
    pub(crate) fn claim_cold(&self) -> Vec<ProcessSeat<'_>> {
        let mut idle = self.idle();
        remove_dead(&mut idle);
        let mut seats = Vec::new();
        while let PlaceChoice::Take(visit) = self.places.choose(&PlaceWish {
            may: &|index| idle[index].is_none(),
            prefers: &|_| false,
            avoid: &[],
        }) {
            seats.push(self.seat(visit));
        }
        seats
    }

    const fn seat(&self, visit: PlaceVisit) -> ProcessSeat<'_> {
        ProcessSeat {
            seats: self,
            index: visit.index,
            visit: Some(visit),
        }
    }

    /// Removes and returns the idle processes.
    pub(crate) fn take_idle(&self) -> Vec<OpenProcess> {
        self.idle().iter_mut().filter_map(Option::take).collect()
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Option<OpenProcess>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Removes processes that died without a job: no order killed them, so they may be replaced at once.
fn remove_dead(idle: &mut [Option<OpenProcess>]) {
    for place in idle {
        let dead = place.take_if(|ready| !ready.process.is_alive());
        if dead.is_some() {
            tracing::warn!("idle engine process died");
        }
    }
}

/// The pause after this many failures in a row: none after the first, so that an engine that dies
/// once is replaced at once.
fn pause(failures: u32, max: Duration) -> Duration {
    match failures {
        0 | 1 => Duration::ZERO,
        // 1 s, 2 s, 4 s, ... up to `max`. The bound on the exponent only prevents an overflow of
        // the shift.
        more => PAUSE_FIRST.saturating_mul(1 << (more - 2).min(16)).min(max),
    }
}

impl ProcessSeat<'_> {
    /// The device of its process.
    pub(crate) fn device(&self) -> Option<&String> {
        self.seats.devices[self.index].as_ref()
    }

    /// Returns the process for the next job.
    pub(crate) fn release_with(self, ready: OpenProcess) {
        self.seats.idle()[self.index] = Some(ready);
    }

    /// Records that the process crashed or could not be opened.
    pub(crate) fn record_outage(&self, error: &str) {
        self.seats.places.record_outage(self.index, error);
    }
}

impl Drop for ProcessSeat<'_> {
    fn drop(&mut self) {
        // In this order: a caller woken before the visit ends would still find the place taken.
        self.visit = None;
        self.seats.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_failure_costs_no_pause_and_the_others_ever_more_up_to_a_minute() {
        let pauses =
            [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 40].map(|failures| pause(failures, PAUSE_MAX).as_secs());
        assert_eq!(pauses, [0, 0, 1, 2, 4, 8, 16, 32, 60, 60, 60]);
    }
}
