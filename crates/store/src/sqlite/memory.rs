//! What readers see without touching the disk, and the signal that wakes workers. The writer
//! publishes each committed transaction here.

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
    changes: watch::Sender<u64>,
}

impl Memory {
    pub(super) fn new(finished_cached_max: usize) -> Self {
        Self {
            cache: Cache::new(finished_cached_max),
            positions: Positions::default(),
            changes: watch::Sender::new(0),
        }
    }

    pub(super) fn publish(&self, changes: Vec<Change>) {
        let wake = changes.iter().any(Change::concerns_workers);
        for change in changes {
            self.positions.apply(&change);
            self.cache.publish(change.id, change.after);
        }
        if wake {
            self.changes
                .send_modify(|count| *count = count.wrapping_add(1));
        }
    }

    pub(super) fn view(&self, record: &Record) -> TaskView {
        let waits = record.is_waiting() && record.task.started_at_ms.is_none();
        TaskView {
            task: record.task.clone(),
            queue_position: waits.then(|| self.positions.ahead(record)),
        }
    }

    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
}
