//! One record's way through a transaction.

use std::sync::Arc;

use kinora_contract::TaskId;
use kinora_contract::lifecycle::{Hints, Record};

/// A record before and after. Applied backwards the change is undone. `before` is known only of
/// unfinished tasks: finished ones have no place in the queue.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) id: TaskId,
    pub(crate) before: Option<Arc<Record>>,
    pub(crate) after: Option<Arc<Record>>,
}

impl Change {
    /// Whom the change may concern.
    pub(crate) fn hints(&self) -> Hints {
        Hints::of(self.before.as_deref(), self.after.as_deref())
    }
}
