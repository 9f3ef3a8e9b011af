//! State that the lanes and readers of one process share: its knowledge of the store (running tasks,
//! sums over all projects, the cache, the queue estimates), and the waiters to wake after a commit.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kinora_contract::lifecycle::{Hints, Record};
use kinora_contract::{Clock, TaskId};
use tokio_postgres::Row;

use super::cache::{Begun, Cache};
use super::notices::Notices;
use super::rows::Version;
use super::server_clock::ServerClock;
use super::session::Statement;
use crate::changes::Signals;
use crate::queue::{Change, QueueEstimates};
use crate::{Outage, PostgresOptions, TaskChange, metered};

/// The changes of a committed transaction.
#[derive(Debug, Default)]
pub(super) struct Committed {
    pub(super) changes: Vec<Change>,
    /// Version of the rows written by the transaction, if known.
    pub(super) version: Option<Version>,
    pub(super) waiting: i64,
    pub(super) bytes: i64,
}

/// The shared state; one instance for each store handle.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) options: PostgresOptions,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) server_clock: ServerClock,
    pub(super) summed: Summed,
    pub(super) cache: Cache,
    pub(super) runs: Runs,
    pub(super) estimates: QueueEstimates,
    pub(super) notices: Notices,
    pub(super) signals: Signals,
    writable: AtomicBool,
    outage: Outage,
}

impl Shared {
    pub(super) fn new(options: &PostgresOptions, clock: &Arc<dyn Clock>) -> Self {
        Self {
            options: options.clone(),
            clock: clock.clone(),
            server_clock: ServerClock::new(clock.clone(), options.time),
            summed: Summed::new(clock.clone(), options.totals_ms_max),
            cache: Cache::new(clock.clone(), options),
            runs: Runs::default(),
            estimates: QueueEstimates::new(clock.clone()),
            notices: Notices::default(),
            signals: Signals::default(),
            writable: AtomicBool::new(true),
            outage: Outage::of("store writes", clock),
        }
    }

    /// Shows the changes of a commit to this process and announces them to others; `begun` is the start of its
    /// transaction.
    pub(super) fn publish(&self, committed: Committed, begun: Begun) {
        metered::committed(&committed.changes);
        // The cache before the signals, so that a client that wakes finds the new state.
        self.summed.follow(committed.waiting, committed.bytes);
        self.cache.put_all(&committed.changes, begun);
        self.runs.follow(&committed.changes, committed.version);
        let mut hints = Hints::default();
        for change in &committed.changes {
            self.estimates.apply(change);
            hints = hints.or(change.hints());
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
            self.signals.followers.tell(TaskChange::Of(*id));
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
            Some(failure) => self.outage.note_failure(&failure),
            None => self.outage.note_success(),
        }
    }
}

/// Waiting tasks and stored bytes, of all projects.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Totals {
    pub(super) waiting: u64,
    pub(super) bytes: u64,
}

impl Totals {
    pub(super) const fn add(&mut self, waiting: i64, bytes: i64) {
        self.waiting = self.waiting.saturating_add_signed(waiting);
        self.bytes = self.bytes.saturating_add_signed(bytes);
    }
}

/// The last sums read.
#[derive(Debug)]
pub(super) struct Summed {
    clock: Arc<dyn Clock>,
    age_max: Duration,
    last: Mutex<Last>,
}

#[derive(Debug, Default)]
struct Last {
    totals: Totals,
    /// Time of the reading, by the process's steady clock.
    read: Option<Duration>,
}

impl Summed {
    fn new(clock: Arc<dyn Clock>, age_ms_max: u64) -> Self {
        Self {
            clock,
            age_max: Duration::from_millis(age_ms_max),
            last: Mutex::default(),
        }
    }

    /// The sums, if they are recent enough.
    pub(super) fn fresh(&self) -> Option<Totals> {
        let last = self.last();
        let age = self.clock.steady().saturating_sub(last.read?);
        (age < self.age_max).then_some(last.totals)
    }

    /// Queries them.
    pub(super) fn ask() -> Statement {
        Statement::new(
            "SELECT coalesce(sum(waiting), 0)::bigint, coalesce(sum(bytes), 0)::bigint FROM projects",
        )
    }

    /// Keeps the answer.
    pub(super) fn keep(&self, row: &Row) -> Result<Totals, tokio_postgres::Error> {
        let totals = Totals {
            waiting: row.try_get::<_, i64>(0)?.unsigned_abs(),
            bytes: row.try_get::<_, i64>(1)?.unsigned_abs(),
        };
        *self.last() = Last {
            totals,
            read: Some(self.clock.steady()),
        };
        Ok(totals)
    }

    /// Adds a commit of this process.
    fn follow(&self, waiting: i64, bytes: i64) {
        self.last().totals.add(waiting, bytes);
    }

    fn last(&self) -> MutexGuard<'_, Last> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Maximum number of remembered tasks; beyond it all are forgotten, and read again when needed.
const KEPT_MAX: usize = 4_096;

/// Running tasks that this process has claimed or renewed, with the versions of their rows. A claim has to
/// know what its worker runs: it reads ids and versions, and only the records that are missing here.
#[derive(Debug, Default)]
pub(super) struct Runs(Mutex<HashMap<TaskId, (Version, Arc<Record>)>>);

impl Runs {
    /// Applies a commit of this process.
    fn follow(&self, changes: &[Change], version: Option<Version>) {
        let mut kept = self.kept();
        for change in changes {
            match (&change.after, version) {
                (Some(after), Some(version)) if after.is_running() => {
                    if kept.len() >= KEPT_MAX {
                        kept.clear();
                    }
                    kept.insert(change.id, (version, after.clone()));
                }
                _ => drop(kept.remove(&change.id)),
            }
        }
    }

    /// The record of this version.
    pub(super) fn get(&self, id: TaskId, version: Version) -> Option<Arc<Record>> {
        let kept = self.kept();
        let (known, record) = kept.get(&id)?;
        (*known == version).then(|| record.clone())
    }

    /// Forgets all tasks: another server may use the same versions for other rows.
    pub(super) fn clear(&self) {
        self.kept().clear();
    }

    fn kept(&self) -> MutexGuard<'_, HashMap<TaskId, (Version, Arc<Record>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use kinora_contract::State;
    use kinora_contract::lifecycle::Held;

    use super::*;
    use crate::conformance::fixtures::{NOW, id, task};

    fn changed(number: u64, is_running: bool) -> Change {
        let mut task = task(number, "one").accepted(id(number), NOW);
        let mut lease = None;
        if is_running {
            task.state = State::Running;
            lease = Some(Held {
                token: 1,
                worker: "worker".to_owned(),
                until_ms: NOW,
                ends_ms: NOW,
            });
        }
        let mut record = Record::accepted(number, task);
        record.lease = lease;
        Change {
            id: id(number),
            before: None,
            after: Some(Arc::new(record)),
        }
    }

    #[test]
    fn a_record_is_known_in_its_version_while_it_runs() {
        let (runs, versions) = (Runs::default(), [7, 8].map(Version::of_transaction));
        runs.follow(&[changed(1, true)], Some(versions[0]));
        assert!(runs.get(id(1), versions[0]).is_some());
        assert!(runs.get(id(1), versions[1]).is_none());
        runs.follow(&[changed(1, false)], Some(versions[1]));
        assert!(runs.get(id(1), versions[1]).is_none());
        runs.follow(&[changed(1, true)], None);
        assert!(
            versions
                .iter()
                .all(|version| runs.get(id(1), *version).is_none())
        );
    }

    #[test]
    fn p08_a_bounded_number_is_known() {
        let (runs, version) = (Runs::default(), Version::of_transaction(7));
        for number in 0..3 * KEPT_MAX as u64 {
            runs.follow(&[changed(number, true)], Some(version));
            assert!(runs.kept().len() <= KEPT_MAX);
        }
    }
}
