//! Expiry: requests and answers of [`crate::Chores::sweep`] and [`crate::Chores::postpone`].

use std::ops::Range;
use std::sync::Arc;

use kinora_contract::lifecycle::{Event, Record, Verdict};
use kinora_contract::{Phase, SteadyMs, UnixMs};

use crate::queue::alone::Company;

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

/// Part of a sweep: rows of one kind, of which a batch is dealt with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Running tasks whose leases have run out: [`SweepRequest::lost`].
    Leases,
    /// Tasks that have waited too long at this time: [`SweepRequest::late`].
    Waiting { now_ms: UnixMs },
    /// Tombstones that expired at this time or before: they vanish.
    Tombstones { until_ms: UnixMs },
    /// Results (or failures) of this phase that expire at this time or before.
    Results { phase: Phase, now_ms: UnixMs },
    /// Idempotency keys that were bound until this time or before: they are freed.
    Keys { until_ms: UnixMs },
}

impl SweepRequest {
    /// The parts of the sweep, in their order: all but the leases by the wall clock, if it is trusted. Tombstones come
    /// before results, so that no task goes both ways in one sweep.
    pub(crate) fn parts(&self) -> Vec<Part> {
        let leases = (!self.spares_leases).then_some(Part::Leases);
        let Some(now_ms) = self.due_ms else {
            return leases.into_iter().collect();
        };
        let tombstones = now_ms.checked_sub(self.tombstone_ms);
        let keys = now_ms.checked_sub(self.keys_kept_ms);
        let results = |phase| Some(Part::Results { phase, now_ms });
        let parts = [
            leases,
            Some(Part::Waiting { now_ms }),
            tombstones.map(|until_ms| Part::Tombstones { until_ms }),
            results(Phase::Completed),
            results(Phase::Failed),
            keys.map(|until_ms| Part::Keys { until_ms }),
        ];
        parts.into_iter().flatten().collect()
    }

    /// A batch of these running tasks whose leases have run out, those that ran out first first. Each is judged by all
    /// that ran at the deaths, before any of them is taken up.
    pub(crate) fn lost<'a>(
        &self,
        running: impl Iterator<Item = &'a Arc<Record>>,
        steady_ms: SteadyMs,
    ) -> Vec<(Arc<Record>, Verdict)> {
        let running: Vec<_> = running.collect();
        let company = Company::of(running.iter().map(|record| &***record));
        let until = |record: &Record| -> SteadyMs {
            let held = record.lease.as_ref();
            held.map_or(0, |held| held.until_steady_ms)
        };
        let lost = running.into_iter();
        let lost = lost.filter(|record| until(record) <= steady_ms);
        let mut lost: Vec<_> = lost.cloned().collect();
        lost.sort_by_key(|record| (until(record), record.seq));
        lost.truncate(self.batch);
        let judged = |record: Arc<Record>| {
            let verdict = company.judge(&record, self.attempts_max);
            (record, verdict)
        };
        lost.into_iter().map(judged).collect()
    }

    /// What happens to a task whose lease has run out.
    pub(crate) const fn worker_lost(&self, verdict: Verdict, now_ms: UnixMs) -> Event {
        Event::WorkerLost {
            verdict,
            now_ms,
            retention_ms: self.retention_ms,
        }
    }

    /// A batch of these tasks that have waited too long for their first worker, the oldest first.
    pub(crate) fn late<'a>(
        &self,
        unfinished: impl Iterator<Item = &'a Arc<Record>>,
        now_ms: UnixMs,
    ) -> Vec<Arc<Record>> {
        let Some(before_ms) = self.late_before_ms(now_ms) else {
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

    /// A task that waits since then or before is late.
    fn late_before_ms(&self, now_ms: UnixMs) -> Option<UnixMs> {
        self.waiting_ms_max.and_then(|max| now_ms.checked_sub(max))
    }

    /// Creation times of late tasks: by a clock that was corrected, and by the present one. For stores that look for
    /// them by an index.
    pub(crate) fn late_creations(&self, now_ms: UnixMs) -> Option<[Range<UnixMs>; 2]> {
        let end_ms = self.late_before_ms(now_ms)?.saturating_add(1);
        let from = &self.waiting_from;
        let corrected = match from.from_ms < end_ms {
            true => 0..end_ms.min(from.created_before_ms),
            false => 0..0,
        };
        Some([corrected, from.created_before_ms..end_ms])
    }

    /// What happens to a task that has waited too long.
    pub(crate) const fn waited_too_long(&self, now_ms: UnixMs) -> Event {
        Event::WaitedTooLong {
            now_ms,
            retention_ms: self.retention_ms,
        }
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

impl Swept {
    /// Counts a task whose lease has run out.
    pub(crate) const fn add_lost(&mut self, verdict: Verdict) {
        match verdict {
            Verdict::Lost => self.lost += 1,
            Verdict::Again | Verdict::Spared => self.requeued += 1,
        }
    }

    /// Adds a part with its rows (of [`Part::Leases`] each is counted by itself).
    pub(crate) const fn add(&mut self, part: Part, rows: u64, batch: usize) {
        match part {
            Part::Leases | Part::Keys { .. } => {}
            Part::Waiting { .. } => self.waited += rows,
            Part::Tombstones { .. } => self.forgotten += rows,
            Part::Results { .. } => self.expired += rows,
        }
        self.more |= rows >= batch as u64;
    }
}
