//! Expiry: requests and answers of [`crate::Chores::sweep`] and [`crate::Chores::postpone`].

use std::sync::Arc;

use kinora_contract::lifecycle::Record;
use kinora_contract::{SteadyMs, UnixMs};

/// Parameters of a sweep.
#[derive(Clone, Copy, Debug)]
pub struct SweepRequest {
    /// The present by the store's wall clock ([`crate::Chores::clock`]), if the caller trusts that reading. Without
    /// it no result expires, no tombstone and no idempotency key is forgotten, and no task has waited too long.
    pub due_ms: Option<UnixMs>,
    /// How much longer than their time idempotency keys stay bound, in milliseconds: as much as the wall clock was
    /// set forward in the time of a key.
    pub keys_kept_ms: u64,
    /// How far back waiting is counted.
    pub waiting_from: WaitingFrom,
    /// After so many attempts a lost task fails.
    pub attempts_max: u32,
    /// Leaves running tasks alone: for the time after an outage of the store, in which leases could not
    /// be renewed.
    pub spares_leases: bool,
    /// A task that has waited so long for its first worker fails with `task_expired`; `None`: never.
    pub waiting_ms_max: Option<u64>,
    /// How long a task that fails in this sweep is kept.
    pub retention_ms: u64,
    /// How long an expired task still answers 410.
    pub tombstone_ms: u64,
    /// How many rows of each kind at most, so that a sweep never blocks submits for long.
    pub batch: usize,
}

/// A task that was created before `created_before_ms`, by a clock that has been corrected since, counts as
/// created at `from_ms`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitingFrom {
    /// Of which tasks.
    pub created_before_ms: UnixMs,
    /// Since when they count as waiting.
    pub from_ms: UnixMs,
}

impl SweepRequest {
    /// A batch of these running tasks whose leases have run out, those that ran out first first.
    pub(crate) fn lost<'a>(
        &self,
        running: impl Iterator<Item = &'a Arc<Record>>,
        steady_ms: SteadyMs,
    ) -> Vec<Arc<Record>> {
        if self.spares_leases {
            return Vec::new();
        }
        let until = |record: &Record| -> SteadyMs {
            let held = record.lease.as_ref();
            held.map_or(0, |held| held.until_steady_ms)
        };
        let lost = running.filter(|record| until(record) <= steady_ms);
        let mut lost: Vec<_> = lost.cloned().collect();
        lost.sort_by_key(|record| (until(record), record.seq));
        lost.truncate(self.batch);
        lost
    }

    /// A batch of these tasks that have waited too long for their first worker, the oldest first.
    pub(crate) fn late<'a>(
        &self,
        unfinished: impl Iterator<Item = &'a Arc<Record>>,
        due_ms: UnixMs,
    ) -> Vec<Arc<Record>> {
        let bound = self.waiting_ms_max.and_then(|max| due_ms.checked_sub(max));
        let Some(before_ms) = bound else {
            return Vec::new();
        };
        let is_late = |record: &&Arc<Record>| {
            record.awaits_first_worker()
                && self.waiting_from.since_ms(record.task.created_at_ms) <= before_ms
        };
        let mut late: Vec<_> = unfinished.filter(is_late).cloned().collect();
        late.sort_by_key(|record| record.seq);
        late.truncate(self.batch);
        late
    }
}

impl WaitingFrom {
    /// Since when a task that was created at this time counts as waiting.
    fn since_ms(&self, created_at_ms: UnixMs) -> UnixMs {
        if created_at_ms < self.created_before_ms {
            created_at_ms.max(self.from_ms)
        } else {
            created_at_ms
        }
    }
}

/// Which ended tasks are kept longer, since their time was set by a clock that has been corrected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Postpone {
    /// Those that ended at this time or later.
    pub from_ms: UnixMs,
    /// Those that ended before this time.
    pub before_ms: UnixMs,
    /// How much longer.
    pub by: Postponed,
    /// Those that expire before this place: where the last call ended, or [`ExpiryCursor::END`].
    pub below: ExpiryCursor,
    /// How many at most.
    pub batch: usize,
}

/// Where an ended task's expiry is moved to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Postponed {
    /// So much later.
    By(u64),
    /// As long after this moment as it lay after the end of the task, if it lies before
    /// [`Postpone::before_ms`]: once moved, it is not moved again.
    From(UnixMs),
}

impl Postpone {
    /// Whether a task that ended at this time is kept longer.
    pub(crate) fn is_meant(&self, ended_at_ms: UnixMs) -> bool {
        (self.from_ms..self.before_ms).contains(&ended_at_ms)
    }

    /// The new expiry of a task that ended at `ended_at_ms`.
    pub(crate) fn moved(&self, expires_at_ms: UnixMs, ended_at_ms: Option<UnixMs>) -> UnixMs {
        match self.by {
            Postponed::By(by_ms) => expires_at_ms.saturating_add(by_ms),
            Postponed::From(from_ms) => {
                let kept_ms = expires_at_ms.saturating_sub(ended_at_ms.unwrap_or(expires_at_ms));
                from_ms.saturating_add(kept_ms)
            }
        }
    }

    /// Tasks that expire at this time or later are not moved.
    pub(crate) const fn expires_before_ms(&self) -> UnixMs {
        match self.by {
            Postponed::By(_) => UnixMs::MAX,
            Postponed::From(_) => self.before_ms,
        }
    }
}

/// A place among the ended tasks, in the order in which they expire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ExpiryCursor {
    /// The expiry.
    pub expires_at_ms: UnixMs,
    /// Orders tasks that expire at the same time.
    pub number: u64,
}

impl ExpiryCursor {
    /// Behind all tasks.
    pub const END: Self = Self {
        expires_at_ms: UnixMs::MAX,
        number: u64::MAX,
    };
}

/// Result of a sweep.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Tasks that went back to the queue.
    pub requeued: u64,
    /// Tasks that failed with `worker_lost`.
    pub lost: u64,
    /// Tasks that failed with `task_expired`.
    pub waited: u64,
    /// Tasks whose files are past their time.
    pub expired: u64,
    /// Expired tasks that vanished.
    pub forgotten: u64,
    /// Whether a batch (expired results or lost leases) was full, so that more may be due at once.
    pub more: bool,
}
