//! Transfers a job's materials: sizes and counts in the head, then the bytes, in a fixed order:
//! first frame, last frame, images, sounds. Sound is `f32` in little endian.

use std::sync::Arc;

use kinora_contract::Size;
use kinora_engine::{Clip, EngineError, Footage, Job, Materials, Picture, Sound};

use crate::protocol::{EditHead, JobHead, OwnHead, Pixels, SourceHead};

/// Everything in `job` except its bytes, with the `clip` that the engine renders; `is_own` adds
/// what only engines of this executable get.
pub(crate) fn head(job: &Job<'_>, clip: Clip, is_own: bool) -> JobHead {
    let materials = job.materials;
    let source = materials.source.as_ref().map(|source| SourceHead {
        size: source.size().into(),
        fps: source.fps(),
        frames: source.frames(),
    });
    JobHead {
        prompt: job.spec.prompt.clone(),
        negative_prompt: job.spec.negative_prompt.clone(),
        seed: job.spec.seed,
        draft: job.spec.draft,
        is_final: job.spec.final_of.is_some(),
        edit: job.spec.edit.as_ref().map(|edit| EditHead {
            strength: edit.strength,
        }),
        clip: clip.into(),
        first_frame: materials.first_frame.as_ref().map(pixel_size),
        last_frame: materials.last_frame.as_ref().map(pixel_size),
        images: materials.images.iter().map(pixel_size).collect(),
        // A spec has only a few.
        audios: u32::try_from(materials.audios.len()).unwrap_or(u32::MAX),
        source,
        unknown: None,
        own: is_own.then(|| OwnHead {
            spec: job.spec.clone(),
            script: materials
                .script
                .iter()
                .map(|link| (**link).clone())
                .collect(),
        }),
    }
}

/// The bytes of all materials in order.
pub(crate) fn bytes(materials: &Materials) -> impl Iterator<Item = Vec<u8>> + '_ {
    // Messages carry no names: this order and that of `assemble` must agree.
    let frames = materials.first_frame.iter().chain(&materials.last_frame);
    let pictures = frames.chain(&materials.images);
    let pictures = pictures.map(|picture| picture.rgb.clone());
    let sounds = materials.audios.iter();
    pictures.chain(sounds.map(|sound| samples_to_bytes(&sound.pcm)))
}

/// Reassembles the output of [`head`] and [`bytes`]; `next` returns the bytes.
///
/// # Errors
/// If the bytes do not match the head, or `next` fails.
pub(crate) fn assemble(
    head: &JobHead,
    source: Option<Arc<dyn Footage>>,
    mut next: impl FnMut() -> Result<Vec<u8>, EngineError>,
) -> Result<Materials, EngineError> {
    let mut picture = |size: Pixels| {
        let size = Size::from(size);
        let rgb = next()?;
        if rgb.len() as u64 != size.pixels() * 3 {
            return Err(EngineError::Failed(
                "a picture does not match its size".to_owned(),
            ));
        }
        Ok(Picture { size, rgb })
    };
    Ok(Materials {
        first_frame: head.first_frame.map(&mut picture).transpose()?,
        last_frame: head.last_frame.map(&mut picture).transpose()?,
        images: head
            .images
            .iter()
            .map(|size| picture(*size))
            .collect::<Result<_, _>>()?,
        audios: (0..head.audios)
            .map(|_| {
                let pcm = bytes_to_samples(&next()?);
                Ok(Sound { pcm })
            })
            .collect::<Result<_, EngineError>>()?,
        source,
        script: head
            .own
            .iter()
            .flat_map(|own| &own.script)
            .cloned()
            .map(Arc::new)
            .collect(),
    })
}

fn pixel_size(picture: &Picture) -> Pixels {
    picture.size.into()
}

pub(crate) fn samples_to_bytes(pcm: &[f32]) -> Vec<u8> {
    pcm.iter().flat_map(|sample| sample.to_le_bytes()).collect()
}

pub(crate) fn bytes_to_samples(bytes: &[u8]) -> Vec<f32> {
    let (samples, _) = bytes.as_chunks::<4>();
    samples.iter().copied().map(f32::from_le_bytes).collect()
}

#[cfg(test)]
mod tests {
    use kinora_contract::{FrameSize, Inputs, Seconds, VideoSpec};
    use kinora_engine::SCRIPT_LINKS_MAX;

    use super::*;
    use crate::message::Order;
    use crate::wire::{Bounds, Message};

    fn spec(seed: u32) -> VideoSpec {
        VideoSpec {
            version: 1,
            model: "model".to_owned(),
            // As long as a request's text may be, in characters that JSON escapes.
            prompt: "\u{1}".repeat(64 * 1024),
            negative_prompt: None,
            seconds: Seconds::Fixed(5),
            frame: FrameSize::Fixed(Size::new(64, 36)),
            seed,
            generate_audio: false,
            inputs: Inputs::Text,
            draft: false,
            final_of: None,
            edit: None,
        }
    }

    #[test]
    fn the_longest_script_arrives_whole() {
        let links = 0..SCRIPT_LINKS_MAX as u32;
        let materials = Materials {
            script: links.map(|seed| Arc::new(spec(seed))).collect(),
            ..Materials::default()
        };
        let job = Job {
            spec: &spec(99),
            materials: &materials,
            clip: Clip {
                size: Size::new(64, 36),
                fps: 24,
                frames: 120,
                audio: false,
            },
        };
        let mut bytes = Vec::new();
        let order = Order::Job(Box::new(head(&job, job.clip, true)));
        order.write(&mut bytes).unwrap();
        let read = Order::read(&mut &bytes[..], &Bounds::trusted()).unwrap();
        let Some(Order::Job(head)) = read else {
            panic!("no job: {read:?}");
        };
        let arrived = assemble(&head, None, || unreachable!()).unwrap();
        assert_eq!(arrived.script, materials.script);
    }
}
