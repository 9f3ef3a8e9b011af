//! Tasks that a store cannot know, because an operator replaced it with an older copy or an empty
//! one: those of the lost history. Their files may still be in the result store.

use kinora_contract::{ID_AHEAD_MS_MAX, TaskId, UnixMs};
use serde::{Deserialize, Serialize};

/// Maximum number of separate gaps; beyond it, the oldest are merged.
pub(crate) const GAPS_MAX: usize = 16;
/// A range of creation times, exclusive at both ends, in which a store accepted no task: it was
/// closed, or a copy of it accepted the tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// When the last task before it was accepted.
    pub after_ms: UnixMs,
    /// When the first task after it was accepted; the end of time if there is none.
    pub before_ms: UnixMs,
}

impl Gap {
    /// The end of an open gap.
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

/// The newest task ever accepted, and all gaps. Each opening begins a gap; the first task accepted
/// afterwards ends and records it, unless a check of all files has closed it before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Gaps {
    newest_ms: UnixMs,
    /// The gap since the opening; each accepted task narrows it.
    current: Option<Gap>,
    /// Gaps from earlier openings, oldest first.
    earlier: Vec<Gap>,
}

impl Gaps {
    /// The recorded gaps, oldest first, and the one that begins now.
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

    /// When the newest task was accepted; 0 if there was none.
    pub(crate) const fn newest_ms(&self) -> UnixMs {
        self.newest_ms
    }

    /// The gap since the opening.
    pub(crate) const fn current(&self) -> Option<Gap> {
        self.current
    }

    /// All gaps.
    pub(crate) fn all(&self) -> Vec<Gap> {
        self.earlier.iter().chain(&self.current).copied().collect()
    }

    /// Records an accepted task.
    pub(crate) fn accept(&mut self, created_at_ms: UnixMs) {
        // Ignores a clock that was far ahead for a moment: otherwise later gaps would contain
        // nothing.
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

    /// Removes these gaps: no files of their tasks are left.
    pub(crate) fn close(&mut self, closed: &[Gap]) {
        let is_closed = |gap: &Gap| closed.iter().any(|one| one.after_ms == gap.after_ms);
        self.earlier.retain(|gap| !is_closed(gap));
        self.current = self.current.filter(|gap| !is_closed(gap));
    }
}
