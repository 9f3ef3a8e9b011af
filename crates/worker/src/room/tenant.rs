//! An engine in a [`Room`](super::Room), with its place there.

use std::time::Duration;

/// How often the pause before the next invitation doubles at most.
const DOUBLINGS_MAX: u32 = 3;

/// One engine; the caller refers to it by its index.
#[derive(Debug)]
pub(super) struct Tenant {
    /// The part of the budget that it takes.
    pub(super) need: u64,
    pub(super) place: Place,
    /// When it last had its turn: the store was asked for its tasks.
    pub(super) asked: Duration,
    /// Whether others were to leave for it, and it has begun no run since.
    pub(super) is_guest: bool,
    /// How often in a row others left for it and it began no run.
    pub(super) in_vain: u32,
    /// It gets no invitation before this time.
    pub(super) barred_until: Duration,
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
            is_guest: false,
            in_vain: 0,
            barred_until: Duration::ZERO,
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

    /// Records that others left for it and it began no run: after each time in a row, it is invited again after twice
    /// as long a pause, up to a bound.
    pub(super) fn note_in_vain(&mut self, now: Duration, pause_min: Duration) {
        let pause = pause_min.saturating_mul(1 << self.in_vain.min(DOUBLINGS_MAX));
        self.in_vain = self.in_vain.saturating_add(1);
        self.barred_until = now.saturating_add(pause);
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
