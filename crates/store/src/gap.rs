//! What a store cannot know: tasks of another history of its own, in which an older copy of it, or
//! none, was put back. Their files may still lie in the result store.

use kinora_contract::{TaskId, UnixMs};

/// Creation times, exclusive at both ends, between which a store accepted no task: it was closed, or
/// the tasks were accepted by a copy of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// When the newest task before it was accepted.
    pub after_ms: UnixMs,
    /// When the oldest task after it was accepted; the end of time where none was.
    pub before_ms: UnixMs,
}

impl Gap {
    /// Whether a task with this id would have been accepted in it.
    #[must_use]
    pub fn holds(&self, id: TaskId) -> bool {
        self.holds_ms(id.created_at_ms())
    }

    pub(crate) const fn holds_ms(&self, created_at_ms: UnixMs) -> bool {
        self.after_ms < created_at_ms && created_at_ms < self.before_ms
    }
}
