//! Changes of tasks as clients see them, for those who wait for one: hints of which tasks have changed, and short
//! answers to ask again and again. A hint saves waiting; the answers are the truth.

use kinora_contract::{Status, Task, TaskId, UnixMs};
use tokio::sync::broadcast;

/// Changes that a slow follower may be behind; of more it learns only that there were some.
const BEHIND_MAX: usize = 1_024;

/// Where a task stands. A change of it is what clients are told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Glance {
    /// The task.
    pub id: TaskId,
    /// Its public status.
    pub status: Status,
    /// 0 to 100.
    pub progress: u8,
    /// When it was accepted, by the store's clock.
    pub created_at_ms: UnixMs,
}

impl Glance {
    /// Where `task` stands; `None` for an expired one.
    pub fn of(task: &Task) -> Option<Self> {
        Some(Self {
            id: task.id,
            status: task.status()?,
            progress: task.progress,
            created_at_ms: task.created_at_ms,
        })
    }

    /// Whether the task will not change any more.
    pub const fn has_ended(&self) -> bool {
        matches!(self.status, Status::Completed | Status::Failed)
    }
}

/// Asks for the tasks of a project that ended lately.
#[derive(Clone, Debug)]
pub struct EndedRequest {
    /// Whose.
    pub project: String,
    /// Only those that ended then or later. A time that lies ahead of the store's clock, which was set back since,
    /// stands for any.
    pub since_ms: UnixMs,
    /// How many at most: those that ended last.
    pub limit: usize,
}

/// Tasks that ended lately.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Each with when it ended, in that order.
    pub tasks: Vec<(UnixMs, TaskId)>,
    /// From when on they are told: not after the time asked for. Where several processes store changes at the same
    /// time, one that is heard of later may have ended earlier.
    pub from_ms: UnixMs,
    /// The time to ask for next: all that ended before are among these, or told of by [`Changes`] from now on.
    pub next_ms: UnixMs,
    /// The present by the store's clock.
    pub now_ms: UnixMs,
}

/// How long a change may be on its way, from when its time is noted until it is heard of: its transaction, and
/// where another process stores it the notice, or the look that finds what the notice did not tell.
pub(crate) const UNDER_WAY_MS: u64 = 60_000;

/// From when on ended tasks are told that are asked for since `since_ms`.
pub(crate) const fn ended_from(since_ms: UnixMs, now_ms: UnixMs) -> UnixMs {
    if since_ms > now_ms { 0 } else { since_ms }
}

/// A change of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskChange {
    /// This task's [`Glance`] has changed, or the task is gone.
    Of(TaskId),
    /// It is not known which tasks have changed.
    Unknown,
}

/// Hears of changes, its own handle's included.
#[derive(Debug)]
pub struct Changes(broadcast::Receiver<TaskChange>);

impl Changes {
    /// The next change; never, once the store is closed. May be dropped at any time without losing one.
    pub async fn next(&mut self) -> TaskChange {
        match self.0.recv().await {
            Ok(change) => change,
            Err(broadcast::error::RecvError::Lagged(_)) => TaskChange::Unknown,
            Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
        }
    }

    /// The next change that is known by now.
    pub fn try_next(&mut self) -> Option<TaskChange> {
        match self.0.try_recv() {
            Ok(change) => Some(change),
            Err(broadcast::error::TryRecvError::Lagged(_)) => Some(TaskChange::Unknown),
            Err(_) => None,
        }
    }
}

/// Tells all followers of a handle.
#[derive(Debug)]
pub(crate) struct Followers(broadcast::Sender<TaskChange>);

impl Default for Followers {
    fn default() -> Self {
        Self(broadcast::Sender::new(BEHIND_MAX))
    }
}

impl Followers {
    /// A new follower, who hears of everything from now on.
    pub(crate) fn join(&self) -> Changes {
        Changes(self.0.subscribe())
    }

    /// Tells of a change. Without a follower it costs next to nothing.
    pub(crate) fn tell(&self, change: TaskChange) {
        // An error says that nobody follows.
        let _ = self.0.send(change);
    }
}
