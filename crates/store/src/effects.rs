//! The effects of a transaction's changes outside the tasks: chores, deliveries, the ends of the uses of files, and
//! corrections of budgets. They are collected
//! while operations run and written together at the end, so that their statements are paid per commit,
//! not per change.

use kinora_contract::TaskId;
use kinora_contract::lifecycle::{CallOff, TaskEffects};

use crate::TaskCallback;
use crate::budgets::{ScopeChange, scope_changes};
use crate::sql::{SqlDialect, SqlQuery};
use crate::tables::{chores, spending, uploads, webhooks};

/// The rows that the end of a transaction adds to the side tables.
#[derive(Debug, Default)]
pub(crate) struct PendingEffects {
    /// Keys of files to remove.
    files: Vec<String>,
    call_offs: Vec<CallOff>,
    callbacks: Vec<(TaskId, TaskCallback)>,
    /// Ended tasks, each with its project.
    ended: Vec<(TaskId, String)>,
    /// Corrections of what budgets count.
    spending: Vec<ScopeChange>,
}

/// A position in [`PendingEffects`], to which a failed operation is undone.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EffectsMark {
    files: usize,
    call_offs: usize,
    callbacks: usize,
    ended: usize,
    spending: usize,
}

impl PendingEffects {
    /// Adds the effects of a change to a task of this project.
    pub(crate) fn add(&mut self, project: &str, effects: &TaskEffects) {
        self.add_files(&effects.garbage);
        self.call_offs.extend(effects.call_off.clone());
        let ended = effects.ended.map(|task| (task, project.to_owned()));
        self.ended.extend(ended);
        let spending = effects.spending.iter();
        self.spending
            .extend(spending.flat_map(|change| scope_changes(project, change)));
    }

    /// Adds files to remove.
    pub(crate) fn add_files(&mut self, keys: &[String]) {
        self.files.extend_from_slice(keys);
    }

    /// Adds the callback that will receive the end of a new task.
    pub(crate) fn add_callback(&mut self, task: TaskId, callback: &TaskCallback) {
        self.callbacks.push((task, callback.clone()));
    }

    /// The statements that write everything, in the order in which all processes take the locks.
    pub(crate) fn queries(&self, dialect: SqlDialect) -> Vec<SqlQuery> {
        let mut queries = Vec::new();
        if !self.files.is_empty() {
            queries.push(chores::add_files(dialect, &self.files));
        }
        let mut call_offs: Vec<&CallOff> = self.call_offs.iter().collect();
        // One statement each, and each locks a row of `chores`. Two processes that took the same
        // locks in different orders would deadlock: all go by task.
        call_offs.sort_unstable_by_key(|one| one.task);
        let call_offs = call_offs.into_iter();
        queries.extend(call_offs.map(|one| chores::add_call_off(dialect, one)));
        let callbacks = self.callbacks.iter();
        queries.extend(callbacks.map(|(task, to)| webhooks::add_callback(*task, to)));
        // Last: it makes the callbacks due that the statements above may just have added, for a
        // task that was accepted and ended in one transaction.
        if !self.ended.is_empty() {
            queries.extend(webhooks::add_ends(dialect, &self.ended));
            let ended: Vec<TaskId> = self.ended.iter().map(|(task, _)| *task).collect();
            queries.push(uploads::end_uses(dialect, &ended));
        }
        queries.extend(spending::correct(&self.spending));
        queries
    }

    /// The current position.
    pub(crate) const fn mark(&self) -> EffectsMark {
        EffectsMark {
            files: self.files.len(),
            call_offs: self.call_offs.len(),
            callbacks: self.callbacks.len(),
            ended: self.ended.len(),
            spending: self.spending.len(),
        }
    }

    /// Forgets what was added after `mark`.
    pub(crate) fn undo_to(&mut self, mark: EffectsMark) {
        self.files.truncate(mark.files);
        self.call_offs.truncate(mark.call_offs);
        self.callbacks.truncate(mark.callbacks);
        self.ended.truncate(mark.ended);
        self.spending.truncate(mark.spending);
    }
}
