//! Sums over ended tasks, by project, model and day, and the part that one task adds when it ends. The
//! sums outlive the tasks, and show how much video was made and how long engines worked for it. Each task
//! is counted once: only the change that ends it has a [`TallyEntry`].

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::FailureCode;
use crate::lifecycle::record::TaskRecord;
use crate::task::{Task, TaskState};
use crate::time::{UnixMs, day_of};

const CANCELLED: TaskTally = TaskTally {
    completed: 0,
    failed: 0,
    cancelled: 1,
    video_ms: 0,
    engine_ms: 0,
    cost_micros: 0,
};

/// One ended task's part in the sums.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TallyEntry {
    /// The project that owned the task.
    pub project: String,
    /// Canonical identifier of its model.
    pub model: String,
    /// Day of the end, in days since 1970 (UTC).
    pub day: u64,
    /// The amounts to add.
    pub tally: TaskTally,
}

impl TallyEntry {
    /// The part of a task that ends with the change from `before` to `after`; otherwise `None`.
    pub(super) fn from_change(before: &TaskRecord, after: &TaskRecord) -> Option<Self> {
        let task = &after.task;
        let counted = match &task.state {
            TaskState::Completed(artifact) => TaskTally {
                completed: 1,
                video_ms: millis(artifact.duration_seconds),
                ..TaskTally::default()
            },
            // By its code: a cancel is a failure with a reason of its own, and operators want them
            // apart.
            TaskState::Failed(failure) if failure.code == FailureCode::Cancelled.as_str() => {
                CANCELLED
            }
            TaskState::Failed(_) => TaskTally {
                failed: 1,
                ..TaskTally::default()
            },
            TaskState::Waiting | TaskState::Running | TaskState::Expired => return None,
        };
        let counted = TaskTally {
            cost_micros: task.cost.as_ref().map_or(0, |cost| cost.amount.micros()),
            ..counted
        };
        (!before.is_terminal()).then(|| Self::new(task, task.finished_at_ms.unwrap_or(0), counted))
    }

    /// The part of an unfinished task that is deleted: it counts as cancelled.
    pub(super) fn from_deletion(before: &TaskRecord, now_ms: UnixMs) -> Option<Self> {
        (!before.is_terminal()).then(|| {
            let counted = TaskTally {
                cost_micros: before.cost_if_withdrawn().unwrap_or_default().micros(),
                ..CANCELLED
            };
            Self::new(&before.task, now_ms, counted)
        })
    }

    fn new(task: &Task, ended_ms: UnixMs, counted: TaskTally) -> Self {
        let begun_ms = task.started_at_ms.unwrap_or(ended_ms);
        Self {
            project: task.project.clone(),
            model: task.spec.model.clone(),
            // The clock may have been set back during the run.
            day: day_of(ended_ms.max(begun_ms)),
            tally: TaskTally {
                engine_ms: ended_ms.saturating_sub(begun_ms),
                ..counted
            },
        }
    }
}

fn millis(seconds: f64) -> u64 {
    let length = Duration::try_from_secs_f64(seconds).unwrap_or_default();
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

/// Sums over ended tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskTally {
    /// Tasks that completed.
    pub completed: u64,
    /// Tasks that failed, without cancelled ones.
    pub failed: u64,
    /// Tasks that their owners cancelled.
    pub cancelled: u64,
    /// Length of the results in milliseconds.
    pub video_ms: u64,
    /// Milliseconds from the first claim of each task to its end, whatever the outcome.
    pub engine_ms: u64,
    /// What the tasks cost, in millionths of the service's currency.
    #[serde(default)]
    pub cost_micros: u64,
}

impl TaskTally {
    /// Adds `other`.
    pub const fn add(&mut self, other: Self) {
        self.completed = self.completed.saturating_add(other.completed);
        self.failed = self.failed.saturating_add(other.failed);
        self.cancelled = self.cancelled.saturating_add(other.cancelled);
        self.video_ms = self.video_ms.saturating_add(other.video_ms);
        self.engine_ms = self.engine_ms.saturating_add(other.engine_ms);
        self.cost_micros = self.cost_micros.saturating_add(other.cost_micros);
    }
}
