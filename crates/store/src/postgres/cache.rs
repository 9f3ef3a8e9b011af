//! Tasks that were read a moment ago, for those that are polled again and again. An unfinished task
//! is shown to polls for up to [`PostgresOptions::polled_ms_max`] (200 ms), an ended one or its
//! absence for [`PostgresOptions::cached_ms_max`] (1 s), and while the server cannot be asked for
//! [`PostgresOptions::last_known_ms_max`]. What this process changes is shown at once, and notices of
//! other processes end an entry.
//!
//! # No poll goes back
//!
//! A query, a transaction and a notice are *events*, numbered in the order in which this process saw
//! them: a query has a number when it is sent, and an entry has the number of the event that wrote it
//! last. One rule keeps the order:
//!
//! > What a query or a transaction found replaces an entry only if it began after the entry was
//! > written. If both happened at the same time, nobody knows which state is later: the entry is
//! > emptied, and the next poll asks.
//!
//! An example, where process P polls a task that it cancels at the same time:
//!
//! | event | number | entry |
//! |---|---|---|
//! | a poll finds no entry and sends query A | 1 | empty, written at 1 |
//! | P's transaction for the cancel begins | 2 | |
//! | the cancel is committed | 3 | "failed", written at 3, since 2 > 1 |
//! | A answers "running": it began at 1, before 3 | 4 | empty, written at 4 |
//! | the next poll sends query B | 5 | |
//! | B answers "failed": it began at 5, after 4 | 6 | "failed", written at 6 |
//!
//! Equal states need no order: of two queries that overlap and find the same, the entry stays. Only
//! polls make room for unfinished tasks ([`Cache::expect`]), so that their queries find an entry whose
//! number tells about commits meanwhile.
//!
//! # Polls rarely wait
//!
//! If the entry of an unfinished task simply ended after 200 ms, every poll that came next would wait for
//! a query: five times a second for each task, and behind the queries of all others. So the first poll
//! in the second half of that time still answers from the entry, and also begins a query that nobody
//! waits for ([`Cache::poll`]). An example, of a task that a client polls every 30 ms:
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
//! A and B replace the entry by the rule above, like any query, and an entry's age still counts from the
//! start of its query: nothing older than 200 ms is shown. An entry has one such query at a time. If it
//! fails, or takes longer than 100 ms, the entry ends as before and the next poll waits.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kinora_contract::lifecycle::Record;
use kinora_contract::{Clock, TaskId};

use crate::queue::Change;
use crate::{Glance, PostgresOptions};

/// What an entry takes besides its record, in bytes.
const ENTRY_BYTES: u64 = 120;

/// Records by their ids.
#[derive(Debug)]
pub(super) struct Cache {
    clock: Arc<dyn Clock>,
    age_max: Duration,
    polled_age_max: Duration,
    last_known_max: Duration,
    entries: Mutex<Entries>,
}

/// When a query or a transaction began.
#[derive(Clone, Copy, Debug)]
pub(super) struct Begun {
    event: u64,
    at: Duration,
}

#[derive(Debug, Default)]
struct Entries {
    bytes_max: u64,
    by_id: HashMap<TaskId, Entry>,
    /// In the order in which they were made, with those that were removed since.
    order: VecDeque<(TaskId, u64)>,
    bytes: u64,
    /// Number of the last event.
    event: u64,
    /// Entries that were written up to here may be gone.
    forgotten: u64,
}

#[derive(Debug)]
struct Entry {
    state: Known,
    /// It was so at this time.
    at: Duration,
    /// The event that wrote it.
    written: u64,
    /// The event that made it.
    made: u64,
    /// Whether a query to replace it has begun since it was written.
    is_refreshing: bool,
}

impl Entry {
    /// What is shown of it at this age; `None` if it is too old, or nothing is known.
    fn shown(
        &self,
        age: Duration,
        ended_max: Duration,
        unfinished_max: Duration,
    ) -> Option<Option<Arc<Record>>> {
        let (record, age_max) = match &self.state {
            Known::Task(record) if record.is_terminal() => (Some(record), ended_max),
            Known::Task(record) => (Some(record), unfinished_max),
            Known::Absent => (None, ended_max),
            Known::Nothing => return None,
        };
        (age < age_max).then(|| record.cloned())
    }
}

#[derive(Clone, Debug)]
enum Known {
    Task(Arc<Record>),
    Absent,
    Nothing,
}

impl Known {
    fn of(record: Option<Arc<Record>>) -> Self {
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
            Self::Absent | Self::Nothing => ENTRY_BYTES,
        }
    }
}

impl Cache {
    pub(super) fn new(clock: Arc<dyn Clock>, options: &PostgresOptions) -> Self {
        Self {
            clock,
            age_max: Duration::from_millis(options.cached_ms_max),
            polled_age_max: Duration::from_millis(options.polled_ms_max),
            last_known_max: Duration::from_millis(options.last_known_ms_max),
            entries: Mutex::new(Entries {
                bytes_max: options.cached_bytes_max,
                ..Entries::default()
            }),
        }
    }

    /// An ended task or its absence, if that is known for the present.
    pub(super) fn get(&self, id: TaskId) -> Option<Option<Arc<Record>>> {
        self.look(id, self.age_max, Duration::ZERO)
    }

    /// The same, and an unfinished task as a poll may show it. A poll in the second half of an entry's time is also told
    /// to begin a query that replaces the entry; one at a time.
    pub(super) fn poll(&self, id: TaskId) -> Option<(Option<Arc<Record>>, Option<Begun>)> {
        let now = self.clock.steady();
        let mut entries = self.entries();
        let entry = entries.by_id.get_mut(&id)?;
        let age = now.saturating_sub(entry.at);
        let shown = entry.shown(age, self.age_max, self.polled_age_max)?;
        let is_due = entry.state.is_unfinished() && age >= self.polled_age_max / 2;
        if !is_due || std::mem::replace(&mut entry.is_refreshing, true) {
            return Some((shown, None));
        }
        let event = entries.next_event();
        Some((shown, Some(Begun { event, at: now })))
    }

    /// An ended task or its absence, as it was known last: while the server cannot be asked.
    pub(super) fn get_last(&self, id: TaskId) -> Option<Option<Arc<Record>>> {
        self.look(id, self.last_known_max, Duration::ZERO)
    }

    fn look(
        &self,
        id: TaskId,
        ended_max: Duration,
        unfinished_max: Duration,
    ) -> Option<Option<Arc<Record>>> {
        let entries = self.entries();
        let entry = entries.by_id.get(&id)?;
        let age = self.clock.steady().saturating_sub(entry.at);
        entry.shown(age, ended_max, unfinished_max)
    }

    /// Makes room for an unfinished task that is going to be read for a poll.
    pub(super) fn expect(&self, id: TaskId) {
        let mut entries = self.entries();
        if !self.polled_age_max.is_zero() && !entries.by_id.contains_key(&id) {
            entries.insert(id, Known::Nothing, Duration::ZERO);
        }
    }

    /// For a query or a transaction, before it is sent.
    pub(super) fn begin(&self) -> Begun {
        Begun {
            event: self.entries().next_event(),
            at: self.clock.steady(),
        }
    }

    /// Keeps what a query found. Returns the record to be shown: the one that was shown before, if it
    /// is the same.
    pub(super) fn offer(
        &self,
        id: TaskId,
        found: Option<Arc<Record>>,
        begun: Begun,
    ) -> Option<Arc<Record>> {
        let mut entries = self.entries();
        if found.is_none() {
            match entries.by_id.get(&id) {
                // Nothing was ever known of it.
                None => return None,
                Some(entry)
                    if matches!(entry.state, Known::Nothing) && begun.event > entry.written =>
                {
                    entries.remove(id);
                    return None;
                }
                Some(_) => {}
            }
        }
        let before = entries.note(id, Known::of(found.clone()), begun, self.keeps_ended());
        before.or(found)
    }

    /// Keeps what a transaction of this process has changed: of several changes of a task the last.
    pub(super) fn put_all(&self, changes: &[Change], begun: Begun) {
        let mut entries = self.entries();
        let last: HashMap<TaskId, &Change> =
            changes.iter().map(|change| (change.id, change)).collect();
        for change in last.into_values() {
            let state = Known::of(change.after.clone());
            entries.note(change.id, state, begun, self.keeps_ended());
        }
    }

    /// Others may be shown something later than this process keeps: it empties the entries of
    /// unfinished tasks that were seen in another state, or in an unknown one.
    pub(super) fn compare(&self, seen: impl Iterator<Item = (TaskId, Option<Glance>)>) {
        let mut entries = self.entries();
        for (id, glance) in seen {
            let state = entries.by_id.get(&id).map(|entry| &entry.state);
            if let Some(Known::Task(record)) = state
                && !record.is_terminal()
                && (glance.is_none() || glance != Glance::of(&record.task))
            {
                entries.empty(id);
            }
        }
    }

    /// Empties the entries of tasks that another process has changed; all if it does not name them.
    pub(super) fn forget(&self, ids: Option<&[TaskId]>) {
        let mut entries = self.entries();
        match ids {
            None => {
                entries.forgotten = entries.next_event();
                (entries.bytes, entries.by_id) = (0, HashMap::new());
                entries.order.clear();
            }
            Some(ids) => ids.iter().for_each(|id| entries.empty(*id)),
        }
    }

    /// The same for the unfinished ones of these tasks: the change may be the end that this process
    /// has already read, and shows while the server is away.
    pub(super) fn forget_unfinished(&self, ids: &[TaskId]) {
        self.compare(ids.iter().map(|id| (*id, None)));
    }

    fn keeps_ended(&self) -> bool {
        !self.age_max.is_zero()
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entries {
    fn next_event(&mut self) -> u64 {
        self.event += 1;
        self.event
    }

    /// The rule of this module. Returns the record that was kept before, if it is the same.
    fn note(
        &mut self,
        id: TaskId,
        new: Known,
        begun: Begun,
        keeps_ended: bool,
    ) -> Option<Arc<Record>> {
        let event = self.next_event();
        let Some(entry) = self.by_id.get_mut(&id) else {
            if keeps_ended && begun.event > self.forgotten && !new.is_unfinished() {
                self.insert(id, new, begun.at);
            } else if matches!(new, Known::Absent) {
                // A query that was sent before may still return the task.
                self.forgotten = event;
            }
            return None;
        };
        if entry.state.is_same(&new) {
            entry.at = entry.at.max(begun.at);
            entry.written = event;
            entry.is_refreshing = false;
            return match &entry.state {
                Known::Task(record) => Some(record.clone()),
                Known::Absent | Known::Nothing => None,
            };
        }
        let is_later = begun.event > entry.written;
        let state = if is_later { new } else { Known::Nothing };
        self.replace(id, state, begun.at);
        None
    }

    fn empty(&mut self, id: TaskId) {
        self.replace(id, Known::Nothing, Duration::ZERO);
    }

    /// Updates an entry, if there is one; its place among those that go first stays.
    fn replace(&mut self, id: TaskId, state: Known, at: Duration) {
        let event = self.next_event();
        if let Some(entry) = self.by_id.get_mut(&id) {
            self.bytes = self.bytes + state.bytes() - entry.state.bytes();
            (entry.state, entry.at, entry.written) = (state, at, event);
            entry.is_refreshing = false;
            self.shrink();
        }
    }

    fn insert(&mut self, id: TaskId, state: Known, at: Duration) {
        let event = self.next_event();
        self.bytes += state.bytes();
        self.order.push_back((id, event));
        let entry = Entry {
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
        while self.bytes > self.bytes_max || self.order.len() > 2 * self.by_id.len() + 1_024 {
            let Some((id, made)) = self.order.pop_front() else {
                return;
            };
            if let Some(entry) = self.by_id.get(&id).filter(|entry| entry.made == made) {
                self.forgotten = self.forgotten.max(entry.written);
                self.remove(id);
            }
        }
    }
}

#[cfg(test)]
mod tests;
