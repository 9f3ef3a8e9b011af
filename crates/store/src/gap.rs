//! Tasks that a store cannot know, because an operator restored an older copy of it, or none: those of the history
//! that was lost. Their files may still be in the result store.

use kinora_contract::{ID_AHEAD_MS_MAX, TaskId, UnixMs};
use serde::{Deserialize, Serialize};

/// Maximum number of separate gaps; beyond it the oldest become one.
pub(crate) const GAPS_MAX: usize = 16;
/// Creation times, exclusive at both ends, between which a store accepted no task: it was closed, or
/// the tasks were accepted by a copy of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// When the newest task before it was accepted.
    pub after_ms: UnixMs,
    /// When the oldest task after it was accepted; the end of time where none was.
    pub before_ms: UnixMs,
}

impl Gap {
    /// The end of one that has none.
    pub(crate) const OPEN_END: UnixMs = i64::MAX.unsigned_abs();

    /// Whether a task with this id would have been accepted in it.
    #[must_use]
    pub fn holds(&self, id: TaskId) -> bool {
        self.holds_ms(id.created_at_ms())
    }

    pub(crate) const fn holds_ms(&self, created_at_ms: UnixMs) -> bool {
        self.after_ms < created_at_ms && created_at_ms < self.before_ms
    }
}

/// The newest task ever accepted, and all gaps. An opening begins one; the first task accepted after it ends and
/// records it, unless a look at all files has closed it before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Gaps {
    newest_ms: UnixMs,
    /// Since the opening; narrowed by each task that is accepted in it.
    current: Option<Gap>,
    /// Of earlier openings, oldest first.
    earlier: Vec<Gap>,
}

impl Gaps {
    /// Those recorded before, oldest first, and the one that begins now.
    pub(crate) fn opened(newest_ms: UnixMs, mut earlier: Vec<Gap>) -> Self {
        while earlier.len() > GAPS_MAX {
            let oldest = earlier.remove(0);
            if let Some(next) = earlier.first_mut() {
                next.after_ms = oldest.after_ms;
            }
        }
        Self {
            newest_ms,
            current: Some(Gap {
                after_ms: newest_ms,
                before_ms: Gap::OPEN_END,
            }),
            earlier,
        }
    }

    /// The same after another opening.
    #[cfg(feature = "conformance")]
    pub(crate) fn reopened(&self) -> Self {
        let mut earlier = self.earlier.clone();
        earlier.extend(self.current.filter(|gap| gap.before_ms != Gap::OPEN_END));
        Self::opened(self.newest_ms, earlier)
    }

    /// When the newest task was accepted; 0 where there was none.
    pub(crate) const fn newest_ms(&self) -> UnixMs {
        self.newest_ms
    }

    /// The one since the opening.
    pub(crate) const fn current(&self) -> Option<Gap> {
        self.current
    }

    /// All of them.
    pub(crate) fn all(&self) -> Vec<Gap> {
        self.earlier.iter().chain(&self.current).copied().collect()
    }

    /// A task was accepted.
    pub(crate) fn accept(&mut self, created_at_ms: UnixMs) {
        // A clock that was far ahead for a moment is not followed: behind it later gaps would hold nothing.
        let is_absurd = self.newest_ms > created_at_ms.saturating_add(ID_AHEAD_MS_MAX);
        self.newest_ms = if is_absurd {
            created_at_ms
        } else {
            self.newest_ms.max(created_at_ms)
        };
        if let Some(gap) = &mut self.current
            && gap.holds_ms(created_at_ms)
        {
            gap.before_ms = created_at_ms;
        }
    }

    /// No files of tasks in these are left.
    pub(crate) fn close(&mut self, closed: &[Gap]) {
        let is_closed = |gap: &Gap| closed.iter().any(|one| one.after_ms == gap.after_ms);
        self.earlier.retain(|gap| !is_closed(gap));
        self.current = self.current.filter(|gap| !is_closed(gap));
    }
}
