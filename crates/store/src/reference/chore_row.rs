//! A chore as it is stored.

use kinora_contract::UnixMs;

use crate::chores::AHEAD_MS_MAX;
use crate::{Chore, ChoreKind, ChoreWork};

/// A chore with its state.
#[derive(Debug)]
pub(super) struct ChoreRow {
    /// Its token is 0 while nobody holds it.
    pub(super) chore: Chore,
    /// When it may be taken, by the wall clock.
    pub(super) due_ms: UnixMs,
}

impl ChoreRow {
    /// A time too far ahead comes from a wrong clock, and counts as past.
    pub(super) const fn is_due(&self, now_ms: UnixMs) -> bool {
        self.due_ms <= now_ms || self.due_ms > now_ms.saturating_add(AHEAD_MS_MAX)
    }

    /// Ends the lease; the chore may be taken again at `due_ms`.
    pub(super) const fn free(&mut self, due_ms: UnixMs) {
        self.chore.token = 0;
        self.due_ms = due_ms;
    }
}

impl ChoreKind {
    pub(super) fn covers(&self, work: &ChoreWork) -> bool {
        match (self, work) {
            (Self::RemoveFile, ChoreWork::RemoveFile(_))
            | (Self::LookForOrphans, ChoreWork::LookForOrphans) => true,
            (Self::CallOff { models }, ChoreWork::CallOff(call_off)) => {
                models.contains(&call_off.model)
            }
            _ => false,
        }
    }
}
