//! Hands a film of the server over to a sink: checks its frames, cuts them to the requested size,
//! and converts its sound.

use kinora_contract::Size;
use kinora_engine::{ClipPlan, ClipSink, EngineError, JobControl, SAMPLE_RATE_HZ, WorkStage};
use kinora_media_decode::stereo_of;

use crate::avi::{self, AviFilm, AviSound};
use crate::generation::Generation;
use crate::progress::HANDING_OVER;

/// Frames that the server may add to those that were asked for.
const EXTRA_FRAMES_MAX: usize = 16;

fn failed(what: impl std::fmt::Display) -> EngineError {
    EngineError::Failed(format!("the server's film: {what}"))
}

/// The most frames that a film may have.
pub(crate) fn frames_max(made: &Generation<'_>) -> usize {
    made.frames as usize + EXTRA_FRAMES_MAX
}

/// Hands over the clip in `file`.
///
/// # Errors
/// [`EngineError::Failed`] if the film is not what `made` asked for, and those of the sink.
pub(crate) fn hand_over(
    file: &[u8],
    made: &Generation<'_>,
    sink: &mut dyn ClipSink,
    control: &JobControl,
) -> Result<(), EngineError> {
    let clip = made.clip();
    let film = avi::parse(file, frames_max(made)).map_err(failed)?;
    check_shape(&film, made)?;
    if clip.audio {
        let heard = film.sound.ok_or_else(|| failed("it has no sound"))?;
        sink.audio(&for_clip(&heard, &clip)?)?;
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

fn check_shape(film: &AviFilm<'_>, made: &Generation<'_>) -> Result<(), EngineError> {
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

/// Interleaved stereo at [`SAMPLE_RATE_HZ`], cut or filled with silence to the length of `clip`.
fn for_clip(heard: &AviSound<'_>, clip: &ClipPlan) -> Result<Vec<f32>, EngineError> {
    let (samples, _) = heard.pcm.as_chunks();
    let pcm: Vec<f32> = samples
        .iter()
        .map(|sample| f32::from(i16::from_le_bytes(*sample)) / 32_768.0)
        .collect();
    let mut stereo = stereo_of(&pcm, heard.rate_hz, heard.channels.into()).map_err(failed)?;
    let length = u64::from(clip.frames) * u64::from(SAMPLE_RATE_HZ) / u64::from(clip.fps);
    stereo.resize(length as usize * 2, 0.0);
    Ok(stereo)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sound_is_stereo_at_48_khz_and_as_long_as_the_picture() {
        let clip = ClipPlan {
            size: Size::new(2, 2),
            fps: 16,
            frames: 8,
            audio: true,
        };
        for (rate_hz, channels, milliseconds) in [
            (24_000, 1, 400),
            (24_000, 2, 600),
            (24_000, 2, 0),
            (48_000, 2, 500),
            (44_100, 2, 500),
        ] {
            // A quarter of full scale in every channel.
            let samples = rate_hz as usize * usize::from(channels) * milliseconds / 1000;
            let pcm = 8_192_i16.to_le_bytes().repeat(samples);
            let heard = AviSound {
                rate_hz,
                channels,
                pcm: &pcm,
            };
            let stereo = for_clip(&heard, &clip).unwrap();
            assert_eq!(stereo.len(), 48_000);
            // Away from both ends, where the filter sees silence.
            let end = (96 * milliseconds).min(48_000);
            let (sound, silence) = stereo.split_at(end);
            let middle = sound
                .get(2_000..end.saturating_sub(2_000))
                .unwrap_or_default();
            assert!(middle.iter().all(|sample| (sample - 0.25).abs() < 1e-3));
            assert!(silence.iter().all(|sample| *sample == 0.0));
        }
        let wild = AviSound {
            rate_hz: u32::MAX,
            channels: 1,
            pcm: &[0, 0],
        };
        assert!(for_clip(&wild, &clip).is_err());
    }
}
