//! The order of one project's waiting tasks: by priority, then in order of acceptance. Priority has
//! no effect between projects ([`super::Turns`]).
//!
//! A task of a lower priority waits for all waiting tasks of its own project with a higher one. An
//! order that changed with time would need the same clock in the indexes of every store.

use kinora_contract::Priority;
use kinora_contract::lifecycle::Record;

/// A task's place among those of its project: the smallest is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct QueuePlace {
    /// Its class.
    pub(crate) priority: Priority,
    /// Order of acceptance.
    pub(crate) seq: u64,
}

impl QueuePlace {
    /// That of this task.
    pub(crate) fn of(record: &Record) -> Self {
        Self {
            priority: record.task.priority,
            seq: record.seq,
        }
    }
}
