//! A task: its data, its states, the allowed steps between them, and its priority. Its types rule out
//! impossible states: only a completed task has a result, only a failed one has a failure.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::error::{Failure, Warning};
use crate::id::TaskId;
use crate::prices::TaskCost;
use crate::spec::VideoSpec;
use crate::time::UnixMs;
use crate::trace::TraceContext;

/// A task as the store keeps it.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// Its identifier.
    pub id: TaskId,
    /// The project that owns the task; all keys of a project share its tasks.
    pub project: String,
    /// The video to make.
    pub spec: VideoSpec,
    /// The caller's own notes, returned unchanged.
    pub metadata: BTreeMap<String, String>,
    /// Priority within the project.
    pub priority: Priority,
    /// State of the task.
    pub state: TaskState,
    /// 0 to 100; never falls; 100 only when completed.
    pub progress: u8,
    /// Time of acceptance.
    pub created_at_ms: UnixMs,
    /// Time of the first claim.
    pub started_at_ms: Option<UnixMs>,
    /// Time of the terminal state.
    pub finished_at_ms: Option<UnixMs>,
    /// Time when the files expire; set with the terminal state.
    pub expires_at_ms: Option<UnixMs>,
    /// Number of times a worker has claimed the task.
    pub attempt: u32,
    /// The engine that made or makes it, as `name/version`.
    pub engine: Option<String>,
    /// Parts of the request that the engine did not or could not satisfy.
    pub warnings: Vec<Warning>,
    /// The span of the submit, if its trace is recorded.
    pub trace: Option<TraceContext>,
    /// What the task costs, if its model has prices.
    pub cost: Option<TaskCost>,
}

/// The state of a task.
#[derive(Clone, Debug, PartialEq)]
pub enum TaskState {
    /// Waits for a worker, for the first time or again.
    Waiting,
    /// A worker holds its lease.
    Running,
    /// The task has a result.
    Completed(Box<Artifact>),
    /// The task has no result and will have none.
    Failed(Failure),
    /// The task was finished; its files have expired.
    Expired,
}

/// The kinds of [`TaskState`], without their contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TaskPhase {
    /// [`TaskState::Waiting`].
    Waiting,
    /// [`TaskState::Running`].
    Running,
    /// [`TaskState::Completed`].
    Completed,
    /// [`TaskState::Failed`].
    Failed,
    /// [`TaskState::Expired`].
    Expired,
}

impl TaskPhase {
    /// Every phase.
    pub const ALL: [Self; 5] = [
        Self::Waiting,
        Self::Running,
        Self::Completed,
        Self::Failed,
        Self::Expired,
    ];

    /// Whether a task may change from this phase to `next` in one step.
    pub const fn may_become(self, next: Self) -> bool {
        use TaskPhase::{Completed, Expired, Failed, Running, Waiting};
        matches!(
            (self, next),
            (Waiting, Running | Failed)
                | (Running, Waiting | Completed | Failed)
                | (Completed | Failed, Expired)
        )
    }

    /// Whether work on the task is over.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Expired)
    }
}

/// The four public states. No other value is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Waits for its first worker.
    Queued,
    /// Work on it has begun.
    InProgress,
    /// `result_url` may be read.
    Completed,
    /// `error` and `fail_reason` say why.
    Failed,
}

impl Status {
    /// The status as sent.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Failed => "failed",
        }
    }
}

impl TaskState {
    /// The kind of this state.
    pub const fn phase(&self) -> TaskPhase {
        match self {
            Self::Waiting => TaskPhase::Waiting,
            Self::Running => TaskPhase::Running,
            Self::Completed(_) => TaskPhase::Completed,
            Self::Failed(_) => TaskPhase::Failed,
            Self::Expired => TaskPhase::Expired,
        }
    }
}

impl Task {
    /// The public status; `None` for an expired task, which gets 410. A task that lost its worker
    /// and waits again still shows `in_progress`.
    pub const fn status(&self) -> Option<Status> {
        match self.state {
            // A status never goes back: a requeued task has started before, so it stays
            // `in_progress`.
            TaskState::Waiting if self.started_at_ms.is_none() => Some(Status::Queued),
            TaskState::Waiting | TaskState::Running => Some(Status::InProgress),
            TaskState::Completed(_) => Some(Status::Completed),
            TaskState::Failed(_) => Some(Status::Failed),
            TaskState::Expired => None,
        }
    }
}

/// A finished video: its files and their measured properties.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Artifact {
    /// The MP4.
    pub video: StoredFile,
    /// The poster image, WebP.
    pub thumbnail: StoredFile,
    /// Frames over time in one picture, JPEG.
    pub spritesheet: StoredFile,
    /// The first frame in full size, JPEG. `None` for a film that cannot be decoded, and for results
    /// of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_frame: Option<StoredFile>,
    /// The last frame, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_frame: Option<StoredFile>,
    /// Length in seconds.
    pub duration_seconds: f64,
    /// Frames per second.
    pub fps: f64,
    /// Number of frames.
    pub frames: u32,
    /// Pixels per row.
    pub width: u32,
    /// Rows.
    pub height: u32,
    /// Whether there is a sound track.
    pub has_audio: bool,
}

impl Artifact {
    /// All files of this result.
    pub fn files(&self) -> impl Iterator<Item = &StoredFile> {
        let always = [&self.video, &self.thumbnail, &self.spritesheet];
        let frames = [&self.first_frame, &self.last_frame];
        always.into_iter().chain(frames.into_iter().flatten())
    }
}

/// A file in the blob store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredFile {
    /// Key in the blob store; contains the lease token, so that no two attempts share one.
    pub key: String,
    /// Length in bytes.
    pub bytes: u64,
    /// SHA-256 of the bytes, in lower-case hexadecimal.
    pub sha256: String,
}

/// A class among the waiting tasks of one project; `high` tasks start first.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
// The derived order is the order in which tasks start: do not reorder the variants.
pub enum Priority {
    /// Before the project's other tasks.
    High,
    /// The default.
    #[default]
    Normal,
    /// After the project's other tasks.
    Low,
}

impl Priority {
    /// Every class, in the order of the documents.
    pub const ALL: [Self; 3] = [Self::Low, Self::Normal, Self::High];

    /// Its name in requests and answers.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::High => "high",
            Self::Normal => "normal",
            Self::Low => "low",
        }
    }

    /// Every name, for a refusal.
    pub(crate) fn names() -> String {
        Self::ALL.map(Self::name).join(", ")
    }

    /// The priority with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }

    /// Its number in a database; tasks with smaller numbers start first.
    #[must_use]
    pub const fn rank(self) -> i16 {
        match self {
            Self::High => -1,
            Self::Normal => 0,
            Self::Low => 1,
        }
    }

    /// The priority with this number.
    #[must_use]
    pub fn from_rank(rank: i16) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.rank() == rank)
    }

    /// Whether this is the default.
    #[must_use]
    pub fn is_normal(&self) -> bool {
        *self == Self::Normal
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_phases_lead_nowhere_but_to_expiry() {
        for phase in TaskPhase::ALL {
            let next: Vec<TaskPhase> = TaskPhase::ALL
                .into_iter()
                .filter(|next| phase.may_become(*next))
                .collect();
            match phase {
                TaskPhase::Waiting => assert_eq!(next, [TaskPhase::Running, TaskPhase::Failed]),
                TaskPhase::Running => {
                    assert_eq!(
                        next,
                        [TaskPhase::Waiting, TaskPhase::Completed, TaskPhase::Failed]
                    );
                }
                TaskPhase::Completed | TaskPhase::Failed => assert_eq!(next, [TaskPhase::Expired]),
                TaskPhase::Expired => assert!(next.is_empty()),
            }
            assert_eq!(
                phase.is_terminal(),
                next.iter().all(|next| *next == TaskPhase::Expired)
            );
        }
    }

    #[test]
    fn names_and_numbers_are_those_of_one_class_each_in_the_same_order() {
        for one in Priority::ALL {
            assert_eq!(Priority::from_name(one.name()), Some(one));
            assert_eq!(Priority::from_rank(one.rank()), Some(one));
            assert_eq!(serde_json::to_value(one).unwrap(), one.name());
            for other in Priority::ALL {
                assert_eq!(one.cmp(&other), one.rank().cmp(&other.rank()));
            }
        }
        assert_eq!(Priority::from_name("High"), None);
        assert_eq!(Priority::from_rank(2), None);
        assert!(Priority::default().is_normal());
    }
}
