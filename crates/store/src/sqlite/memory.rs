//! What readers see without touching the disk, and the signal that wakes workers. The writer
//! publishes each committed transaction here.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kinora_contract::{Inputs, Task};
use tokio::sync::watch;

use super::cache::Cache;
use super::positions::Positions;
use super::record::{Change, Record};
use crate::TaskView;

/// Shared by the writer and all readers.
#[derive(Debug)]
pub(super) struct Memory {
    pub(super) cache: Cache,
    positions: Positions,
    /// Waiting tasks that have references, by place.
    with_references: Mutex<BTreeMap<u64, Arc<Task>>>,
    changes: watch::Sender<u64>,
}

impl Memory {
    pub(super) fn new(finished_cached_bytes_max: u64) -> Self {
        Self {
            cache: Cache::new(finished_cached_bytes_max),
            positions: Positions::default(),
            with_references: Mutex::default(),
            changes: watch::Sender::new(0),
        }
    }

    pub(super) fn publish(&self, changes: Vec<Change>) {
        let wake = changes.iter().any(Change::concerns_workers);
        for change in changes {
            self.positions.apply(&change);
            self.note_references(&change);
            self.cache.publish(change.id, change.after);
        }
        if wake {
            self.changes
                .send_modify(|count| *count = count.wrapping_add(1));
        }
    }

    fn note_references(&self, change: &Change) {
        let waits =
            |record: &&Arc<Record>| record.is_waiting() && record.task.spec.inputs != Inputs::Text;
        let left = change.before.as_ref().filter(waits);
        let joined = change.after.as_ref().filter(waits);
        if left.is_none() && joined.is_none() {
            return;
        }
        let mut waiting = self.references();
        if let Some(record) = left {
            waiting.remove(&record.seq);
        }
        if let Some(record) = joined {
            waiting.insert(record.seq, record.task.clone());
        }
    }

    /// Up to `limit` waiting tasks that have references, from behind the place `after`.
    pub(super) fn waiting_with_references(
        &self,
        after: u64,
        limit: usize,
    ) -> Vec<(u64, Arc<Task>)> {
        self.references()
            .range(after.saturating_add(1)..)
            .take(limit)
            .map(|(seq, task)| (*seq, task.clone()))
            .collect()
    }

    fn references(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Task>>> {
        self.with_references
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn view(&self, record: &Record) -> TaskView {
        let waits = record.is_waiting() && record.task.started_at_ms.is_none();
        TaskView {
            task: record.task.clone(),
            queue_position: waits.then(|| self.positions.ahead(record)),
            preview: record.preview.clone(),
        }
    }

    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
}
