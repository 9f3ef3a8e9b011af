//! An engine in a [`Room`](super::Room), with its place there.

use std::time::Duration;

/// One engine; the caller refers to it by its index.
#[derive(Debug)]
pub(super) struct Tenant {
    /// The part of the budget that it takes.
    pub(super) need: u64,
    pub(super) place: Place,
    /// When it last had its turn: the store was asked for its tasks.
    pub(super) asked: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Away,
    /// Others make room for it, because tasks wait for it.
    Invited,
    /// It has room.
    Loaded {
        /// Runs, and claims in progress that may become runs.
        users: usize,
        /// When its first run began and its last one ended. `None`: so far there were only claims in progress.
        used: Option<Used>,
    },
    /// It is being unloaded: its room is not free yet.
    Leaving {
        since: Duration,
        is_told: bool,
        /// As while it was loaded; `None` if an earlier process loaded it.
        used: Option<Used>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Used {
    pub(super) first: Duration,
    pub(super) last: Duration,
    /// Whether the store had no further task for it since then.
    pub(super) is_unwanted: bool,
}

impl Tenant {
    pub(super) const fn new(need: u64, now: Duration) -> Self {
        Self {
            need,
            place: Place::Away,
            asked: now,
        }
    }

    pub(super) const fn is_loaded(&self) -> bool {
        matches!(self.place, Place::Loaded { .. })
    }

    /// The runs of a loaded engine that has no users.
    pub(super) const fn idle(&self) -> Option<Used> {
        match self.place {
            Place::Loaded { users: 0, used } => used,
            _ => None,
        }
    }

    /// The start of its first run; engines without one come last.
    pub(super) fn loaded_at(&self) -> Duration {
        match self.place {
            Place::Loaded {
                used: Some(used), ..
            } => used.first,
            _ => Duration::MAX,
        }
    }
}
