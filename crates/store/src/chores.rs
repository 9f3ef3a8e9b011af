//! The store for cleaning up: the trait [`ChoreStore`], leased work to do elsewhere, and the requests and
//! answers of a sweep, which selects the tasks whose time is up. It holds these selections against a
//! wall clock that was wrong: without a trusted time, only leases end.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use kinora_contract::lifecycle::{CallOff, DeathVerdict, TaskEvent, TaskRecord};
use kinora_contract::{ClockReading, LeaseMs, Task, TaskId, TaskPhase, UnixMs};

use crate::present_time::PresentTime;
use crate::queue::claiming::WorkerRuns;
use crate::{StoreError, TaskReader};

/// Maximum time until a chore is due: longer than every lease and pause. One that seems to be due
/// later was stamped by a wrong clock, and counts as due.
pub(crate) const AHEAD_MS_MAX: u64 = 2 * 60 * 60 * 1000;
/// Lease of the chores that a deletion gives to its caller.
pub(crate) const DELETION_LEASE_MS: u64 = 60_000;

/// Work that any process may do for the store. Chores are leased: no two processes do the same one
/// at the same time, and another process takes over from a holder that died.
#[async_trait]
pub trait ChoreStore: TaskReader {
    /// Both clocks of the store, which determine all of its times.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be reached.
    async fn clock(&self) -> Result<ClockReading, StoreError>;

    /// Cleans up: expired leases go back to the queue or, after the last attempt, fail with
    /// `worker_lost`. If the same worker ran other tasks at the time, which may be the cause, the
    /// attempt is forgiven instead, and the task runs alone from then on. Tasks that waited too
    /// long fail with `task_expired`; finished tasks past `expires_at` become `Expired`, and much
    /// later are removed; old idempotency keys are removed. Leases are judged by steady time, and
    /// those of an earlier process are over; everything else by the wall clock, if it is trusted.
    /// No task expires and is removed in the same sweep: a tombstone's time counts from the sweep
    /// that made it.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be written now.
    async fn sweep(&self, request: SweepRequest) -> Result<SweepReport, StoreError>;

    /// Postpones the expiry of ended tasks, those that expire last first. Returns where to
    /// continue, or `None` when all are postponed.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be written now.
    async fn postpone(&self, request: PostponeRequest) -> Result<Option<ExpiryCursor>, StoreError>;

    /// Leases due chores, oldest first.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be written now.
    async fn lease_chores(&self, request: ChoreRequest) -> Result<Vec<Chore>, StoreError>;

    /// Reports the outcome of chores. If a chore's lease has ended and another process holds it,
    /// nothing changes.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be written now.
    async fn complete_chores(&self, done: Vec<ChoreDone>) -> Result<(), StoreError>;

    /// Looks up the tasks with these ids, in order. A task that this version cannot read gives an
    /// error for that id alone.
    ///
    /// # Errors
    /// [`StoreError`] if they cannot be read.
    async fn find_tasks(
        &self,
        ids: &[TaskId],
    ) -> Result<Vec<Result<Option<Arc<Task>>, StoreError>>, StoreError>;

    /// Looks up which of these keys have the bytes of uploaded files.
    ///
    /// # Errors
    /// [`StoreError`] if they cannot be read.
    async fn find_uploads(&self, keys: &[String]) -> Result<HashSet<String>, StoreError>;

    /// This store's own random number: it distinguishes stores that share a result store.
    fn identity(&self) -> u64;
}

/// A request for chores.
#[derive(Clone, Debug)]
pub struct ChoreRequest {
    /// Kind of chore.
    pub kind: ChoreKind,
    /// Maximum number of chores.
    pub count: usize,
    /// Length of the lease in milliseconds. A chore that is not settled by then may be taken again.
    pub lease_ms: u64,
}

/// The kinds of chores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChoreKind {
    /// Files to remove from the blob store.
    RemoveFile,
    /// Upstream jobs to cancel, for models that the caller serves.
    CallOff {
        /// The models.
        models: Vec<String>,
    },
    /// The search for orphaned files: a single chore that recurs.
    LookForOrphans,
}

/// A leased chore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chore {
    /// Number of its row.
    pub number: u64,
    /// Distinguishes this lease from earlier and later ones of the same chore.
    pub token: u64,
    /// Number of times it was taken, including this one.
    pub attempts: u32,
    /// The work.
    pub work: ChoreWork,
}

/// The work of a chore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChoreWork {
    /// Remove the file with this blob key. It may be gone already.
    RemoveFile(String),
    /// Cancel an upstream job.
    CallOff(CallOff),
    /// Search for files that no task refers to.
    LookForOrphans,
}

/// The outcome of a chore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChoreDone {
    /// The chore.
    pub chore: Chore,
    /// `None`: done for good. Otherwise the chore is due again after this many milliseconds.
    pub again_after_ms: Option<u64>,
}

impl Chore {
    /// The outcome that it is done for good.
    #[must_use]
    pub const fn done(self) -> ChoreDone {
        ChoreDone {
            chore: self,
            again_after_ms: None,
        }
    }

    /// The outcome that it must be repeated after a pause.
    #[must_use]
    pub const fn again(self, after_ms: u64) -> ChoreDone {
        ChoreDone {
            chore: self,
            again_after_ms: Some(after_ms),
        }
    }
}

/// Parameters of a sweep.
#[derive(Clone, Copy, Debug)]
pub struct SweepRequest {
    /// The current time by the store's wall clock ([`crate::ChoreStore::clock`]), if the caller trusts
    /// that reading. Without it no result expires, no tombstone or idempotency key is removed, and
    /// no wait is too long.
    pub due_ms: Option<UnixMs>,
    /// How much longer idempotency keys stay bound, in milliseconds: the amount that the wall clock
    /// was set forward within the lifetime of a key.
    pub keys_kept_ms: u64,
    /// How far back waiting counts.
    pub waiting_from: WaitingFrom,
    /// After this many attempts a lost task fails.
    pub attempts_max: u32,
    /// Length of the leases of runs, in milliseconds.
    pub lease_ms: u64,
    /// Ignores running tasks: for the time after an outage of the store, during which leases could
    /// not be renewed.
    pub spares_leases: bool,
    /// A task that has waited this long for its first worker fails with `task_expired`; `None`: no
    /// limit. The wait begins at the end of the last pause of its model ([`crate::PauseStore`]), if
    /// the task is older; while the model is paused it does not end.
    pub waiting_ms_max: Option<u64>,
    /// How long to keep a task that fails in this sweep.
    pub retention_ms: u64,
    /// How long to keep a task whose row cannot be read, from its creation, since its end is unknown: as
    /// long as any task.
    pub unreadable_ms: u64,
    /// How long requests for an expired task get 410.
    pub tombstone_ms: u64,
    /// Maximum number of rows of each kind, which keeps a sweep from blocking submits for long.
    pub batch: usize,
}

/// A task created before `created_before_ms`, by a clock that has been corrected since, counts as
/// created at `from_ms`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitingFrom {
    /// The tasks that this applies to.
    pub created_before_ms: UnixMs,
    /// The start of their wait.
    pub from_ms: UnixMs,
}

/// Part of a sweep: rows of one kind, handled in a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SweepStep {
    /// Running tasks whose leases have expired: [`SweepRequest::lost`].
    Leases,
    /// Tasks that have waited too long at this time: [`SweepRequest::late`].
    Waiting { now_ms: UnixMs },
    /// Tombstones that expired at this time or before: they are removed.
    Tombstones { until_ms: UnixMs },
    /// Results (or failures) of this phase that expire at this time or before.
    Results { phase: TaskPhase, now_ms: UnixMs },
    /// Idempotency keys bound until this time or before: they become free.
    Keys { until_ms: UnixMs },
}

impl SweepRequest {
    /// The parts of the sweep, in order: all but the leases depend on the wall clock, if it is
    /// trusted. Tombstones come before results, so that no task takes both steps in one sweep.
    pub(crate) fn parts(&self) -> Vec<SweepStep> {
        let leases = (!self.spares_leases).then_some(SweepStep::Leases);
        let Some(now_ms) = self.due_ms else {
            return leases.into_iter().collect();
        };
        // `None` if the clock shows a time so early that nothing of this kind can be due.
        let tombstones = now_ms.checked_sub(self.tombstone_ms);
        let keys = now_ms.checked_sub(self.keys_kept_ms);
        let [completed, failed] = [TaskPhase::Completed, TaskPhase::Failed]
            .map(|phase| SweepStep::Results { phase, now_ms });
        let parts = [
            leases,
            Some(SweepStep::Waiting { now_ms }),
            tombstones.map(|until_ms| SweepStep::Tombstones { until_ms }),
            Some(completed),
            Some(failed),
            keys.map(|until_ms| SweepStep::Keys { until_ms }),
        ];
        parts.into_iter().flatten().collect()
    }

    /// A batch of those running tasks whose leases have expired, earliest first. Each is judged by
    /// all tasks that ran at the deaths, before any of them changes.
    pub(crate) fn lost<'a>(
        &self,
        running: impl Iterator<Item = &'a Arc<TaskRecord>>,
        now: &PresentTime,
    ) -> Vec<(Arc<TaskRecord>, DeathVerdict)> {
        let running: Vec<_> = running.collect();
        // Counted over all running tasks, not only the lost ones of this batch: a dead worker's leases end at
        // different times, and a task whose lease still lasts may be the one that killed it.
        let company = WorkerRuns::from_running(running.iter().map(|record| &***record));
        let mut lost: Vec<(LeaseMs, &Arc<TaskRecord>)> = running
            .into_iter()
            .map(|record| {
                let ends_ms = record.lease.as_ref().map_or(0, |held| held.ends_ms);
                (ends_ms, record)
            })
            .filter(|(ends_ms, _)| now.is_over(*ends_ms, self.lease_ms))
            .collect();
        lost.sort_by_key(|(ends_ms, record)| (*ends_ms, record.seq));
        lost.truncate(self.batch);
        lost.into_iter()
            .map(|(_, record)| (record.clone(), company.evaluate(record, self.attempts_max)))
            .collect()
    }

    /// The event for a task whose lease has expired.
    pub(crate) const fn worker_lost(&self, verdict: DeathVerdict, now_ms: UnixMs) -> TaskEvent {
        TaskEvent::WorkerLost {
            verdict,
            now_ms,
            retention_ms: self.retention_ms,
        }
    }

    /// A batch of those tasks that have waited too long for their first worker, oldest first, without
    /// those of the `spared` models.
    pub(crate) fn late<'a>(
        &self,
        unfinished: impl Iterator<Item = &'a Arc<TaskRecord>>,
        spared: &[String],
        now_ms: UnixMs,
    ) -> Vec<Arc<TaskRecord>> {
        let Some(before_ms) = self.late_before_ms(now_ms) else {
            return Vec::new();
        };
        let mut late: Vec<_> = unfinished
            .filter(|record| {
                record.awaits_first_worker()
                    && !spared.contains(&record.task.spec.model)
                    && self.waiting_from.since_ms(record.task.created_at_ms) <= before_ms
            })
            .cloned()
            .collect();
        late.sort_by_key(|record| record.seq);
        late.truncate(self.batch);
        late
    }

    /// Tasks that have waited since this time or earlier are late.
    pub(crate) fn late_before_ms(&self, now_ms: UnixMs) -> Option<UnixMs> {
        self.waiting_ms_max.and_then(|max| now_ms.checked_sub(max))
    }

    /// Ranges of creation times of late tasks: by a clock that was corrected, and by the current
    /// one. For stores that search by an index.
    pub(crate) fn late_creations(&self, now_ms: UnixMs) -> Option<[Range<UnixMs>; 2]> {
        let end_ms = self.late_before_ms(now_ms)?.saturating_add(1);
        let from = &self.waiting_from;
        // The same condition as in `late`, as ranges of the indexed column. A task created before the
        // correction waits since `from_ms` at the earliest: if that is not late, none of them is.
        let corrected = if from.from_ms < end_ms {
            0..end_ms.min(from.created_before_ms)
        } else {
            0..0
        };
        Some([corrected, from.created_before_ms..end_ms])
    }

    /// The event for a task that has waited too long.
    pub(crate) const fn waited_too_long(&self, now_ms: UnixMs) -> TaskEvent {
        TaskEvent::WaitedTooLong {
            now_ms,
            retention_ms: self.retention_ms,
        }
    }
}

impl WaitingFrom {
    /// The start of the wait of a task that was created at this time.
    fn since_ms(&self, created_at_ms: UnixMs) -> UnixMs {
        if created_at_ms < self.created_before_ms {
            created_at_ms.max(self.from_ms)
        } else {
            created_at_ms
        }
    }
}

/// A request to keep ended tasks longer, because their end was stamped by a clock that has been
/// corrected since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PostponeRequest {
    /// The tasks that ended at this time or later.
    pub from_ms: UnixMs,
    /// The tasks that ended before this time.
    pub before_ms: UnixMs,
    /// The added time.
    pub by: PostponedExpiry,
    /// How long ended tasks are kept, in milliseconds.
    pub retention_ms: u64,
    /// The tasks that expire before this place: where the last call ended, or
    /// [`ExpiryCursor::END`].
    pub below: ExpiryCursor,
    /// Maximum number of tasks.
    pub batch: usize,
}

/// The new expiry of an ended task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PostponedExpiry {
    /// [`PostponeRequest::retention_ms`] after the task's end, and this much later. Repeatable: several
    /// processes that postpone a task for the same step of the clock set the same expiry.
    By(u64),
    /// As long after this moment as the expiry was after the end of the task, if the expiry is before
    /// [`PostponeRequest::before_ms`]: a postponed task is not postponed again.
    From(UnixMs),
}

impl PostponeRequest {
    /// Whether this applies to a task that ended at this time.
    pub(crate) fn applies_to(&self, ended_at_ms: UnixMs) -> bool {
        (self.from_ms..self.before_ms).contains(&ended_at_ms)
    }

    /// The new expiry of a task that ended at `ended_at_ms`.
    pub(crate) fn new_expiry(&self, expires_at_ms: UnixMs, ended_at_ms: Option<UnixMs>) -> UnixMs {
        let ended_at_ms = ended_at_ms.unwrap_or(expires_at_ms);
        match self.by {
            PostponedExpiry::By(by_ms) => {
                let kept_ms = self.retention_ms.saturating_add(by_ms);
                // Computed from the end, not from the present expiry: adding to that would postpone
                // a task once for each process that notices the step.
                expires_at_ms.max(ended_at_ms.saturating_add(kept_ms))
            }
            PostponedExpiry::From(from_ms) => {
                from_ms.saturating_add(expires_at_ms.saturating_sub(ended_at_ms))
            }
        }
    }

    /// Tasks that expire at this time or later are not postponed.
    pub(crate) const fn expires_before_ms(&self) -> UnixMs {
        match self.by {
            PostponedExpiry::By(_) => UnixMs::MAX,
            PostponedExpiry::From(_) => self.before_ms,
        }
    }
}

/// A place among the ended tasks, in the order in which they expire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ExpiryCursor {
    /// The expiry.
    pub expires_at_ms: UnixMs,
    /// Distinguishes tasks that expire at the same time.
    pub number: u64,
}

impl ExpiryCursor {
    /// After all tasks.
    pub const END: Self = Self {
        expires_at_ms: UnixMs::MAX,
        number: u64::MAX,
    };
}

/// Result of a sweep.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SweepReport {
    /// Number of tasks that went back to the queue.
    pub requeued: u64,
    /// Number of tasks that failed with `worker_lost`.
    pub lost: u64,
    /// Number of tasks that failed with `task_expired`.
    pub waited: u64,
    /// Number of tasks whose files expired.
    pub expired: u64,
    /// Number of expired tasks that were removed.
    pub forgotten: u64,
    /// Number of uploaded files that were removed.
    pub files: u64,
    /// Whether the batch of any part was full, so that more rows may be due now.
    pub more: bool,
}

impl SweepReport {
    /// Counts a task whose lease has expired.
    pub(crate) const fn add_lost(&mut self, verdict: DeathVerdict) {
        match verdict {
            DeathVerdict::Lost => self.lost += 1,
            DeathVerdict::Again | DeathVerdict::Spared => self.requeued += 1,
        }
    }

    /// Counts the rows of a part (for [`SweepStep::Leases`], each is counted separately).
    pub(crate) const fn add(&mut self, part: SweepStep, rows: u64, batch: usize) {
        match part {
            SweepStep::Leases | SweepStep::Keys { .. } => {}
            SweepStep::Waiting { .. } => self.waited += rows,
            SweepStep::Tombstones { .. } => self.forgotten += rows,
            SweepStep::Results { .. } => self.expired += rows,
        }
        self.more |= rows >= batch as u64;
    }
}
