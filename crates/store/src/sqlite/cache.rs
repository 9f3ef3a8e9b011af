//! Tasks in memory, for polls: every unfinished one, and recently finished or requested ones, up to
//! a limit in bytes. It shows only committed states.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use kinora_contract::TaskId;
use kinora_contract::lifecycle::TaskRecord;

/// Number of locks, so that polls on several cores rarely contend.
const SHARDS: usize = 32;

/// Records of tasks by id, in shards with a lock each.
#[derive(Debug)]
pub(super) struct TaskCache {
    shards: Vec<RwLock<CacheShard>>,
    hasher: RandomState,
    /// Bytes of a shard's finished tasks.
    finished_bytes_max: u64,
}

/// The editions of all parts at one time.
#[derive(Debug)]
pub(super) struct CacheEditions(Vec<u64>);

#[derive(Debug, Default)]
struct CacheShard {
    slots: HashMap<TaskId, CachedTask>,
    /// Finished tasks in the order in which they may be dropped.
    finished: VecDeque<TaskId>,
    /// Bytes of the finished records.
    finished_bytes: u64,
    /// Increases with every published change: a record read before it is too old to keep.
    edition: u64,
}

#[derive(Debug)]
struct CachedTask {
    record: Arc<TaskRecord>,
    /// Requested since the last eviction round.
    used: AtomicBool,
}

impl TaskCache {
    pub(super) fn new(finished_bytes_max: u64) -> Self {
        Self {
            shards: (0..SHARDS).map(|_| RwLock::default()).collect(),
            hasher: RandomState::new(),
            finished_bytes_max: finished_bytes_max / SHARDS as u64,
        }
    }

    /// The record, or the edition to pass to [`TaskCache::offer`] with the record from disk.
    pub(super) fn get(&self, id: TaskId) -> Result<Arc<TaskRecord>, u64> {
        let shard = self
            .shard(id)
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        let slot = shard.slots.get(&id).ok_or(shard.edition)?;
        // Writing only on a change keeps the cache line shared between cores.
        if !slot.used.load(Ordering::Relaxed) {
            slot.used.store(true, Ordering::Relaxed);
        }
        Ok(slot.record.clone())
    }

    /// The edition of each part of the cache, for [`TaskCache::edition_of`].
    pub(super) fn editions(&self) -> CacheEditions {
        let shards = self.shards.iter();
        let shards = shards.map(|shard| shard.read().unwrap_or_else(PoisonError::into_inner));
        CacheEditions(shards.map(|shard| shard.edition).collect())
    }

    /// The edition to pass to [`TaskCache::offer`] with a record that was read after `editions` were
    /// taken.
    pub(super) fn edition_of(&self, editions: &CacheEditions, id: TaskId) -> u64 {
        editions.0[self.shard_number(id)]
    }

    /// Publishes a committed change.
    pub(super) fn publish(&self, id: TaskId, record: Option<Arc<TaskRecord>>) {
        let mut shard = self
            .shard(id)
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        // Invalidates every read in progress in this shard, not only of this task: one number per
        // shard is enough, since a refused offer costs only another read.
        shard.edition += 1;
        match record {
            Some(record) => shard.put(id, record, self.finished_bytes_max),
            None => shard.remove(id),
        }
    }

    /// Keeps a record that a reader found on disk, unless a change was published meanwhile.
    /// Unfinished tasks arrive only through [`TaskCache::publish`].
    pub(super) fn offer(&self, id: TaskId, record: &Arc<TaskRecord>, edition: u64) {
        let mut shard = self
            .shard(id)
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        // Example: a reader reads task 7 as "completed" and is suspended; the task expires and is
        // published, edition 5 becomes 6; the reader offers its old record with edition 5, and it is
        // refused. Without the number, polls would show a deleted result again.
        if shard.edition == edition && record.is_terminal() {
            shard.put(id, record.clone(), self.finished_bytes_max);
        }
    }

    fn shard(&self, id: TaskId) -> &RwLock<CacheShard> {
        &self.shards[self.shard_number(id)]
    }

    fn shard_number(&self, id: TaskId) -> usize {
        let hash = self.hasher.hash_one(id);
        usize::try_from(hash % SHARDS as u64).unwrap_or(0)
    }
}

impl CacheShard {
    fn put(&mut self, id: TaskId, record: Arc<TaskRecord>, finished_bytes_max: u64) {
        let bytes = finished_bytes(&record);
        let slot = CachedTask {
            record,
            used: AtomicBool::new(false),
        };
        let old = self.slots.insert(id, slot);
        let old_bytes = old.map_or(0, |slot| finished_bytes(&slot.record));
        self.finished_bytes = self.finished_bytes + bytes - old_bytes;
        // A record that was finished before is already in the queue of finished ones.
        if bytes > 0 && old_bytes == 0 {
            self.finished.push_back(id);
        }
        self.evict(finished_bytes_max);
    }

    fn remove(&mut self, id: TaskId) {
        if let Some(slot) = self.slots.remove(&id) {
            self.finished_bytes -= finished_bytes(&slot.record);
        }
        // Places of removed tasks must not pile up if nothing is evicted.
        if self.finished.len() > 2 * self.slots.len() + 64 {
            self.finished.retain(|id| self.slots.contains_key(id));
        }
    }

    /// Second chance: records used since the last round stay for one more.
    fn evict(&mut self, finished_bytes_max: u64) {
        while self.finished_bytes > finished_bytes_max {
            let Some(id) = self.finished.pop_front() else {
                return;
            };
            let Some(slot) = self.slots.get_mut(&id) else {
                continue;
            };
            if std::mem::take(slot.used.get_mut()) {
                self.finished.push_back(id);
            } else {
                self.remove(id);
            }
        }
    }
}

/// Bytes counted for a record; zero for an unfinished one, which is never dropped.
fn finished_bytes(record: &TaskRecord) -> u64 {
    if !record.is_terminal() {
        0
    } else {
        record.memory_bytes()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use kinora_contract::lifecycle::TaskEvent;
    use kinora_contract::spec::SPEC_VERSION;
    use kinora_contract::{
        FailureCode, FrameSize, Priority, Size, Task, TaskState, VideoInputs, VideoLength,
        VideoSpec,
    };

    use super::*;

    /// A task with 60 KB of URLs, as it stands after it has failed.
    fn fat(number: u8) -> Arc<TaskRecord> {
        let spec = VideoSpec {
            version: SPEC_VERSION,
            model: "model".to_owned(),
            prompt: "x".repeat(20_000),
            negative_prompt: Some("n".repeat(10_000)),
            seconds: VideoLength::Auto,
            frame: FrameSize::Fixed(Size::new(640, 480)),
            seed: 1,
            generate_audio: true,
            inputs: VideoInputs::References {
                images: vec!["u".repeat(5_000); 12],
                audios: Vec::new(),
            },
            draft: false,
            final_of: None,
            edit: None,
        };
        let task = Task {
            id: TaskId::from_parts(1, [number; 10]),
            project: "one".to_owned(),
            spec,
            metadata: BTreeMap::new(),
            priority: Priority::Normal,
            state: TaskState::Waiting,
            progress: 0,
            created_at_ms: 0,
            started_at_ms: None,
            finished_at_ms: None,
            expires_at_ms: None,
            attempt: 0,
            engine: None,
            warnings: Vec::new(),
            trace: None,
            cost: None,
        };
        let cancelled = TaskEvent::Cancelled {
            failure: FailureCode::Cancelled.into(),
            now_ms: 1,
            retention_ms: 1,
        };
        changed(&TaskRecord::accepted(1, task), cancelled)
    }

    fn changed(record: &TaskRecord, event: TaskEvent) -> Arc<TaskRecord> {
        Arc::new(record.apply(event).unwrap().after.unwrap())
    }

    #[test]
    fn an_ended_task_takes_what_its_object_needs() {
        let record = fat(1);
        assert!((30_000..35_000).contains(&record.memory_bytes()));
    }

    #[test]
    fn what_was_read_before_a_change_was_published_is_not_kept() {
        let cache = TaskCache::new(1 << 20);
        let (old, other) = (fat(1), fat(2));
        let editions = cache.editions();
        cache.publish(old.task.id, None);
        cache.offer(old.task.id, &old, cache.edition_of(&editions, old.task.id));
        assert!(cache.get(old.task.id).is_err());
        let editions = cache.editions();
        cache.offer(
            other.task.id,
            &other,
            cache.edition_of(&editions, other.task.id),
        );
        assert!(cache.get(other.task.id).is_ok());
    }

    #[test]
    fn finished_tasks_are_bounded_in_bytes_and_those_asked_for_stay() {
        let each = fat(0).memory_bytes();
        let cache = TaskCache::new(4 * each * SHARDS as u64);
        let first = fat(0);
        cache.publish(first.task.id, Some(first.clone()));
        for number in 1..=255 {
            let record = fat(number);
            cache.publish(record.task.id, Some(record.clone()));
            // It is polled all the time.
            cache.get(first.task.id).unwrap();
            // A second answer of the same task counts once.
            cache.publish(record.task.id, Some(record));
        }
        let mut held = 0;
        for shard in &cache.shards {
            let shard = shard.read().unwrap();
            let bytes: u64 = shard
                .slots
                .values()
                .map(|slot| finished_bytes(&slot.record))
                .sum();
            assert_eq!(bytes, shard.finished_bytes);
            assert!(bytes <= 4 * each, "{bytes}");
            held += shard.slots.len();
        }
        assert!((32..=4 * SHARDS).contains(&held), "{held}");
        for number in 0..=255 {
            cache.publish(fat(number).task.id, None);
        }
        for shard in &cache.shards {
            let shard = shard.read().unwrap();
            assert_eq!((shard.finished_bytes, shard.slots.len()), (0, 0));
            assert!(shard.finished.len() <= 64);
        }
    }

    /// A reader that looked at the disk before a change, and comes back after it.
    #[test]
    fn what_a_reader_found_before_a_change_does_not_come_back_after_it() {
        let cache = TaskCache::new(u64::MAX);
        let old = fat(1);
        let id = old.task.id;
        let new = changed(&old, TaskEvent::Postponed { expires_at_ms: 9 });
        for change in [Some(new.clone()), None] {
            cache.publish(id, None);
            let edition = cache.get(id).unwrap_err();
            cache.publish(id, change.clone());
            cache.offer(id, &old, edition);
            let kept = cache.get(id).ok();
            assert_eq!(
                kept.map(|record| record.task.expires_at_ms),
                change.map(|record| record.task.expires_at_ms)
            );
        }
        // Nothing changed meanwhile: what was found is kept.
        let edition = cache.get(id).unwrap_err();
        cache.offer(id, &old, edition);
        assert!(Arc::ptr_eq(&cache.get(id).unwrap(), &old));
    }
}
