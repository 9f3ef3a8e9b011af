//! What clients are told of the queue: how many tasks start before theirs, and when a full queue is expected
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
use super::index::Share;
use crate::{ClaimRequest, RetryAfter};
use board::Board;
use forecast::{Outlook, Positions};
use kept::Kept;
use promises::Promises;

/// The queue as clients are told of it.
#[derive(Debug)]
pub(super) struct Queue {
    clock: Arc<dyn Clock>,
    board: Mutex<Board>,
    positions: Kept<Positions>,
    outlook: Kept<Outlook>,
    promises: Mutex<Promises>,
    /// Whether there are promises, so that submits need not ask.
    promised: AtomicBool,
}

impl Queue {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
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
    pub(super) fn apply(&self, change: &Change) {
        if self.board().apply(change, self.clock.steady()) {
            self.forecast_anew();
        }
    }

    /// Learns which models are claimed together, and how many slots there are.
    pub(super) fn learn(&self, request: &ClaimRequest) {
        let share = Share {
            slots: request.slots,
            project_max: request.project_slots_max,
        };
        if self.board().learn(&request.models, share) {
            self.forecast_anew();
        }
    }

    fn forecast_anew(&self) {
        self.positions.outdate();
        self.outlook.outdate();
    }

    /// Tasks that are expected to start before this one; `None` where that is unknown.
    pub(super) fn ahead(&self, record: &Record) -> Option<u64> {
        self.positions
            .look(&self.board, self.clock.steady())
            .ahead(record.task.id)
    }

    /// Places of the queue that this project must leave to others: they were promised.
    pub(super) fn reserved(&self, project: &str, now_ms: UnixMs) -> u64 {
        if self.promised.load(Ordering::Acquire) {
            self.promises().reserved(project, now_ms)
        } else {
            0
        }
    }

    /// The project was let in: what it was promised is kept.
    pub(super) fn admitted(&self, project: &str, now_ms: UnixMs) {
        if self.promised.load(Ordering::Acquire) {
            let mut promises = self.promises();
            promises.keep(project, now_ms);
            self.promised.store(!promises.is_empty(), Ordering::Release);
        }
    }

    /// Promises a place in the queue, which was full with `waiting_max` tasks.
    pub(super) fn promise_place(
        &self,
        project: &str,
        now_ms: UnixMs,
        waiting_max: u64,
    ) -> RetryAfter {
        let outlook = self.present_outlook();
        let places = outlook.of_queue(waiting_max);
        let mut promises = self.promises();
        self.promised.store(true, Ordering::Release);
        promises.of_queue(project, now_ms, places)
    }

    /// Promises a place among the project's own tasks, of which it had `unfinished_max`.
    pub(super) fn promise_own_place(
        &self,
        project: &str,
        now_ms: UnixMs,
        unfinished_max: u64,
    ) -> RetryAfter {
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
