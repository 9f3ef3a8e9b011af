//! Forecasts for clients: how many tasks start before theirs, and when a full queue is expected
//! to have room. It follows the committed changes on a [`board`], plays the turns to come on it ([`play`],
//! [`forecast`]), and remembers whom it promised a place ([`promises`]). Short queues are looked at anew for each question;
//! of long ones a forecast, at most a quarter of a second old, is asked.

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
    /// Whether there are promises, so that submits need not ask.
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

    /// Shows the queue as it was read, of a store that others change too.
    pub(crate) fn show(&self, picture: Picture) {
        self.board().show(picture, self.clock.steady());
        self.forecast_anew();
    }

    /// Learns which models are claimed together, and how many slots there are.
    pub(crate) fn learn(&self, request: &ClaimRequest) {
        if self.board().learn(&request.models, Share::of(request)) {
            self.forecast_anew();
        }
    }

    fn forecast_anew(&self) {
        self.positions.outdate();
        self.outlook.outdate();
    }

    /// How many tasks are expected to start before this one, while it waits for its first worker; `None` where that
    /// is unknown.
    pub(crate) fn position(&self, record: &Record) -> Option<u64> {
        if !record.awaits_first_worker() {
            return None;
        }
        let positions = self.positions.look(&self.board, self.clock.steady());
        positions.ahead(record.task.id)
    }

    /// Places of the queue that this project must leave to others: they were promised.
    pub(crate) fn reserved(&self, project: &str, now_ms: UnixMs) -> u64 {
        if self.promised.load(Ordering::Acquire) {
            self.promises().reserved(project, now_ms)
        } else {
            0
        }
    }

    /// The project was admitted, so its promise is kept.
    pub(crate) fn admitted(&self, project: &str, now_ms: UnixMs) {
        if self.promised.load(Ordering::Acquire) {
            let mut promises = self.promises();
            promises.keep(project, now_ms);
            self.promised.store(!promises.is_empty(), Ordering::Release);
        }
    }

    /// Refuses a task, and says when there is room for it.
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

    /// Promises a place among the project's own tasks, of which it had `unfinished_max`.
    fn promise_own_place(&self, project: &str, now_ms: UnixMs, unfinished_max: u64) -> RetryAfter {
        let outlook = self.present_outlook();
        let places = outlook.of_project(project, unfinished_max);
        let mut promises = self.promises();
        self.promised.store(true, Ordering::Release);
        promises.of_project(project, now_ms, places)
    }

    /// An outlook whose times count from about now: positions stand while nothing changes, times go by.
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
