//! State that the lanes and readers of one process share: its knowledge of the store (running tasks,
//! sums over all projects, the cache, the queue estimates), and the waiters to wake after a commit.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kinora_contract::lifecycle::{TaskRecord, WakeHints};
use kinora_contract::{Clock, TaskId};
use tokio_postgres::Row;

use super::cache::{PollCache, ReadStamp};
use super::notices::NoticeQueue;
use super::rows::RowVersion;
use super::server_clock::ServerClock;
use super::session::SqlStatement;
use crate::changes::WakeSignals;
use crate::queue::{QueueEstimates, RecordChange};
use crate::{OutageLog, PostgresOptions, TaskChange, commit_metrics};

/// The changes of a committed transaction.
#[derive(Debug, Default)]
pub(super) struct CommittedChanges {
    pub(super) changes: Vec<RecordChange>,
    /// Version of the rows written by the transaction, if known.
    pub(super) version: Option<RowVersion>,
    pub(super) waiting: i64,
    pub(super) bytes: i64,
}

/// The shared state; one instance for each store handle.
#[derive(Debug)]
pub(super) struct SharedState {
    pub(super) options: PostgresOptions,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) server_clock: ServerClock,
    pub(super) totals: TotalsCache,
    pub(super) cache: PollCache,
    pub(super) runs: RunningTasks,
    pub(super) estimates: QueueEstimates,
    pub(super) notices: NoticeQueue,
    pub(super) signals: WakeSignals,
    writable: AtomicBool,
    outage: OutageLog,
}

impl SharedState {
    pub(super) fn new(options: &PostgresOptions, clock: &Arc<dyn Clock>) -> Self {
        Self {
            options: options.clone(),
            clock: clock.clone(),
            server_clock: ServerClock::new(clock.clone(), options.time),
            totals: TotalsCache::new(clock.clone(), options.totals_ms_max),
            cache: PollCache::new(clock.clone(), options),
            runs: RunningTasks::default(),
            estimates: QueueEstimates::new(clock.clone()),
            notices: NoticeQueue::default(),
            signals: WakeSignals::default(),
            writable: AtomicBool::new(true),
            outage: OutageLog::new("store writes", clock),
        }
    }

    /// Shows the changes of a commit to this process and announces them to others; `begun` is the start of its
    /// transaction.
    pub(super) fn publish(&self, committed: CommittedChanges, begun: ReadStamp) {
        commit_metrics::committed(&committed.changes);
        // The cache before the signals, so that a client that wakes finds the new state.
        self.totals.apply_commit(committed.waiting, committed.bytes);
        self.cache.store_changes(&committed.changes, begun);
        self.runs
            .apply_commit(&committed.changes, committed.version);
        let mut hints = WakeHints::default();
        for change in &committed.changes {
            self.estimates.apply(change);
            hints = hints.union(change.hints());
        }
        self.signals.wake(hints);
        // Two lists for other processes. They keep ended tasks even during an outage, so a change of one (a
        // deletion, an expiry) names it. For unfinished tasks the news are enough.
        let remembered = committed.changes.iter().filter(|change| {
            let before = change.before.as_ref();
            before.is_some_and(|before| before.is_terminal())
        });
        let news = committed.changes.iter().filter(|change| change.is_news());
        let news: Vec<TaskId> = news.map(|change| change.id).collect();
        for id in &news {
            self.signals.followers.notify(TaskChange::Of(*id));
        }
        self.notices
            .add(hints, remembered.map(|change| change.id), news);
    }

    /// Whether the last change was stored.
    pub(super) fn is_writable(&self) -> bool {
        self.writable.load(Ordering::Acquire)
    }

    /// Records whether changes are stored, or the reason that they are not.
    pub(super) fn set_writable(&self, failure: Option<&str>) {
        self.writable.store(failure.is_none(), Ordering::Release);
        match failure {
            Some(failure) => self.outage.record_failure(&failure),
            None => self.outage.record_success(),
        }
    }
}

/// Waiting tasks and stored bytes, of all projects.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct QueueTotals {
    pub(super) waiting: u64,
    pub(super) bytes: u64,
}

impl QueueTotals {
    pub(super) const fn add(&mut self, waiting: i64, bytes: i64) {
        self.waiting = self.waiting.saturating_add_signed(waiting);
        self.bytes = self.bytes.saturating_add_signed(bytes);
    }
}

/// The last sums read.
#[derive(Debug)]
pub(super) struct TotalsCache {
    clock: Arc<dyn Clock>,
    age_max: Duration,
    last: Mutex<LastTotals>,
}

#[derive(Debug, Default)]
struct LastTotals {
    totals: QueueTotals,
    /// Time of the reading, by the process's steady clock.
    read: Option<Duration>,
}

impl TotalsCache {
    fn new(clock: Arc<dyn Clock>, age_ms_max: u64) -> Self {
        Self {
            clock,
            age_max: Duration::from_millis(age_ms_max),
            last: Mutex::default(),
        }
    }

    /// The sums, if they are recent enough.
    pub(super) fn fresh(&self) -> Option<QueueTotals> {
        let last = self.last();
        let age = self.clock.steady().saturating_sub(last.read?);
        (age < self.age_max).then_some(last.totals)
    }

    /// Queries them.
    pub(super) fn select_totals() -> SqlStatement {
        SqlStatement::new(
            "SELECT coalesce(sum(waiting), 0)::bigint, coalesce(sum(bytes), 0)::bigint FROM projects",
        )
    }

    /// Keeps the answer.
    pub(super) fn store(&self, row: &Row) -> Result<QueueTotals, tokio_postgres::Error> {
        let totals = QueueTotals {
            waiting: row.try_get::<_, i64>(0)?.unsigned_abs(),
            bytes: row.try_get::<_, i64>(1)?.unsigned_abs(),
        };
        *self.last() = LastTotals {
            totals,
            read: Some(self.clock.steady()),
        };
        Ok(totals)
    }

    /// Adds a commit of this process.
    fn apply_commit(&self, waiting: i64, bytes: i64) {
        self.last().totals.add(waiting, bytes);
    }

    fn last(&self) -> MutexGuard<'_, LastTotals> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Maximum number of remembered tasks; beyond it all are forgotten, and read again when needed.
const REMEMBERED_MAX: usize = 4_096;

/// Running tasks that this process has claimed or renewed, with the versions of their rows. A claim has to
/// know what its worker runs: it reads ids and versions, and only the records that are missing here.
#[derive(Debug, Default)]
pub(super) struct RunningTasks(Mutex<HashMap<TaskId, (RowVersion, Arc<TaskRecord>)>>);

impl RunningTasks {
    /// Applies a commit of this process.
    fn apply_commit(&self, changes: &[RecordChange], version: Option<RowVersion>) {
        let mut kept = self.lock();
        for change in changes {
            match (&change.after, version) {
                (Some(after), Some(version)) if after.is_running() => {
                    if kept.len() >= REMEMBERED_MAX {
                        kept.clear();
                    }
                    kept.insert(change.id, (version, after.clone()));
                }
                _ => drop(kept.remove(&change.id)),
            }
        }
    }

    /// The record of this version.
    pub(super) fn get(&self, id: TaskId, version: RowVersion) -> Option<Arc<TaskRecord>> {
        let kept = self.lock();
        let (known, record) = kept.get(&id)?;
        (*known == version).then(|| record.clone())
    }

    /// Forgets all tasks: another server may use the same versions for other rows.
    pub(super) fn clear(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<TaskId, (RowVersion, Arc<TaskRecord>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use kinora_contract::TaskState;
    use kinora_contract::lifecycle::StoredLease;

    use super::*;
    use crate::conformance::fixtures::{NOW, id, task};

    fn changed(number: u64, is_running: bool) -> RecordChange {
        let mut task = task(number, "one").accepted(id(number), NOW);
        let mut lease = None;
        if is_running {
            task.state = TaskState::Running;
            lease = Some(StoredLease {
                token: 1,
                worker: "worker".to_owned(),
                until_ms: NOW,
                ends_ms: NOW,
            });
        }
        let mut record = TaskRecord::accepted(number, task);
        record.lease = lease;
        RecordChange {
            id: id(number),
            before: None,
            after: Some(Arc::new(record)),
        }
    }

    #[test]
    fn a_record_is_known_in_its_version_while_it_runs() {
        let (runs, versions) = (
            RunningTasks::default(),
            [7, 8].map(RowVersion::of_transaction),
        );
        runs.apply_commit(&[changed(1, true)], Some(versions[0]));
        assert!(runs.get(id(1), versions[0]).is_some());
        assert!(runs.get(id(1), versions[1]).is_none());
        runs.apply_commit(&[changed(1, false)], Some(versions[1]));
        assert!(runs.get(id(1), versions[1]).is_none());
        runs.apply_commit(&[changed(1, true)], None);
        assert!(
            versions
                .iter()
                .all(|version| runs.get(id(1), *version).is_none())
        );
    }

    #[test]
    fn p08_a_bounded_number_is_known() {
        let (runs, version) = (RunningTasks::default(), RowVersion::of_transaction(7));
        for number in 0..3 * REMEMBERED_MAX as u64 {
            runs.apply_commit(&[changed(number, true)], Some(version));
            assert!(runs.lock().len() <= REMEMBERED_MAX);
        }
    }
}
