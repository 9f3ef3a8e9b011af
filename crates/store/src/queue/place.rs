//! The order of one project's waiting tasks: by class, and within a class in order of acceptance. Between projects
//! the class counts for nothing ([`super::Turns`]).
//!
//! A task of a lower class waits for all waiting tasks of its own project in higher ones, for as long as there are any.
//! An order that changed with time would need a clock in the indexes of every store, and the same in each.

use kinora_contract::Priority;
use kinora_contract::lifecycle::Record;

/// Where a task stands in the line of its project: the least is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    /// Its class.
    pub(crate) priority: Priority,
    /// Order of acceptance.
    pub(crate) seq: u64,
}

impl Place {
    /// That of this task.
    pub(crate) fn of(record: &Record) -> Self {
        Self {
            priority: record.task.priority,
            seq: record.seq,
        }
    }
}
