//! The sound of a clip, in step with the frames: the caller's own where there is any, else a bed
//! of soft chords from mood and hour and the ambience of each shot's place, made from the seed.

mod ambience;
mod chords;
mod track;

use kinora_engine::{Job, SAMPLE_RATE_HZ};

use super::rng::{Rng, hash};
use super::script::Shot;
use ambience::Ambience;
use chords::Chords;
pub(super) use track::Track;

/// Samples per channel that belong to the first `frames` frames.
pub(super) fn samples(frames: u32, fps: u32) -> usize {
    (u64::from(frames) * u64::from(SAMPLE_RATE_HZ) / u64::from(fps.max(1))) as usize
}

/// No sample is louder.
const PEAK: f32 = 0.7;
const FADE_IN_S: f32 = 0.25;
const FADE_OUT_S: f32 = 1.3;

/// The sound of a clip.
#[derive(Debug)]
pub(super) enum Sound {
    /// Made for the clip.
    Bed(Box<Bed>),
    /// The caller's own.
    Laid(Track),
}

impl Sound {
    /// The references where there are any, else a bed for `shots`.
    pub(super) fn new(job: &Job<'_>, shots: &[Shot]) -> Self {
        let (spec, clip) = (job.spec, job.clip);
        if let Some(track) = Track::lay(&job.materials.audios, samples(clip.frames, clip.fps)) {
            return Self::Laid(track);
        }
        let bed = Bed::new(shots, &spec.prompt, spec.seed, clip.frames, clip.fps);
        Self::Bed(Box::new(bed))
    }

    /// What belongs to the next frame, up to the first `end` samples of each channel:
    /// interleaved stereo.
    pub(super) fn until(&mut self, end: usize) -> &[f32] {
        match self {
            Self::Bed(bed) => bed.until(end),
            Self::Laid(track) => track.until(end),
        }
    }
}

/// Chords and ambience, made as they are asked for.
#[derive(Debug)]
pub(super) struct Bed {
    chords: Chords,
    ambience: Ambience,
    at: usize,
    samples: usize,
    pcm: Vec<f32>,
}

impl Bed {
    fn new(shots: &[Shot], prompt: &str, seed: u32, frames: u32, fps: u32) -> Self {
        let rng = Rng::new(u64::from(seed) ^ hash(prompt.as_bytes()).rotate_left(33));
        let seconds = frames as f32 / fps as f32;
        Self {
            chords: Chords::new(shots, seconds, &mut rng.fork("chords")),
            ambience: Ambience::new(shots, fps, &mut rng.fork("ambience")),
            at: 0,
            samples: samples(frames, fps),
            pcm: Vec::new(),
        }
    }

    fn until(&mut self, end: usize) -> &[f32] {
        self.pcm.clear();
        let rate = SAMPLE_RATE_HZ as f32;
        for at in self.at..end {
            let time_s = at as f32 / rate;
            let left_s = self.samples.saturating_sub(at + 1) as f32 / rate;
            let fade = ease(time_s / FADE_IN_S) * ease(left_s / FADE_OUT_S);
            let (a, b) = self.chords.sample(at);
            let (c, d) = self.ambience.sample(at);
            for value in [a + c, b + d] {
                self.pcm.push(PEAK * (value * fade / PEAK).tanh());
            }
        }
        self.at = end;
        &self.pcm
    }
}

fn ease(share: f32) -> f32 {
    let t = share.clamp(0.0, 1.0);
    t * t * (3.0 - 2.0 * t)
}
