//! The queue in memory: what waits, who runs, how much of each. It belongs to the writer alone,
//! is rebuilt when the store is opened, and is a function of the unfinished records: applying a
//! change backwards undoes it, so that a failed transaction leaves no trace. Only the memory of
//! whose turn it was goes beyond them.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use kinora_contract::TaskId;

use super::record::{Change, Record};
use super::usage::{Charge, Usages};
use crate::Usage;

/// All unfinished tasks.
#[derive(Debug, Default)]
pub(super) struct Index {
    records: HashMap<TaskId, Arc<Record>>,
    running: HashSet<TaskId>,
    projects: HashMap<Arc<str>, Counts>,
    models: HashMap<String, Line>,
    /// The fencing token of each project's last claim: the smaller, the longer ago. A claim that
    /// was undone counts as well, since tokens are not given out twice.
    turns: HashMap<Arc<str>, u64>,
    waiting: u64,
    /// Not a function of the unfinished records: what is stored of all tasks.
    usages: Usages,
    /// Largest place given out.
    pub(super) seq: u64,
    /// Largest fencing token given out.
    pub(super) token: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    unfinished: u64,
    running: u64,
}

/// How soon a project is served: its running tasks, and its last turn among equals.
type Rank = (u64, u64);

/// The waiting tasks of one model.
#[derive(Debug, Default)]
struct Line {
    projects: HashMap<Arc<str>, BTreeMap<u64, TaskId>>,
    /// Who is next: rank of the project, place of its oldest task, project.
    order: BTreeSet<(Rank, u64, Arc<str>)>,
}

impl Index {
    /// An empty queue, with what is stored of finished tasks.
    pub(super) fn with_usages(usages: Usages) -> Self {
        Self {
            usages,
            ..Self::default()
        }
    }

    /// What a project has stored.
    pub(super) fn usage(&self, project: &str) -> Usage {
        self.usages.of(project)
    }

    /// Stored bytes of all projects.
    pub(super) const fn bytes(&self) -> u64 {
        self.usages.bytes()
    }

    pub(super) fn charge(&mut self, charge: &Charge) {
        self.usages.charge(charge);
    }

    /// All waiting tasks that no worker has had yet.
    pub(super) fn never_started(&self) -> impl Iterator<Item = &Arc<Record>> {
        let records = self.records.values();
        records.filter(|record| record.is_waiting() && record.task.started_at_ms.is_none())
    }

    pub(super) fn get(&self, id: TaskId) -> Option<&Arc<Record>> {
        self.records.get(&id)
    }

    /// Waiting tasks of all projects.
    pub(super) const fn waiting(&self) -> u64 {
        self.waiting
    }

    /// Waiting and running tasks of a project.
    pub(super) fn unfinished(&self, project: &str) -> u64 {
        self.projects
            .get(project)
            .map_or(0, |counts| counts.unfinished)
    }

    /// All running tasks.
    pub(super) fn running(&self) -> impl Iterator<Item = &Arc<Record>> {
        self.running.iter().filter_map(|id| self.records.get(id))
    }

    /// The next task of these models: of the project with the fewest running tasks, among several
    /// the one whose last turn is longest ago, the oldest.
    pub(super) fn next(&self, models: &[String]) -> Option<&Arc<Record>> {
        let lines = models.iter().filter_map(|model| self.models.get(model));
        let heads = lines.filter_map(|line| line.order.first().map(|head| (head, line)));
        let ((_, seq, project), line) = heads.min_by_key(|(head, _)| *head)?;
        self.records.get(line.projects.get(project)?.get(seq)?)
    }

    pub(super) fn apply(&mut self, change: &Change) {
        self.replace(change.before.as_ref(), change.after.as_ref());
    }

    pub(super) fn undo(&mut self, change: &Change) {
        self.replace(change.after.as_ref(), change.before.as_ref());
    }

    fn replace(&mut self, old: Option<&Arc<Record>>, new: Option<&Arc<Record>>) {
        if let Some(record) = old.filter(|record| record.is_unfinished()) {
            self.remove(record);
        }
        if let Some(record) = new.filter(|record| record.is_unfinished()) {
            self.add(record);
        }
    }

    fn add(&mut self, record: &Arc<Record>) {
        let id = record.task.id;
        self.records.insert(id, record.clone());
        let project = self.count(record, 1, i64::from(record.is_running()));
        if record.is_running() {
            self.running.insert(id);
            return;
        }
        self.waiting += 1;
        let rank = self.rank(&project);
        let line = self
            .models
            .entry(record.task.spec.model.clone())
            .or_default();
        line.reorder(&project, rank, rank, |tasks| {
            tasks.insert(record.seq, id);
        });
    }

    fn remove(&mut self, record: &Arc<Record>) {
        let id = record.task.id;
        self.records.remove(&id);
        if self.running.remove(&id) {
            self.count(record, -1, -1);
            return;
        }
        self.waiting -= 1;
        let project: Arc<str> = record.task.project.as_str().into();
        let rank = self.rank(&project);
        if let Some(line) = self.models.get_mut(&record.task.spec.model) {
            line.reorder(&project, rank, rank, |tasks| {
                tasks.remove(&record.seq);
            });
            if line.projects.is_empty() {
                self.models.remove(&record.task.spec.model);
            }
        }
        self.count(record, -1, 0);
    }

    fn rank(&self, project: &str) -> Rank {
        let running = self
            .projects
            .get(project)
            .map_or(0, |counts| counts.running);
        (running, self.turns.get(project).copied().unwrap_or(0))
    }

    /// Counts a task in or out, and moves its project in every line that it waits in.
    fn count(&mut self, record: &Record, unfinished: i64, running: i64) -> Arc<str> {
        let project = record.task.project.as_str();
        let before = self.rank(project);
        let key = self
            .projects
            .get_key_value(project)
            .map(|(key, _)| key.clone());
        let key: Arc<str> = key.unwrap_or_else(|| project.into());
        let counts = self.projects.entry(key.clone()).or_default();
        counts.unfinished = counts.unfinished.saturating_add_signed(unfinished);
        counts.running = counts.running.saturating_add_signed(running);
        if counts.unfinished == 0 {
            self.projects.remove(&key);
        }
        if let Some(token) = record.token() {
            let turn = self.turns.entry(key.clone()).or_default();
            *turn = token.max(*turn);
        }
        let after = self.rank(project);
        if before != after {
            for line in self.models.values_mut() {
                line.reorder(&key, before, after, |_| {});
            }
        }
        key
    }
}

impl Line {
    /// Changes a project's tasks and puts the project where it now belongs.
    fn reorder(
        &mut self,
        project: &Arc<str>,
        before: Rank,
        after: Rank,
        change: impl FnOnce(&mut BTreeMap<u64, TaskId>),
    ) {
        let mut tasks = self.projects.remove(project).unwrap_or_default();
        if let Some(head) = tasks.keys().next() {
            self.order.remove(&(before, *head, project.clone()));
        }
        change(&mut tasks);
        if let Some(head) = tasks.keys().next() {
            self.order.insert((after, *head, project.clone()));
            self.projects.insert(project.clone(), tasks);
        }
    }
}
