//! One record's way through a transaction.

use std::sync::Arc;

use kinora_contract::TaskId;
use kinora_contract::lifecycle::{Hints, Record};

use crate::Glance;

/// A record before and after. Applied backwards the change is undone. `before` is known only of
/// unfinished tasks: finished ones have no place in the queue.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) id: TaskId,
    pub(crate) before: Option<Arc<Record>>,
    pub(crate) after: Option<Arc<Record>>,
}

impl Change {
    /// Whether clients see the task differently after it. That an ended task expires or is removed is no news.
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

    /// Whom the change may concern.
    pub(crate) fn hints(&self) -> Hints {
        Hints::of(self.before.as_deref(), self.after.as_deref())
    }
}
