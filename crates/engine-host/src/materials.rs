//! Transfers a job's materials: sizes and counts in the head, then the bytes, in a fixed order:
//! first frame, last frame, images, sounds. Sound is `f32` in little endian.

use std::sync::Arc;

use kinora_contract::Size;
use kinora_engine::{
    ClipPlan, EngineError, FrameJob, JobMaterials, RgbPicture, SourceVideo, StereoSound,
};

use crate::protocol::{EditHead, JobHead, OwnHead, PixelSize, SourceHead};

/// Everything in `job` except its bytes, with the `clip` that the engine renders; `is_own` adds
/// what only engines of this executable get.
pub(crate) fn job_head(job: &FrameJob<'_>, clip: ClipPlan, is_own: bool) -> JobHead {
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
        preset: job.preset.cloned(),
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
pub(crate) fn material_bytes(materials: &JobMaterials) -> impl Iterator<Item = Vec<u8>> + '_ {
    // Messages carry no names: this order and that of `assemble` must agree.
    let frames = materials.first_frame.iter().chain(&materials.last_frame);
    let pictures = frames.chain(&materials.images);
    let pictures = pictures.map(|picture| picture.rgb.clone());
    let sounds = materials.audios.iter();
    pictures.chain(sounds.map(|sound| samples_to_bytes(&sound.pcm)))
}

/// Reassembles the output of [`job_head`] and [`material_bytes`]; `next` returns the bytes.
///
/// # Errors
/// If the bytes do not match the head, or `next` fails.
pub(crate) fn assemble(
    head: &JobHead,
    source: Option<Arc<dyn SourceVideo>>,
    mut next: impl FnMut() -> Result<Vec<u8>, EngineError>,
) -> Result<JobMaterials, EngineError> {
    let mut picture = |size: PixelSize| {
        let size = Size::from(size);
        let rgb = next()?;
        if rgb.len() as u64 != size.pixels() * 3 {
            return Err(EngineError::Failed(
                "a picture does not match its size".to_owned(),
            ));
        }
        Ok(RgbPicture { size, rgb })
    };
    Ok(JobMaterials {
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
                Ok(StereoSound { pcm })
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

fn pixel_size(picture: &RgbPicture) -> PixelSize {
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
    use kinora_contract::{FrameSize, VideoInputs, VideoLength, VideoSpec};
    use kinora_engine::SCRIPT_LINKS_MAX;

    use super::*;
    use crate::message::HostMessage;
    use crate::wire::{MessageBounds, WireMessage};

    fn spec(seed: u32) -> VideoSpec {
        VideoSpec {
            version: 1,
            model: "model".to_owned(),
            // As long as a request's text may be, in characters that JSON escapes.
            prompt: "\u{1}".repeat(64 * 1024),
            negative_prompt: None,
            seconds: VideoLength::Fixed(5),
            frame: FrameSize::Fixed(Size::new(64, 36)),
            seed,
            generate_audio: false,
            inputs: VideoInputs::Text,
            draft: false,
            final_of: None,
            edit: None,
        }
    }

    #[test]
    fn the_longest_script_arrives_whole() {
        let links = 0..SCRIPT_LINKS_MAX as u32;
        let materials = JobMaterials {
            script: links.map(|seed| Arc::new(spec(seed))).collect(),
            ..JobMaterials::default()
        };
        let job = FrameJob {
            spec: &spec(99),
            materials: &materials,
            clip: ClipPlan {
                size: Size::new(64, 36),
                fps: 24,
                frames: 120,
                audio: false,
            },
            preset: None,
        };
        let mut bytes = Vec::new();
        let order = HostMessage::Job(Box::new(job_head(&job, job.clip, true)));
        order.write(&mut bytes).unwrap();
        let read = HostMessage::read(&mut &bytes[..], &MessageBounds::trusted()).unwrap();
        let Some(HostMessage::Job(head)) = read else {
            panic!("no job: {read:?}");
        };
        let arrived = assemble(&head, None, || unreachable!()).unwrap();
        assert_eq!(arrived.script, materials.script);
    }
}
