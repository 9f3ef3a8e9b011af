//! The state that readers see without touching the disk, and the signals that wake workers. The
//! writer publishes each committed transaction here.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kinora_contract::lifecycle::{Lease, TaskRecord, WakeHints};
use kinora_contract::{Clock, TaskId};

use super::cache::TaskCache;
use crate::changes::WakeSignals;
use crate::queue::{QueueEstimates, RecordChange};
use crate::{TaskChange, commit_metrics};

/// Shared by the writer and all readers.
#[derive(Debug)]
pub(super) struct StoreMemory {
    pub(super) cache: TaskCache,
    pub(super) queue: QueueEstimates,
    /// Waiting tasks whose references are not stored.
    unready_count: AtomicUsize,
    /// Whether the last commit succeeded.
    writable: AtomicBool,
    /// Whether the store's files are those that it opened.
    in_place: AtomicBool,
    pub(super) previews: TaskPreviews,
    pub(super) unfinished: UnfinishedTasks,
    pub(super) signals: WakeSignals,
}

impl StoreMemory {
    pub(super) fn new(finished_cached_bytes_max: u64, clock: Arc<dyn Clock>) -> Self {
        Self {
            cache: TaskCache::new(finished_cached_bytes_max),
            queue: QueueEstimates::new(clock),
            unready_count: AtomicUsize::new(0),
            writable: AtomicBool::new(true),
            in_place: AtomicBool::new(true),
            previews: TaskPreviews::default(),
            unfinished: UnfinishedTasks::default(),
            signals: WakeSignals::default(),
        }
    }

    pub(super) fn publish(&self, changes: Vec<RecordChange>) {
        commit_metrics::committed(&changes);
        let hints = changes
            .iter()
            .map(RecordChange::hints)
            .fold(WakeHints::default(), WakeHints::union);
        for change in changes {
            self.queue.apply(&change);
            self.count_unready(&change);
            self.cache.publish(change.id, change.after.clone());
            // After the cache, by which an arriving preview is checked. In the other order, a preview
            // could pass the check between the two steps and stay for ever.
            self.previews.apply_change(&change);
            self.unfinished.apply_change(&change);
            if change.is_news() {
                self.signals.followers.notify(TaskChange::Of(change.id));
            }
        }
        // Last, so that a worker that wakes sees the work, and once for all changes.
        self.signals.wake(hints);
    }

    /// Counts the waiting tasks whose references are not stored.
    fn count_unready(&self, change: &RecordChange) {
        match (is_unready(&change.before), is_unready(&change.after)) {
            (false, true) => self.unready_count.fetch_add(1, Ordering::AcqRel),
            (true, false) => self.unready_count.fetch_sub(1, Ordering::AcqRel),
            _ => return,
        };
    }

    /// Whether a waiting task has references that are not stored.
    pub(super) fn has_unready(&self) -> bool {
        self.unready_count.load(Ordering::Acquire) > 0
    }

    pub(super) fn set_writable(&self, writable: bool) {
        self.writable.store(writable, Ordering::Release);
    }

    /// Whether the last commit succeeded.
    pub(super) fn is_writable(&self) -> bool {
        self.writable.load(Ordering::Acquire) && self.is_in_place()
    }

    /// Whether, at the writer's last check, the store's files were those that it opened.
    pub(super) fn is_in_place(&self) -> bool {
        self.in_place.load(Ordering::Acquire)
    }

    /// Records whether the store's files are those that it opened.
    pub(super) fn set_in_place(&self, in_place: bool) {
        self.in_place.store(in_place, Ordering::Release);
    }
}

/// Whether a task waits for references that are not stored.
fn is_unready(record: &Option<Arc<TaskRecord>>) -> bool {
    let record = record.as_ref().filter(|record| record.is_waiting());
    record.is_some_and(|record| !record.is_claimable())
}

/// The last preview of each running task.
#[derive(Debug, Default)]
pub(super) struct TaskPreviews {
    by_task: Mutex<PreviewsByTask>,
}

/// Each with the token of its lease.
type PreviewsByTask = HashMap<TaskId, (u64, Arc<[u8]>)>;

impl TaskPreviews {
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
    fn apply_change(&self, change: &RecordChange) {
        let was = change.before.as_ref().and_then(|one| one.running_lease());
        let is = change.after.as_ref().and_then(|one| one.running_lease());
        if was.is_some() && was != is {
            self.lock().remove(&change.id);
        }
    }

    fn lock(&self) -> MutexGuard<'_, PreviewsByTask> {
        self.by_task.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ids of the unfinished tasks of each project.
#[derive(Debug, Default)]
pub(super) struct UnfinishedTasks(Mutex<HashMap<String, BTreeSet<TaskId>>>);

impl UnfinishedTasks {
    /// Applies a committed change.
    fn apply_change(&self, change: &RecordChange) {
        let before = change.before.as_ref().filter(|one| !one.is_terminal());
        let after = change.after.as_ref().filter(|one| !one.is_terminal());
        match (before, after) {
            (None, Some(after)) => {
                let mut projects = self.lock();
                // Not `entry`, which would copy the project's name for each task.
                match projects.get_mut(&after.task.project) {
                    Some(own) => drop(own.insert(change.id)),
                    None => {
                        let own = BTreeSet::from([change.id]);
                        projects.insert(after.task.project.clone(), own);
                    }
                }
            }
            (Some(before), None) => {
                let mut projects = self.lock();
                if let Some(own) = projects.get_mut(&before.task.project) {
                    own.remove(&change.id);
                    if own.is_empty() {
                        projects.remove(&before.task.project);
                    }
                }
            }
            _ => {}
        }
    }

    /// The tasks of a project, by creation.
    pub(super) fn ids_of(&self, project: &str) -> Vec<TaskId> {
        let projects = self.lock();
        let own = projects.get(project).into_iter().flatten();
        own.copied().collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, BTreeSet<TaskId>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
