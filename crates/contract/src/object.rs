//! The task object, the answer to submit, query and list. It works for the official OpenAI SDKs and
//! for clients that read `result_url` and `fail_reason`. `code`, `data` and `works` never appear.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::error::{Failure, Warning};
use crate::prices::CostObject;
use crate::spec::{FrameSize, VideoLength};
use crate::task::{Priority, Status, Task, TaskState};
use crate::time::UnixMs;

/// A video task as clients see it. Fields without a value are omitted.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = Video))]
pub struct VideoObject {
    /// Task identifier.
    #[cfg_attr(
        feature = "openapi",
        schema(example = "video_01k3v8r2n8p5c1w9g7d4x6m2ta")
    )]
    pub id: String,
    /// Always `video`.
    #[cfg_attr(feature = "openapi", schema(example = "video"))]
    pub object: &'static str,
    /// The model that makes the video.
    pub model: String,
    /// State of the task.
    pub status: Status,
    /// 0 to 100; never falls; 100 only when completed.
    #[cfg_attr(feature = "openapi", schema(maximum = 100))]
    pub progress: u8,
    /// Time of acceptance, in Unix seconds.
    pub created_at: u64,
    /// The prompt.
    pub prompt: String,
    /// Length in seconds as text; `"auto"` until the engine has chosen.
    #[cfg_attr(feature = "openapi", schema(example = "5"))]
    pub seconds: String,
    /// Size of the result, `"WIDTHxHEIGHT"`; `"adaptive"` until the first image is known.
    #[cfg_attr(feature = "openapi", schema(example = "1280x720"))]
    pub size: String,
    /// The seed used.
    pub seed: u32,
    /// The caller's own notes.
    pub metadata: BTreeMap<String, String>,
    /// The task's priority within its project; absent when `normal`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
    /// Time when work began, in Unix seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<u64>,
    /// Time of completion or failure, in Unix seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<u64>,
    /// Time when the task and its files expire, in Unix seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<u64>,
    /// Number of tasks expected to start before this one, while queued; absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_position: Option<u64>,
    /// URL of the MP4; only when completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_url: Option<String>,
    /// The same URL; only when completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// URL of this object, under the name that OpenRouter's clients read.
    pub polling_url: String,
    /// `result_url` as the list that OpenRouter's clients read; only when completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unsigned_urls: Option<[String; 1]>,
    /// URL of the poster image; only when completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thumbnail_url: Option<String>,
    /// URL of the first frame in full size; only when completed, if the result has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_frame_url: Option<String>,
    /// URL of the last frame in full size; only when completed, if the result has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_frame_url: Option<String>,
    /// The reason for the failure; only when failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
    /// The message of `error`; only when failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fail_reason: Option<String>,
    /// `true` on a draft.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub draft: Option<bool>,
    /// The draft that this task renders as a final.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub draft_task_id: Option<String>,
    /// The task whose video this task edits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edit_task_id: Option<String>,
    /// OpenAI's name for `edit_task_id`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remixed_from_video_id: Option<String>,
    /// Length of the file in seconds; only when completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<f64>,
    /// Frames per second of the file; only when completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fps: Option<f64>,
    /// Frames of the file; only when completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frames: Option<u32>,
    /// Whether the file has a sound track; only when completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub has_audio: Option<bool>,
    /// The engine, as `name/version`, once started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    /// Parts of the request that the engine ignored; absent when there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "openapi", schema(required = false))]
    pub warnings: Vec<Warning>,
    /// What the task costs; absent if its model has no prices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<CostObject>,
}

/// The URLs of a completed task's files, also of those that its result lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultLinks {
    /// URL of the MP4.
    pub video: String,
    /// URL of the poster image.
    pub thumbnail: String,
    /// URL of the first frame.
    pub first_frame: String,
    /// URL of the last frame.
    pub last_frame: String,
}

const fn seconds_of(ms: UnixMs) -> u64 {
    ms / 1000
}

impl VideoObject {
    /// The object of `task`, which is at `polling_url`; `links` makes the URLs of its files and is called
    /// only for a completed task. `None` for an expired task.
    pub fn from_task(
        task: &Task,
        queue_position: Option<u64>,
        polling_url: String,
        links: impl FnOnce(&Task) -> ResultLinks,
    ) -> Option<Self> {
        let status = task.status()?;
        let mut object = Self::unfinished(task, status, polling_url);
        match &task.state {
            TaskState::Completed(artifact) => {
                let links = links(task);
                object.progress = 100;
                // Measured values replace the requested ones, which may have been "auto" and
                // "adaptive".
                object.seconds = (artifact.duration_seconds.round() as u64).to_string();
                object.size = format!("{}x{}", artifact.width, artifact.height);
                object.url = Some(links.video.clone());
                object.unsigned_urls = Some([links.video.clone()]);
                object.result_url = Some(links.video);
                object.thumbnail_url = Some(links.thumbnail);
                object.first_frame_url = artifact.first_frame.as_ref().map(|_| links.first_frame);
                object.last_frame_url = artifact.last_frame.as_ref().map(|_| links.last_frame);
                object.duration = Some(artifact.duration_seconds);
                object.fps = Some(artifact.fps);
                object.frames = Some(artifact.frames);
                object.has_audio = Some(artifact.has_audio);
            }
            TaskState::Failed(failure) => {
                object.fail_reason = Some(failure.message.clone());
                object.error = Some(failure.clone());
            }
            _ => object.queue_position = queue_position.filter(|_| status == Status::Queued),
        }
        Some(object)
    }

    fn unfinished(task: &Task, status: Status, polling_url: String) -> Self {
        let spec = &task.spec;
        let edit = spec.edit.as_ref().map(|edit| edit.task_id.to_string());
        Self {
            id: task.id.to_string(),
            object: "video",
            model: spec.model.clone(),
            status,
            // 100 is for completed tasks only, whatever an engine reports.
            progress: task.progress.min(99),
            created_at: seconds_of(task.created_at_ms),
            prompt: spec.prompt.clone(),
            seconds: match spec.seconds {
                VideoLength::Fixed(seconds) => seconds.to_string(),
                VideoLength::Auto => "auto".to_owned(),
            },
            size: match spec.frame {
                FrameSize::Fixed(size) => spec.render_size().unwrap_or(size).to_string(),
                FrameSize::Adaptive(_) => "adaptive".to_owned(),
            },
            seed: spec.seed,
            metadata: task.metadata.clone(),
            priority: Some(task.priority).filter(|one| !one.is_normal()),
            started_at: task.started_at_ms.map(seconds_of),
            completed_at: task.finished_at_ms.map(seconds_of),
            expires_at: task.expires_at_ms.map(seconds_of),
            queue_position: None,
            result_url: None,
            url: None,
            polling_url,
            unsigned_urls: None,
            thumbnail_url: None,
            first_frame_url: None,
            last_frame_url: None,
            error: None,
            fail_reason: None,
            draft: spec.draft.then_some(true),
            draft_task_id: spec.final_of.map(|id| id.to_string()),
            // Two names of one field: ours, and the one that OpenAI's SDKs read.
            remixed_from_video_id: edit.clone(),
            edit_task_id: edit,
            duration: None,
            fps: None,
            frames: None,
            has_audio: None,
            engine: task.engine.clone(),
            warnings: task.warnings.clone(),
            cost: task.cost.as_ref().map(CostObject::from),
        }
    }
}

/// A page of a project's tasks.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct VideoList {
    /// Always `list`.
    #[cfg_attr(feature = "openapi", schema(example = "list"))]
    pub object: &'static str,
    /// The tasks.
    pub data: Vec<VideoObject>,
    /// Identifier of the first one.
    pub first_id: Option<String>,
    /// Identifier of the last one: `after` of the next page.
    pub last_id: Option<String>,
    /// Whether there are more tasks.
    pub has_more: bool,
}

/// The answer to a delete.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct VideoDeleted {
    /// Identifier of the deleted task.
    pub id: String,
    /// Always `video.deleted`.
    #[cfg_attr(feature = "openapi", schema(example = "video.deleted"))]
    pub object: &'static str,
    /// Always `true`.
    pub deleted: bool,
}
