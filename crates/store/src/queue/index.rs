//! The queue in memory: waiting and running tasks, and their counts. It is a function of the
//! unfinished records: applying a change in reverse undoes it, so a failed transaction leaves no
//! trace. Only the clocks of [`ProjectTurns`] and the task that waits to run alone are state of their own.
//!
//! Waiting tasks are in [`ModelLines`]: for each model, the projects by rank, and the tasks of each project
//! by place. So the next task is found among the heads of a few lines, not among all tasks.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt::Debug;
use std::sync::Arc;

use kinora_contract::lifecycle::{ReferenceState, TaskRecord};
use kinora_contract::{LeaseMs, TaskId};

use super::change::{QueuePlace, RecordChange};
use super::claiming;
use super::turns::{ProjectTurns, SlotShare};
use crate::{ClaimRequest, LongTasks};

/// All unfinished tasks.
#[derive(Debug, Default)]
pub(crate) struct QueueIndex {
    records: HashMap<TaskId, Arc<TaskRecord>>,
    running: HashSet<TaskId>,
    projects: HashMap<Arc<str>, ProjectCounts>,
    turns: ProjectTurns,
    /// Claimable tasks, by the turn of their project.
    claimable: ModelLines<u64>,
    /// Tasks whose references must be fetched.
    fetchable: ModelLines<FetchRank>,
    /// Paused fetches, by the end of their pause.
    away: BTreeSet<(LeaseMs, TaskId)>,
    waiting: u64,
    /// A task that waits for its worker to be empty.
    pub(crate) alone: Option<claiming::WaitingAlone>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ProjectCounts {
    unfinished: u64,
    fetching: u64,
    /// The token of its last fetch: smaller means longer ago.
    last_fetch: u64,
}

/// Rank of a project for fetches: by its fetches in progress, then by its last turn.
type FetchRank = (u64, u64);

impl QueueIndex {
    /// For a store that reads only a part of the queue for each claim: no tasks, but the clocks of
    /// the projects and the tokens of their last fetches.
    pub(crate) fn partial(
        turns: ProjectTurns,
        last_fetches: impl IntoIterator<Item = (Arc<str>, u64)>,
    ) -> Self {
        let projects = last_fetches.into_iter().map(|(project, last_fetch)| {
            let counts = ProjectCounts {
                last_fetch,
                ..ProjectCounts::default()
            };
            (project, counts)
        });
        Self {
            turns,
            projects: projects.collect(),
            ..Self::default()
        }
    }

    /// The turns of the projects.
    pub(crate) const fn turns(&self) -> &ProjectTurns {
        &self.turns
    }

    /// All unfinished tasks.
    pub(crate) fn records(&self) -> impl Iterator<Item = &Arc<TaskRecord>> {
        self.records.values()
    }

    /// The unfinished task with this id.
    pub(crate) fn get(&self, id: TaskId) -> Option<&Arc<TaskRecord>> {
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
    pub(crate) fn running(&self) -> impl Iterator<Item = &Arc<TaskRecord>> {
        self.running.iter().filter_map(|id| self.records.get(id))
    }

    /// The task that waits for the requesting worker to be empty.
    pub(crate) fn awaiting(&self, request: &ClaimRequest) -> Option<&Arc<TaskRecord>> {
        self.get(self.alone.as_ref()?.awaits(request)?)
    }

    /// The task to claim next: the first one of the project whose turn it is, unless the project
    /// has reached its share of slots. A project whose first task is held back by `long`, or comes
    /// too early for the worker, waits with it: its tasks keep their order.
    pub(crate) fn next(
        &self,
        request: &ClaimRequest,
        long: Option<LongTasks>,
    ) -> Option<&Arc<TaskRecord>> {
        let (models, share) = (&request.models, SlotShare::from_request(request));
        let runs = self.worker_runs(&request.worker);
        let next = self.claimable.next(models, |project, id| {
            let running = runs.get(project).copied().unwrap_or(0);
            if !share.allows(running, || self.claimable.others_wait(models, project)) {
                return false;
            }
            // The project waits with its first task. If it took a later one instead, short tasks could
            // pass a long one for ever.
            !self.records.get(&id).is_some_and(|record| {
                long.is_some_and(|long| long.holds_back(record))
                    || claiming::is_too_early(record, request)
            })
        });
        self.records.get(&next?)
    }

    /// Number of tasks of each project that this worker runs.
    fn worker_runs(&self, worker: &str) -> HashMap<&str, u64> {
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
    pub(crate) fn next_fetch(
        &self,
        models: &[String],
        project_max: usize,
    ) -> Option<&Arc<TaskRecord>> {
        let next = self.fetchable.next(models, |project, _| {
            self.counts(project).fetching < project_max as u64
        });
        self.records.get(&next?)
    }

    /// Up to `limit` tasks whose pause before the next fetch has ended at `lease_ms`.
    pub(crate) fn due_fetches(&self, lease_ms: LeaseMs, limit: usize) -> Vec<Arc<TaskRecord>> {
        self.away
            .iter()
            .take_while(|(until, _)| *until <= lease_ms)
            .filter_map(|(_, id)| self.records.get(id))
            .take(limit)
            .cloned()
            .collect()
    }

    /// Applies a change.
    pub(crate) fn apply(&mut self, change: &RecordChange) {
        self.follow(change, |turns, project| turns.apply(project, change));
    }

    /// Reverts the last change.
    pub(crate) fn undo(&mut self, change: &RecordChange) {
        let back = RecordChange {
            id: change.id,
            before: change.after.clone(),
            after: change.before.clone(),
        };
        self.follow(&back, |turns, project| turns.undo(project, change));
    }

    /// Replaces the record before a change by the one after it, in every line and count. The turns are
    /// charged in between by `take_turn`, since undoing a charge is not charging in reverse.
    fn follow(
        &mut self,
        change: &RecordChange,
        take_turn: impl FnOnce(&mut ProjectTurns, &Arc<str>),
    ) {
        let (before, after) = (&change.before, &change.after);
        let Some(record) = before.as_ref().or(after.as_ref()) else {
            return;
        };
        let project = self.key(&record.task.project);
        // The lines sort projects by rank, and a change moves the rank of its project. So: take the
        // record out under the old rank, count it and charge the turn, move the project's other
        // tasks to the new rank, and put the record in there.
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
        // The entry also remembers the project's last fetch; a project without tasks has lost its
        // claim to a turn anyway.
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

    fn counts(&self, project: &str) -> ProjectCounts {
        self.projects.get(project).copied().unwrap_or_default()
    }

    /// The project's name, shared if it is known.
    fn key(&self, project: &str) -> Arc<str> {
        let known = self.projects.get_key_value(project);
        known.map_or_else(|| project.into(), |(key, _)| key.clone())
    }

    fn ranks(&self, project: &str) -> (u64, FetchRank) {
        let counts = self.counts(project);
        let turn = self.turns.position(project);
        (turn, (counts.fetching, counts.last_fetch))
    }

    fn count(&mut self, record: &TaskRecord, project: &Arc<str>, by: i64) {
        let counts = self.projects.entry(project.clone()).or_default();
        counts.unfinished = counts.unfinished.saturating_add_signed(by);
        if let Some(token) = record
            .references
            .fetch_token()
            .filter(|_| record.is_waiting())
        {
            counts.fetching = counts.fetching.saturating_add_signed(by);
            // Tokens only grow, so the largest is that of the last fetch. Not undone: a turn that was taken
            // and failed counts as taken.
            counts.last_fetch = counts.last_fetch.max(token);
        }
    }

    fn join(&mut self, record: &Arc<TaskRecord>, project: &Arc<str>, ranks: (u64, FetchRank)) {
        let id = record.task.id;
        self.records.insert(id, record.clone());
        if record.is_running() {
            self.running.insert(id);
            return;
        }
        self.waiting += 1;
        let spot = spot(record, project);
        match record.references {
            ReferenceState::AtHand => self.claimable.join(spot, ranks.0, id),
            ReferenceState::Wanted { .. } => self.fetchable.join(spot, ranks.1, id),
            ReferenceState::Away { until_ms, .. } => {
                self.away.insert((until_ms, id));
            }
        }
    }

    fn leave(&mut self, record: &Arc<TaskRecord>, project: &Arc<str>, ranks: (u64, FetchRank)) {
        let id = record.task.id;
        self.records.remove(&id);
        if self.running.remove(&id) {
            return;
        }
        self.waiting -= 1;
        let spot = spot(record, project);
        match record.references {
            ReferenceState::AtHand => self.claimable.leave(spot, ranks.0),
            ReferenceState::Wanted { .. } => self.fetchable.leave(spot, ranks.1),
            ReferenceState::Away { until_ms, .. } => {
                self.away.remove(&(until_ms, id));
            }
        }
    }
}

fn spot<'a>(record: &'a TaskRecord, project: &'a Arc<str>) -> LinePosition<'a> {
    LinePosition {
        model: &record.task.spec.model,
        project,
        place: QueuePlace::from_record(record),
    }
}

/// Waiting tasks.
#[derive(Debug)]
struct ModelLines<R> {
    models: HashMap<String, ModelLine<R>>,
}

/// The tasks of one model.
#[derive(Debug)]
struct ModelLine<R> {
    projects: HashMap<Arc<str>, BTreeMap<QueuePlace, TaskId>>,
    /// Rank of the project, order of acceptance of its first task, project.
    order: BTreeSet<(R, u64, Arc<str>)>,
}

/// The position of a waiting task.
#[derive(Clone, Copy, Debug)]
struct LinePosition<'a> {
    model: &'a str,
    project: &'a Arc<str>,
    place: QueuePlace,
}

impl<R> Default for ModelLines<R> {
    fn default() -> Self {
        Self {
            models: HashMap::new(),
        }
    }
}

impl<R: Copy + Ord + Debug> ModelLines<R> {
    /// The first task of these models, among the projects that may have one.
    fn next(&self, models: &[String], may: impl Fn(&str, TaskId) -> bool) -> Option<TaskId> {
        // Of each model's line only the first project that may have a task is a candidate; the
        // smallest of these heads is next. The task is the project's first over all models, which
        // may be in another line: its own order holds however its models are mixed.
        let heads = models.iter().filter_map(|model| {
            let line = self.models.get(model)?;
            line.order.iter().find_map(|head| {
                let (.., project) = head;
                let id = self.first(models, project)?;
                may(project, id).then_some((head, id))
            })
        });
        heads.min_by_key(|(head, _)| *head).map(|(_, id)| id)
    }

    /// A project's first task of these models.
    fn first(&self, models: &[String], project: &str) -> Option<TaskId> {
        let lines = models.iter().filter_map(|model| self.models.get(model));
        let own = lines.filter_map(|line| line.projects.get(project)?.first_key_value());
        own.min_by_key(|(place, _)| **place).map(|(_, id)| *id)
    }

    /// Whether a project other than this one has a task of these models.
    fn others_wait(&self, models: &[String], project: &str) -> bool {
        let lines = models.iter().filter_map(|model| self.models.get(model));
        let mut projects = lines.flat_map(|line| line.projects.keys());
        projects.any(|other| &**other != project)
    }

    fn join(&mut self, spot: LinePosition<'_>, rank: R, id: TaskId) {
        // `entry` needs an owned key: look up first, so that the name is copied only for a model's first task.
        let line = match self.models.get_mut(spot.model) {
            Some(line) => line,
            None => self.models.entry(spot.model.to_owned()).or_default(),
        };
        line.reorder(spot.project, rank, rank, |tasks| {
            tasks.insert(spot.place, id);
        });
    }

    fn leave(&mut self, spot: LinePosition<'_>, rank: R) {
        if let Some(line) = self.models.get_mut(spot.model) {
            line.reorder(spot.project, rank, rank, |tasks| {
                tasks.remove(&spot.place);
            });
            if line.projects.is_empty() {
                self.models.remove(spot.model);
            }
        }
    }

    /// Moves a project whose rank has changed, in all of its lines.
    fn rerank(&mut self, project: &Arc<str>, before: R, after: R) {
        if before != after {
            for line in self.models.values_mut() {
                line.reorder(project, before, after, |_| {});
            }
        }
    }
}

impl<R> Default for ModelLine<R> {
    fn default() -> Self {
        Self {
            projects: HashMap::new(),
            order: BTreeSet::new(),
        }
    }
}

impl<R: Copy + Ord> ModelLine<R> {
    /// Changes a project's tasks and moves the project to its new position.
    fn reorder(
        &mut self,
        project: &Arc<str>,
        before: R,
        after: R,
        change: impl FnOnce(&mut BTreeMap<QueuePlace, TaskId>),
    ) {
        // The project's position depends on its first task (for ties of ranks), so it is taken out
        // and put back only if that or the rank has changed.
        let tasks = self.projects.entry(project.clone()).or_default();
        let old = tasks.keys().next().map(|head| head.seq);
        change(tasks);
        let new = tasks.keys().next().map(|head| head.seq);
        if new.is_none() {
            self.projects.remove(project);
        }
        // Most tasks join behind others of their project, which moves no project.
        if (before, old) == (after, new) {
            return;
        }
        if let Some(seq) = old {
            self.order.remove(&(before, seq, project.clone()));
        }
        if let Some(seq) = new {
            self.order.insert((after, seq, project.clone()));
        }
    }
}
