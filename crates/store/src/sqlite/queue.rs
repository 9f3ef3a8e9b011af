//! What clients are told of the queue: how many tasks start before theirs, and when a full queue is expected
//! to have room. It follows the committed changes on a [`board`], plays the turns to come on it ([`forecast`]),
//! and remembers whom it promised a place ([`promises`]). Short queues are looked at anew for each question;
//! of long ones a forecast, at most a quarter of a second old, is asked.

mod board;
mod forecast;
mod promises;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use kinora_contract::{TaskId, UnixMs};

use super::index::Share;
use super::record::{Change, Record};
use crate::{ClaimRequest, RetryAfter};
use board::Board;
use forecast::Forecast;
use promises::Promises;

/// So many waiting tasks are looked at for every question.
const SHORT: usize = 64;
const AGE_MAX: Duration = Duration::from_millis(250);

/// The queue as clients are told of it.
#[derive(Debug)]
pub(super) struct Queue {
    board: Mutex<Board>,
    changed: AtomicBool,
    forecast: RwLock<Dated>,
    promises: Mutex<Promises>,
    /// Whether there are promises, so that submits need not ask.
    promised: AtomicBool,
}

#[derive(Debug, Default)]
struct Dated {
    forecast: Arc<Forecast>,
    made: Option<Instant>,
}

impl Default for Queue {
    fn default() -> Self {
        Self {
            board: Mutex::default(),
            changed: AtomicBool::new(true),
            forecast: RwLock::default(),
            promises: Mutex::default(),
            promised: AtomicBool::new(false),
        }
    }
}

impl Queue {
    /// Follows a committed change.
    pub(super) fn apply(&self, change: &Change) {
        if self.board().apply(change, Instant::now()) {
            self.changed.store(true, Ordering::Release);
        }
    }

    /// Learns which models are claimed together, and how many slots there are.
    pub(super) fn learn(&self, request: &ClaimRequest) {
        let share = Share {
            slots: request.slots,
            project_max: request.project_slots_max,
        };
        if self.board().learn(&request.models, share) {
            self.changed.store(true, Ordering::Release);
        }
    }

    /// Tasks that are expected to start before this one; `None` where that is unknown.
    pub(super) fn ahead(&self, record: &Record) -> Option<u64> {
        self.look(|forecast| forecast.ahead(record.task.id))
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

    /// Promises a place in the full queue.
    pub(super) fn promise_place(&self, project: &str, now_ms: UnixMs) -> RetryAfter {
        let forecast = self.look(Clone::clone);
        let mut promises = self.promises();
        self.promised.store(true, Ordering::Release);
        promises.of_queue(project, now_ms, &forecast.starts)
    }

    /// Promises a place among the project's own tasks.
    pub(super) fn promise_own_place(&self, project: &str, now_ms: UnixMs) -> RetryAfter {
        let forecast = self.look(Clone::clone);
        let ends = forecast.ends.get(project).map_or(&[][..], Vec::as_slice);
        let mut promises = self.promises();
        self.promised.store(true, Ordering::Release);
        promises.of_project(project, now_ms, ends)
    }

    fn look<T>(&self, ask: impl FnOnce(&Arc<Forecast>) -> T) -> T {
        let dated = self.forecast.read().unwrap_or_else(PoisonError::into_inner);
        if !self.changed.load(Ordering::Acquire) || dated.is_fresh() {
            return ask(&dated.forecast);
        }
        drop(dated);
        let board = self.board();
        // Another question may have had it made while this one waited for the lock.
        if self.changed.swap(false, Ordering::AcqRel) {
            let made = Instant::now();
            let forecast = Arc::new(Forecast::of(&board, made));
            let mut dated = self
                .forecast
                .write()
                .unwrap_or_else(PoisonError::into_inner);
            *dated = Dated {
                forecast,
                made: Some(made),
            };
        }
        drop(board);
        let dated = self.forecast.read().unwrap_or_else(PoisonError::into_inner);
        ask(&dated.forecast)
    }

    fn board(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn promises(&self) -> MutexGuard<'_, Promises> {
        self.promises.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Dated {
    fn is_fresh(&self) -> bool {
        self.forecast.waiting > SHORT && self.made.is_some_and(|made| made.elapsed() < AGE_MAX)
    }
}

impl Forecast {
    fn ahead(&self, id: TaskId) -> Option<u64> {
        self.positions.get(&id).map(|ahead| u64::from(*ahead))
    }
}
