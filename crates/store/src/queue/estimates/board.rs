//! The committed unfinished tasks, reduced to the data that an estimate needs, and the measured
//! service time of each model. It follows changes; it decides nothing, and may be slightly wrong.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use kinora_contract::lifecycle::TaskRecord;
use kinora_contract::{TaskId, TaskState};

use super::super::change::{QueuePlace, RecordChange};
use super::super::turns::ProjectTurns;

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

/// Unfinished tasks.
#[derive(Debug, Default)]
pub(super) struct QueueBoard {
    waiting: HashMap<Arc<str>, BTreeMap<QueuePlace, WaitingEstimate>>,
    pub(super) waiting_count: usize,
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
    pub(super) fn apply(&mut self, change: &RecordChange, now: Duration) -> bool {
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
    pub(super) fn replace(&mut self, snapshot: QueueSnapshot, now: Duration) {
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
    pub(super) fn learn(&mut self, models: &[String], slots: usize) -> bool {
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
    /// ([`super::super::turns`]). Shares of slots, held-back long tasks and loaded models are left
    /// out. A task whose references are in transit delays nobody.
    pub(super) fn positions(&self) -> HashMap<TaskId, u64> {
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
    pub(super) fn unfinished(&self, project: &str) -> usize {
        let running = self.running.values();
        let running = running.filter(|one| &*one.project == project).count();
        running + self.waiting.get(project).map_or(0, BTreeMap::len)
    }

    /// Number of projects with unfinished tasks, at least 1.
    pub(super) fn projects(&self) -> usize {
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
    pub(super) fn interval_ms(&self) -> f64 {
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
