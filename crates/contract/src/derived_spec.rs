//! Specs that derive from an earlier task: the final of a draft, and the edit of a video. The
//! caller has looked the task up in its own project; unusable tasks are refused with a code. A task of
//! another project is refused like one that does not exist.

use crate::error::{ErrorCode, RequestRefusal};
use crate::size::Size;
use crate::spec::{EditSpec, FrameSize, SPEC_VERSION, VideoInputs, VideoLength, VideoSpec};
use crate::task::{Task, TaskState};
use crate::time::UnixMs;
use crate::validate::EditRequest;

/// The spec of the final of `draft`: the draft's spec at the size that the draft's request named.
///
/// `draft_not_usable` if the task does not exist, is not a draft, is not completed, has another
/// model, or has expired.
pub fn final_spec(
    draft: Option<&Task>,
    model: &str,
    now_ms: UnixMs,
) -> Result<VideoSpec, RequestRefusal> {
    let refuse = |message: &str| {
        Err(RequestRefusal::for_param(
            ErrorCode::DraftNotUsable,
            "draft_task_id",
            message,
        ))
    };
    let Some(task) = draft.filter(|task| !is_expired(task, now_ms)) else {
        return refuse("There is no such draft, or it has expired.");
    };
    if !task.spec.draft {
        return refuse("That task is not a draft.");
    }
    // The request names its model as every request does. Another one would have to be refused or
    // ignored; a final by another model would not look like its draft.
    if task.spec.model != model {
        return refuse("That draft was made by another model.");
    }
    if !matches!(task.state, TaskState::Completed(_)) {
        return refuse("That draft is not completed.");
    }
    Ok(VideoSpec {
        draft: false,
        final_of: Some(task.id),
        // Same seed and inputs, so that the final looks like the draft. The references of the draft
        // are kept for this ([`crate::lifecycle::kept_reference_keys`]).
        ..task.spec.clone()
    })
}

/// The spec of an edit of `source`, with the measured length and size of the source.
///
/// `edit_source_not_usable` if the task does not exist, is not completed, or has expired.
pub fn edit_spec(
    source: Option<&Task>,
    edit: EditRequest,
    now_ms: UnixMs,
) -> Result<VideoSpec, RequestRefusal> {
    let refuse = |message: &str| {
        Err(RequestRefusal::for_param(
            ErrorCode::EditSourceNotUsable,
            "edit_task_id",
            message,
        ))
    };
    let Some(task) = source.filter(|task| !is_expired(task, now_ms)) else {
        return refuse("There is no such video, or it has expired.");
    };
    let TaskState::Completed(artifact) = &task.state else {
        return refuse("That video is not completed.");
    };
    let inputs = if edit.reference_images.is_empty() {
        VideoInputs::Text
    } else {
        VideoInputs::References {
            images: edit.reference_images,
            audios: Vec::new(),
        }
    };
    Ok(VideoSpec {
        version: SPEC_VERSION,
        model: edit.model,
        prompt: edit.prompt,
        negative_prompt: edit.negative_prompt,
        // Measured values, not those of the source's spec: that may say "auto" or "adaptive".
        seconds: VideoLength::Fixed(artifact.duration_seconds.round() as u32),
        frame: FrameSize::Fixed(Size::new(artifact.width, artifact.height)),
        seed: edit.seed,
        generate_audio: false,
        inputs,
        draft: false,
        final_of: None,
        edit: Some(EditSpec {
            task_id: task.id,
            strength: edit.strength,
        }),
    })
}

fn is_expired(task: &Task, now_ms: UnixMs) -> bool {
    // A task past its time is expired even if no sweep has come by yet: its files may go at any
    // moment.
    matches!(task.state, TaskState::Expired) || task.expires_at_ms.is_some_and(|end| now_ms >= end)
}
