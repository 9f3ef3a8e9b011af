//! One record's change in a transaction.

use std::sync::Arc;

use kinora_contract::TaskId;
use kinora_contract::lifecycle::{Hints, Record};

use crate::Glance;

/// A record before and after. Applied in reverse, it undoes the change. `before` is set only for
/// unfinished tasks: finished ones have no place in the queue.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) id: TaskId,
    pub(crate) before: Option<Arc<Record>>,
    pub(crate) after: Option<Arc<Record>>,
}

impl Change {
    /// Whether clients see a difference. The expiry or removal of an ended task does not count.
    pub(crate) fn is_news(&self) -> bool {
        let glance = |record: &Arc<Record>| Glance::of(&record.task);
        let before = self.before.as_ref().filter(|before| !before.is_terminal());
        match (before, &self.after) {
            (None, None) => false,
            (None, Some(after)) => !after.is_terminal(),
            (Some(_), None) => true,
            (Some(before), Some(after)) => glance(before) != glance(after),
        }
    }

    /// The parties that the change may concern.
    pub(crate) fn hints(&self) -> Hints {
        Hints::of(self.before.as_deref(), self.after.as_deref())
    }
}
