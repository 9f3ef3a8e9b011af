//! Converts the library's sound to the engine's: any rate to 48 kHz, any number of channels to
//! stereo, cut or padded with silence to the picture's length. Removes non-finite samples and
//! clamps the others.

use std::f64::consts::PI;

use kinora_engine::{ClipPlan, SAMPLE_RATE_HZ};

/// Zero crossings of the kernel on each side; 16 keep aliases below -80 dB.
const WINGS: usize = 16;

/// Sound from the library.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Made<'a> {
    pub rate_hz: u32,
    pub channels: usize,
    /// `[sample][channel] f32`, interleaved.
    pub pcm: &'a [f32],
}

/// Interleaved stereo at [`SAMPLE_RATE_HZ`], exactly as long as `clip`.
pub(crate) fn for_clip(made: Made<'_>, clip: &ClipPlan) -> Vec<f32> {
    let length = u64::from(clip.frames) * u64::from(SAMPLE_RATE_HZ) / u64::from(clip.fps.max(1));
    let length = length as usize;
    let channels = made.channels.max(1);
    let [left, right] = [0, 1].map(|side: usize| {
        let channel = side.min(channels - 1);
        let samples = made.pcm.iter().skip(channel).step_by(channels);
        let clean = samples.map(|sample| if sample.is_finite() { *sample } else { 0.0 });
        resampled(&clean.collect::<Vec<f32>>(), made.rate_hz, length)
    });
    left.into_iter()
        .zip(right)
        .flat_map(<[f32; 2]>::from)
        .collect()
}

/// Resamples `samples` at `rate_hz` to `length` samples at [`SAMPLE_RATE_HZ`]; silence after the
/// end.
///
/// Band-limited interpolation with a sinc under a Blackman window (J. O. Smith, "Digital Audio
/// Resampling", <https://ccrma.stanford.edu/~jos/resample/>).
fn resampled(samples: &[f32], rate_hz: u32, length: usize) -> Vec<f32> {
    if rate_hz == SAMPLE_RATE_HZ || rate_hz == 0 {
        let silence = std::iter::repeat(0.0);
        let all = samples.iter().copied().chain(silence);
        return all
            .take(length)
            .map(|sample| sample.clamp(-1.0, 1.0))
            .collect();
    }
    let ratio = f64::from(rate_hz) / f64::from(SAMPLE_RATE_HZ);
    // For a lower rate the kernel widens as the band narrows.
    let band = (1.0 / ratio).min(1.0);
    let reach = WINGS as f64 / band;
    (0..length)
        .map(|index| {
            let place = index as f64 * ratio;
            // The kernel is zero beyond `reach`, so only these samples contribute.
            let first = (place - reach).ceil().max(0.0) as usize;
            let last = ((place + reach).floor() as usize).min(samples.len().saturating_sub(1));
            let mut sum = 0.0;
            for (offset, sample) in samples.get(first..=last).into_iter().flatten().enumerate() {
                let distance = (first + offset) as f64 - place;
                sum += f64::from(*sample) * band * kernel(distance * band);
            }
            (sum as f32).clamp(-1.0, 1.0)
        })
        .collect()
}

/// The windowed sinc, 0 beyond [`WINGS`].
fn kernel(x: f64) -> f64 {
    let wings = WINGS as f64;
    if x.abs() >= wings {
        return 0.0;
    }
    let sinc = if x.abs() < 1e-9 {
        1.0
    } else {
        (PI * x).sin() / (PI * x)
    };
    let turn = PI * (x / wings + 1.0);
    let window = 0.42 - 0.5 * turn.cos() + 0.08 * (2.0 * turn).cos();
    sinc * window
}

#[cfg(test)]
mod tests {
    use kinora_contract::Size;

    use super::*;

    fn clip(frames: u32, fps: u32) -> ClipPlan {
        ClipPlan {
            size: Size::new(2, 2),
            fps,
            frames,
            audio: true,
        }
    }

    fn tone(rate_hz: u32, hertz: f64, samples: usize) -> Vec<f32> {
        let step = 2.0 * PI * hertz / f64::from(rate_hz);
        (0..samples)
            .map(|i| (step * i as f64).sin() as f32 * 0.5)
            .collect()
    }

    #[test]
    fn a_tone_stays_the_same_tone_at_every_rate() {
        for rate_hz in [16_000, 24_000, 44_100, 48_000, 96_000] {
            let pcm = tone(rate_hz, 440.0, rate_hz as usize);
            let made = Made {
                rate_hz,
                channels: 1,
                pcm: &pcm,
            };
            let heard = for_clip(made, &clip(24, 24));
            assert_eq!(heard.len(), 96_000);
            let wanted = tone(48_000, 440.0, 48_000);
            for i in 1_000..47_000 {
                assert!(
                    (heard[2 * i] - wanted[i]).abs() < 1e-3,
                    "{rate_hz} Hz, sample {i}"
                );
                assert!(
                    (heard[2 * i] - heard[2 * i + 1]).abs() < 1e-9,
                    "both sides alike"
                );
            }
        }
    }

    #[test]
    fn what_a_lower_rate_cannot_carry_is_gone_and_not_folded() {
        let pcm = tone(96_000, 40_000.0, 96_000);
        let made = Made {
            rate_hz: 96_000,
            channels: 1,
            pcm: &pcm,
        };
        let heard = for_clip(made, &clip(24, 24));
        assert!(
            heard[2_000..90_000]
                .iter()
                .all(|sample| sample.abs() < 1e-3)
        );
    }

    #[test]
    fn sound_is_as_long_as_the_picture_and_in_range() {
        let pcm = [f32::NAN, 9.0, -9.0, f32::INFINITY, 0.5, 0.25];
        let made = Made {
            rate_hz: 48_000,
            channels: 2,
            pcm: &pcm,
        };
        let heard = for_clip(made, &clip(1, 16));
        assert_eq!(heard.len(), 6_000);
        assert_eq!(heard[..6], [0.0, 1.0, -1.0, 0.0, 0.5, 0.25]);
        assert!(
            heard[6..].iter().all(|sample| *sample == 0.0),
            "filled with silence"
        );
        let none = Made {
            rate_hz: 24_000,
            channels: 0,
            pcm: &[],
        };
        assert_eq!(for_clip(none, &clip(16, 16)).len(), 96_000);
    }
}
