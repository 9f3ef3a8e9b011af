//! A cache of task objects as JSON, written once per change of a task, since clients poll the same
//! task repeatedly. An entry belongs to one state of its task, identified by the address of the
//! store's record, so a changed or deleted task never hits the cache. The URLs in an object expire
//! with the task, at a time that is part of that state. The size is limited in bytes.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bytes::Bytes;
use kinora_contract::limits::RENDERED_BYTES_MAX;
use kinora_contract::{Task, TaskId};

/// Number of locks, so polls on several cores rarely contend.
const SHARDS: usize = 16;
/// Memory of an entry besides its text: its slots in the map, and the allocation of the record,
/// whose address it keeps from being reused.
const ENTRY_BYTES: usize = 256 + size_of::<Task>();

/// The cache of task objects. Clones share it.
#[derive(Clone, Debug)]
pub struct ObjectCache(Arc<CacheShards>);

#[derive(Debug)]
struct CacheShards {
    shards: [Mutex<ObjectShard>; SHARDS],
    hasher: RandomState,
    /// Maximum bytes per generation of a shard.
    generation_bytes_max: usize,
}

/// Two generations: recently used entries and older ones. When the young one is full, the old one
/// is dropped.
#[derive(Debug, Default)]
struct ObjectShard {
    young: HashMap<TaskId, CachedObject>,
    old: HashMap<TaskId, CachedObject>,
    young_bytes: usize,
}

#[derive(Clone, Debug)]
struct CachedObject {
    /// Keeps the record's address from being reused, but not its contents alive.
    state: Weak<Task>,
    queue_position: Option<u64>,
    json: Bytes,
}

impl Default for ObjectCache {
    fn default() -> Self {
        Self::bounded(RENDERED_BYTES_MAX)
    }
}

impl ObjectCache {
    fn bounded(bytes_max: usize) -> Self {
        Self(Arc::new(CacheShards {
            shards: Default::default(),
            hasher: RandomState::new(),
            generation_bytes_max: bytes_max / SHARDS / 2,
        }))
    }

    /// Forgets all objects: their URLs open nothing any more.
    pub fn clear(&self) {
        for shard in &self.0.shards {
            *shard.lock().unwrap_or_else(PoisonError::into_inner) = ObjectShard::default();
        }
    }

    /// The cached object of `task` at `queue_position`.
    pub(crate) fn get(&self, task: &Arc<Task>, queue_position: Option<u64>) -> Option<Bytes> {
        let mut shard = self.shard(task.id);
        if let Some(entry) = shard.young.get(&task.id) {
            return entry.matching_json(task, queue_position);
        }
        // Used again: it moves to the young generation, and survives the next drop.
        let entry = shard.old.remove(&task.id)?;
        let json = entry.matching_json(task, queue_position)?;
        shard.put(task.id, entry, self.0.generation_bytes_max);
        Some(json)
    }

    /// Caches the object of `task` at `queue_position`.
    pub(crate) fn put(&self, task: &Arc<Task>, queue_position: Option<u64>, json: Bytes) {
        let entry = CachedObject {
            state: Arc::downgrade(task),
            queue_position,
            json,
        };
        if entry.bytes() > self.0.generation_bytes_max {
            return;
        }
        let mut shard = self.shard(task.id);
        shard.old.remove(&task.id);
        shard.put(task.id, entry, self.0.generation_bytes_max);
    }

    fn shard(&self, id: TaskId) -> std::sync::MutexGuard<'_, ObjectShard> {
        let number = self.0.hasher.hash_one(id) as usize % SHARDS;
        self.0.shards[number]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl CachedObject {
    fn matching_json(&self, task: &Arc<Task>, queue_position: Option<u64>) -> Option<Bytes> {
        // Records of the store are immutable: a change makes a new one at another address. The weak
        // reference keeps the allocation of the old one, so no new record can get its address while
        // this entry lives. Comparing addresses is thus exact, and costs no hashing of the task.
        let is_same = std::ptr::eq(self.state.as_ptr(), Arc::as_ptr(task));
        (is_same && self.queue_position == queue_position).then(|| self.json.clone())
    }

    fn bytes(&self) -> usize {
        ENTRY_BYTES + self.json.len()
    }
}

impl ObjectShard {
    fn put(&mut self, id: TaskId, entry: CachedObject, bytes_max: usize) {
        if let Some(before) = self.young.remove(&id) {
            self.young_bytes -= before.bytes();
        }
        if self.young_bytes + entry.bytes() > bytes_max {
            // Two generations instead of a list in order of use: a hit needs no bookkeeping, and
            // entries unused during a whole generation are dropped together.
            self.old = std::mem::take(&mut self.young);
            self.young_bytes = 0;
        }
        self.young_bytes += entry.bytes();
        self.young.insert(id, entry);
    }

    #[cfg(test)]
    fn bytes(&self) -> usize {
        let all = self.young.values().chain(self.old.values());
        all.map(CachedObject::bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use kinora_contract::{SubmitIntent, SubmitRequest, TaskState, built_in_cards, validate};

    use super::*;

    fn task(number: u8) -> Arc<Task> {
        let request = SubmitRequest::from_json(br#"{"model":"kinora-a1","prompt":"x"}"#).unwrap();
        let catalog = kinora_contract::ModelCatalog::new(built_in_cards()).unwrap();
        let SubmitIntent::New(spec) = validate(&request, &catalog, 7).unwrap().intent else {
            panic!("a new video was asked for");
        };
        Arc::new(Task {
            id: TaskId::from_parts(1, [number; 10]),
            project: "one".to_owned(),
            spec: *spec,
            metadata: Default::default(),
            priority: Default::default(),
            state: TaskState::Running,
            progress: 1,
            created_at_ms: 1,
            started_at_ms: None,
            finished_at_ms: None,
            expires_at_ms: None,
            attempt: 1,
            engine: None,
            warnings: Vec::new(),
            trace: None,
            cost: None,
        })
    }

    #[test]
    fn an_object_is_found_for_the_state_and_the_position_that_it_was_written_for() {
        let rendered = ObjectCache::default();
        let queued = task(1);
        rendered.put(&queued, Some(3), Bytes::from_static(b"third"));
        assert_eq!(rendered.get(&queued, Some(3)).unwrap(), "third");
        assert_eq!(rendered.get(&queued, Some(2)), None);
        assert_eq!(rendered.get(&queued, None), None);
        assert_eq!(rendered.get(&task(2), Some(3)), None);
        // The same task with the same contents, in another record.
        let changed = Arc::new((*queued).clone());
        assert_eq!(rendered.get(&changed, Some(3)), None);
        rendered.put(&changed, None, Bytes::from_static(b"running"));
        assert_eq!(rendered.get(&changed, None).unwrap(), "running");
        assert_eq!(rendered.get(&queued, Some(3)), None);
    }

    #[test]
    fn a_record_that_is_gone_lends_its_address_to_no_other() {
        let rendered = ObjectCache::default();
        for number in 0..100 {
            let before = task(1);
            rendered.put(&before, None, Bytes::from_static(b"before"));
            drop(before);
            let after = task(1);
            assert_eq!(rendered.get(&after, None), None, "{number}");
        }
    }

    #[test]
    fn p08_memory_stays_within_its_bound_and_keeps_what_is_asked_for() {
        let bytes_max = SHARDS * 2 * 8 * (ENTRY_BYTES + 1_000);
        let rendered = ObjectCache::bounded(bytes_max);
        let asked = task(0);
        rendered.put(&asked, None, Bytes::from_static(b"asked"));
        let all: Vec<Arc<Task>> = (1..=255).map(task).collect();
        for round in 0..10 {
            for one in &all {
                rendered.put(one, None, Bytes::from(vec![0; 1_000]));
                assert!(rendered.get(&asked, None).is_some(), "{round}");
            }
            let shards = rendered.0.shards.iter();
            let held: usize = shards.map(|shard| shard.lock().unwrap().bytes()).sum();
            assert!(held <= bytes_max, "{held}");
        }
        rendered.put(&asked, None, Bytes::from(vec![0; bytes_max]));
        assert_eq!(
            rendered.get(&asked, None).unwrap(),
            "asked",
            "too large to keep"
        );
    }
}
