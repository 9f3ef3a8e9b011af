//! Recently read ended tasks, for clients that poll them again and again. An entry lasts for a
//! limited time; a change by this process or a notice of a change by another replaces or ends it at
//! once. A waiting or running task has no entry: a client that polls several processes would see it
//! go back. While the server is unreachable, entries last longer.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kinora_contract::lifecycle::Record;
use kinora_contract::{Clock, TaskId};

use crate::PostgresOptions;

/// Size of an entry without its record, in bytes.
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
    /// Keys in the order of their insertion, including replaced ones.
    order: VecDeque<(TaskId, u64)>,
    bytes: u64,
    /// Number of the latest entry.
    number: u64,
    /// Time of a notice that did not name the changed tasks.
    cleared: Option<Duration>,
}

#[derive(Debug)]
struct Entry {
    record: Option<Arc<Record>>,
    /// Time at which the record was current.
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

    /// The record or its absence, if known for the present.
    pub(super) fn get(&self, id: TaskId) -> Option<Option<Arc<Record>>> {
        let now = self.clock.steady();
        let kept = self.kept();
        let entry = kept.entries.get(&id)?;
        let is_fresh = now.saturating_sub(entry.at) < self.age_max;
        is_fresh.then(|| entry.record.clone())
    }

    /// The last known record or its absence, for use while the server is unreachable.
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

    /// Keeps the answer to a question asked at this time, unless a newer state is known.
    pub(super) fn offer(&self, id: TaskId, record: Arc<Record>, asked: Duration) {
        let mut kept = self.kept();
        let is_older = |entry: &Entry| asked <= entry.at;
        let is_cleared = kept.cleared.is_some_and(|cleared| asked <= cleared);
        if !is_cleared && !kept.entries.get(&id).is_some_and(is_older) {
            self.keep(&mut kept, id, Some(record), asked);
        }
    }

    /// Keeps a change that this process has committed.
    pub(super) fn put(&self, id: TaskId, record: Option<Arc<Record>>) {
        let now = self.clock.steady();
        self.keep(&mut self.kept(), id, record, now);
    }

    /// Forgets the tasks that another process has changed; all of them if it does not name them.
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
