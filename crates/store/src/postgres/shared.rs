//! State that the lanes and readers of a process share: its knowledge of the store, and the waiters
//! to wake.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kinora_contract::lifecycle::Hints;
use kinora_contract::{Clock, TaskId};

use super::cache::{Begun, Cache};
use super::commit::Committed;
use super::notices::Notices;
use super::runs::Runs;
use super::server_clock::ServerClock;
use super::totals::Summed;
use crate::queue::{Change, QueueEstimates};
use crate::signals::Signals;
use crate::{Outage, PostgresOptions, TaskChange, metered};

/// One instance for each handle.
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

    /// Shows what a commit has changed, whose transaction began then.
    pub(super) fn publish(&self, committed: Committed, begun: Begun) {
        metered::committed(&committed.changes);
        self.summed.follow(committed.waiting, committed.bytes);
        self.cache.put_all(&committed.changes, begun);
        self.runs.follow(&committed.changes, committed.version);
        let mut hints = Hints::default();
        for change in &committed.changes {
            self.estimates.apply(change);
            hints = hints.or(change.hints());
        }
        self.signals.wake(hints);
        // The news make other processes forget what they know of unfinished tasks.
        let had_ended =
            |change: &&Change| change.before.as_ref().is_some_and(|one| one.is_terminal());
        let remembered = committed.changes.iter().filter(had_ended);
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
