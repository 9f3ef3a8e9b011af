//! Soft chords and a sparse melody over them. Equal temperament, A4 = 440 Hz.

use std::f32::consts::TAU;

use kinora_engine::SAMPLE_RATE_HZ;

use crate::lexicon::{Hour, Mood, Place};
use crate::raster::colour::smooth;
use crate::rng::Rng;
use crate::script::Shot;

/// A scale, and the roots of a chord progression as steps of it.
struct MusicalMode {
    scale: [i32; 7],
    roots: [usize; 4],
}

const MAJOR: MusicalMode = MusicalMode {
    scale: [0, 2, 4, 5, 7, 9, 11],
    roots: [0, 4, 5, 3],
};
const LYDIAN: MusicalMode = MusicalMode {
    scale: [0, 2, 4, 6, 7, 9, 11],
    roots: [0, 1, 4, 0],
};
const DORIAN: MusicalMode = MusicalMode {
    scale: [0, 2, 3, 5, 7, 9, 10],
    roots: [0, 3, 6, 0],
};
const MINOR: MusicalMode = MusicalMode {
    scale: [0, 2, 3, 5, 7, 8, 10],
    roots: [0, 5, 2, 6],
};

impl MusicalMode {
    /// Semitones from the key up to `step`, which may lie two octaves above the scale.
    fn semitones(&self, step: usize) -> i32 {
        self.scale[step % 7] + 12 * i32::from(step >= 7) + 12 * i32::from(step >= 14)
    }
}

fn mode(mood: Option<Mood>, hour: Option<Hour>, place: Option<Place>) -> &'static MusicalMode {
    match (mood, hour, place) {
        (Some(Mood::Sad | Mood::Tense), _, _) => &MINOR,
        (Some(Mood::Dreamy), _, _) | (None, _, Some(Place::Space | Place::Underwater)) => &LYDIAN,
        (Some(Mood::Joyful | Mood::Calm), _, _) => &MAJOR,
        (None, Some(Hour::Night | Hour::Dusk), _) => &DORIAN,
        (None, Some(Hour::Golden), _) => &LYDIAN,
        _ => &MAJOR,
    }
}

/// A tone with a place in time and space.
#[derive(Clone, Copy, Debug)]
struct ChordTone {
    /// First and last sample; either may lie outside the clip.
    from: i64,
    to: i64,
    hz: f32,
    loudness: f32,
    /// -1.0 left to 1.0 right.
    side: f32,
    struck: bool,
}

/// The tones of a clip in order of their beginning.
#[derive(Debug)]
pub(super) struct ChordProgression {
    tones: Vec<ChordTone>,
    next: usize,
    sounding: Vec<ChordTone>,
}

fn hz(midi: i32) -> f32 {
    440.0 * ((midi - 69) as f32 / 12.0).exp2()
}

impl ChordProgression {
    pub(super) fn new(shots: &[Shot], seconds: f32, rng: &mut Rng) -> Self {
        let first = shots.first().map(|shot| &shot.reading);
        let mode = first.map_or(&MAJOR, |reading| {
            mode(reading.mood, reading.hour, reading.place)
        });
        let key = 45 + rng.range(0.0, 8.0) as i32;
        let rate = SAMPLE_RATE_HZ as f32;
        let count = (seconds / 3.4).round().max(1.0);
        let bar = seconds / count;
        // Chords overlap; the first sounds before the clip and the last after it, so that both
        // ends are as loud as the rest.
        let overlap = 0.9;
        let mut tones = Vec::new();
        for chord in 0..count as usize {
            let root = mode.roots[chord % 4];
            let last = chord + 1 == count as usize;
            let start = chord as f32 * bar - overlap * if chord == 0 { 1.0 } else { 0.5 };
            let end = (chord + 1) as f32 * bar + overlap * if last { 1.0 } else { 0.5 };
            let (from, to) = ((start * rate) as i64, (end * rate) as i64);
            // Step of the scale, octave in semitones, loudness and side: the root twice, fifth,
            // third, and a faint seventh.
            let voices = [
                (root, -12, 0.062, 0.0),
                (root, 0, 0.05, -0.5),
                (root + 4, 0, 0.044, 0.5),
                (root + 2, 12, 0.034, -0.25),
                (root + 6, 12, 0.022, 0.35),
            ];
            for (step, octave, loudness, side) in voices {
                let hz = hz(key + mode.semitones(step) + octave);
                tones.push(ChordTone {
                    from,
                    to,
                    hz,
                    loudness,
                    side,
                    struck: false,
                });
            }
            let mut beat = start.max(0.0) + bar * 0.25 * rng.unit();
            while beat < (chord + 1) as f32 * bar - 0.4 {
                if rng.chance(0.62) {
                    let step = root + [0, 2, 4, 7, 8][rng.below(5)];
                    let from = (beat * rate) as i64;
                    let (loudness, side) = (rng.range(0.02, 0.042), rng.signed() * 0.6);
                    let to = from + (2.6 * rate) as i64;
                    tones.push(ChordTone {
                        from,
                        to,
                        hz: hz(key + mode.semitones(step) + 24),
                        loudness,
                        side,
                        struck: true,
                    });
                }
                beat += bar / 8.0 * (1 + rng.below(2)) as f32;
            }
        }
        tones.sort_by_key(|tone| tone.from);
        Self {
            tones,
            next: 0,
            sounding: Vec::new(),
        }
    }

    /// Left and right at sample `at`. Call it for every sample in order.
    pub(super) fn sample(&mut self, at: usize) -> (f32, f32) {
        let at = at.cast_signed() as i64;
        // Tones are sorted by their beginning: each sample looks at the next one and at those that
        // sound.
        while let Some(tone) = self.tones.get(self.next).filter(|tone| tone.from <= at) {
            self.sounding.push(*tone);
            self.next += 1;
        }
        self.sounding.retain(|tone| at < tone.to);
        let (mut left, mut right) = (0.0, 0.0);
        for tone in &self.sounding {
            let value = tone.value(at);
            left += value * (1.0 - 0.6 * tone.side.max(0.0));
            right += value * (1.0 + 0.6 * tone.side.min(0.0));
        }
        (left, right)
    }
}

impl ChordTone {
    fn value(&self, at: i64) -> f32 {
        let rate = SAMPLE_RATE_HZ as f32;
        let since = (at - self.from) as f32 / rate;
        let remains = (self.to - at) as f32 / rate;
        // Whole turns are dropped in double precision: late in a clip a float would buzz.
        let turns =
            (f64::from(self.hz) * (at - self.from) as f64 / f64::from(SAMPLE_RATE_HZ)).fract();
        let angle = turns as f32 * TAU;
        if self.struck {
            let attack = (since / 0.012).min(1.0);
            let envelope = attack * (-since * 2.3).exp() * (remains / 0.2).min(1.0);
            let bell = (angle * 3.0).sin() * 0.18 * (-since * 6.0).exp();
            return self.loudness * envelope * (angle.sin() + bell);
        }
        let envelope = smooth(0.0, 0.9, since) * smooth(0.0, 0.9, remains);
        let breath = 0.88 + 0.12 * (since * 1.9 + self.hz).sin();
        let body = angle.sin() + 0.34 * (angle * 2.0 + 0.4).sin() + 0.1 * (angle * 3.0).sin();
        self.loudness * envelope * breath * body
    }
}
