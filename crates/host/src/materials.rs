//! A job's materials on their way: sizes and counts in the head, then the bytes, in one fixed order:
//! first frame, last frame, images, sounds. Sound goes as `f32` in little endian.

use std::sync::Arc;

use kinora_contract::Size;
use kinora_engine::{EngineError, Footage, Job, Materials, Picture, Sound};

use crate::message::{JobHead, SourceHead};

/// Everything of `job` but its bytes.
pub(crate) fn head(job: &Job<'_>) -> JobHead {
    let size = |picture: &Picture| picture.size;
    let materials = job.materials;
    let source = materials.source.as_ref().map(|source| SourceHead {
        size: source.size(),
        fps: source.fps(),
        frames: source.frames(),
    });
    JobHead {
        spec: job.spec.clone(),
        clip: job.clip.into(),
        first_frame: materials.first_frame.as_ref().map(size),
        last_frame: materials.last_frame.as_ref().map(size),
        images: materials.images.iter().map(size).collect(),
        // A spec names a handful.
        audios: u32::try_from(materials.audios.len()).unwrap_or(u32::MAX),
        source,
    }
}

/// The bytes, in their order.
pub(crate) fn bytes(materials: &Materials) -> impl Iterator<Item = Vec<u8>> + '_ {
    let frames = materials.first_frame.iter().chain(&materials.last_frame);
    let pictures = frames.chain(&materials.images);
    let pictures = pictures.map(|picture| picture.rgb.clone());
    let sounds = materials.audios.iter();
    pictures.chain(sounds.map(|sound| samples_to_bytes(&sound.pcm)))
}

/// Puts together what [`head`] and [`bytes`] took apart; `next` gives the bytes.
///
/// # Errors
/// When they are not what the head says, or `next`'s own.
pub(crate) fn assemble(
    head: &JobHead,
    source: Option<Arc<dyn Footage>>,
    mut next: impl FnMut() -> Result<Vec<u8>, EngineError>,
) -> Result<Materials, EngineError> {
    let mut picture = |size: Size| {
        let rgb = next()?;
        if rgb.len() as u64 != size.pixels() * 3 {
            return Err(EngineError::Failed("a picture of another size".to_owned()));
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
    })
}

pub(crate) fn samples_to_bytes(pcm: &[f32]) -> Vec<u8> {
    pcm.iter().flat_map(|sample| sample.to_le_bytes()).collect()
}

pub(crate) fn bytes_to_samples(bytes: &[u8]) -> Vec<f32> {
    let (samples, _) = bytes.as_chunks::<4>();
    samples.iter().copied().map(f32::from_le_bytes).collect()
}
