//! The sound of a clip, in step with the frames: the caller's own if there is any; silence if the
//! words ask for it; otherwise soft chords from mood and hour, the ambience of each shot's place,
//! and its events, made from the seed. It adds no fades of its own, so that clips join.

mod ambience;
mod chords;
mod foley;
mod track;

use kinora_engine::{FrameJob, SAMPLE_RATE_HZ};

use crate::raster::colour::smooth;
use crate::rng::{Rng, hash};
use crate::script::Shot;
use ambience::Ambience;
use chords::ChordProgression;
use foley::Foley;
pub(crate) use track::SoundTrack;
pub(crate) use track::samples;

/// Maximum absolute value of a sample.
const PEAK: f32 = 0.7;
/// Ramp at both ends against clicks, seconds.
const RAMP_S: f32 = 0.006;

/// The sound of a clip.
#[derive(Debug)]
pub(crate) enum ClipSound {
    /// Made for the clip.
    Bed(Box<SoundBed>),
    /// The caller's own, or silence.
    Laid(SoundTrack),
}

impl ClipSound {
    /// The caller's references if there are any, otherwise the sound that the words of `shots` ask
    /// for.
    pub(crate) fn new(job: &FrameJob<'_>, shots: &[Shot]) -> Self {
        let length = samples(job.clip.frames, job.clip.fps);
        if let Some(track) = SoundTrack::from_sounds(&job.materials.audios, length) {
            return Self::Laid(track);
        }
        if shots.iter().any(|shot| shot.reading.hearing.silent) {
            return Self::Laid(SoundTrack::silent(length));
        }
        Self::Bed(Box::new(SoundBed::new(job, shots)))
    }

    /// Samples of the next frame, up to the first `end` samples of each channel: interleaved
    /// stereo.
    pub(crate) fn samples_until(&mut self, end: usize) -> &[f32] {
        match self {
            Self::Bed(bed) => bed.samples_until(end),
            Self::Laid(track) => track.samples_until(end),
        }
    }
}

/// Chords, ambience and events, synthesised sample by sample as the frames advance.
#[derive(Debug)]
pub(crate) struct SoundBed {
    /// `None` if the words exclude music.
    chords: Option<ChordProgression>,
    ambience: Ambience,
    foley: Foley,
    at: usize,
    samples: usize,
    pcm: Vec<f32>,
}

impl SoundBed {
    fn new(job: &FrameJob<'_>, shots: &[Shot]) -> Self {
        let (prompt, seed, clip) = (&job.spec.prompt, job.spec.seed, job.clip);
        let rng = Rng::new(u64::from(seed) ^ hash(prompt.as_bytes()).rotate_left(33));
        let seconds = clip.frames as f32 / clip.fps as f32;
        let music = !shots.iter().any(|shot| shot.reading.hearing.no_music);
        Self {
            chords: music.then(|| ChordProgression::new(shots, seconds, &mut rng.fork("chords"))),
            ambience: Ambience::new(shots, job, &mut rng.fork("ambience")),
            foley: Foley::new(shots, job, &rng.fork("foley")),
            at: 0,
            samples: samples(clip.frames, clip.fps),
            pcm: Vec::new(),
        }
    }

    fn samples_until(&mut self, end: usize) -> &[f32] {
        self.pcm.clear();
        let ramp = RAMP_S * SAMPLE_RATE_HZ as f32;
        for at in self.at..end {
            let left = self.samples.saturating_sub(at + 1);
            let ends = smooth(0.0, ramp, at as f32) * smooth(0.0, ramp, left as f32);
            let music = self.chords.as_mut().map_or((0.0, 0.0), |c| c.sample(at));
            let (place, events) = (self.ambience.sample(at), self.foley.sample(at));
            for value in [music.0 + place.0 + events.0, music.1 + place.1 + events.1] {
                // A soft limit: quiet sums pass nearly unchanged, loud ones bend towards PEAK
                // instead of clipping.
                self.pcm.push(PEAK * (value * ends / PEAK).tanh());
            }
        }
        self.at = end;
        &self.pcm
    }
}
