//! What clients are told of the queue. Both are estimates by a simple rule, honest within a factor
//! of two:
//!
//! - **`queue_position`**: the number of tasks that start before this one if the projects take turns
//!   as the queue does ([`board`]);
//! - **`Retry-After`** of a full queue: the mean service time of a task, times the tasks that must
//!   start before there is a place, over the number of slots; of a full project, times the projects
//!   that take turns with it. Clients that were refused before wait for the places before it
//!   ([`promises`]).
//!
//! An example: 2 slots, tasks of 10 s, a queue that is full with 100 waiting tasks, 3 clients refused
//! before: the fourth place comes free after 4 x 10 s / 2 = 20 s, and it is told 25 s, with a margin
//! for its own delays.

mod board;
mod promises;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kinora_contract::lifecycle::Record;
use kinora_contract::{Clock, TaskId, UnixMs};

use super::change::Change;
use crate::task::Full;
use crate::{ClaimRequest, Insertion, QueueBounds, RetryAfter};
pub(crate) use board::{POSITIONS_MAX, QueueSnapshot, RunningEntry, WaitingEntry};

use board::Board;
use promises::{Promises, Vacancies};

/// With up to this many waiting tasks, every question is answered anew.
const SHORT: usize = 64;
/// Maximum age of the positions in a longer queue.
const AGE_MAX: Duration = Duration::from_millis(250);

/// The estimates of one queue.
#[derive(Debug)]
pub(crate) struct QueueEstimates {
    clock: Arc<dyn Clock>,
    board: Mutex<Board>,
    positions: Mutex<Positions>,
    /// Whether the queue has changed since the positions were calculated.
    is_outdated: AtomicBool,
    promises: Mutex<Promises>,
    /// Whether there are promises; if not, submits need not ask.
    has_promises: AtomicBool,
}

/// The positions as last calculated.
#[derive(Debug, Default)]
struct Positions {
    ahead: HashMap<TaskId, u64>,
    /// Number of waiting tasks at that time.
    waiting: usize,
    /// That time, by the store's steady clock.
    made: Duration,
}

impl QueueEstimates {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            board: Mutex::default(),
            positions: Mutex::default(),
            is_outdated: AtomicBool::new(true),
            promises: Mutex::default(),
            has_promises: AtomicBool::default(),
        }
    }

    /// Follows a committed change.
    pub(crate) fn apply(&self, change: &Change) {
        if self.board().apply(change, self.clock.steady()) {
            self.outdate();
        }
    }

    /// Replaces the board by the queue as read from a store that other processes change too.
    pub(crate) fn replace(&self, snapshot: QueueSnapshot) {
        self.board().replace(snapshot, self.clock.steady());
        self.outdate();
    }

    /// Learns which models are claimed together, and the number of slots.
    pub(crate) fn learn(&self, request: &ClaimRequest) {
        if self.board().learn(&request.models, request.slots) {
            self.outdate();
        }
    }

    fn outdate(&self) {
        self.is_outdated.store(true, Ordering::Release);
    }

    /// How many tasks are expected to start before this one, while it waits for its first worker;
    /// `None` if that is unknown.
    pub(crate) fn position(&self, record: &Record) -> Option<u64> {
        if !record.awaits_first_worker() {
            return None;
        }
        let now = self.clock.steady();
        let mut positions = lock(&self.positions);
        let is_short = positions.waiting <= SHORT;
        let is_old = now.saturating_sub(positions.made) >= AGE_MAX;
        if (is_short || is_old) && self.is_outdated.swap(false, Ordering::AcqRel) {
            let board = self.board();
            *positions = Positions {
                ahead: board.positions(),
                waiting: board.waiting_count,
                made: now,
            };
        }
        positions.ahead.get(&record.task.id).copied()
    }

    /// Number of places in the queue that are promised to other projects.
    pub(crate) fn reserved(&self, project: &str, now_ms: UnixMs) -> u64 {
        if self.has_promises.load(Ordering::Acquire) {
            lock(&self.promises).reserved(project, now_ms)
        } else {
            0
        }
    }

    /// Records that the project was admitted, which fulfils its promise.
    pub(crate) fn admitted(&self, project: &str, now_ms: UnixMs) {
        if self.has_promises.load(Ordering::Acquire) {
            let mut promises = lock(&self.promises);
            promises.keep(project, now_ms);
            self.has_promises
                .store(!promises.is_empty(), Ordering::Release);
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
            Full::Quota(quota) => Insertion::QuotaFull(quota),
            Full::Queue => {
                let free = self.free_in_queue(bounds.waiting_max);
                Insertion::QueueFull(
                    self.promise(|promises| promises.of_queue(project, now_ms, free)),
                )
            }
            Full::Project => {
                let free = self.free_for_project(project, bounds.project_unfinished_max);
                Insertion::ProjectFull(
                    self.promise(|promises| promises.of_project(project, now_ms, free)),
                )
            }
        }
    }

    /// When there is room in the queue, which was full with `waiting_max` tasks.
    fn free_in_queue(&self, waiting_max: u64) -> Vacancies {
        let board = self.board();
        Vacancies {
            free: waiting_max.saturating_sub(board.waiting_count as u64),
            interval_ms: board.interval_ms() as u64,
        }
    }

    /// When the project may have one more task, of which it had `unfinished_max`: one of its tasks
    /// ends when each of the other projects has had a turn.
    fn free_for_project(&self, project: &str, unfinished_max: u64) -> Vacancies {
        let board = self.board();
        Vacancies {
            free: unfinished_max.saturating_sub(board.unfinished(project) as u64),
            interval_ms: (board.interval_ms() * board.projects() as f64) as u64,
        }
    }

    fn promise(&self, promise: impl FnOnce(&mut Promises) -> RetryAfter) -> RetryAfter {
        let mut promises = lock(&self.promises);
        self.has_promises.store(true, Ordering::Release);
        promise(&mut promises)
    }

    fn board(&self) -> MutexGuard<'_, Board> {
        lock(&self.board)
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
