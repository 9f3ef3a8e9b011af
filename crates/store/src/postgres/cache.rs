//! Caches recently read tasks for clients that poll. A poll may show an unfinished task that is up to
//! [`PostgresOptions::polled_ms_max`] old (200 ms), and an ended task or its absence for
//! [`PostgresOptions::cached_ms_max`] (1 s), or for [`PostgresOptions::last_known_ms_max`] while the
//! server does not answer. Changes by this process show at once; notices from other processes empty
//! entries. The cache never decides anything: whatever changes a task reads the database.
//!
//! # Two clocks
//!
//! An entry has two kinds of time, which answer different questions:
//!
//! - **Age** (`at`, a [`Duration`] of the steady clock): is it fresh enough to show? It counts from the
//!   start of the query that read the state, not from its answer.
//! - **Order** (`event`, `written`, `made`, `removed_until`: all numbers of one counter): which of two states
//!   is newer? Durations cannot tell, since two events may share a millisecond.
//!
//! # No poll goes back
//!
//! Everything that reads or changes a task is an *event*. The process numbers events as it sees them: a
//! query or a transaction gets its number when it is sent, and a write to an entry gets one of its own.
//! One rule keeps the order:
//!
//! > A result replaces an entry only if its query or transaction began after the entry was written.
//! > Otherwise both overlapped and nobody knows which state is newer: the entry is emptied, and the next
//! > poll queries the server.
//!
//! Example: process P polls a task and cancels it at the same time.
//!
//! | event | number | entry |
//! |---|---|---|
//! | a poll finds no entry and makes an empty one | 1 | empty, written at 1 |
//! | it sends query A | 2 | |
//! | P's transaction for the cancel begins | 3 | |
//! | the cancel is committed | 4 | "failed", written at 4, since 3 > 1 |
//! | A answers "running": it began at 2, before 4 | 5 | empty, written at 5 |
//! | the next poll sends query B | 6 | |
//! | B answers "failed": it began at 6, after 5 | 7 | "failed", written at 7 |
//!
//! Without the rule, A would store "running", and a client that had seen "failed" would see
//! "running" again. Equal states need no order: if two overlapping queries find the same, the entry
//! stays. Only polls make entries for unfinished tasks ([`PollCache::reserve`]), before they send their query:
//! a commit in between writes to that entry, and so the query's answer is recognised as older.
//!
//! An entry that was removed cannot be compared any more. So the cache keeps `removed_until`, the highest
//! number that a removed entry may have had, and makes no entry for a result that began before it.
//!
//! # Polls rarely wait
//!
//! If the entry of an unfinished task simply ended after 200 ms, the next poll would always wait for a
//! query: five times a second for each task, behind the queries of all others. So the first poll in the
//! second half of that time is still answered from the entry, and also starts a query that nobody waits
//! for ([`PollCache::poll`]). Example: a client polls a task every 30 ms.
//!
//! | time | event | shown |
//! |---|---|---|
//! | 0 ms | no entry: the poll waits for its query | "running" as of 0 ms |
//! | 30, 60, 90 ms | polls | "running" as of 0 ms |
//! | 120 ms | a poll finds the entry older than 100 ms and begins query A | "running" as of 0 ms |
//! | 123 ms | A answers: the entry is now as of 120 ms | |
//! | 150, 180, 210 ms | polls | "running" as of 120 ms |
//! | 240 ms | a poll begins query B | "running" as of 120 ms |
//!
//! A and B replace the entry by the rule above, like any query. The age still counts from the start of
//! the query, so nothing older than 200 ms is shown. An entry has one such query at a time. If it fails or
//! takes longer than 100 ms, the entry ends as before, and the next poll waits.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kinora_contract::lifecycle::TaskRecord;
use kinora_contract::{Clock, TaskId};

use crate::queue::RecordChange;
use crate::{PostgresOptions, TaskGlance};

/// Memory of an entry without its record, in bytes.
const ENTRY_BYTES: u64 = 120;

/// Records by their ids.
#[derive(Debug)]
pub(super) struct PollCache {
    clock: Arc<dyn Clock>,
    age_max: Duration,
    polled_age_max: Duration,
    last_known_max: Duration,
    entries: Mutex<CacheEntries>,
}

/// The start of a query or a transaction: its number for the order, and the time for the age.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadStamp {
    event: u64,
    at: Duration,
}

#[derive(Debug, Default)]
struct CacheEntries {
    bytes_max: u64,
    by_id: HashMap<TaskId, CacheEntry>,
    /// Ids and `made` numbers in the order of making; removed entries stay until [`CacheEntries::shrink`].
    order: VecDeque<(TaskId, u64)>,
    bytes: u64,
    /// Number of the last event.
    event: u64,
    /// Highest `written` number of the entries that were removed.
    removed_until: u64,
}

#[derive(Debug)]
struct CacheEntry {
    state: CachedState,
    /// The steady time at which the state was known to be current.
    at: Duration,
    /// Number of the event that last wrote it.
    written: u64,
    /// Number of the event that made it; tells it from an earlier entry of the same task.
    made: u64,
    /// Whether a query to replace it has begun since it was written.
    is_refreshing: bool,
}

impl CacheEntry {
    /// The state to show at this age; `None` if it is too old, or nothing is known.
    fn visible_state(
        &self,
        age: Duration,
        ended_max: Duration,
        unfinished_max: Duration,
    ) -> Option<Option<Arc<TaskRecord>>> {
        let (record, age_max) = match &self.state {
            CachedState::Task(record) if record.is_terminal() => (Some(record), ended_max),
            CachedState::Task(record) => (Some(record), unfinished_max),
            CachedState::Absent => (None, ended_max),
            CachedState::Unknown => return None,
        };
        (age < age_max).then(|| record.cloned())
    }
}

#[derive(Clone, Debug)]
enum CachedState {
    Task(Arc<TaskRecord>),
    Absent,
    Unknown,
}

impl CachedState {
    fn from_record(record: Option<Arc<TaskRecord>>) -> Self {
        record.map_or(Self::Absent, Self::Task)
    }

    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Task(one), Self::Task(other)) => {
                Arc::ptr_eq(one, other) || one.task == other.task
            }
            (Self::Absent, Self::Absent) => true,
            _ => false,
        }
    }

    fn is_unfinished(&self) -> bool {
        matches!(self, Self::Task(record) if !record.is_terminal())
    }

    fn bytes(&self) -> u64 {
        match self {
            Self::Task(record) => ENTRY_BYTES + record.memory_bytes(),
            Self::Absent | Self::Unknown => ENTRY_BYTES,
        }
    }
}

impl PollCache {
    pub(super) fn new(clock: Arc<dyn Clock>, options: &PostgresOptions) -> Self {
        Self {
            clock,
            age_max: Duration::from_millis(options.cached_ms_max),
            polled_age_max: Duration::from_millis(options.polled_ms_max),
            last_known_max: Duration::from_millis(options.last_known_ms_max),
            entries: Mutex::new(CacheEntries {
                bytes_max: options.cached_bytes_max,
                ..CacheEntries::default()
            }),
        }
    }

    /// An ended task or its absence, if the entry is fresh.
    pub(super) fn get(&self, id: TaskId) -> Option<Option<Arc<TaskRecord>>> {
        self.find_fresh(id, self.age_max, Duration::ZERO)
    }

    /// As [`Self::get`], but may also return a slightly stale unfinished task. In the second half of an
    /// entry's time it also returns the start of a query that the caller must send to refresh the entry;
    /// one at a time.
    pub(super) fn poll(&self, id: TaskId) -> Option<(Option<Arc<TaskRecord>>, Option<ReadStamp>)> {
        let now = self.clock.steady();
        let mut entries = self.entries();
        let entry = entries.by_id.get_mut(&id)?;
        let age = now.saturating_sub(entry.at);
        let shown = entry.visible_state(age, self.age_max, self.polled_age_max)?;
        let is_due = entry.state.is_unfinished() && age >= self.polled_age_max / 2;
        if !is_due || std::mem::replace(&mut entry.is_refreshing, true) {
            return Some((shown, None));
        }
        let event = entries.next_event();
        Some((shown, Some(ReadStamp { event, at: now })))
    }

    /// The last known ended task or its absence, for use while the server does not answer.
    pub(super) fn last_known(&self, id: TaskId) -> Option<Option<Arc<TaskRecord>>> {
        self.find_fresh(id, self.last_known_max, Duration::ZERO)
    }

    fn find_fresh(
        &self,
        id: TaskId,
        ended_max: Duration,
        unfinished_max: Duration,
    ) -> Option<Option<Arc<TaskRecord>>> {
        let entries = self.entries();
        let entry = entries.by_id.get(&id)?;
        let age = self.clock.steady().saturating_sub(entry.at);
        entry.visible_state(age, ended_max, unfinished_max)
    }

    /// Makes an empty entry for a task that a poll is about to read, so that commits meanwhile leave
    /// their number there.
    pub(super) fn reserve(&self, id: TaskId) {
        let mut entries = self.entries();
        if !self.polled_age_max.is_zero() && !entries.by_id.contains_key(&id) {
            entries.insert(id, CachedState::Unknown, Duration::ZERO);
        }
    }

    /// Starts a query or a transaction. Call it before sending.
    pub(super) fn begin(&self) -> ReadStamp {
        ReadStamp {
            event: self.entries().next_event(),
            at: self.clock.steady(),
        }
    }

    /// Stores the result of a query. Returns the record to show: the cached one, if both are the same.
    pub(super) fn store_result(
        &self,
        id: TaskId,
        found: Option<Arc<TaskRecord>>,
        begun: ReadStamp,
    ) -> Option<Arc<TaskRecord>> {
        let mut entries = self.entries();
        if found.is_none() {
            match entries.by_id.get(&id) {
                // A client polls an id that was never known here: nothing to keep, or requests for
                // invented ids would fill the cache.
                None => return None,
                Some(entry)
                    if matches!(entry.state, CachedState::Unknown)
                        && begun.event > entry.written =>
                {
                    entries.remove(id);
                    return None;
                }
                Some(_) => {}
            }
        }
        let before = entries.record(
            id,
            CachedState::from_record(found.clone()),
            begun,
            self.keeps_ended(),
        );
        before.or(found)
    }

    /// Stores the changes of a transaction of this process; of several changes of a task, the last.
    pub(super) fn store_changes(&self, changes: &[RecordChange], begun: ReadStamp) {
        let mut entries = self.entries();
        let last: HashMap<TaskId, &RecordChange> =
            changes.iter().map(|change| (change.id, change)).collect();
        for change in last.into_values() {
            let state = CachedState::from_record(change.after.clone());
            entries.record(change.id, state, begun, self.keeps_ended());
        }
    }

    /// Drops cached unfinished tasks whose state differs from the one just read (`None`: unknown, drop in
    /// any case). Reads that do not go through the cache call it: a client that has seen a newer state
    /// there must not see the older one in its next poll.
    pub(super) fn drop_outdated(&self, seen: impl Iterator<Item = (TaskId, Option<TaskGlance>)>) {
        let mut entries = self.entries();
        for (id, glance) in seen {
            let state = entries.by_id.get(&id).map(|entry| &entry.state);
            if let Some(CachedState::Task(record)) = state
                && !record.is_terminal()
                && (glance.is_none() || glance != TaskGlance::from_task(&record.task))
            {
                entries.clear_entry(id);
            }
        }
    }

    /// Empties the entries of tasks that another process has changed; removes all entries for `None`.
    pub(super) fn invalidate(&self, ids: Option<&[TaskId]>) {
        let mut entries = self.entries();
        match ids {
            None => {
                entries.removed_until = entries.next_event();
                (entries.bytes, entries.by_id) = (0, HashMap::new());
                entries.order.clear();
            }
            Some(ids) => ids.iter().for_each(|id| entries.clear_entry(*id)),
        }
    }

    /// As [`Self::invalidate`], but only for unfinished tasks. The change may be an end that this process has
    /// already read, and that must stay available while the server is away.
    pub(super) fn invalidate_unfinished(&self, ids: &[TaskId]) {
        self.drop_outdated(ids.iter().map(|id| (*id, None)));
    }

    fn keeps_ended(&self) -> bool {
        !self.age_max.is_zero()
    }

    fn entries(&self) -> MutexGuard<'_, CacheEntries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CacheEntries {
    fn next_event(&mut self) -> u64 {
        self.event += 1;
        self.event
    }

    /// Applies the rule of this module. Returns the record of the entry, if the new state is the same.
    fn record(
        &mut self,
        id: TaskId,
        new: CachedState,
        begun: ReadStamp,
        keeps_ended: bool,
    ) -> Option<Arc<TaskRecord>> {
        let event = self.next_event();
        let Some(entry) = self.by_id.get_mut(&id) else {
            // No entry to compare with. Unfinished tasks get one only from a poll; an ended state is
            // final, so it is safe unless a removed entry was newer: a deleted task must not return.
            if keeps_ended && begun.event > self.removed_until && !new.is_unfinished() {
                self.insert(id, new, begun.at);
            } else if matches!(new, CachedState::Absent) {
                // The absence is not stored. Raise the bound instead, since the answer of a query that
                // was sent before may still contain the task.
                self.removed_until = event;
            }
            return None;
        };
        if entry.state.is_same(&new) {
            // Seen again at a later start: younger now. An answer that began earlier changes nothing.
            entry.at = entry.at.max(begun.at);
            entry.written = event;
            entry.is_refreshing = false;
            return match &entry.state {
                CachedState::Task(record) => Some(record.clone()),
                CachedState::Absent | CachedState::Unknown => None,
            };
        }
        // Of different states, the one whose query began after the entry was written is newer. Otherwise
        // the order is unknown.
        let is_later = begun.event > entry.written;
        let state = if is_later { new } else { CachedState::Unknown };
        self.replace(id, state, begun.at);
        None
    }

    fn clear_entry(&mut self, id: TaskId) {
        self.replace(id, CachedState::Unknown, Duration::ZERO);
    }

    /// Updates an entry, if there is one. Its place in the order of removal stays.
    fn replace(&mut self, id: TaskId, state: CachedState, at: Duration) {
        let event = self.next_event();
        if let Some(entry) = self.by_id.get_mut(&id) {
            self.bytes = self.bytes + state.bytes() - entry.state.bytes();
            (entry.state, entry.at, entry.written) = (state, at, event);
            entry.is_refreshing = false;
            self.shrink();
        }
    }

    fn insert(&mut self, id: TaskId, state: CachedState, at: Duration) {
        let event = self.next_event();
        self.bytes += state.bytes();
        self.order.push_back((id, event));
        let entry = CacheEntry {
            state,
            at,
            written: event,
            made: event,
            is_refreshing: false,
        };
        self.by_id.insert(id, entry);
        self.shrink();
    }

    fn remove(&mut self, id: TaskId) {
        if let Some(entry) = self.by_id.remove(&id) {
            self.bytes -= entry.state.bytes();
        }
    }

    /// Removes the oldest entries beyond the bound, and the places of removed ones.
    fn shrink(&mut self) {
        // The second condition bounds the places of entries that were removed out of order.
        while self.bytes > self.bytes_max || self.order.len() > 2 * self.by_id.len() + 1_024 {
            let Some((id, made)) = self.order.pop_front() else {
                return;
            };
            if let Some(entry) = self.by_id.get(&id).filter(|entry| entry.made == made) {
                self.removed_until = self.removed_until.max(entry.written);
                self.remove(id);
            }
        }
    }
}

#[cfg(test)]
mod tests;
