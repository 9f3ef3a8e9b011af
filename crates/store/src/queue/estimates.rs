//! Estimates for clients: the position of a waiting task, and the time to return after a refusal. Both
//! follow a simple rule and are accurate within a factor of two:
//!
//! - **`queue_position`**: the number of tasks that start before this one if the projects take turns
//!   as the queue does ([`board`]);
//! - **`Retry-After`** of a full queue: the mean service time of a task, times the tasks that must
//!   start before there is a place, over the number of slots; of a full project, times the projects
//!   that take turns with it. Clients that were refused before wait for the places before it
//!   ([`PlacePromises`]).
//!
//! An example: 2 slots, tasks of 10 s, a queue that is full with 100 waiting tasks, 3 clients refused
//! before. The fourth place becomes free after 4 x 10 s / 2 = 20 s, and `Retry-After` is 25 s: the same
//! with a margin for the client's own delays, in whole seconds.

mod board;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use board::QueueBoard;
pub(crate) use board::{POSITIONS_MAX, QueueSnapshot, RunningEntry, WaitingEntry};
use kinora_contract::lifecycle::TaskRecord;
use kinora_contract::limits::RETRY_AFTER_SECONDS_MAX;
use kinora_contract::{Clock, TaskId, UnixMs};

use super::change::RecordChange;
use crate::tasks::ExceededLimit;
use crate::{ClaimRequest, InsertOutcome, QueueBounds, RetryAfter};

/// With up to this many waiting tasks, positions are recalculated after every change.
const SHORT: usize = 64;
/// Maximum age of the positions in a longer queue.
const AGE_MAX: Duration = Duration::from_millis(250);

/// The estimates of one queue.
#[derive(Debug)]
pub(crate) struct QueueEstimates {
    clock: Arc<dyn Clock>,
    board: Mutex<QueueBoard>,
    positions: Mutex<CachedPositions>,
    /// Whether the queue has changed since the positions were calculated.
    is_outdated: AtomicBool,
    promises: Mutex<PlacePromises>,
    /// Whether there are promises; if not, submits need not ask.
    has_promises: AtomicBool,
}

/// The positions as last calculated.
#[derive(Debug, Default)]
struct CachedPositions {
    ahead: HashMap<TaskId, u64>,
    /// Number of waiting tasks at the time of the calculation.
    waiting: usize,
    /// Time of the calculation, by the store's steady clock.
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
    pub(crate) fn apply(&self, change: &RecordChange) {
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
    pub(crate) fn position(&self, record: &TaskRecord) -> Option<u64> {
        if !record.awaits_first_worker() {
            return None;
        }
        let now = self.clock.steady();
        let mut positions = lock(&self.positions);
        let is_short = positions.waiting <= SHORT;
        let is_old = now.saturating_sub(positions.made) >= AGE_MAX;
        // All positions are calculated at once, which takes time in proportion to the queue. In a
        // long queue that happens at most four times a second, however many clients poll; nobody
        // sees that position 800 is a quarter of a second old.
        if (is_short || is_old) && self.is_outdated.swap(false, Ordering::AcqRel) {
            // Locks in the order positions, board; no other code holds both.
            let board = self.board();
            *positions = CachedPositions {
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
            promises.fulfil(project, now_ms);
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
        full: ExceededLimit,
    ) -> InsertOutcome {
        match full {
            ExceededLimit::Quota(quota) => InsertOutcome::QuotaFull(quota),
            ExceededLimit::Queue => {
                // The board was refreshed after the refusal: places that became free meanwhile are
                // counted here.
                let free = self.free_in_queue(bounds.waiting_max);
                InsertOutcome::QueueFull(
                    self.promise(|promises| promises.promise_queue_place(project, now_ms, free)),
                )
            }
            ExceededLimit::Project => {
                let free = self.free_for_project(project, bounds.project_unfinished_max);
                InsertOutcome::ProjectFull(
                    self.promise(|promises| promises.promise_project_place(project, now_ms, free)),
                )
            }
        }
    }

    /// When there is room in the queue, which was full with `waiting_max` tasks.
    fn free_in_queue(&self, waiting_max: u64) -> FreePlaces {
        let board = self.board();
        FreePlaces {
            free: waiting_max.saturating_sub(board.waiting_count as u64),
            interval_ms: board.interval_ms() as u64,
        }
    }

    /// When the project may have one more task, of which it had `unfinished_max`: one of its tasks
    /// ends when each of the other projects has had a turn.
    fn free_for_project(&self, project: &str, unfinished_max: u64) -> FreePlaces {
        let board = self.board();
        FreePlaces {
            free: unfinished_max.saturating_sub(board.unfinished(project) as u64),
            interval_ms: (board.interval_ms() * board.projects() as f64) as u64,
        }
    }

    fn promise(&self, promise: impl FnOnce(&mut PlacePromises) -> RetryAfter) -> RetryAfter {
        let mut promises = lock(&self.promises);
        // Set under the lock: a submit that reads `false` comes before this promise.
        self.has_promises.store(true, Ordering::Release);
        promise(&mut promises)
    }

    fn board(&self) -> MutexGuard<'_, QueueBoard> {
        lock(&self.board)
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Maximum number of concurrent promises to one project in the shared queue.
const PER_PROJECT_MAX: usize = 4;
/// Maximum number of concurrent promises of a project's own places. More than in the shared queue: a
/// project that does not return delays only itself.
const OWN_MAX: usize = 256;
/// How long a promised place is kept for a late client, in milliseconds.
const GRACE_MS: u64 = 5_000;
/// Assumed time of an answer on its way, in milliseconds.
const LATENCY_MS: u64 = 500;
const AFTER_MAX_MS: u64 = RETRY_AFTER_SECONDS_MAX * 1000;

/// Promised places.
#[derive(Debug, Default)]
struct PlacePromises {
    /// Places in the shared queue, by due time.
    queue: Vec<QueuePromise>,
    /// Due times of each project's own places.
    own: HashMap<Arc<str>, Vec<UnixMs>>,
}

#[derive(Debug)]
struct QueuePromise {
    project: Arc<str>,
    due_ms: UnixMs,
}

impl PlacePromises {
    fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.own.is_empty()
    }

    /// Places of the queue that were promised to other projects before those of this one.
    fn reserved(&mut self, project: &str, now_ms: UnixMs) -> u64 {
        self.forget_past(now_ms);
        // Only promises that are due before its own first one: a project that has waited longest must not be
        // refused for the sake of those behind it. Without a promise, all others come first.
        let before = self.queue.iter().take_while(|one| &*one.project != project);
        before.count() as u64
    }

    /// Records that the project returned and was admitted.
    fn fulfil(&mut self, project: &str, now_ms: UnixMs) {
        self.forget_past(now_ms);
        if let Some(at) = self.queue.iter().position(|one| &*one.project == project) {
            self.queue.remove(at);
        }
        if let Some(own) = self.own.get_mut(project) {
            // The promise that is due first; the list is sorted and never empty.
            own.remove(0);
            if own.is_empty() {
                self.own.remove(project);
            }
        }
    }

    /// Promises the project a place in the queue.
    fn promise_queue_place(
        &mut self,
        project: &str,
        now_ms: UnixMs,
        vacancies: FreePlaces,
    ) -> RetryAfter {
        self.forget_past(now_ms);
        // A client that returned in time and is refused keeps its place before later promises.
        if let Some(at) = self
            .queue
            .iter()
            .position(|one| &*one.project == project && one.due_ms <= now_ms)
        {
            self.queue.remove(at);
            let due_ms = now_ms + vacancies.after_ms(at);
            return self.insert(project, due_ms, now_ms);
        }
        let owned = self.queue.iter().filter(|one| &*one.project == project);
        if owned.clone().count() >= PER_PROJECT_MAX {
            let last = owned.map(|one| one.due_ms).max().unwrap_or(now_ms);
            // It has its promises: further clients of the project get the time of the last one, and
            // share its places.
            return retry(last, now_ms);
        }
        let last_ms = self.queue.last().map(|one| one.due_ms);
        let due_ms = vacancies.due_ms(self.queue.len(), last_ms, now_ms);
        self.insert(project, due_ms, now_ms)
    }

    /// Promises one of the project's own places.
    fn promise_project_place(
        &mut self,
        project: &str,
        now_ms: UnixMs,
        vacancies: FreePlaces,
    ) -> RetryAfter {
        self.forget_past(now_ms);
        let own = self.own.entry(project.into()).or_default();
        // As in the shared queue: a client that returned in time keeps its place before later
        // promises.
        let late = own.iter().position(|due_ms| *due_ms <= now_ms);
        let ahead = match late {
            Some(at) => {
                own.remove(at);
                at
            }
            None => own.len(),
        };
        let last_ms = own.last().copied();
        if let Some(last_ms) = last_ms.filter(|_| own.len() >= OWN_MAX) {
            return retry(last_ms, now_ms);
        }
        let due_ms = match late {
            Some(_) => now_ms + vacancies.after_ms(ahead),
            None => vacancies.due_ms(ahead, last_ms, now_ms),
        };
        own.push(due_ms);
        own.sort_unstable();
        retry(due_ms, now_ms)
    }

    fn insert(&mut self, project: &str, due_ms: UnixMs, now_ms: UnixMs) -> RetryAfter {
        let project = project.into();
        self.queue.push(QueuePromise { project, due_ms });
        self.queue.sort_by_key(|one| one.due_ms);
        retry(due_ms, now_ms)
    }

    /// Drops promises that nobody used, and those by a clock that was set back since.
    fn forget_past(&mut self, now_ms: UnixMs) {
        // A promise is never due later than the largest Retry-After from its making. One that seems
        // to be was made before the clock was set back, and would reserve its place for hours.
        let holds = |due_ms: UnixMs| {
            due_ms.saturating_add(GRACE_MS) > now_ms && due_ms <= now_ms + AFTER_MAX_MS
        };
        self.queue.retain(|one| holds(one.due_ms));
        self.own.retain(|_, own| {
            own.retain(|due_ms| holds(*due_ms));
            !own.is_empty()
        });
    }
}

/// When places become free: some are by now, and the others follow at an interval.
#[derive(Clone, Copy, Debug)]
struct FreePlaces {
    /// Places that have become free since the refusal was decided.
    free: u64,
    /// Milliseconds from one further place to the next.
    interval_ms: u64,
}

impl FreePlaces {
    /// Milliseconds until there is room for one more than `ahead`, with a margin: a client that returns
    /// late gets in, and one that returns early is refused again.
    fn after_ms(self, ahead: usize) -> u64 {
        let places = (ahead as u64 + 1).saturating_sub(self.free);
        let expected = places.saturating_mul(self.interval_ms);
        // A fifth, since service times vary around their mean, and the time of the answer on its
        // way.
        let with_margin = expected.saturating_add(expected / 5) + LATENCY_MS;
        with_margin.min(AFTER_MAX_MS)
    }

    /// When there is room after `ahead` promised places, the last of them due at `last_ms`. That time
    /// comes from an older estimate, so the next place follows it at the usual interval.
    fn due_ms(self, ahead: usize, last_ms: Option<UnixMs>, now_ms: UnixMs) -> UnixMs {
        let not_before_ms = last_ms.map_or(0, |last_ms| last_ms + self.interval_ms);
        let latest_ms = now_ms + AFTER_MAX_MS;
        let due_ms = now_ms + self.after_ms(ahead);
        due_ms.max(not_before_ms).min(latest_ms)
    }
}

fn retry(due_ms: UnixMs, now_ms: UnixMs) -> RetryAfter {
    let millis = due_ms.saturating_sub(now_ms).max(1);
    RetryAfter { millis }
}

#[cfg(test)]
mod tests;
