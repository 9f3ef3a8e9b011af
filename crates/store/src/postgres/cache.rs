//! Tasks that were read a moment ago, for those that are polled again and again. An entry is shown for a limited time; what
//! this process changes, and what others say that they changed, replaces or ends it at once. While the server cannot be
//! reached, an ended task is shown for longer.
//!
//! No poll of this process sees a task go back. Each entry knows until when its task may have been read, and only what was
//! asked for after that replaces it. Of two states that were read or written at the same time nobody knows which is the
//! later one: then the entry knows nothing, and the next poll reads. These times are places in the order of events in this
//! process, which no clock can tell apart.

mod kept;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kinora_contract::lifecycle::Record;
use kinora_contract::{Clock, TaskId};
use tokio::sync::Notify;

pub(super) use self::kept::{Begun, Seen};
use self::kept::{Kept, Known};
use super::rows::Version;
use crate::PostgresOptions;
use crate::queue::Change;

/// Records by their ids.
#[derive(Debug)]
pub(super) struct Cache {
    clock: Arc<dyn Clock>,
    age_max: Duration,
    polled_age_max: Duration,
    last_known_max: Duration,
    /// The last place in the order of events.
    place: AtomicU64,
    kept: Mutex<Kept>,
    /// A task is polled that was not polled lately.
    pub(super) polled: Arc<Notify>,
}

impl Cache {
    pub(super) fn new(clock: Arc<dyn Clock>, options: &PostgresOptions) -> Self {
        Self {
            clock,
            age_max: Duration::from_millis(options.cached_ms_max),
            polled_age_max: Duration::from_millis(options.polled_ms_max),
            last_known_max: Duration::from_millis(options.last_known_ms_max),
            place: AtomicU64::new(0),
            kept: Mutex::new(Kept::bounded(
                options.cached_bytes_max,
                options.cached_ms_max > 0,
            )),
            polled: Arc::default(),
        }
    }

    /// An ended task or its absence, if that is known for the present.
    pub(super) fn get(&self, id: TaskId) -> Option<Option<Arc<Record>>> {
        self.kept().look(id)?.if_ended(self.now(), self.age_max)
    }

    /// The same, and an unfinished task as a poll may show it.
    pub(super) fn poll(&self, id: TaskId) -> Option<Option<Arc<Record>>> {
        let now = self.now();
        let mut kept = self.kept();
        let entry = kept.look(id)?;
        if let Some(found) = entry.if_ended(now, self.age_max) {
            return Some(found);
        }
        let found = entry.if_unfinished(now, self.polled_age_max)?;
        if kept.watch(id) {
            self.polled.notify_one();
        }
        Some(Some(found))
    }

    /// An ended task or its absence, as it was known last: while the server cannot be asked.
    pub(super) fn get_last(&self, id: TaskId) -> Option<Option<Arc<Record>>> {
        let kept = self.kept();
        kept.look(id)?.if_ended(self.now(), self.last_known_max)
    }

    /// Whether unfinished tasks are kept.
    pub(super) fn keeps_unfinished(&self) -> bool {
        !self.polled_age_max.is_zero()
    }

    /// Makes room for an unfinished task that is going to be read for a poll.
    pub(super) fn expect(&self, id: TaskId) {
        if self.keeps_unfinished() {
            let place = self.next();
            self.kept().expect(id, place);
        }
    }

    /// For a question or a transaction, before it is sent.
    pub(super) fn begin(&self) -> Begun {
        Begun {
            at: self.now(),
            place: self.next(),
        }
    }

    /// Keeps what a question found, unless it is known better by now. Returns the record to be shown: the one that was
    /// shown before, if it is the same.
    pub(super) fn offer(
        &self,
        id: TaskId,
        seen: Option<Seen>,
        begun: Begun,
    ) -> Option<Arc<Record>> {
        let mut kept = self.kept();
        let by = self.next();
        match seen {
            None => {
                kept.offer_absence(id, begun, by);
                None
            }
            Some(seen) => Some(
                kept.note(id, Known::Task(seen.clone()), begun, by)
                    .unwrap_or(seen.record),
            ),
        }
    }

    /// Keeps what a transaction of this process has changed: of several changes of a task, which have one version, the last.
    pub(super) fn put_all(&self, changes: &[Change], version: Option<Version>, begun: Begun) {
        let mut kept = self.kept();
        let by = self.next();
        let last: HashMap<TaskId, &Change> =
            changes.iter().map(|change| (change.id, change)).collect();
        for change in last.into_values() {
            let known = change.after.clone().map_or(Known::Absent, |record| {
                Known::Task(Seen { record, version })
            });
            kept.note(change.id, known, begun, by);
        }
    }

    /// Others may be shown something later than this process keeps: it forgets unfinished tasks of another version than
    /// these, or of any.
    pub(super) fn compare(&self, seen: impl Iterator<Item = (TaskId, Option<Version>)>) {
        if !self.keeps_unfinished() {
            return;
        }
        let mut kept = self.kept();
        let by = self.next();
        for (id, version) in seen {
            kept.compare(id, version, by);
        }
    }

    /// Forgets the tasks that another process has changed; all of them if it does not name them.
    pub(super) fn forget(&self, ids: Option<&[TaskId]>) {
        let mut kept = self.kept();
        let by = self.next();
        match ids {
            None => kept.clear(by),
            Some(ids) => ids.iter().for_each(|id| kept.forget(*id, by)),
        }
    }

    /// Forgets the unfinished ones of these tasks, which another process has changed. The change may be the end of one
    /// that this process has already read, and shows while the server is away.
    pub(super) fn forget_unfinished(&self, ids: &[TaskId]) {
        let mut kept = self.kept();
        let by = self.next();
        ids.iter().for_each(|id| kept.forget_unfinished(*id, by));
    }

    /// Forgets versions, and unfinished tasks, which only versions keep young: another server may use them for other rows.
    pub(super) fn forget_versions(&self) {
        let mut kept = self.kept();
        let by = self.next();
        kept.forget_versions(by);
    }

    /// Unfinished tasks that were polled lately.
    pub(super) fn watched(&self) -> Vec<(TaskId, Version)> {
        self.kept().watched()
    }

    /// These were still of this version when a question was asked.
    pub(super) fn confirm(&self, same: impl Iterator<Item = (TaskId, Version)>, begun: Begun) {
        let mut kept = self.kept();
        let by = self.next();
        for (id, version) in same {
            kept.confirm(id, version, begun, by);
        }
    }

    fn now(&self) -> Duration {
        self.clock.steady()
    }

    fn next(&self) -> u64 {
        self.place.fetch_add(1, Ordering::SeqCst) + 1
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
