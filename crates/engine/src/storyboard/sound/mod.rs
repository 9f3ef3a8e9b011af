//! The sound bed: soft chords from mood and hour, and the ambience of each shot's place. It is
//! made sample by sample from the seed, in step with the frames.

mod ambience;
mod chords;

use crate::SAMPLE_RATE_HZ;

use super::FPS;
use super::rng::{Rng, hash};
use super::script::Shot;
use ambience::Ambience;
use chords::Chords;

/// Samples per channel that belong to one frame.
pub(super) const FRAME_SAMPLES: usize = (SAMPLE_RATE_HZ / FPS) as usize;
/// No sample is louder.
const PEAK: f32 = 0.7;
const FADE_IN_S: f32 = 0.25;
const FADE_OUT_S: f32 = 1.3;

/// Makes the sound of a clip, one frame's worth at a time.
#[derive(Debug)]
pub(super) struct Sound {
    chords: Chords,
    ambience: Ambience,
    at: usize,
    samples: usize,
    pcm: Vec<f32>,
}

impl Sound {
    pub(super) fn new(shots: &[Shot], prompt: &str, seed: u32, frames: u32) -> Self {
        let rng = Rng::new(u64::from(seed) ^ hash(prompt.as_bytes()).rotate_left(33));
        let seconds = frames as f32 / FPS as f32;
        Self {
            chords: Chords::new(shots, seconds, &mut rng.fork("chords")),
            ambience: Ambience::new(shots, &mut rng.fork("ambience")),
            at: 0,
            samples: frames as usize * FRAME_SAMPLES,
            pcm: Vec::new(),
        }
    }

    /// The next frame's worth: interleaved stereo, [`FRAME_SAMPLES`] of each channel.
    pub(super) fn frame(&mut self) -> &[f32] {
        self.pcm.clear();
        let rate = SAMPLE_RATE_HZ as f32;
        for at in self.at..self.at + FRAME_SAMPLES {
            let time_s = at as f32 / rate;
            let left_s = self.samples.saturating_sub(at + 1) as f32 / rate;
            let fade = ease(time_s / FADE_IN_S) * ease(left_s / FADE_OUT_S);
            let (a, b) = self.chords.sample(at);
            let (c, d) = self.ambience.sample(at);
            for value in [a + c, b + d] {
                self.pcm.push(PEAK * (value * fade / PEAK).tanh());
            }
        }
        self.at += FRAME_SAMPLES;
        &self.pcm
    }
}

fn ease(share: f32) -> f32 {
    let t = share.clamp(0.0, 1.0);
    t * t * (3.0 - 2.0 * t)
}
