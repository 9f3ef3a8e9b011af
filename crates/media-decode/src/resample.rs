//! Resamples stereo sound by a windowed sinc (rubato's asynchronous resampler), without the filter's delay.

use rubato::audioadapter_buffers::direct::InterleavedSlice;
use rubato::{
    Async, FixedAsync, Resampler, SincInterpolationParameters, SincInterpolationType,
    WindowFunction,
};

use crate::DecodeCause;
use crate::stereo::{SAMPLE_RATE, StereoBuffer};

/// Number of input frames per call of the resampler.
const CHUNK_FRAMES: usize = 1_024;
/// Length of the filter in frames of the slower of the two rates: of 44.1 kHz all below 20 kHz passes.
const FILTER_FRAMES: usize = 256;
/// Filter points between two frames; values in between are interpolated, with an error below
/// -100 dB.
const OVERSAMPLING: usize = 256;

/// Interleaved samples at `rate` as stereo at [`SAMPLE_RATE`]: mono goes to both sides, more channels are averaged.
///
/// # Errors
/// A rate that no real sound has.
pub fn stereo_of(pcm: &[f32], rate: u32, channels: usize) -> Result<Vec<f32>, DecodeCause> {
    to_rate(StereoBuffer::filled(pcm, rate, channels)?, SAMPLE_RATE)
}

/// `[n][2]` f32 at `rate`.
pub(crate) fn to_rate(stereo: StereoBuffer, rate: u32) -> Result<Vec<f32>, DecodeCause> {
    let (from, frames) = (stereo.rate(), stereo.frames());
    let pcm = stereo.into_pcm();
    if from == rate {
        return Ok(pcm);
    }
    // It is counted in frames of the input.
    let filter = FILTER_FRAMES * from.div_ceil(rate).max(1) as usize;
    let filter = SincInterpolationParameters::new(filter, WindowFunction::BlackmanHarris2)
        .oversampling_factor(OVERSAMPLING)
        .interpolation(SincInterpolationType::Linear);
    let ratio = f64::from(rate) / f64::from(from);
    let mut resampler =
        Async::<f32>::new_sinc(ratio, 1.0, &filter, CHUNK_FRAMES, 2, FixedAsync::Input)?;
    let input = InterleavedSlice::new(&pcm, 2, frames)?;
    let mut pcm = resampler.process_all(&input, frames, None)?.take_data();
    // Its own length comes from a rounded ratio, and may be one more.
    pcm.truncate((frames * rate as usize).div_ceil(from as usize) * 2);
    for sample in &mut pcm {
        *sample = sample.clamp(-1.0, 1.0);
    }
    Ok(pcm)
}

#[cfg(test)]
mod tests {
    use std::f64::consts::TAU;

    use super::*;

    const SECONDS: usize = 2;
    const LEVEL: f64 = 0.5;

    fn tone(hertz: f64, rate: u32) -> StereoBuffer {
        let frames = SECONDS * rate as usize;
        let mut stereo = StereoBuffer::new(rate, frames);
        for frame in 0..frames {
            let angle = TAU * hertz * frame as f64 / f64::from(rate);
            let sample = (LEVEL * angle.sin()) as f32;
            stereo.push(&[sample, sample], &[[1.0, 0.0], [0.0, 1.0]]);
        }
        stereo
    }

    /// The amplitude of the tone in the left side, its delay in frames, and the amplitude of all that is not the tone.
    fn analyzed(pcm: &[f32], hertz: f64, rate: u32) -> (f64, f64, f64) {
        let step = TAU * hertz / f64::from(rate);
        // A second in the middle: beside the ends, where the filter sees silence, and a whole number of periods.
        let frames = rate as usize / 2..rate as usize * 3 / 2;
        let left = |frame: usize| f64::from(pcm[frame * 2]);
        let part = |wave: fn(f64) -> f64| {
            let sum: f64 = frames
                .clone()
                .map(|frame| left(frame) * wave(step * frame as f64))
                .sum();
            2.0 * sum / frames.len() as f64
        };
        let (sine, cosine) = (part(f64::sin), part(f64::cos));
        let rest = frames.clone().map(|frame| {
            let angle = step * frame as f64;
            (left(frame) - sine * angle.sin() - cosine * angle.cos()).powi(2)
        });
        let rest = (2.0 * rest.sum::<f64>() / frames.len() as f64).sqrt();
        (sine.hypot(cosine), -cosine.atan2(sine) / step, rest)
    }

    #[test]
    fn tones_keep_their_level_and_place_and_nothing_is_added() {
        for (from, highest) in [(44_100, 20_000.0), (96_000, 20_000.0), (22_050, 10_000.0)] {
            for hertz in [100.0, 1_000.0, 7_000.0, highest] {
                let what = format!("{hertz} Hz at {from}");
                let pcm = to_rate(tone(hertz, from), 48_000).unwrap();
                assert_eq!(pcm.len(), SECONDS * 48_000 * 2, "{what}");
                let (level, delay, rest) = analyzed(&pcm, hertz, 48_000);
                assert!((level / LEVEL - 1.0).abs() < 0.001, "{what}: {level}");
                assert!(delay.abs() < 2.0, "{what}: {delay} frames late");
                assert!(rest / LEVEL < 1e-5, "{what}: {rest}");
            }
        }
    }
}
