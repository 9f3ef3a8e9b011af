//! What clip a request makes, before any work: whether spec and materials fit together, and how long the clip is when the
//! request leaves the length to the engine. It counts words and pictures, and does not judge them.

use kinora_contract::limits::{SECONDS_MAX, SECONDS_MIN};
use kinora_contract::{VideoInputs, VideoLength, VideoSpec};
use kinora_engine::{ClipPlan, EngineError, Features, JobMaterials, RgbPicture};

use crate::lexicon::is_cjk;
use crate::script::beats;

fn unsupported(what: &str) -> EngineError {
    EngineError::Unsupported(what.to_owned())
}

/// Error for an accepted request without all of its material, which is not the caller's fault.
fn missing(what: &str) -> EngineError {
    EngineError::Failed(format!("{what} is missing or broken"))
}

/// The clip of a spec.
pub(crate) fn plan(
    spec: &VideoSpec,
    materials: &JobMaterials,
    features: &Features,
) -> Result<ClipPlan, EngineError> {
    check_inputs(spec, materials, features)?;
    if spec.edit.is_some() {
        return edit_clip(spec, materials);
    }
    // A first frame fixes its own shape only after decoding; such a request must arrive here with
    // its size resolved.
    let size = spec
        .render_size()
        .ok_or_else(|| unsupported("a shape that follows an image"))?;
    // With "auto" the length depends on words and pictures only, so that a draft and its final are
    // equally long.
    let seconds = match spec.seconds {
        VideoLength::Fixed(seconds) => seconds,
        VideoLength::Auto => auto_seconds(&spec.prompt, materials.images.len()),
    };
    if seconds == 0 || size.width == 0 || size.height == 0 {
        return Err(unsupported("an empty clip"));
    }
    Ok(ClipPlan {
        size,
        fps: FPS,
        frames: seconds * FPS,
        audio: spec.generate_audio,
    })
}

/// An edit is as long, as large and as fast as its source.
fn edit_clip(spec: &VideoSpec, materials: &JobMaterials) -> Result<ClipPlan, EngineError> {
    let source = materials
        .source
        .as_deref()
        .filter(|source| source.frames() > 0 && source.fps() > 0 && source.size().pixels() > 0)
        .ok_or_else(|| missing("the source video"))?;
    Ok(ClipPlan {
        size: source.size(),
        fps: source.fps(),
        frames: source.frames(),
        audio: spec.generate_audio,
    })
}

fn check_inputs(
    spec: &VideoSpec,
    materials: &JobMaterials,
    features: &Features,
) -> Result<(), EngineError> {
    match &spec.inputs {
        VideoInputs::Text => Ok(()),
        VideoInputs::Frames { last, .. } => {
            if !materials.first_frame.as_ref().is_some_and(is_whole) {
                return Err(missing("the first frame"));
            }
            if last.is_some() && !materials.last_frame.as_ref().is_some_and(is_whole) {
                return Err(missing("the last frame"));
            }
            Ok(())
        }
        VideoInputs::References { images, audios } => {
            if images.len() > features.reference_images_max as usize
                || audios.len() > features.reference_audios_max as usize
            {
                return Err(unsupported("so many references"));
            }
            if materials.images.len() != images.len() || !materials.images.iter().all(is_whole) {
                return Err(missing("a reference image"));
            }
            let heard = materials.audios.iter().all(|sound| sound.pcm.len() >= 2);
            if materials.audios.len() != audios.len() || !heard {
                return Err(missing("reference sound"));
            }
            Ok(())
        }
    }
}

/// Whether a picture has all of its pixels.
fn is_whole(picture: &RgbPicture) -> bool {
    picture.size.pixels() > 0 && picture.rgb.len() as u64 == picture.size.pixels() * 3
}

/// Frames per second of every clip but an edit, which keeps its source's.
pub(crate) const FPS: u32 = 24;
/// A beat lasts as long as its words take to read, within these bounds, seconds.
const BEAT_S_MIN: f32 = 2.0;
const BEAT_S_MAX: f32 = 5.0;
/// Time to look at the picture before reading, seconds.
const GLANCE_S: f32 = 1.0;
/// Reading speed in characters per second: alphabetic, and Chinese, Japanese or Korean.
const CHARACTERS_PER_S: f32 = 17.0;
const IDEOGRAPHS_PER_S: f32 = 7.0;
/// Minimum time for each reference image, seconds.
const IMAGE_S: f32 = 1.5;

/// Length in whole seconds of a clip of `prompt` with that many reference images.
fn auto_seconds(prompt: &str, images: usize) -> u32 {
    let told: f32 = beats(prompt)
        .iter()
        .map(|beat| {
            let wide = beat.text.chars().filter(|c| is_cjk(*c)).count() as f32;
            let all = beat.text.chars().count() as f32;
            // An ideograph says as much as a short word, so it takes longer than a letter.
            let read = (all - wide) / CHARACTERS_PER_S + wide / IDEOGRAPHS_PER_S;
            (GLANCE_S + read).clamp(BEAT_S_MIN, BEAT_S_MAX)
        })
        .sum();
    let shown = images as f32 * IMAGE_S;
    (told.max(shown).ceil() as u32).clamp(SECONDS_MIN, SECONDS_MAX)
}
