//! What planners of models have in common: refusals that follow from the features alone, and the length of an edit.

use kinora_contract::{Features, Inputs, Seconds, VideoSpec};

use crate::{EngineError, Footage};

/// Refuses a spec that needs a feature beyond `can`. Needs no material.
///
/// # Errors
/// [`EngineError::Unsupported`], with the feature.
pub fn refuse_unsupported(can: Features, spec: &VideoSpec) -> Result<(), EngineError> {
    let unsupported = |what: &str| Err(EngineError::Unsupported(what.to_owned()));
    // An edit has the length of its source.
    let is_auto = spec.seconds == Seconds::Auto && spec.edit.is_none();
    let is_staged = spec.draft || spec.final_of.is_some();
    let lacking = [
        (
            spec.negative_prompt.is_some() && !can.negative_prompt,
            "a negative prompt",
        ),
        (spec.generate_audio && !can.audio_output, "sound"),
        (is_auto && !can.auto_duration, "a length of its own choice"),
        (is_staged && !can.draft, "drafts"),
        (spec.edit.is_some() && !can.edit, "edits"),
    ];
    if let Some((_, what)) = lacking.into_iter().find(|(is_lacking, _)| *is_lacking) {
        return unsupported(what);
    }
    match &spec.inputs {
        Inputs::Frames { .. } if !can.first_frame => unsupported("a first frame"),
        Inputs::Frames { last: Some(_), .. } if !can.last_frame => unsupported("a last frame"),
        Inputs::References { images, .. } if images.len() > can.reference_images_max as usize => {
            unsupported("so many reference images")
        }
        Inputs::References { audios, .. } if audios.len() > can.reference_audios_max as usize => {
            unsupported("so many reference sounds")
        }
        Inputs::Text if !can.text_to_video && spec.edit.is_none() => {
            unsupported("text without a picture")
        }
        _ => Ok(()),
    }
}

/// The number of frames at `fps` that last as long as `source`; at least 1. `None` for a source without frames.
pub fn frames_of_edit(source: &dyn Footage, fps: u32) -> Option<u32> {
    let from_fps = u64::from(source.fps());
    if from_fps == 0 || source.frames() == 0 {
        return None;
    }
    let frames = u64::from(source.frames()) * u64::from(fps);
    let frames = ((frames + from_fps / 2) / from_fps).max(1);
    Some(u32::try_from(frames).unwrap_or(u32::MAX))
}
