//! News of changes: hints that name changed tasks, counters that wake the waiting parts of this
//! process, and short answers for frequent queries. A hint only shortens a wait and may be lost;
//! correctness relies on the answers, and polling must be enough.

use kinora_contract::lifecycle::WakeHints;
use kinora_contract::{Status, Task, TaskId, UnixMs};
use tokio::sync::{broadcast, watch};

/// Maximum number of changes that a slow follower may lag behind; beyond it, the follower only
/// learns that some were missed.
const BEHIND_MAX: usize = 1_024;

/// The short state of a task. [`ChangeReceiver`] reports each change of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskGlance {
    /// The task.
    pub id: TaskId,
    /// Its public status.
    pub status: Status,
    /// 0 to 100.
    pub progress: u8,
    /// When it was accepted, by the store's clock.
    pub created_at_ms: UnixMs,
}

impl TaskGlance {
    /// The short state of `task`; `None` for an expired one.
    pub fn from_task(task: &Task) -> Option<Self> {
        Some(Self {
            id: task.id,
            status: task.status()?,
            progress: task.progress,
            created_at_ms: task.created_at_ms,
        })
    }

    /// Whether the task has ended and so will not change again.
    pub const fn has_ended(&self) -> bool {
        matches!(self.status, Status::Completed | Status::Failed)
    }
}

/// A query for the recently ended tasks of a project.
#[derive(Clone, Debug)]
pub struct EndedRequest {
    /// The project.
    pub project: String,
    /// Only tasks that ended at this time or later. A time ahead of the store's clock, which has
    /// been set back since, means any time.
    pub since_ms: UnixMs,
    /// Maximum number of tasks; the last ones to end are returned.
    pub limit: usize,
}

/// Recently ended tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedTasks {
    /// The tasks with their end times, in that order.
    pub tasks: Vec<(UnixMs, TaskId)>,
    /// The actual start of the period: not after the requested one. If several processes store
    /// changes concurrently, a change that arrives later may have ended earlier.
    pub from_ms: UnixMs,
    /// The start time for the next query: all tasks that ended before it are included here, or
    /// reported by [`ChangeReceiver`] from now on.
    pub next_ms: UnixMs,
    /// The current time by the store's clock.
    pub now_ms: UnixMs,
}

/// Maximum delay between the recorded time of a change and its report. It covers the transaction
/// and, for a change by another process, the notification, or the periodic check that finds the
/// changes whose notification was lost.
pub(crate) const UNDER_WAY_MS: u64 = 60_000;

/// The start of the period to report when the client asks for `since_ms`.
pub(crate) const fn ended_from(since_ms: UnixMs, now_ms: UnixMs) -> UnixMs {
    // The client got that time from this store, before its clock was set back: tasks may have ended
    // at any time since.
    if since_ms > now_ms { 0 } else { since_ms }
}

/// A change of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskChange {
    /// This task's [`TaskGlance`] has changed, or the task no longer exists.
    Of(TaskId),
    /// Some tasks have changed; which ones is unknown.
    Unknown,
}

/// Receives changes, including those of its own handle.
#[derive(Debug)]
pub struct ChangeReceiver(broadcast::Receiver<TaskChange>);

impl ChangeReceiver {
    /// The next change; never returns once the store is closed. Cancel-safe: no change is lost.
    pub async fn next(&mut self) -> TaskChange {
        match self.0.recv().await {
            Ok(change) => change,
            // The ring has overwritten changes that this follower had not read. It asks for the
            // state of all its tasks then, so none is missed.
            Err(broadcast::error::RecvError::Lagged(_)) => TaskChange::Unknown,
            // The store is closed, so no change will come. An error would make followers ask again
            // at once.
            Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
        }
    }

    /// The next change that has already arrived.
    pub fn try_next(&mut self) -> Option<TaskChange> {
        match self.0.try_recv() {
            Ok(change) => Some(change),
            Err(broadcast::error::TryRecvError::Lagged(_)) => Some(TaskChange::Unknown),
            Err(_) => None,
        }
    }
}

/// Sends changes to all followers of a handle.
#[derive(Debug)]
pub(crate) struct ChangeSender(broadcast::Sender<TaskChange>);

impl Default for ChangeSender {
    fn default() -> Self {
        Self(broadcast::Sender::new(BEHIND_MAX))
    }
}

impl ChangeSender {
    /// Creates a follower that receives all later changes.
    pub(crate) fn subscribe(&self) -> ChangeReceiver {
        ChangeReceiver(self.0.subscribe())
    }

    /// Sends a change. Without followers it costs almost nothing.
    pub(crate) fn notify(&self, change: TaskChange) {
        // An error means that there are no followers.
        let _ = self.0.send(change);
    }
}

/// Counters that advance, and those who follow changes of tasks.
#[derive(Debug, Default)]
pub(crate) struct WakeSignals {
    /// A task may be ready to claim or to fetch.
    pub(crate) work: watch::Sender<u64>,
    /// A lease was withdrawn.
    pub(crate) withdrawn: watch::Sender<u64>,
    /// A task has ended.
    pub(crate) ended: watch::Sender<u64>,
    pub(crate) followers: ChangeSender,
}

impl WakeSignals {
    /// Advances the counters that these hints concern.
    pub(crate) fn wake(&self, hints: WakeHints) {
        for (is_concerned, counter) in [
            (hints.work, &self.work),
            (hints.withdrawn, &self.withdrawn),
            (hints.ended, &self.ended),
        ] {
            if is_concerned {
                // Receivers look only whether the counter moved, so its value may wrap. A receiver
                // that was not waiting sees the move at its next wait.
                counter.send_modify(|count| *count = count.wrapping_add(1));
            }
        }
    }
}
