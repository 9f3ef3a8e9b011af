//! Ended tasks that were read a moment ago, for those that are polled again and again. An entry is shown for a limited
//! time; what this process changes, and what others say that they changed, replaces or ends it at once. A task that
//! waits or runs has no entry: whoever polls it through several processes would see it go back. While the server cannot
//! be reached, an entry is shown for longer.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kinora_contract::lifecycle::Record;
use kinora_contract::{Clock, TaskId};

use crate::PostgresOptions;

/// What an entry takes besides its record, in bytes.
const ENTRY_BYTES: u64 = 128;

/// Records by their ids.
#[derive(Debug)]
pub(super) struct Cache {
    clock: Arc<dyn Clock>,
    age_max: Duration,
    last_known_max: Duration,
    bytes_max: u64,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    entries: HashMap<TaskId, Entry>,
    /// In the order in which they were put, with those that were replaced since.
    order: VecDeque<(TaskId, u64)>,
    bytes: u64,
    /// Of the entry that was put last.
    number: u64,
    /// When a notice came that did not say which tasks were changed.
    cleared: Option<Duration>,
}

#[derive(Debug)]
struct Entry {
    record: Option<Arc<Record>>,
    /// When it stood so.
    at: Duration,
    number: u64,
}

impl Entry {
    fn bytes(&self) -> u64 {
        ENTRY_BYTES
            + self
                .record
                .as_ref()
                .map_or(0, |record| record.memory_bytes())
    }
}

impl Cache {
    pub(super) fn new(clock: Arc<dyn Clock>, options: &PostgresOptions) -> Self {
        Self {
            clock,
            age_max: Duration::from_millis(options.cached_ms_max),
            last_known_max: Duration::from_millis(options.last_known_ms_max),
            bytes_max: options.cached_bytes_max,
            kept: Mutex::default(),
        }
    }

    /// The record or its absence, if that is known for the present.
    pub(super) fn get(&self, id: TaskId) -> Option<Option<Arc<Record>>> {
        let now = self.clock.steady();
        let kept = self.kept();
        let entry = kept.entries.get(&id)?;
        let is_fresh = now.saturating_sub(entry.at) < self.age_max;
        is_fresh.then(|| entry.record.clone())
    }

    /// The record or its absence as it was known last: while the server cannot be asked.
    pub(super) fn get_last(&self, id: TaskId) -> Option<Option<Arc<Record>>> {
        let now = self.clock.steady();
        let kept = self.kept();
        let entry = kept.entries.get(&id)?;
        let is_recent = now.saturating_sub(entry.at) < self.last_known_max;
        is_recent.then(|| entry.record.clone())
    }

    /// The present, for [`Cache::offer`].
    pub(super) fn now(&self) -> Duration {
        self.clock.steady()
    }

    /// Keeps what was read by a question that was asked at this time, unless it is known better by now.
    pub(super) fn offer(&self, id: TaskId, record: Arc<Record>, asked: Duration) {
        let mut kept = self.kept();
        let is_older = |entry: &Entry| asked <= entry.at;
        let is_cleared = kept.cleared.is_some_and(|cleared| asked <= cleared);
        if !is_cleared && !kept.entries.get(&id).is_some_and(is_older) {
            self.keep(&mut kept, id, Some(record), asked);
        }
    }

    /// Keeps what this process has committed.
    pub(super) fn put(&self, id: TaskId, record: Option<Arc<Record>>) {
        let now = self.clock.steady();
        self.keep(&mut self.kept(), id, record, now);
    }

    /// Forgets tasks that another process has changed; all, where it does not say which.
    pub(super) fn forget(&self, ids: Option<&[TaskId]>) {
        let now = self.clock.steady();
        let mut kept = self.kept();
        let Some(ids) = ids else {
            *kept = Kept {
                number: kept.number,
                cleared: Some(now),
                ..Kept::default()
            };
            return;
        };
        for id in ids {
            kept.remove(*id);
        }
    }

    fn keep(&self, kept: &mut Kept, id: TaskId, record: Option<Arc<Record>>, at: Duration) {
        kept.remove(id);
        let may_change = |record: &Arc<Record>| !record.is_terminal();
        if self.age_max.is_zero() || record.as_ref().is_some_and(may_change) {
            return;
        }
        kept.number += 1;
        let number = kept.number;
        let entry = Entry { record, at, number };
        kept.bytes += entry.bytes();
        kept.order.push_back((id, number));
        kept.entries.insert(id, entry);
        while kept.bytes > self.bytes_max || kept.order.len() > 2 * kept.entries.len() + 1_024 {
            let Some((id, number)) = kept.order.pop_front() else {
                break;
            };
            if kept
                .entries
                .get(&id)
                .is_some_and(|entry| entry.number == number)
            {
                kept.remove(id);
            }
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn remove(&mut self, id: TaskId) {
        if let Some(entry) = self.entries.remove(&id) {
            self.bytes = self.bytes.saturating_sub(entry.bytes());
        }
    }
}
