//! Movement of a picture with its sound (or, in an edit, with the light of its source): one
//! value per frame, smoothed. It knows levels, neither notes nor beats.

use super::pulse::Pulse;
use super::sound::{Track, samples};

/// How fast a swell rises and falls, as the time to a half, seconds.
const RISE_S: f32 = 0.03;
const FALL_S: f32 = 0.16;

/// The swell of each frame.
#[derive(Debug, Default)]
pub(crate) struct Swell(Vec<f32>);

impl Swell {
    /// Follows the loudness of `track`.
    pub(crate) fn of_sound(track: &Track, frames: u32, fps: u32) -> Self {
        Self::of_levels(
            (0..frames)
                .map(|frame| {
                    let (from, to) = (samples(frame, fps) * 2, samples(frame + 1, fps) * 2);
                    let pcm = track.pcm();
                    let part = &pcm[from.min(pcm.len())..to.min(pcm.len())];
                    let power: f32 = part.iter().map(|sample| sample * sample).sum();
                    (power / part.len().max(1) as f32).sqrt()
                })
                .collect(),
            fps,
        )
    }

    /// Follows any level of 0.0 or more, one per frame, relative to the highest.
    pub(crate) fn of_levels(mut levels: Vec<f32>, fps: u32) -> Self {
        let most = levels.iter().copied().fold(1e-6, f32::max);
        let keep = |half_s: f32| (-std::f32::consts::LN_2 / (half_s * fps as f32)).exp();
        let (rise, fall) = (keep(RISE_S), keep(FALL_S));
        let mut held: Option<f32> = None;
        for level in &mut levels {
            let goal = (*level / most).sqrt();
            let before = *held.get_or_insert(goal);
            let keep = if goal > before { rise } else { fall };
            *level = goal + (before - goal) * keep;
            held = Some(*level);
        }
        Self(levels)
    }

    /// The pulse of `frame`.
    pub(crate) fn at(&self, frame: u32) -> Pulse {
        self.0
            .get(frame as usize)
            .map_or(Pulse::CALM, |swell| Pulse::of(*swell))
    }
}
