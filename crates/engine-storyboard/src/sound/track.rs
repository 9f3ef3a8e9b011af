//! The caller's sound under a clip: the references one after the other, repeated until the clip is full, with time in samples
//! and a low-pass filter for the other sounds. It changes nothing about the references but the joins, the end, and clipping.

use std::f32::consts::TAU;

use kinora_engine::{CHANNELS, SAMPLE_RATE_HZ, StereoSound};

use crate::raster::colour::smooth;

/// Length of the crossfade where one piece follows another.
const JOIN: usize = SAMPLE_RATE_HZ as usize / 25;
/// Length of the ramp at the end of the clip: against a click, not a fade.
const RAMP: usize = SAMPLE_RATE_HZ as usize / 40;
const STEREO: usize = CHANNELS as usize;

/// Sound laid out before the clip begins: as long as the clip, a few megabytes.
#[derive(Debug)]
pub(crate) struct SoundTrack {
    pcm: Vec<f32>,
    at: usize,
}

impl SoundTrack {
    /// Lays `sounds` over `samples` samples of each channel; `None` if all of them are empty.
    pub(crate) fn from_sounds(sounds: &[StereoSound], samples: usize) -> Option<Self> {
        let heard: Vec<&[f32]> = sounds
            .iter()
            .map(|sound| sound.pcm.as_slice())
            .filter(|pcm| pcm.len() >= STEREO)
            .collect();
        if heard.is_empty() {
            return None;
        }
        let mut pcm: Vec<f32> = Vec::with_capacity(samples * STEREO);
        for piece in heard.iter().cycle() {
            let whole = &piece[..piece.len() / STEREO * STEREO];
            join(&mut pcm, whole, samples * STEREO);
            if pcm.len() >= samples * STEREO {
                break;
            }
        }
        finish(&mut pcm);
        Some(Self { pcm, at: 0 })
    }

    /// Zeros.
    pub(super) fn silent(samples: usize) -> Self {
        let pcm = vec![0.0; samples * STEREO];
        Self { pcm, at: 0 }
    }

    pub(super) fn samples_until(&mut self, end: usize) -> &[f32] {
        let end = (end * STEREO).min(self.pcm.len());
        let part = &self.pcm[self.at.min(end)..end];
        self.at = end;
        part
    }

    /// All of it, interleaved stereo.
    pub(crate) fn pcm(&self) -> &[f32] {
        &self.pcm
    }
}

/// Appends `piece` up to a total of `room`, crossfaded at equal power with what was before.
fn join(pcm: &mut Vec<f32>, piece: &[f32], room: usize) {
    // A join never eats more than a quarter of either side, so that every piece makes way.
    let overlap = JOIN
        .min(pcm.len() / STEREO / 4)
        .min(piece.len() / STEREO / 4);
    let start = pcm.len() - overlap * STEREO;
    let (under, rest) = piece.split_at(overlap * STEREO);
    for (index, (out, new)) in pcm[start..].iter_mut().zip(under).enumerate() {
        let share = (index / STEREO) as f32 / overlap as f32;
        let (sine, cosine) = (share * std::f32::consts::FRAC_PI_2).sin_cos();
        *out = *out * cosine + new * sine;
    }
    let count = rest.len().min(room.saturating_sub(pcm.len()));
    pcm.extend_from_slice(&rest[..count]);
}

/// Rounds off the end and lowers the whole where anything would clip.
fn finish(pcm: &mut [f32]) {
    let frames = pcm.len() / STEREO;
    let fade = RAMP.min(frames / 2);
    for (left, pair) in pcm.chunks_exact_mut(STEREO).rev().take(fade).enumerate() {
        let gain = smooth(0.0, fade as f32, left as f32);
        pair.iter_mut().for_each(|sample| *sample *= gain);
    }
    // A sample that is no number would spread into every later stage.
    for sample in pcm.iter_mut().filter(|sample| !sample.is_finite()) {
        *sample = 0.0;
    }
    let peak = pcm
        .iter()
        .fold(0.0_f32, |peak, sample| peak.max(sample.abs()));
    if peak > 1.0 {
        pcm.iter_mut().for_each(|sample| *sample /= peak);
    }
}

/// Two poles at one frequency; one state per use and channel.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LowPass([f32; 2]);

impl LowPass {
    /// The next sample of `input`, low-passed at `hz`.
    pub(super) fn pass(&mut self, input: f32, hz: f32) -> f32 {
        // The step response of an RC low-pass over one sample.
        let share = 1.0 - (-TAU * hz / SAMPLE_RATE_HZ as f32).exp();
        self.0[0] += (input - self.0[0]) * share;
        self.0[1] += (self.0[0] - self.0[1]) * share;
        self.0[1]
    }
}

/// Samples per channel that belong to the first `frames` frames.
pub(crate) fn samples(frames: u32, fps: u32) -> usize {
    (u64::from(frames) * u64::from(SAMPLE_RATE_HZ) / u64::from(fps.max(1))) as usize
}
