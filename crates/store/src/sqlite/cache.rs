//! Tasks in memory, for polls: every unfinished one, and the finished ones that were lately
//! made or asked for, up to a bound. It shows what is committed, never more.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use kinora_contract::TaskId;

use super::record::Record;

/// Locks, so that polls on several cores seldom meet.
const SHARDS: usize = 32;

/// The cache.
#[derive(Debug)]
pub(super) struct Cache {
    shards: Vec<RwLock<Shard>>,
    hasher: RandomState,
    finished_max: usize,
}

#[derive(Debug, Default)]
struct Shard {
    slots: HashMap<TaskId, Slot>,
    /// Finished tasks in the order in which they may be dropped.
    finished: VecDeque<TaskId>,
    /// Moves with every published change: a read that began before it is too old to be kept.
    edition: u64,
}

#[derive(Debug)]
struct Slot {
    record: Arc<Record>,
    /// Asked for since it was last passed over.
    used: AtomicBool,
}

impl Cache {
    pub(super) fn new(finished_max: usize) -> Self {
        Self {
            shards: (0..SHARDS).map(|_| RwLock::default()).collect(),
            hasher: RandomState::new(),
            finished_max: finished_max.div_ceil(SHARDS),
        }
    }

    /// The record, or else the edition to hand to [`Cache::offer`] with what is read instead.
    pub(super) fn get(&self, id: TaskId) -> Result<Arc<Record>, u64> {
        let shard = self
            .shard(id)
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        let slot = shard.slots.get(&id).ok_or(shard.edition)?;
        // A write only when it changes something keeps the line shared between cores.
        if !slot.used.load(Ordering::Relaxed) {
            slot.used.store(true, Ordering::Relaxed);
        }
        Ok(slot.record.clone())
    }

    /// Shows a committed change.
    pub(super) fn publish(&self, id: TaskId, record: Option<Arc<Record>>) {
        let mut shard = self
            .shard(id)
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        shard.edition += 1;
        match record {
            Some(record) => shard.put(id, record, self.finished_max),
            None => {
                shard.slots.remove(&id);
            }
        }
    }

    /// Keeps what a reader found on disk, unless something was published meanwhile. Unfinished
    /// tasks come by [`Cache::publish`] only.
    pub(super) fn offer(&self, id: TaskId, record: &Arc<Record>, edition: u64) {
        let mut shard = self
            .shard(id)
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        if shard.edition == edition && !record.is_unfinished() {
            shard.put(id, record.clone(), self.finished_max);
        }
    }

    fn shard(&self, id: TaskId) -> &RwLock<Shard> {
        let hash = self.hasher.hash_one(id);
        &self.shards[usize::try_from(hash % SHARDS as u64).unwrap_or(0)]
    }
}

impl Shard {
    fn put(&mut self, id: TaskId, record: Arc<Record>, finished_max: usize) {
        let finished = !record.is_unfinished();
        let slot = Slot {
            record,
            used: AtomicBool::new(false),
        };
        let old = self.slots.insert(id, slot);
        if finished && old.is_none_or(|slot| slot.record.is_unfinished()) {
            self.finished.push_back(id);
            self.evict(finished_max);
        }
    }

    /// Second chance: what was asked for since goes round once more.
    fn evict(&mut self, finished_max: usize) {
        while self.finished.len() > finished_max {
            let Some(id) = self.finished.pop_front() else {
                return;
            };
            let Some(slot) = self.slots.get_mut(&id) else {
                continue;
            };
            if std::mem::take(slot.used.get_mut()) {
                self.finished.push_back(id);
            } else {
                self.slots.remove(&id);
            }
        }
    }
}
