//! The next waiting task: the first one of the project with the smallest rank, over all requested
//! models. The caller sets the ranks. Among projects of the same rank, the one whose first task of
//! a model was accepted earlier is next.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Debug;
use std::sync::Arc;

use kinora_contract::TaskId;

use super::super::place::QueuePlace;

/// Waiting tasks.
#[derive(Debug)]
pub(super) struct Lines<R> {
    models: HashMap<String, Line<R>>,
}

/// The tasks of one model.
#[derive(Debug)]
struct Line<R> {
    projects: HashMap<Arc<str>, BTreeMap<QueuePlace, TaskId>>,
    /// Rank of the project, order of acceptance of its first task, project.
    order: BTreeSet<(R, u64, Arc<str>)>,
}

/// The position of a waiting task.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spot<'a> {
    pub(super) model: &'a str,
    pub(super) project: &'a Arc<str>,
    pub(super) place: QueuePlace,
}

impl<R> Default for Lines<R> {
    fn default() -> Self {
        Self {
            models: HashMap::new(),
        }
    }
}

impl<R: Copy + Ord + Debug> Lines<R> {
    /// The first task of these models, among the projects that may have one.
    pub(super) fn next(
        &self,
        models: &[String],
        may: impl Fn(&str, TaskId) -> bool,
    ) -> Option<TaskId> {
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
    pub(super) fn others_wait(&self, models: &[String], project: &str) -> bool {
        let lines = models.iter().filter_map(|model| self.models.get(model));
        let mut projects = lines.flat_map(|line| line.projects.keys());
        projects.any(|other| &**other != project)
    }

    pub(super) fn join(&mut self, spot: Spot<'_>, rank: R, id: TaskId) {
        // Looked up first: the name is copied only for the first task of a model.
        let line = match self.models.get_mut(spot.model) {
            Some(line) => line,
            None => self.models.entry(spot.model.to_owned()).or_default(),
        };
        line.reorder(spot.project, rank, rank, |tasks| {
            tasks.insert(spot.place, id);
        });
    }

    pub(super) fn leave(&mut self, spot: Spot<'_>, rank: R) {
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
    pub(super) fn rerank(&mut self, project: &Arc<str>, before: R, after: R) {
        if before != after {
            for line in self.models.values_mut() {
                line.reorder(project, before, after, |_| {});
            }
        }
    }
}

impl<R> Default for Line<R> {
    fn default() -> Self {
        Self {
            projects: HashMap::new(),
            order: BTreeSet::new(),
        }
    }
}

impl<R: Copy + Ord> Line<R> {
    /// Changes a project's tasks and moves the project to its new position.
    fn reorder(
        &mut self,
        project: &Arc<str>,
        before: R,
        after: R,
        change: impl FnOnce(&mut BTreeMap<QueuePlace, TaskId>),
    ) {
        let tasks = self.projects.entry(project.clone()).or_default();
        let first = |tasks: &BTreeMap<QueuePlace, TaskId>| tasks.keys().next().map(|head| head.seq);
        let old = first(tasks);
        change(tasks);
        let new = first(tasks);
        if new.is_none() {
            self.projects.remove(project);
        }
        // Most tasks join behind others, which moves nobody.
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
