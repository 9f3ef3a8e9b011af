//! Whether spec and materials fit together and what clip they make, before any work.

use kinora_contract::{Inputs, Seconds, VideoSpec};

use super::length::{self, FPS};
use kinora_engine::{Clip, EngineError, Features, Materials, Picture};

fn unsupported(what: &str) -> EngineError {
    EngineError::Unsupported(what.to_owned())
}

/// A request that was accepted but whose material is not all here: not the caller's fault.
fn missing(what: &str) -> EngineError {
    EngineError::Failed(format!("{what} is missing or broken"))
}

/// The clip of a spec.
pub(crate) fn clip(
    spec: &VideoSpec,
    materials: &Materials,
    features: &Features,
) -> Result<Clip, EngineError> {
    inputs(spec, materials, features)?;
    if spec.edit.is_some() {
        return edited(spec, materials);
    }
    let size = spec
        .render_size()
        .ok_or_else(|| unsupported("a shape that follows an image"))?;
    let seconds = match spec.seconds {
        Seconds::Fixed(seconds) => seconds,
        Seconds::Auto => length::seconds(&spec.prompt, materials.images.len()),
    };
    if seconds == 0 || size.width == 0 || size.height == 0 {
        return Err(unsupported("an empty clip"));
    }
    Ok(Clip {
        size,
        fps: FPS,
        frames: seconds * FPS,
        audio: spec.generate_audio,
    })
}

/// An edit is as long, as large and as fast as its source.
fn edited(spec: &VideoSpec, materials: &Materials) -> Result<Clip, EngineError> {
    let source = materials
        .source
        .as_deref()
        .filter(|source| source.frames() > 0 && source.fps() > 0 && source.size().pixels() > 0)
        .ok_or_else(|| missing("the source video"))?;
    Ok(Clip {
        size: source.size(),
        fps: source.fps(),
        frames: source.frames(),
        audio: spec.generate_audio,
    })
}

fn inputs(spec: &VideoSpec, materials: &Materials, features: &Features) -> Result<(), EngineError> {
    let whole = |picture: &Picture| {
        picture.size.pixels() > 0 && picture.rgb.len() as u64 == picture.size.pixels() * 3
    };
    match &spec.inputs {
        Inputs::Text => Ok(()),
        Inputs::Frames { last, .. } => {
            if !materials.first_frame.as_ref().is_some_and(whole) {
                return Err(missing("the first frame"));
            }
            if last.is_some() && !materials.last_frame.as_ref().is_some_and(whole) {
                return Err(missing("the last frame"));
            }
            Ok(())
        }
        Inputs::References { images, audios } => {
            if images.len() > features.reference_images_max as usize
                || audios.len() > features.reference_audios_max as usize
            {
                return Err(unsupported("so many references"));
            }
            if materials.images.len() != images.len() || !materials.images.iter().all(whole) {
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
