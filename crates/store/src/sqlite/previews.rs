//! Previews of running tasks. Only in memory: they are dropped with their lease.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kinora_contract::TaskId;
use kinora_contract::lifecycle::{Lease, Record};

use crate::queue::Change;

/// The last preview of each running task.
#[derive(Debug, Default)]
pub(super) struct Previews {
    of_tasks: Mutex<OfTasks>,
}

/// Each with the token of its lease.
type OfTasks = HashMap<TaskId, (u64, Arc<[u8]>)>;

impl Previews {
    /// Replaces the preview under this lease, if the lease `is_held`; checked under the lock, so
    /// that none is stored after the end of its run was processed.
    pub(super) fn put(&self, lease: &Lease, preview: Arc<[u8]>, is_held: impl Fn() -> bool) {
        let mut previews = self.lock();
        if is_held() {
            previews.insert(lease.task, (lease.token, preview));
        }
    }

    /// The preview of a running task.
    pub(super) fn get(&self, id: TaskId) -> Option<Arc<[u8]>> {
        self.lock().get(&id).map(|(_, preview)| preview.clone())
    }

    /// Drops the preview of a run that has ended.
    pub(super) fn follow(&self, change: &Change) {
        let lease = |record: &Option<Arc<Record>>| record.as_ref()?.running_lease();
        let (was, is) = (lease(&change.before), lease(&change.after));
        if was.is_some() && was != is {
            self.lock().remove(&change.id);
        }
    }

    fn lock(&self) -> MutexGuard<'_, OfTasks> {
        self.of_tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
