//! Estimates for clients: the position of a waiting task, and the time to return after a refusal. Both
//! follow a simple rule and are accurate within a factor of two:
//!
//! - **`queue_position`**: the number of tasks that start before this one if the projects take turns
//!   as the queue does ([`QueueBoard`]);
//! - **`Retry-After`** of a full queue: the mean service time of a task, times the tasks that must
//!   start before there is a place, over the number of slots; of a full project, times the projects
//!   that take turns with it. Clients that were refused before wait for the places before it
//!   ([`PlacePromises`]).
//!
//! An example: 2 slots, tasks of 10 s, a queue that is full with 100 waiting tasks, 3 clients refused
//! before. The fourth place becomes free after 4 x 10 s / 2 = 20 s, and `Retry-After` is 25 s: the same
//! with a margin for the client's own delays, in whole seconds.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kinora_contract::lifecycle::TaskRecord;
use kinora_contract::limits::RETRY_AFTER_SECONDS_MAX;
use kinora_contract::{Clock, TaskId, TaskState, UnixMs};

use super::change::{QueuePlace, RecordChange};
use super::turns::ProjectTurns;
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

/// Milliseconds per cost unit until a task is measured: the storyboard engine on a small machine.
const MS_PER_COST: f64 = 50.0;
/// Weight of the latest task in the moving average.
const NEWEST: f64 = 0.3;
/// Minimum progress of a running task for an estimate of its whole time.
const TELLING_PERCENT: u8 = 5;
/// Maximum number of sets of models that are claimed together; further ones are merged.
const GROUPS_MAX: usize = 64;
/// Maximum number of positions in each group; those further back are unknown.
pub(crate) const POSITIONS_MAX: u64 = 1_000;

/// The committed unfinished tasks, reduced to the data that an estimate needs, and the measured
/// service time of each model. It follows changes; it decides nothing, and may be slightly wrong.
#[derive(Debug, Default)]
struct QueueBoard {
    waiting: HashMap<Arc<str>, BTreeMap<QueuePlace, WaitingEstimate>>,
    waiting_count: usize,
    /// Number of waiting tasks for each model.
    waiting_for: HashMap<String, usize>,
    running: HashMap<TaskId, RunningEstimate>,
    turns: ProjectTurns,
    /// Slots of the workers that claim; 0 before the first claim.
    slots: usize,
    /// Sets of models that workers claim together; tasks of other models are claimed with all
    /// others.
    groups: Vec<Vec<String>>,
    ms_per_cost: HashMap<String, f64>,
}

#[derive(Debug)]
struct WaitingEstimate {
    id: TaskId,
    model: String,
    cost: u64,
    claimable: bool,
}

#[derive(Debug)]
struct RunningEstimate {
    project: Arc<str>,
    model: String,
    cost: u64,
    since: Duration,
    /// The last report, and its time.
    progress: (u8, Duration),
}

/// The unfinished tasks, as a store has read them.
#[derive(Debug)]
pub(crate) struct QueueSnapshot {
    pub(crate) waiting: Vec<WaitingEntry>,
    pub(crate) running: Vec<RunningEntry>,
    pub(crate) turns: ProjectTurns,
}

/// A waiting task of a [`QueueSnapshot`].
#[derive(Debug)]
pub(crate) struct WaitingEntry {
    pub(crate) id: TaskId,
    pub(crate) project: Arc<str>,
    pub(crate) place: QueuePlace,
    pub(crate) model: String,
    pub(crate) cost: u64,
    pub(crate) claimable: bool,
}

/// A running task of a [`QueueSnapshot`].
#[derive(Debug)]
pub(crate) struct RunningEntry {
    pub(crate) id: TaskId,
    pub(crate) project: Arc<str>,
    pub(crate) model: String,
    pub(crate) cost: u64,
    pub(crate) progress: u8,
}

impl QueueBoard {
    /// Applies a change; returns whether positions may differ.
    fn apply(&mut self, change: &RecordChange, now: Duration) -> bool {
        let [old, new] = [&change.before, &change.after]
            .map(|record| record.as_ref().filter(|record| !record.is_terminal()));
        let Some(record) = old.or(new) else {
            return false;
        };
        if let (Some(old), Some(new)) = (old, new)
            && old.is_running()
            && old.token() == new.token()
        {
            // A renewal: the task keeps its run, so no position moves.
            self.report(new, now);
            return false;
        }
        // Share the name with the project's other tasks; a long queue has thousands of tasks of few
        // projects.
        let known = self.waiting.get_key_value(&*record.task.project);
        let project = known.map_or_else(|| (&*record.task.project).into(), |(key, _)| key.clone());
        if let Some(old) = old {
            self.leave(old, change.after.as_deref(), now);
        }
        self.turns.apply(&project, change);
        if let Some(new) = new {
            self.join(new, &project, now);
        }
        self.turns
            .forget_past(|project| self.waiting.contains_key(project));
        true
    }

    /// Replaces all tasks by those of `snapshot`. Known runs continue unchanged.
    fn replace(&mut self, snapshot: QueueSnapshot, now: Duration) {
        // Runs keep their start times: a snapshot does not have them, and measured service times
        // and predictions by progress need them.
        let mut known = std::mem::take(&mut self.running);
        self.waiting.clear();
        self.waiting_for.clear();
        self.waiting_count = 0;
        self.turns = snapshot.turns;
        for one in snapshot.running {
            let running = known.remove(&one.id);
            let mut running = running
                .unwrap_or_else(|| RunningEstimate::started(one.project, one.model, one.cost, now));
            // The time of the report is unknown; the first snapshot that shows it is close enough.
            if one.progress > running.progress.0 {
                running.progress = (one.progress, now);
            }
            self.running.insert(one.id, running);
        }
        for one in snapshot.waiting {
            let task = WaitingEstimate {
                id: one.id,
                model: one.model,
                cost: one.cost,
                claimable: one.claimable,
            };
            self.wait(one.project, one.place, task);
        }
    }

    /// Learns how workers claim; returns whether that is new.
    fn learn(&mut self, models: &[String], slots: usize) -> bool {
        self.slots = slots;
        let is_new = !self.groups.iter().any(|group| group == models);
        // Every restart with another configuration adds a group, and each group costs a replay:
        // bounded.
        if is_new && self.groups.len() < GROUPS_MAX {
            self.groups.push(models.to_vec());
            return true;
        }
        false
    }

    /// How many tasks start before each waiting one, by the order of turns: the projects' clocks
    /// advance by the cost of each start, and the one that is furthest behind is next
    /// ([`super::turns`]). Shares of slots, held-back long tasks and loaded models are left
    /// out. A task whose references are in transit delays nobody.
    fn positions(&self) -> HashMap<TaskId, u64> {
        let mut positions = HashMap::new();
        for group in &self.groups {
            self.line_up(|model| group.iter().any(|one| one == model), &mut positions);
        }
        // Models that no worker has asked for yet.
        self.line_up(
            |model| !self.groups.iter().flatten().any(|one| one == model),
            &mut positions,
        );
        positions
    }

    fn line_up(&self, has: impl Fn(&str) -> bool, positions: &mut HashMap<TaskId, u64>) {
        // Most groups have no waiting task. Do not search a long queue for each of them.
        if !self.waiting_for.keys().any(|model| has(model)) {
            return;
        }
        let mut turns = self.turns.clone();
        let mut lines: Vec<_> = self
            .waiting
            .iter()
            .map(|(project, tasks)| {
                let own = tasks.iter().filter(|(_, task)| has(&task.model));
                (project, own.peekable())
            })
            .collect();
        // Replays the claims to come on a copy of the clocks. The heap holds the first task of each
        // project; taking the smallest, charging its cost and putting the project's next task back
        // is one claim. The cost is one heap operation a task, not one search of all projects.
        let mut heads = BinaryHeap::new();
        for (at, (project, line)) in lines.iter_mut().enumerate() {
            if let Some((place, _)) = line.peek() {
                heads.push(Reverse((turns.position(project), place.seq, at)));
            }
        }
        let mut ahead = 0;
        while let Some(Reverse((.., at))) = heads.pop() {
            let (project, line) = &mut lines[at];
            let Some((_, task)) = line.next() else {
                continue;
            };
            positions.insert(task.id, ahead);
            // A task whose references are in transit has a position but delays nobody: others pass
            // it.
            if task.claimable {
                ahead += 1;
                turns.charge(project, task.cost);
            }
            if ahead == POSITIONS_MAX {
                return;
            }
            if let Some((place, _)) = line.peek() {
                heads.push(Reverse((turns.position(project), place.seq, at)));
            }
        }
    }

    /// Waiting and running tasks of a project.
    fn unfinished(&self, project: &str) -> usize {
        let running = self.running.values();
        let running = running.filter(|one| &*one.project == project).count();
        running + self.waiting.get(project).map_or(0, BTreeMap::len)
    }

    /// Number of projects with unfinished tasks, at least 1.
    fn projects(&self) -> usize {
        let running = self.running.values().map(|one| &one.project);
        let mut others: Vec<_> = running
            .filter(|project| !self.waiting.contains_key(*project))
            .collect();
        others.sort_unstable();
        others.dedup();
        (self.waiting.len() + others.len()).max(1)
    }

    /// Milliseconds between two starts: the mean service time of the running tasks, or of the first
    /// waiting one of each project, over the slots.
    fn interval_ms(&self) -> f64 {
        let running = self.running.values().map(|one| (&*one.model, one.cost));
        // Running tasks are the best sample of the mix that holds the slots now. Without any, the
        // tasks that start next stand for it.
        let mut works: Vec<(&str, u64)> = running.collect();
        if works.is_empty() {
            let heads = self.waiting.values().filter_map(BTreeMap::first_key_value);
            works.extend(heads.map(|(_, task)| (&*task.model, task.cost)));
        }
        let times = works
            .iter()
            .map(|(model, cost)| *cost as f64 * self.rate(model));
        times.sum::<f64>() / works.len().max(1) as f64 / self.slots.max(1) as f64
    }

    /// Milliseconds per cost unit of a model: measured, or predicted from the progress of its first tasks.
    fn rate(&self, model: &str) -> f64 {
        if let Some(measured) = self.ms_per_cost.get(model) {
            return *measured;
        }
        // Before a model's first task has ended: the slowest of the present runs, which errs on the
        // side of a later return.
        let of_model = self.running.values().filter(|one| one.model == model);
        let told = of_model.filter_map(|one| Some(one.whole_ms()? / one.cost.max(1) as f64));
        told.reduce(f64::max).unwrap_or(MS_PER_COST)
    }

    fn join(&mut self, record: &TaskRecord, project: &Arc<str>, now: Duration) {
        let (id, spec) = (record.task.id, &record.task.spec);
        if record.is_running() {
            let running =
                RunningEstimate::started(project.clone(), spec.model.clone(), spec.cost(), now);
            self.running.insert(id, running);
            return;
        }
        let task = WaitingEstimate {
            id,
            model: spec.model.clone(),
            cost: spec.cost(),
            claimable: record.is_claimable(),
        };
        self.wait(project.clone(), QueuePlace::from_record(record), task);
    }

    fn wait(&mut self, project: Arc<str>, place: QueuePlace, task: WaitingEstimate) {
        self.waiting_count += 1;
        // Look up first: the name is copied only for a model's first waiting task.
        match self.waiting_for.get_mut(&task.model) {
            Some(count) => *count += 1,
            None => drop(self.waiting_for.insert(task.model.clone(), 1)),
        }
        self.waiting.entry(project).or_default().insert(place, task);
    }

    fn leave(&mut self, record: &TaskRecord, after: Option<&TaskRecord>, now: Duration) {
        if let Some(running) = self.running.remove(&record.task.id) {
            // Only a completed run says how long a task takes; failed and cancelled ones end early.
            if after.is_some_and(|after| matches!(after.task.state, TaskState::Completed(_))) {
                self.measure(&running, now);
            }
            return;
        }
        let project = &*record.task.project;
        if let Some(tasks) = self.waiting.get_mut(project)
            && let Some(task) = tasks.remove(&QueuePlace::from_record(record))
        {
            if tasks.is_empty() {
                self.waiting.remove(project);
            }
            self.waiting_count -= 1;
            if let Some(count) = self.waiting_for.get_mut(&task.model) {
                *count -= 1;
                if *count == 0 {
                    self.waiting_for.remove(&task.model);
                }
            }
        }
    }

    fn report(&mut self, record: &TaskRecord, now: Duration) {
        if let Some(running) = self.running.get_mut(&record.task.id)
            && record.task.progress > running.progress.0
        {
            running.progress = (record.task.progress, now);
        }
    }

    fn measure(&mut self, running: &RunningEstimate, now: Duration) {
        let took_ms = now.saturating_sub(running.since).as_secs_f64() * 1000.0;
        let rate = took_ms / running.cost.max(1) as f64;
        let average = self.ms_per_cost.entry(running.model.clone());
        average
            .and_modify(|average| *average += (rate - *average) * NEWEST)
            .or_insert(rate);
    }
}

impl RunningEstimate {
    fn started(project: Arc<str>, model: String, cost: u64, now: Duration) -> Self {
        Self {
            project,
            model,
            cost,
            since: now,
            progress: (0, now),
        }
    }

    /// Predicted duration of the whole run in milliseconds, by its progress.
    fn whole_ms(&self) -> Option<f64> {
        let (percent, at) = self.progress;
        let until_ms = at.saturating_sub(self.since).as_secs_f64() * 1000.0;
        (percent >= TELLING_PERCENT).then(|| until_ms * 100.0 / f64::from(percent))
    }
}

#[cfg(test)]
mod tests;
