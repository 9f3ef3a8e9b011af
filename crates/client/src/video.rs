//! The task object, as the service sends it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A video task. Fields that the service omits are `None`; times are Unix seconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Video {
    /// Task identifier, `video_...`.
    pub id: String,
    /// Identifier of the model.
    #[serde(default)]
    pub model: String,
    /// State of the task.
    pub status: Status,
    /// 0 to 100; never falls; 100 only when completed.
    #[serde(default)]
    pub progress: u8,
    /// Time of acceptance.
    #[serde(default)]
    pub created_at: u64,
    /// The prompt, as used.
    #[serde(default)]
    pub prompt: String,
    /// Length in seconds as text; `"auto"` until the engine has chosen.
    #[serde(default)]
    pub seconds: String,
    /// `"WIDTHxHEIGHT"`; `"adaptive"` until the first image is known.
    #[serde(default)]
    pub size: String,
    /// The seed used.
    #[serde(default)]
    pub seed: u32,
    /// The caller's own pairs.
    #[serde(default)]
    pub metadata: BTreeMap<String, String>,
    /// `high` or `low`, if the priority is not `normal`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<String>,
    /// Time when work began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<u64>,
    /// Time of completion or failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<u64>,
    /// When the service removes the task and its files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<u64>,
    /// Number of tasks expected to start before it, while queued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_position: Option<u64>,
    /// Signed URL of the MP4; only when completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_url: Option<String>,
    /// Signed URL of the poster; only when completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thumbnail_url: Option<String>,
    /// Signed URL of the first frame in full size; only when completed, if the result has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_frame_url: Option<String>,
    /// Signed URL of the last frame in full size; only when completed, if the result has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_frame_url: Option<String>,
    /// The reason for the failure; only when failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
    /// Whether it is a draft.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub draft: bool,
    /// The draft that this task renders as a final.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draft_task_id: Option<String>,
    /// The task whose video this task edits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edit_task_id: Option<String>,
    /// Length of the file in seconds; only when completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<f64>,
    /// Frames per second of the file; only when completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fps: Option<f64>,
    /// Frames of the file; only when completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frames: Option<u32>,
    /// Whether the file has a sound track; only when completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub has_audio: Option<bool>,
    /// The engine, as `name/version`, once started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    /// Parts of the request that the engine ignored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
    /// What the task costs, if its model has prices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
    /// Fields unknown to this version of the client, unchanged.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl Video {
    /// Whether it is completed or failed, and so will not change again.
    pub fn is_finished(&self) -> bool {
        matches!(self.status, Status::Completed | Status::Failed)
    }

    /// Whether it failed because it was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.error
            .as_ref()
            .is_some_and(|error| error.code == "cancelled")
    }
}

/// The states of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Status {
    /// Waits for a worker.
    Queued,
    /// A worker runs it.
    InProgress,
    /// The video is ready.
    Completed,
    /// There will be no video; `error` says why.
    Failed,
    /// A state unknown to this version of the client; not a final one.
    #[serde(other)]
    Unknown,
}

impl Status {
    /// The state as the service writes it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Unknown => "unknown",
        }
    }
}

/// What a task costs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Cost {
    /// The amount, in units of the currency.
    pub amount: f64,
    /// The currency, by its code of ISO 4217.
    pub currency: String,
    /// Whether the task has not ended, so that the amount may change.
    #[serde(default)]
    pub estimated: bool,
}

/// Why a task failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Failure {
    /// A stable code, such as `reference_unreachable`.
    pub code: String,
    /// A sentence for people.
    #[serde(default)]
    pub message: String,
    /// The field of the request that failed, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub param: Option<String>,
}

/// Something in the request that the engine ignored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Warning {
    /// A stable code, such as `seed_ignored`.
    pub code: String,
    /// A sentence for people.
    #[serde(default)]
    pub message: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_fields_and_states_are_kept_and_do_not_fail() {
        let text = r#"{"id":"video_x","status":"paused","mood":"calm","progress":3}"#;
        let video: Video = serde_json::from_str(text).unwrap();
        assert_eq!(video.status, Status::Unknown);
        assert!(!video.is_finished());
        assert_eq!(video.other["mood"], "calm");
        let again = serde_json::to_value(&video).unwrap();
        assert_eq!(again["mood"], "calm");
        assert!(again.get("result_url").is_none(), "{again}");
    }
}
