//! Forecasts for clients: how many tasks start before theirs, and when a full queue is expected to
//! have room. They follow the committed changes on a [`board`], simulate the coming turns on it
//! ([`play`], [`forecast`]), and remember promised places ([`promises`]). For short queues each
//! question is simulated anew; for long ones the answer comes from a forecast that is at most a
//! quarter of a second old.

mod board;
mod forecast;
mod kept;
mod play;
mod promises;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kinora_contract::lifecycle::Record;
use kinora_contract::{Clock, UnixMs};

use super::change::Change;
use super::share::Share;
use crate::task::Full;
use crate::{ClaimRequest, Insertion, QueueBounds, RetryAfter};
pub(crate) use board::{Picture, Runs, Waits};
pub(crate) use play::STARTS_MAX;

use board::Board;
use forecast::{Outlook, Positions};
use kept::Kept;
use promises::Promises;

/// The forecasts of one queue.
#[derive(Debug)]
pub(crate) struct Forecasts {
    clock: Arc<dyn Clock>,
    board: Mutex<Board>,
    positions: Kept<Positions>,
    outlook: Kept<Outlook>,
    promises: Mutex<Promises>,
    /// Whether there are promises; if not, submits need not ask.
    promised: AtomicBool,
}

impl Forecasts {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            board: Mutex::default(),
            positions: Kept::default(),
            outlook: Kept::default(),
            promises: Mutex::default(),
            promised: AtomicBool::default(),
        }
    }

    /// Follows a committed change.
    pub(crate) fn apply(&self, change: &Change) {
        if self.board().apply(change, self.clock.steady()) {
            self.forecast_anew();
        }
    }

    /// Replaces the board by the queue as read from a store that other processes change too.
    pub(crate) fn show(&self, picture: Picture) {
        self.board().show(picture, self.clock.steady());
        self.forecast_anew();
    }

    /// Learns which models are claimed together, and the number of slots.
    pub(crate) fn learn(&self, request: &ClaimRequest) {
        if self.board().learn(&request.models, Share::of(request)) {
            self.forecast_anew();
        }
    }

    fn forecast_anew(&self) {
        self.positions.outdate();
        self.outlook.outdate();
    }

    /// How many tasks are expected to start before this one, while it waits for its first worker;
    /// `None` if that is unknown.
    pub(crate) fn position(&self, record: &Record) -> Option<u64> {
        if !record.awaits_first_worker() {
            return None;
        }
        let positions = self.positions.look(&self.board, self.clock.steady());
        positions.ahead(record.task.id)
    }

    /// Number of places in the queue that are promised to other projects.
    pub(crate) fn reserved(&self, project: &str, now_ms: UnixMs) -> u64 {
        if self.promised.load(Ordering::Acquire) {
            self.promises().reserved(project, now_ms)
        } else {
            0
        }
    }

    /// Records that the project was admitted, which fulfils its promise.
    pub(crate) fn admitted(&self, project: &str, now_ms: UnixMs) {
        if self.promised.load(Ordering::Acquire) {
            let mut promises = self.promises();
            promises.keep(project, now_ms);
            self.promised.store(!promises.is_empty(), Ordering::Release);
        }
    }

    /// Refuses a task, with the time when there will be room.
    pub(crate) fn refuse(
        &self,
        project: &str,
        now_ms: UnixMs,
        bounds: QueueBounds,
        full: Full,
    ) -> Insertion {
        match full {
            Full::Queue => {
                Insertion::QueueFull(self.promise_place(project, now_ms, bounds.waiting_max))
            }
            Full::Project => {
                let max = bounds.project_unfinished_max;
                Insertion::ProjectFull(self.promise_own_place(project, now_ms, max))
            }
            Full::Quota(quota) => Insertion::QuotaFull(quota),
        }
    }

    /// Promises a place in the queue, which was full with `waiting_max` tasks.
    fn promise_place(&self, project: &str, now_ms: UnixMs, waiting_max: u64) -> RetryAfter {
        let outlook = self.present_outlook();
        let places = outlook.of_queue(waiting_max);
        let mut promises = self.promises();
        self.promised.store(true, Ordering::Release);
        promises.of_queue(project, now_ms, places)
    }

    /// Promises one of the project's own places, all `unfinished_max` of which were taken.
    fn promise_own_place(&self, project: &str, now_ms: UnixMs, unfinished_max: u64) -> RetryAfter {
        let outlook = self.present_outlook();
        let places = outlook.of_project(project, unfinished_max);
        let mut promises = self.promises();
        self.promised.store(true, Ordering::Release);
        promises.of_project(project, now_ms, places)
    }

    /// An outlook whose times count from about now: positions stay valid while nothing changes, but
    /// times pass.
    fn present_outlook(&self) -> Arc<Outlook> {
        let now = self.clock.steady();
        self.outlook.outdate_if_old(now);
        self.outlook.look(&self.board, now)
    }

    fn board(&self) -> MutexGuard<'_, Board> {
        lock(&self.board)
    }

    fn promises(&self) -> MutexGuard<'_, Promises> {
        lock(&self.promises)
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
