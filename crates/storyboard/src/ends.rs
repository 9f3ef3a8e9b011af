//! The two ends of a clip and of its lines: how long frames of the caller's stay untouched, and
//! the fades that the words ask for. Without such words no end is darker than the rest, so that
//! clips join and loop.

use super::colour::smooth;
use super::script::Shot;
use kinora_engine::{Clip, Materials};

/// How long a frame of the caller's stays untouched, seconds, and at most this part of the clip.
const STAY_S: f32 = 0.5;
const STAY_PART: u32 = 5;
/// The part of its way in which a camera comes up to its pace.
const START: f32 = 0.3;
/// Length of a fade from or to black, seconds, and the most of its line that it may take.
const FADE_S: f32 = 1.0;
const FADE_MOST: f32 = 0.4;

/// The beginning and the end of a clip.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ends {
    /// Whether the caller gave the first and the last frame.
    first: bool,
    last: bool,
    frames: u32,
    fps: u32,
}

impl Ends {
    pub(crate) fn new(materials: &Materials, clip: Clip) -> Self {
        Self {
            first: materials.first_frame.is_some(),
            last: materials.last_frame.is_some(),
            frames: clip.frames,
            fps: clip.fps,
        }
    }

    /// How many frames a frame of the caller's stays as it is.
    fn stay(self) -> u32 {
        let whole = (STAY_S * self.fps as f32) as u32;
        whole.min(self.frames / STAY_PART)
    }

    /// How far the camera of a take is at its frame `at` of `long`, 0.0 to 1.0: it rests on
    /// frames of the caller's and starts softly from them.
    pub(crate) fn way(self, at: u32, long: u32) -> f32 {
        let last = long.saturating_sub(1).max(1);
        let rests = |given: bool| if given { self.stay() } else { 0 };
        let (from, to) = (
            rests(self.first),
            last.saturating_sub(rests(self.last)).max(1),
        );
        let share = at.saturating_sub(from) as f32 / to.saturating_sub(from).max(1) as f32;
        let share = share.min(1.0);
        match (self.first, self.last) {
            (false, false) => at as f32 / last as f32,
            (true, true) => eased(share),
            (true, false) => eased_in(share),
            (false, true) => 1.0 - eased_in(1.0 - share),
        }
    }

    /// Nothing while a frame that the caller gave stays, all of it `seconds` and more later.
    pub(crate) fn away(self, frame: u32, seconds: f32) -> f32 {
        let share = |frames: u32| {
            let frames = frames.saturating_sub(self.stay());
            smooth(0.0, seconds, frames as f32 / self.fps as f32)
        };
        let first = if self.first { share(frame) } else { 1.0 };
        let left = self.frames - 1 - frame;
        first.min(if self.last { share(left) } else { 1.0 })
    }

    /// Brightness at `frame` after the fades that `lines` ask for, 0.0 black to 1.0.
    /// Frames that the caller gave do not fade.
    pub(crate) fn light(self, lines: &[Shot], frame: u32) -> f32 {
        lines
            .iter()
            .filter(|line| (line.start..line.end).contains(&frame))
            .fold(1.0, |light, line| {
                let fades = line.reading.fades;
                let most = (line.end - line.start) as f32 * FADE_MOST;
                let long = (FADE_S * self.fps as f32).min(most).max(1.0);
                let share = |asked: bool, frames: u32| {
                    if asked {
                        smooth(0.0, long, frames as f32)
                    } else {
                        1.0
                    }
                };
                let opens = fades.from_black && !(self.first && line.start == 0);
                let closes = fades.to_black && !(self.last && line.end == self.frames);
                light * share(opens, frame - line.start) * share(closes, line.end - 1 - frame)
            })
    }
}

/// From rest to an even pace within [`START`] of the way; both are shares of 1.0.
fn eased_in(share: f32) -> f32 {
    let whole = 1.0 - START * 0.5;
    if share < START {
        share * share / (2.0 * START * whole)
    } else {
        (share - START * 0.5) / whole
    }
}

/// From rest to an even pace and to rest again.
fn eased(share: f32) -> f32 {
    let half = eased_in((share.min(1.0 - share) * 2.0).max(0.0)) * 0.5;
    if share < 0.5 { half } else { 1.0 - half }
}
