//! Hands a film of the server over to a sink: checks its frames, cuts them to the requested size,
//! and converts its sound.

use kinora_contract::Size;
use kinora_engine::{ClipSink, EngineError, JobControl, WorkStage};

use crate::avi::{self, AviFilm, AviSound};
use crate::generation::Generation;
use crate::progress::HANDING_OVER;
use crate::sound::{self, Made};

/// Frames that the server may add to those that were asked for.
const EXTRA_FRAMES_MAX: usize = 16;

fn failed(what: impl std::fmt::Display) -> EngineError {
    EngineError::Failed(format!("the server's film: {what}"))
}

/// Hands over the clip in `file`.
///
/// # Errors
/// [`EngineError::Failed`] if the film is not what `made` asked for, and those of the sink.
pub(crate) fn hand_over(
    file: &[u8],
    made: &Generation,
    sink: &mut dyn ClipSink,
    control: &JobControl,
) -> Result<(), EngineError> {
    let clip = made.clip();
    let film = avi::parse(file, made.frames as usize + EXTRA_FRAMES_MAX).map_err(failed)?;
    check_shape(&film, made)?;
    if clip.audio {
        let heard = film.sound.ok_or_else(|| failed("it has no sound"))?;
        sink.audio(&for_clip(&heard, made))?;
    }
    for index in 0..clip.frames {
        let source = made.keep.source(index, made.frames);
        let jpeg = film.frames.get(source as usize).copied();
        let rgb = jpeg.and_then(|jpeg| decode(jpeg, made.rendered));
        let frame = rgb.and_then(|rgb| made.crop.cut(&rgb, made.rendered));
        let frame =
            frame.ok_or_else(|| failed(format!("frame {source} is not {}", made.rendered)))?;
        sink.frame(&frame)?;
        let share = f64::from(index + 1) / f64::from(clip.frames);
        let whole = HANDING_OVER.end - HANDING_OVER.start;
        control.report(WorkStage::Generating, HANDING_OVER.start + share * whole)?;
    }
    Ok(())
}

fn check_shape(film: &AviFilm<'_>, made: &Generation) -> Result<(), EngineError> {
    if film.size != made.rendered {
        return Err(failed(format!(
            "it is {}, not {}",
            film.size, made.rendered
        )));
    }
    let frames = film.frames.len();
    if frames < made.frames as usize {
        return Err(failed(format!("it has {frames} frames of {}", made.frames)));
    }
    Ok(())
}

/// The pixels of a frame; `None` if it is no JPEG of this size.
fn decode(jpeg: &[u8], size: Size) -> Option<Vec<u8>> {
    let decoded = kinora_media_decode::image_of(jpeg, size.width.max(size.height)).ok()?;
    (Size::new(decoded.width, decoded.height) == size).then_some(decoded.rgb)
}

fn for_clip(heard: &AviSound<'_>, made: &Generation) -> Vec<f32> {
    let (samples, _) = heard.pcm.as_chunks();
    let pcm: Vec<f32> = samples
        .iter()
        .map(|sample| f32::from(i16::from_le_bytes(*sample)) / 32_768.0)
        .collect();
    let sound = Made {
        rate_hz: heard.rate_hz,
        channels: usize::from(heard.channels),
        pcm: &pcm,
    };
    sound::for_clip(sound, &made.clip())
}
