//! The committed unfinished tasks, reduced to the data that a forecast needs, and the measured
//! service time of each model.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use kinora_contract::lifecycle::Record;
use kinora_contract::{State, TaskId};

use super::super::change::Change;
use super::super::place::QueuePlace;
use super::super::share::Share;
use super::super::turns::Turns;

/// Milliseconds per cost unit until a task is measured: the storyboard engine on a small machine.
const MS_PER_COST: f64 = 50.0;
/// Weight of the latest task in the moving average.
const NEWEST: f64 = 0.3;
/// Minimum progress of a running task for an estimate of its remaining time.
const TELLING_PERCENT: u8 = 5;
/// Maximum number of sets of models that are claimed together; further ones are merged.
const GROUPS_MAX: usize = 64;

/// Unfinished tasks.
#[derive(Debug)]
pub(super) struct Board {
    pub(super) waiting: HashMap<Arc<str>, BTreeMap<QueuePlace, Waiting>>,
    pub(super) waiting_count: usize,
    /// Of these, the tasks whose references are not stored.
    pub(super) unready_count: usize,
    /// Number of waiting tasks for each model.
    pub(super) waiting_for: HashMap<String, usize>,
    pub(super) running: HashMap<TaskId, Running>,
    pub(super) turns: Turns,
    pub(super) share: Share,
    /// Sets of models that workers claim together; tasks of other models are claimed with all
    /// others.
    pub(super) groups: Vec<Vec<String>>,
    ms_per_cost: HashMap<String, f64>,
}

/// A waiting task.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) id: TaskId,
    pub(super) model: String,
    pub(super) cost: u64,
    pub(super) claimable: bool,
}

/// A running task.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) project: Arc<str>,
    pub(super) model: String,
    pub(super) cost: u64,
    since: Duration,
    /// The last report, and its time.
    progress: (u8, Duration),
}

/// The unfinished tasks, as a store has read them.
#[derive(Debug)]
pub(crate) struct Picture {
    pub(crate) waiting: Vec<Waits>,
    pub(crate) running: Vec<Runs>,
    pub(crate) turns: Turns,
}

/// A waiting task of a [`Picture`].
#[derive(Debug)]
pub(crate) struct Waits {
    pub(crate) id: TaskId,
    pub(crate) project: Arc<str>,
    pub(crate) place: QueuePlace,
    pub(crate) model: String,
    pub(crate) cost: u64,
    pub(crate) claimable: bool,
}

/// A running task of a [`Picture`].
#[derive(Debug)]
pub(crate) struct Runs {
    pub(crate) id: TaskId,
    pub(crate) project: Arc<str>,
    pub(crate) model: String,
    pub(crate) cost: u64,
    pub(crate) progress: u8,
}

impl Default for Board {
    fn default() -> Self {
        Self {
            waiting: HashMap::new(),
            waiting_count: 0,
            unready_count: 0,
            waiting_for: HashMap::new(),
            running: HashMap::new(),
            turns: Turns::default(),
            share: Share {
                slots: 1,
                project_max: 0,
                long_over: None,
            },
            groups: Vec::new(),
            ms_per_cost: HashMap::new(),
        }
    }
}

impl Board {
    /// Applies a change; returns whether the coming turns may differ.
    pub(super) fn apply(&mut self, change: &Change, now: Duration) -> bool {
        let old = change
            .before
            .as_ref()
            .filter(|record| !record.is_terminal());
        let new = change.after.as_ref().filter(|record| !record.is_terminal());
        let Some(record) = old.or(new) else {
            return false;
        };
        if let (Some(old), Some(new)) = (old, new)
            && old.is_running()
            && old.token() == new.token()
        {
            self.report(new, now);
            return false;
        }
        let project = self.key(&record.task.project);
        if let Some(old) = old {
            self.leave(old, &project, change.after.as_deref(), now);
        }
        self.turns.apply(&project, change);
        if let Some(new) = new {
            self.join(new, &project, now);
        }
        self.turns
            .forget_past(|project| self.waiting.contains_key(project));
        true
    }

    /// Replaces all tasks by those of `picture`. Known runs continue unchanged.
    pub(super) fn show(&mut self, picture: Picture, now: Duration) {
        let mut known = std::mem::take(&mut self.running);
        self.waiting.clear();
        self.waiting_for.clear();
        (self.waiting_count, self.unready_count) = (0, 0);
        self.turns = picture.turns;
        for one in picture.running {
            let new = Running {
                project: one.project,
                model: one.model,
                cost: one.cost,
                since: now,
                progress: (0, now),
            };
            let mut running = known.remove(&one.id).unwrap_or(new);
            if one.progress > running.progress.0 {
                running.progress = (one.progress, now);
            }
            self.running.insert(one.id, running);
        }
        for one in picture.waiting {
            let waiting = Waiting {
                id: one.id,
                model: one.model,
                cost: one.cost,
                claimable: one.claimable,
            };
            self.wait(one.project, one.place, waiting);
        }
    }

    /// Learns how workers claim; returns whether that is new.
    pub(super) fn learn(&mut self, models: &[String], share: Share) -> bool {
        let mut news = self.share != share;
        self.share = share;
        if !self.groups.iter().any(|group| group == models) && self.groups.len() < GROUPS_MAX {
            self.groups.push(models.to_vec());
            news = true;
        }
        news
    }

    /// Total milliseconds of a task with this cost.
    pub(super) fn service_ms(&self, model: &str, cost: u64) -> f64 {
        cost as f64 * self.rate(model)
    }

    /// Milliseconds until a running task ends, by its progress if that is conclusive.
    pub(super) fn remaining_ms(&self, running: &Running, now: Duration) -> f64 {
        let since = |at: Duration| now.saturating_sub(at).as_secs_f64() * 1000.0;
        let total = running
            .whole_ms()
            .unwrap_or_else(|| self.service_ms(&running.model, running.cost));
        // An overdue task ends soon, but not immediately.
        (total - since(running.since)).max(total / 20.0)
    }

    fn rate(&self, model: &str) -> f64 {
        if let Some(measured) = self.ms_per_cost.get(model) {
            return *measured;
        }
        let of_model = self.running.values().filter(|one| one.model == model);
        let told = of_model.filter_map(|one| Some(one.whole_ms()? / one.cost as f64));
        told.fold(None, |most: Option<f64>, rate| {
            Some(most.map_or(rate, |most| most.max(rate)))
        })
        .unwrap_or(MS_PER_COST)
    }

    /// The project's name, shared if it is known.
    fn key(&self, project: &str) -> Arc<str> {
        let known = self.waiting.get_key_value(project);
        known.map_or_else(|| project.into(), |(key, _)| key.clone())
    }

    fn join(&mut self, record: &Record, project: &Arc<str>, now: Duration) {
        let spec = &record.task.spec;
        if record.is_running() {
            let running = Running {
                project: project.clone(),
                model: spec.model.clone(),
                cost: spec.cost(),
                since: now,
                progress: (0, now),
            };
            self.running.insert(record.task.id, running);
            return;
        }
        let waiting = Waiting {
            id: record.task.id,
            model: spec.model.clone(),
            cost: spec.cost(),
            claimable: record.is_claimable(),
        };
        self.wait(project.clone(), QueuePlace::of(record), waiting);
    }

    fn wait(&mut self, project: Arc<str>, place: QueuePlace, waiting: Waiting) {
        self.waiting_count += 1;
        self.unready_count += usize::from(!waiting.claimable);
        match self.waiting_for.get_mut(&waiting.model) {
            Some(count) => *count += 1,
            None => drop(self.waiting_for.insert(waiting.model.clone(), 1)),
        }
        let tasks = self.waiting.entry(project).or_default();
        tasks.insert(place, waiting);
    }

    fn leave(
        &mut self,
        record: &Record,
        project: &Arc<str>,
        after: Option<&Record>,
        now: Duration,
    ) {
        if let Some(running) = self.running.remove(&record.task.id) {
            if after.is_some_and(|after| matches!(after.task.state, State::Completed(_))) {
                self.measure(&running, now);
            }
            return;
        }
        if let Some(tasks) = self.waiting.get_mut(project)
            && let Some(task) = tasks.remove(&QueuePlace::of(record))
        {
            if tasks.is_empty() {
                self.waiting.remove(project);
            }
            self.waiting_count -= 1;
            self.unready_count -= usize::from(!task.claimable);
            if let Some(count) = self.waiting_for.get_mut(&task.model) {
                *count -= 1;
                if *count == 0 {
                    self.waiting_for.remove(&task.model);
                }
            }
        }
    }

    fn report(&mut self, record: &Record, now: Duration) {
        if let Some(running) = self.running.get_mut(&record.task.id)
            && record.task.progress > running.progress.0
        {
            running.progress = (record.task.progress, now);
        }
    }

    fn measure(&mut self, running: &Running, now: Duration) {
        let took_ms = now.saturating_sub(running.since).as_secs_f64() * 1000.0;
        let rate = took_ms / running.cost.max(1) as f64;
        let average = self.ms_per_cost.entry(running.model.clone());
        average
            .and_modify(|average| *average += (rate - *average) * NEWEST)
            .or_insert(rate);
    }
}

impl Running {
    /// Its total milliseconds, by its progress.
    fn whole_ms(&self) -> Option<f64> {
        let (percent, at) = self.progress;
        let until = at.saturating_sub(self.since).as_secs_f64() * 1000.0;
        (percent >= TELLING_PERCENT).then(|| until * 100.0 / f64::from(percent))
    }
}
