//! Sums over ended tasks, by project, model and day. They outlive the tasks, and show how much
//! video was made and how long engines worked for it.

use serde::{Deserialize, Serialize};

use crate::time::UnixMs;

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// Sums over ended tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tally {
    /// Tasks that completed.
    pub completed: u64,
    /// Tasks that failed, without cancelled ones.
    pub failed: u64,
    /// Tasks that their owners cancelled.
    pub cancelled: u64,
    /// Length of the results in milliseconds.
    pub video_ms: u64,
    /// Milliseconds from the first claim of each task to its end, whatever the outcome.
    pub engine_ms: u64,
}

impl Tally {
    /// Adds `other`.
    pub const fn add(&mut self, other: Self) {
        self.completed = self.completed.saturating_add(other.completed);
        self.failed = self.failed.saturating_add(other.failed);
        self.cancelled = self.cancelled.saturating_add(other.cancelled);
        self.video_ms = self.video_ms.saturating_add(other.video_ms);
        self.engine_ms = self.engine_ms.saturating_add(other.engine_ms);
    }
}

/// The day of a moment, in whole days since 1970 (UTC).
#[must_use]
pub const fn day_of(at_ms: UnixMs) -> u64 {
    at_ms / DAY_MS
}
