//! How many tasks wait ahead of one: for polls, which must not count rows. Short queues are
//! answered exactly; of long ones a sorted copy, at most a fifth of a second old, is asked.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use super::record::{Change, Record};

/// A queue of so many is copied at once when it is asked for.
const SHORT: usize = 1_024;
const AGE_MAX: Duration = Duration::from_millis(200);

/// The places of waiting tasks, by model.
#[derive(Debug, Default)]
pub(super) struct Positions {
    models: RwLock<HashMap<String, Arc<Line>>>,
}

#[derive(Debug, Default)]
struct Line {
    waiting: Mutex<BTreeSet<u64>>,
    changed: AtomicBool,
    copy: RwLock<Copy>,
}

#[derive(Debug, Default)]
struct Copy {
    sorted: Vec<u64>,
    made: Option<Instant>,
}

impl Positions {
    /// Waiting tasks of the same model that were accepted before this one.
    pub(super) fn ahead(&self, record: &Record) -> u64 {
        let models = self.models.read().unwrap_or_else(PoisonError::into_inner);
        models
            .get(&record.task.spec.model)
            .map_or(0, |line| line.ahead(record.seq))
    }

    pub(super) fn apply(&self, change: &Change) {
        let waits = |record: &&Arc<Record>| record.is_waiting();
        let left = change.before.as_ref().filter(waits);
        let joined = change.after.as_ref().filter(waits);
        if let Some(record) = left {
            self.line(record)
                .edit(|waiting| waiting.remove(&record.seq));
        }
        if let Some(record) = joined {
            self.line(record).edit(|waiting| waiting.insert(record.seq));
        }
    }

    /// Models are few and configured: their lines are never dropped.
    fn line(&self, record: &Record) -> Arc<Line> {
        let model = &record.task.spec.model;
        let models = self.models.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(line) = models.get(model) {
            return line.clone();
        }
        drop(models);
        let mut models = self.models.write().unwrap_or_else(PoisonError::into_inner);
        models.entry(model.clone()).or_default().clone()
    }
}

impl Line {
    fn edit(&self, change: impl FnOnce(&mut BTreeSet<u64>) -> bool) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut waiting);
        self.changed.store(true, Ordering::Release);
    }

    fn ahead(&self, seq: u64) -> u64 {
        let copy = self.copy.read().unwrap_or_else(PoisonError::into_inner);
        if !self.changed.load(Ordering::Acquire) || copy.is_fresh() {
            return copy.ahead(seq);
        }
        drop(copy);
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let mut copy = self.copy.write().unwrap_or_else(PoisonError::into_inner);
        // Another poll may have made it while this one waited for the lock.
        if self.changed.swap(false, Ordering::AcqRel) {
            copy.sorted.clear();
            copy.sorted.extend(waiting.iter());
            copy.made = Some(Instant::now());
        }
        copy.ahead(seq)
    }
}

impl Copy {
    fn is_fresh(&self) -> bool {
        self.sorted.len() > SHORT && self.made.is_some_and(|made| made.elapsed() < AGE_MAX)
    }

    fn ahead(&self, seq: u64) -> u64 {
        self.sorted.partition_point(|other| *other < seq) as u64
    }
}
