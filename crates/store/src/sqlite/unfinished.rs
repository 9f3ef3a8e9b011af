//! The unfinished tasks of each project, in memory, for clients that follow a project.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kinora_contract::TaskId;
use kinora_contract::lifecycle::Record;

use crate::queue::Change;

/// By project.
#[derive(Debug, Default)]
pub(super) struct Unfinished(Mutex<HashMap<String, BTreeSet<TaskId>>>);

impl Unfinished {
    /// Applies a committed change.
    pub(super) fn follow(&self, change: &Change) {
        let unfinished = |record: &&Arc<Record>| !record.is_terminal();
        let before = change.before.as_ref().filter(unfinished);
        match (before, change.after.as_ref().filter(unfinished)) {
            (None, Some(after)) => {
                let mut projects = self.lock();
                match projects.get_mut(&after.task.project) {
                    Some(own) => drop(own.insert(change.id)),
                    None => {
                        let own = BTreeSet::from([change.id]);
                        projects.insert(after.task.project.clone(), own);
                    }
                }
            }
            (Some(before), None) => {
                let mut projects = self.lock();
                if let Some(own) = projects.get_mut(&before.task.project) {
                    own.remove(&change.id);
                    if own.is_empty() {
                        projects.remove(&before.task.project);
                    }
                }
            }
            _ => {}
        }
    }

    /// The tasks of a project, by creation.
    pub(super) fn of(&self, project: &str) -> Vec<TaskId> {
        let projects = self.lock();
        let own = projects.get(project).into_iter().flatten();
        own.copied().collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, BTreeSet<TaskId>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
