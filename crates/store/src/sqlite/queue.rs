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
use promises::{Places, Promises};

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

    /// Promises a place in the queue, which was full with `waiting_max` tasks.
    pub(super) fn promise_place(
        &self,
        project: &str,
        now_ms: UnixMs,
        waiting_max: u64,
    ) -> RetryAfter {
        let forecast = self.present_forecast();
        let places = Places {
            free: waiting_max.saturating_sub(forecast.waiting as u64),
            later: &forecast.places,
        };
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
        let forecast = self.present_forecast();
        let ends = forecast.ends.get(project).map_or(&[][..], Vec::as_slice);
        let places = Places {
            free: unfinished_max.saturating_sub(ends.len() as u64),
            later: ends,
        };
        let mut promises = self.promises();
        self.promised.store(true, Ordering::Release);
        promises.of_project(project, now_ms, places)
    }

    /// A forecast whose times count from about now: positions stand while nothing changes, times go by.
    fn present_forecast(&self) -> Arc<Forecast> {
        let dated = self.forecast.read().unwrap_or_else(PoisonError::into_inner);
        if dated.is_old() {
            self.changed.store(true, Ordering::Release);
        }
        drop(dated);
        self.look(Clone::clone)
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
        self.forecast.waiting > SHORT && !self.is_old()
    }

    fn is_old(&self) -> bool {
        self.made.is_none_or(|made| made.elapsed() >= AGE_MAX)
    }
}

impl Forecast {
    fn ahead(&self, id: TaskId) -> Option<u64> {
        self.positions.get(&id).map(|ahead| u64::from(*ahead))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use kinora_contract::spec::SPEC_VERSION;
    use kinora_contract::{FrameSize, Inputs, Seconds, Size, State, Task, VideoSpec};

    use super::super::record::Held;
    use super::*;

    fn waiting_task() -> Record {
        let spec = VideoSpec {
            version: SPEC_VERSION,
            model: "model".to_owned(),
            prompt: "a boat".to_owned(),
            negative_prompt: None,
            seconds: Seconds::Fixed(5),
            frame: FrameSize::Fixed(Size::new(1280, 720)),
            seed: 1,
            generate_audio: false,
            inputs: Inputs::Text,
            draft: false,
            final_of: None,
            edit: None,
        };
        let task = Task {
            id: TaskId::from_parts(1, [1; 10]),
            project: "one".to_owned(),
            spec,
            metadata: BTreeMap::new(),
            state: State::Waiting,
            progress: 0,
            created_at_ms: 0,
            started_at_ms: None,
            finished_at_ms: None,
            expires_at_ms: None,
            attempt: 0,
            engine: None,
            warnings: Vec::new(),
        };
        Record::accepted(1, task)
    }

    #[test]
    fn the_end_of_a_task_comes_nearer_although_nothing_changes() {
        let queue = Queue::default();
        let waiting = waiting_task();
        let held = Held {
            token: 1,
            until_ms: 0,
            worker: String::new(),
        };
        let running = waiting.with(Some(held), |task| task.state = State::Running);
        queue.apply(&Change {
            id: running.task.id,
            before: Some(Arc::new(waiting)),
            after: Some(running),
        });
        let end_ms = || queue.present_forecast().ends["one"][0];
        let (first_ms, begun) = (end_ms(), Instant::now());
        while end_ms() >= first_ms {
            assert!(begun.elapsed() < Duration::from_secs(10), "{first_ms}");
            std::thread::yield_now();
        }
    }
}
