//! One record in the queue: its place among the tasks of its project, and its change in a transaction.
//!
//! The place is by priority, then by order of acceptance. Priority has no effect between projects
//! ([`super::ProjectTurns`]), and a task of a lower priority waits for all waiting tasks of its own project with
//! a higher one. An order that changed with time would need the same clock in the indexes of every store.

use std::sync::Arc;

use kinora_contract::lifecycle::{TaskRecord, WakeHints};
use kinora_contract::{Priority, TaskId};

use crate::TaskGlance;

/// A task's place among those of its project: the smallest is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct QueuePlace {
    /// Priority within the project.
    pub(crate) priority: Priority,
    /// Order of acceptance.
    pub(crate) seq: u64,
}

impl QueuePlace {
    /// The place of this task.
    pub(crate) fn from_record(record: &TaskRecord) -> Self {
        Self {
            priority: record.task.priority,
            seq: record.seq,
        }
    }
}

/// A record before and after. Applied in reverse, it undoes the change. `before` is set only for
/// unfinished tasks: finished ones have no place in the queue.
#[derive(Clone, Debug)]
pub(crate) struct RecordChange {
    pub(crate) id: TaskId,
    pub(crate) before: Option<Arc<TaskRecord>>,
    pub(crate) after: Option<Arc<TaskRecord>>,
}

impl RecordChange {
    /// Whether clients see a difference. The expiry or removal of an ended task does not count.
    pub(crate) fn is_news(&self) -> bool {
        let before = self.before.as_ref().filter(|before| !before.is_terminal());
        match (before, &self.after) {
            (None, None) => false,
            (None, Some(after)) => !after.is_terminal(),
            (Some(_), None) => true,
            (Some(before), Some(after)) => {
                TaskGlance::from_task(&before.task) != TaskGlance::from_task(&after.task)
            }
        }
    }

    /// The parties that the change may concern.
    pub(crate) fn hints(&self) -> WakeHints {
        WakeHints::between(self.before.as_deref(), self.after.as_deref())
    }
}
