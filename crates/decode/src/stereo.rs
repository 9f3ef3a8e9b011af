//! Decoded stereo sound at any supported rate, mixed down while it grows, up to the maximum length of a
//! reference. Non-finite samples become silence.

use kinora_contract::limits::REFERENCE_AUDIO_SECONDS_MAX;

use crate::Cause;
use crate::downmix::Gains;

/// Samples per second and channel of every decoded sound.
pub const SAMPLE_RATE: u32 = 48_000;

/// How much a sound may exceed the maximum length: lossy encoders pad. The excess is cut off.
const TOLERANCE_SECONDS: f64 = 0.1;

/// Rates found in real files. Others would only make resampling expensive.
const SAMPLE_RATE_RANGE: std::ops::RangeInclusive<u32> = 4_000..=384_000;

/// Stereo sound that grows up to a limit.
pub(crate) struct Stereo {
    rate: u32,
    frames_max: usize,
    overflowed: bool,
    pcm: Vec<f32>,
}

impl Stereo {
    /// An empty sound at `rate` with room to detect an excessive length.
    pub(crate) fn empty(rate: u32) -> Result<Self, Cause> {
        if !SAMPLE_RATE_RANGE.contains(&rate) {
            return Err(format!("a sample rate of {rate}").into());
        }
        Ok(Self::new(rate, frames_max(rate)))
    }

    /// An empty sound at `rate` with room for `frames_max` frames.
    pub(crate) fn new(rate: u32, frames_max: usize) -> Self {
        let pcm = Vec::new();
        Self {
            rate,
            frames_max,
            overflowed: false,
            pcm,
        }
    }

    /// Samples per second and channel.
    pub(crate) fn rate(&self) -> u32 {
        self.rate
    }

    pub(crate) fn frames(&self) -> usize {
        self.pcm.len() / 2
    }

    /// Whether more frames were pushed than fit.
    pub(crate) fn overflowed(&self) -> bool {
        self.overflowed
    }

    /// Interleaved samples, left first.
    pub(crate) fn into_pcm(self) -> Vec<f32> {
        self.pcm
    }

    /// Mixes in `interleaved`: frames with one sample per channel of `gains`.
    pub(crate) fn push(&mut self, interleaved: &[f32], gains: &[Gains]) {
        for frame in interleaved.chunks_exact(gains.len().max(1)) {
            if self.frames() == self.frames_max {
                self.overflowed = true;
                return;
            }
            let mut mixed = [0.0; 2];
            for (&sample, gain) in frame.iter().zip(gains) {
                let sample = if sample.is_finite() { sample } else { 0.0 };
                mixed[0] += sample * gain[0];
                mixed[1] += sample * gain[1];
            }
            self.pcm.extend(mixed.map(|sample| sample.clamp(-1.0, 1.0)));
        }
    }
}

/// The most frames of a sound that is not too long.
pub(crate) fn frames_max(rate: u32) -> usize {
    frames(REFERENCE_AUDIO_SECONDS_MAX + TOLERANCE_SECONDS, rate)
}

/// The number of frames that last `seconds`.
pub(crate) fn frames(seconds: f64, rate: u32) -> usize {
    (seconds * f64::from(rate)).round() as usize
}
