//! Collects decoded sound as stereo: any number of channels is mixed down by ITU-R BS.775 (centre
//! and surrounds at -3 dB, no low-frequency effects), scaled so that nothing clips. Stops growing
//! at the longest allowed length.

use kinora_contract::limits::REFERENCE_AUDIO_SECONDS_MAX;
use symphonia::core::audio::{Channels, Position};

use crate::DecodeCause;

/// Samples per second and channel of every decoded sound.
pub const SAMPLE_RATE: u32 = 48_000;

/// How much a sound may exceed the maximum length: lossy encoders pad. The excess is cut off.
const TOLERANCE_SECONDS: f64 = 0.1;

/// Rates found in real files. Others would only make resampling expensive.
const SAMPLE_RATE_RANGE: std::ops::RangeInclusive<u32> = 4_000..=384_000;

/// Stereo sound that grows up to a limit.
pub(crate) struct StereoBuffer {
    rate: u32,
    frames_max: usize,
    overflowed: bool,
    pcm: Vec<f32>,
}

impl StereoBuffer {
    /// An empty sound at `rate` with room to detect an excessive length.
    pub(crate) fn empty(rate: u32) -> Result<Self, DecodeCause> {
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

    /// All of `pcm`, of any length, in unplaced channels.
    pub(crate) fn filled(pcm: &[f32], rate: u32, channels: usize) -> Result<Self, DecodeCause> {
        let mut stereo = Self {
            frames_max: usize::MAX,
            ..Self::empty(rate)?
        };
        stereo.push(pcm, &unplaced(channels));
        Ok(stereo)
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
    pub(crate) fn push(&mut self, interleaved: &[f32], gains: &[ChannelGains]) {
        for frame in interleaved.chunks_exact(gains.len().max(1)) {
            // The rest is dropped, and decoding stops at the next check: a compressed hour of
            // silence must not become gigabytes.
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

/// Maximum number of frames of an accepted sound.
pub(crate) fn frames_max(rate: u32) -> usize {
    frames(REFERENCE_AUDIO_SECONDS_MAX + TOLERANCE_SECONDS, rate)
}

/// The number of frames that last `seconds`.
pub(crate) fn frames(seconds: f64, rate: u32) -> usize {
    (seconds * f64::from(rate)).round() as usize
}

/// -3 dB.
const HALF_POWER: f32 = std::f32::consts::FRAC_1_SQRT_2;

/// The contribution of one channel to left and right.
pub(crate) type ChannelGains = [f32; 2];

/// The gains of `channels`, in their order.
pub(crate) fn gains(channels: &Channels) -> Vec<ChannelGains> {
    match channels {
        // Mono and stereo need no mixing, whatever positions they claim.
        Channels::Positioned(positions) if positions.bits().count_ones() > 2 => {
            unclipped(positions.iter().map(speaker).collect())
        }
        other => unplaced(other.count()),
    }
}

/// The gains of 1 to 8 channels in the order of Vorbis and Opus (RFC 7845, section 5.1.1.2).
pub(crate) fn vorbis_gains(channels: usize) -> Vec<ChannelGains> {
    const L: ChannelGains = [1.0, 0.0];
    const R: ChannelGains = [0.0, 1.0];
    const C: ChannelGains = [HALF_POWER, HALF_POWER];
    const SL: ChannelGains = [HALF_POWER, 0.0];
    const SR: ChannelGains = [0.0, HALF_POWER];
    const BACK: ChannelGains = [0.5, 0.5];
    const LFE: ChannelGains = [0.0, 0.0];
    let placed: &[ChannelGains] = match channels {
        3 => &[L, C, R],
        4 => &[L, R, SL, SR],
        5 => &[L, C, R, SL, SR],
        6 => &[L, C, R, SL, SR, LFE],
        7 => &[L, C, R, SL, SR, BACK, LFE],
        8 => &[L, C, R, SL, SR, SL, SR, LFE],
        other => return unplaced(other),
    };
    unclipped(placed.to_vec())
}

/// Mono goes to both sides, stereo stays as it is, more channels in unknown positions are averaged.
fn unplaced(channels: usize) -> Vec<ChannelGains> {
    match channels {
        1 => vec![[1.0, 1.0]],
        2 => vec![[1.0, 0.0], [0.0, 1.0]],
        more => vec![[1.0 / more as f32; 2]; more],
    }
}

/// Scales the gains, if needed, so that neither side clips when all channels are at full scale.
fn unclipped(mut gains: Vec<ChannelGains>) -> Vec<ChannelGains> {
    let left: f32 = gains.iter().map(|gain| gain[0]).sum();
    let right: f32 = gains.iter().map(|gain| gain[1]).sum();
    // One factor for both sides keeps the balance; never below 1, so quiet layouts are not
    // amplified.
    let loudest = left.max(right).max(1.0);
    for gain in &mut gains {
        *gain = gain.map(|side| side / loudest);
    }
    gains
}

fn speaker(position: Position) -> ChannelGains {
    let left = Position::REAR_LEFT
        | Position::SIDE_LEFT
        | Position::TOP_FRONT_LEFT
        | Position::TOP_REAR_LEFT
        | Position::TOP_SIDE_LEFT
        | Position::BOTTOM_FRONT_LEFT;
    let right = Position::REAR_RIGHT
        | Position::SIDE_RIGHT
        | Position::TOP_FRONT_RIGHT
        | Position::TOP_REAR_RIGHT
        | Position::TOP_SIDE_RIGHT
        | Position::BOTTOM_FRONT_RIGHT;
    let front_left = Position::FRONT_LEFT | Position::FRONT_LEFT_CENTER | Position::FRONT_LEFT_WIDE;
    let front_right =
        Position::FRONT_RIGHT | Position::FRONT_RIGHT_CENTER | Position::FRONT_RIGHT_WIDE;
    if front_left.contains(position) {
        [1.0, 0.0]
    } else if front_right.contains(position) {
        [0.0, 1.0]
    } else if left.contains(position) {
        [HALF_POWER, 0.0]
    } else if right.contains(position) {
        [0.0, HALF_POWER]
    } else if position == Position::FRONT_CENTER {
        [HALF_POWER, HALF_POWER]
    } else if (Position::LFE1 | Position::LFE2).contains(position) {
        [0.0, 0.0]
    } else {
        [0.5, 0.5]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stereo::StereoBuffer;

    #[test]
    fn mono_goes_to_both_sides_and_what_is_no_number_is_silent() {
        let mut stereo = StereoBuffer::new(48_000, 4);
        stereo.push(&[0.5, f32::NAN, f32::INFINITY, 2.0], &unplaced(1));
        assert!(!stereo.overflowed());
        stereo.push(&[0.5], &unplaced(1));
        assert!(stereo.overflowed());
        assert_eq!(stereo.into_pcm(), [0.5, 0.5, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0]);
    }

    #[test]
    fn five_channels_full_on_do_not_clip_and_the_low_frequency_one_is_left_out() {
        for gains in [
            gains(&Channels::Positioned(
                Position::FRONT_LEFT
                    | Position::FRONT_RIGHT
                    | Position::FRONT_CENTER
                    | Position::LFE1
                    | Position::REAR_LEFT
                    | Position::REAR_RIGHT,
            )),
            vorbis_gains(6),
        ] {
            assert_eq!(gains.len(), 6);
            let left: f32 = gains.iter().map(|gain| gain[0]).sum();
            assert!((left - 1.0).abs() < 1e-6, "{left}");
            assert!(gains.contains(&[0.0, 0.0]));
        }
    }
}
