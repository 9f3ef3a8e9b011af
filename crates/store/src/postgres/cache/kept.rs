//! The entries of the cache, and the rules by which they follow each other.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use kinora_contract::TaskId;
use kinora_contract::lifecycle::Record;

use crate::postgres::rows::Version;

/// What an entry takes besides its record, in bytes.
const ENTRY_BYTES: u64 = 160;
/// Unfinished tasks that are looked after while they are polled; more are read at each poll that finds them too old.
const WATCHED_MAX: usize = 8_192;
/// Maximum number of times in a row that the cache confirms a task without a poll.
const WATCHES: u8 = 2;

/// A task as it was read or written.
#[derive(Clone, Debug)]
pub(in crate::postgres) struct Seen {
    pub(in crate::postgres) record: Arc<Record>,
    /// Of its row; `None` where that is unknown.
    pub(in crate::postgres) version: Option<Version>,
}

/// When a question or a transaction began.
#[derive(Clone, Copy, Debug)]
pub(in crate::postgres) struct Begun {
    pub(super) place: u64,
    pub(super) at: Duration,
}

/// A task as last read.
#[derive(Debug)]
pub(super) enum Known {
    Task(Seen),
    Absent,
    /// It is being read, or may have changed since it was.
    Nothing,
}

impl Known {
    /// Whether both are the same row as the same transaction left it.
    fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Absent, Self::Absent) => true,
            (Self::Task(one), Self::Task(other)) => {
                let has_version = one.version.is_some() && one.version == other.version;
                has_version || Arc::ptr_eq(&one.record, &other.record)
            }
            _ => false,
        }
    }

    fn is_unfinished(&self) -> bool {
        matches!(self, Self::Task(seen) if !seen.record.is_terminal())
    }

    fn has_ended(&self) -> bool {
        matches!(self, Self::Task(seen) if seen.record.is_terminal())
    }
}

#[derive(Debug)]
pub(super) struct Entry {
    known: Known,
    /// It was still so at this time.
    at: Duration,
    /// It was so by then, in the order of events: what began later is newer.
    by: u64,
    /// The same for its end. A task that has ended stays ended, so a change of an unfinished state is older than any end that
    /// was read.
    ended_by: u64,
    number: u64,
    /// How many times it will still be looked after.
    watches: u8,
}

impl Entry {
    fn bytes(&self) -> u64 {
        ENTRY_BYTES
            + match &self.known {
                Known::Task(seen) => seen.record.memory_bytes(),
                Known::Absent | Known::Nothing => 0,
            }
    }

    /// The ended task or its absence, if that is not too old.
    pub(super) fn if_ended(&self, now: Duration, age_max: Duration) -> Option<Option<Arc<Record>>> {
        let is_young = now.saturating_sub(self.at) < age_max;
        match &self.known {
            Known::Absent if is_young => Some(None),
            Known::Task(seen) if is_young && seen.record.is_terminal() => {
                Some(Some(seen.record.clone()))
            }
            _ => None,
        }
    }

    /// The unfinished task, if that is not too old.
    pub(super) fn if_unfinished(&self, now: Duration, age_max: Duration) -> Option<Arc<Record>> {
        let is_young = now.saturating_sub(self.at) < age_max;
        match &self.known {
            Known::Task(seen) if is_young && !seen.record.is_terminal() => {
                Some(seen.record.clone())
            }
            _ => None,
        }
    }
}

#[derive(Debug)]
pub(super) struct Kept {
    bytes_max: u64,
    keeps_ended: bool,
    entries: HashMap<TaskId, Entry>,
    /// In the order in which they were put, with those that were replaced since.
    order: VecDeque<(TaskId, u64)>,
    bytes: u64,
    /// Of the entry that was put last.
    number: u64,
    /// Something was forgotten of what happened up to here.
    floor: u64,
    watched: Vec<TaskId>,
}

impl Kept {
    pub(super) fn bounded(bytes_max: u64, keeps_ended: bool) -> Self {
        Self {
            bytes_max,
            keeps_ended,
            entries: HashMap::new(),
            order: VecDeque::new(),
            bytes: 0,
            number: 0,
            floor: 0,
            watched: Vec::new(),
        }
    }

    pub(super) fn look(&self, id: TaskId) -> Option<&Entry> {
        self.entries.get(&id)
    }

    pub(super) fn expect(&mut self, id: TaskId, place: u64) {
        if !self.entries.contains_key(&id) {
            self.insert(id, Known::Nothing, Duration::ZERO, place);
        }
    }

    /// Takes a state into account that was read or written between `begun` and `by`, which is now. An unfinished task is
    /// only kept where a poll expects it. Returns the record that was kept before, if it is the same.
    pub(super) fn note(
        &mut self,
        id: TaskId,
        new: Known,
        begun: Begun,
        by: u64,
    ) -> Option<Arc<Record>> {
        let Some(entry) = self.entries.get_mut(&id) else {
            if self.keeps_ended && begun.place > self.floor && !new.is_unfinished() {
                self.insert(id, new, begun.at, by);
            } else if matches!(new, Known::Absent) {
                // A query that was sent before may still return the task.
                self.floor = self.floor.max(by);
            }
            return None;
        };
        if entry.known.is(&new) {
            entry.at = entry.at.max(begun.at);
            entry.by = by;
            if !new.is_unfinished() {
                entry.ended_by = by;
            }
            return match &entry.known {
                Known::Task(seen) => Some(seen.record.clone()),
                Known::Absent | Known::Nothing => None,
            };
        }
        let last = if new.has_ended() {
            entry.ended_by
        } else {
            entry.by
        };
        // A transaction may change a task twice.
        let is_newer = begun.place > last || by == entry.by;
        if !new.is_unfinished() {
            entry.ended_by = by;
        }
        let known = match is_newer {
            true => new,
            false => Known::Nothing,
        };
        self.replace(id, known, begun.at, by);
        None
    }

    /// A question found no such task.
    pub(super) fn offer_absence(&mut self, id: TaskId, begun: Begun, by: u64) {
        match self.entries.get(&id) {
            None => {}
            // Nothing was ever known of it.
            Some(entry) if matches!(entry.known, Known::Nothing) && begun.place > entry.by => {
                self.remove(id);
            }
            Some(_) => drop(self.note(id, Known::Absent, begun, by)),
        }
    }

    pub(super) fn compare(&mut self, id: TaskId, version: Option<Version>, by: u64) {
        let entry = self.entries.get(&id);
        let differs = |entry: &Entry| match &entry.known {
            Known::Task(seen) if !seen.record.is_terminal() => {
                version.is_none() || seen.version != version
            }
            _ => false,
        };
        if entry.is_some_and(differs) {
            self.forget(id, by);
        }
    }

    pub(super) fn forget(&mut self, id: TaskId, by: u64) {
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.ended_by = by;
            self.replace(id, Known::Nothing, Duration::ZERO, by);
        }
    }

    /// A query that was sent before may still return the end of the task.
    pub(super) fn forget_unfinished(&mut self, id: TaskId, by: u64) {
        let entry = self.entries.get(&id);
        if entry.is_some_and(|entry| !entry.known.has_ended()) {
            self.replace(id, Known::Nothing, Duration::ZERO, by);
        }
    }

    pub(super) fn forget_versions(&mut self, by: u64) {
        for entry in self.entries.values_mut() {
            match &mut entry.known {
                Known::Task(seen) if seen.record.is_terminal() => seen.version = None,
                Known::Task(seen) => {
                    self.bytes = self.bytes.saturating_sub(seen.record.memory_bytes());
                    (entry.known, entry.by) = (Known::Nothing, by);
                }
                Known::Absent | Known::Nothing => {}
            }
        }
    }

    pub(super) fn clear(&mut self, by: u64) {
        *self = Self {
            number: self.number,
            floor: by,
            ..Self::bounded(self.bytes_max, self.keeps_ended)
        };
    }

    /// Looks after this task for a while. Whether it is the first one.
    pub(super) fn watch(&mut self, id: TaskId) -> bool {
        let Some(entry) = self.entries.get_mut(&id) else {
            return false;
        };
        let was_watched = entry.watches > 0;
        if !was_watched && self.watched.len() >= WATCHED_MAX {
            return false;
        }
        entry.watches = WATCHES;
        if !was_watched {
            self.watched.push(id);
        }
        !was_watched && self.watched.len() == 1
    }

    pub(super) fn watched(&mut self) -> Vec<(TaskId, Version)> {
        let mut all = Vec::new();
        let entries = &mut self.entries;
        self.watched.retain(|id| {
            let Some(entry) = entries.get_mut(id) else {
                return false;
            };
            if let Known::Task(seen) = &entry.known
                && let Some(version) = seen.version
            {
                all.push((*id, version));
            }
            entry.watches = entry.watches.saturating_sub(1);
            entry.watches > 0
        });
        all
    }

    pub(super) fn confirm(&mut self, id: TaskId, version: Version, begun: Begun, by: u64) {
        if let Some(entry) = self.entries.get_mut(&id)
            && let Known::Task(seen) = &entry.known
            && seen.version == Some(version)
        {
            entry.at = entry.at.max(begun.at);
            entry.by = by;
        }
    }

    fn insert(&mut self, id: TaskId, known: Known, at: Duration, by: u64) {
        self.number += 1;
        let entry = Entry {
            known,
            at,
            by,
            ended_by: by,
            number: self.number,
            watches: 0,
        };
        self.bytes += entry.bytes();
        self.order.push_back((id, self.number));
        self.entries.insert(id, entry);
        self.shrink();
    }

    /// Updates an entry; its place among those that go first stays.
    fn replace(&mut self, id: TaskId, known: Known, at: Duration, by: u64) {
        if let Some(entry) = self.entries.get_mut(&id) {
            let before = entry.bytes();
            (entry.known, entry.at, entry.by) = (known, at, by);
            self.bytes = (self.bytes + entry.bytes()).saturating_sub(before);
            self.shrink();
        }
    }

    fn shrink(&mut self) {
        while self.bytes > self.bytes_max || self.order.len() > 2 * self.entries.len() + 1_024 {
            let Some((id, number)) = self.order.pop_front() else {
                break;
            };
            if self
                .entries
                .get(&id)
                .is_some_and(|entry| entry.number == number)
            {
                let removed = self.remove(id);
                self.floor = self.floor.max(removed.map_or(0, |entry| entry.by));
            }
        }
    }

    fn remove(&mut self, id: TaskId) -> Option<Entry> {
        let removed = self.entries.remove(&id);
        if let Some(entry) = &removed {
            self.bytes = self.bytes.saturating_sub(entry.bytes());
        }
        removed
    }
}
