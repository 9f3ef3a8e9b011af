//! The queue in memory: waiting and running tasks, and their counts. It is a function of the
//! unfinished records: applying a change in reverse undoes it, so a failed transaction leaves no
//! trace. Only the memory of turns ([`Turns`]), and of tasks that wait to run alone, goes beyond
//! them.

mod lines;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use kinora_contract::lifecycle::{Record, References};
use kinora_contract::{LeaseMs, TaskId};

use super::{Change, QueuePlace, Share, Turns, alone};
use crate::{ClaimRequest, LongTasks};
use lines::{Lines, Spot};

/// All unfinished tasks.
#[derive(Debug, Default)]
pub(crate) struct Index {
    records: HashMap<TaskId, Arc<Record>>,
    running: HashSet<TaskId>,
    projects: HashMap<Arc<str>, Counts>,
    turns: Turns,
    /// Claimable tasks, by the turn of their project.
    claimable: Lines<u64>,
    /// Tasks whose references must be fetched.
    fetchable: Lines<FetchRank>,
    /// Paused fetches, by the end of their pause.
    away: BTreeSet<(LeaseMs, TaskId)>,
    waiting: u64,
    /// A task that waits for its worker to be empty.
    pub(crate) alone: Option<alone::Next>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    unfinished: u64,
    fetching: u64,
    /// The token of its last fetch: smaller means longer ago.
    last_fetch: u64,
}

/// Rank of a project for fetches: by its fetches in progress, then by its last turn.
type FetchRank = (u64, u64);

impl Index {
    /// For a store that reads only a part of the queue for each claim: no tasks, but the clocks of
    /// the projects and the tokens of their last fetches.
    pub(crate) fn part(
        turns: Turns,
        last_fetches: impl IntoIterator<Item = (Arc<str>, u64)>,
    ) -> Self {
        let counts = |last_fetch| Counts {
            last_fetch,
            ..Counts::default()
        };
        let last_fetches = last_fetches.into_iter();
        Self {
            turns,
            projects: last_fetches
                .map(|(project, token)| (project, counts(token)))
                .collect(),
            ..Self::default()
        }
    }

    /// The turns of the projects.
    pub(crate) const fn turns(&self) -> &Turns {
        &self.turns
    }

    /// All unfinished tasks.
    pub(crate) fn records(&self) -> impl Iterator<Item = &Arc<Record>> {
        self.records.values()
    }

    /// The unfinished task with this id.
    pub(crate) fn get(&self, id: TaskId) -> Option<&Arc<Record>> {
        self.records.get(&id)
    }

    /// Waiting tasks of all projects.
    pub(crate) const fn waiting(&self) -> u64 {
        self.waiting
    }

    /// Waiting and running tasks of a project.
    pub(crate) fn unfinished(&self, project: &str) -> u64 {
        self.counts(project).unfinished
    }

    /// All running tasks.
    pub(crate) fn running(&self) -> impl Iterator<Item = &Arc<Record>> {
        self.running.iter().filter_map(|id| self.records.get(id))
    }

    /// The task that waits for the requesting worker to be empty.
    pub(crate) fn awaiting(&self, request: &ClaimRequest) -> Option<&Arc<Record>> {
        self.get(self.alone.as_ref()?.awaits(request)?)
    }

    /// The task to claim next: the first one of the project whose turn it is, unless the project
    /// has reached its share of slots. A project whose first task is held back by `long`, or comes
    /// too early for the worker, waits with it: its tasks keep their order.
    pub(crate) fn next(
        &self,
        request: &ClaimRequest,
        long: Option<LongTasks>,
    ) -> Option<&Arc<Record>> {
        let (models, share) = (&request.models, Share::of(request));
        let runs = self.runs_of(&request.worker);
        let waits = |record: &Record| {
            long.is_some_and(|long| long.hold_back(record)) || alone::is_too_early(record, request)
        };
        let may = |project: &str, id: TaskId| {
            let others_wait = || self.claimable.others_wait(models, project);
            let running = runs.get(project).copied().unwrap_or(0);
            let has_share = share.allows(running, others_wait);
            has_share && !self.records.get(&id).is_some_and(|record| waits(record))
        };
        self.records.get(&self.claimable.next(models, may)?)
    }

    /// Number of tasks of each project that this worker runs.
    fn runs_of(&self, worker: &str) -> HashMap<&str, u64> {
        let mut runs = HashMap::new();
        for record in self.running() {
            if record
                .lease
                .as_ref()
                .is_some_and(|lease| lease.worker == worker)
            {
                *runs.entry(&*record.task.project).or_default() += 1;
            }
        }
        runs
    }

    /// The next task whose references must be fetched.
    pub(crate) fn next_fetch(&self, models: &[String], project_max: usize) -> Option<&Arc<Record>> {
        let may = |project: &str, _| self.counts(project).fetching < project_max as u64;
        self.records.get(&self.fetchable.next(models, may)?)
    }

    /// Up to `limit` tasks whose pause before the next fetch has ended at `lease_ms`.
    pub(crate) fn back(&self, lease_ms: LeaseMs, limit: usize) -> Vec<Arc<Record>> {
        let due = self.away.iter();
        let due = due.take_while(|(until, _)| *until <= lease_ms);
        due.filter_map(|(_, id)| self.records.get(id))
            .take(limit)
            .cloned()
            .collect()
    }

    /// Applies a change.
    pub(crate) fn apply(&mut self, change: &Change) {
        self.follow(change, |turns, project| turns.apply(project, change));
    }

    /// Reverts the last change.
    pub(crate) fn undo(&mut self, change: &Change) {
        let back = Change {
            id: change.id,
            before: change.after.clone(),
            after: change.before.clone(),
        };
        self.follow(&back, |turns, project| turns.undo(project, change));
    }

    fn follow(&mut self, change: &Change, take_turn: impl FnOnce(&mut Turns, &Arc<str>)) {
        let (before, after) = (&change.before, &change.after);
        let Some(record) = before.as_ref().or(after.as_ref()) else {
            return;
        };
        let project = self.key(&record.task.project);
        let ranks = self.ranks(&project);
        let old = before.as_ref().filter(|record| !record.is_terminal());
        let new = after.as_ref().filter(|record| !record.is_terminal());
        if let Some(record) = old {
            self.leave(record, &project, ranks);
            self.count(record, &project, -1);
        }
        if let Some(record) = new {
            self.count(record, &project, 1);
        }
        if self.counts(&project).unfinished == 0 {
            self.projects.remove(&project);
        }
        take_turn(&mut self.turns, &project);
        let moved = self.ranks(&project);
        self.claimable.rerank(&project, ranks.0, moved.0);
        self.fetchable.rerank(&project, ranks.1, moved.1);
        if let Some(record) = new {
            self.join(record, &project, moved);
        }
        self.turns
            .forget_past(|project| self.projects.contains_key(project));
    }

    fn counts(&self, project: &str) -> Counts {
        self.projects.get(project).copied().unwrap_or_default()
    }

    /// The project's name, shared if it is known.
    fn key(&self, project: &str) -> Arc<str> {
        let known = self.projects.get_key_value(project);
        known.map_or_else(|| project.into(), |(key, _)| key.clone())
    }

    fn ranks(&self, project: &str) -> (u64, FetchRank) {
        let counts = self.counts(project);
        let turn = self.turns.of(project);
        (turn, (counts.fetching, counts.last_fetch))
    }

    fn count(&mut self, record: &Record, project: &Arc<str>, by: i64) {
        let counts = self.projects.entry(project.clone()).or_default();
        let add = |count: &mut u64, counts: bool| {
            *count = count.saturating_add_signed(if counts { by } else { 0 });
        };
        add(&mut counts.unfinished, true);
        if let Some(token) = record.references.fetch().filter(|_| record.is_waiting()) {
            add(&mut counts.fetching, true);
            counts.last_fetch = counts.last_fetch.max(token);
        }
    }

    fn join(&mut self, record: &Arc<Record>, project: &Arc<str>, ranks: (u64, FetchRank)) {
        let id = record.task.id;
        self.records.insert(id, record.clone());
        if record.is_running() {
            self.running.insert(id);
            return;
        }
        self.waiting += 1;
        let spot = spot(record, project);
        match record.references {
            References::AtHand => self.claimable.join(spot, ranks.0, id),
            References::Wanted { .. } => self.fetchable.join(spot, ranks.1, id),
            References::Away { until_ms, .. } => {
                self.away.insert((until_ms, id));
            }
        }
    }

    fn leave(&mut self, record: &Arc<Record>, project: &Arc<str>, ranks: (u64, FetchRank)) {
        let id = record.task.id;
        self.records.remove(&id);
        if self.running.remove(&id) {
            return;
        }
        self.waiting -= 1;
        let spot = spot(record, project);
        match record.references {
            References::AtHand => self.claimable.leave(spot, ranks.0),
            References::Wanted { .. } => self.fetchable.leave(spot, ranks.1),
            References::Away { until_ms, .. } => {
                self.away.remove(&(until_ms, id));
            }
        }
    }
}

fn spot<'a>(record: &'a Record, project: &'a Arc<str>) -> Spot<'a> {
    Spot {
        model: &record.task.spec.model,
        project,
        place: QueuePlace::of(record),
    }
}
