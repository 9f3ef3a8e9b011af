//! From one picture to another: both move on as one camera while the second comes through the
//! first in soft patches. It warps no shapes and tracks no features.

use super::canvas::Canvas;
use super::colour::smooth;
use super::noise::cloudy;
use super::patches::Patches;
use super::photo::Photo;
use super::pulse::Pulse;

/// Share of the dissolve that a single place takes.
const SOFT: f32 = 0.7;
/// The part of the clip in which the dissolve happens.
const FROM: f32 = 0.18;
const TO: f32 = 0.82;

/// Two pictures and how one gives way to the other.
#[derive(Debug)]
pub(crate) struct Morph {
    first: Photo,
    last: Photo,
    /// When each place turns, 0.0 to 1.0.
    mask: Patches,
}

impl Morph {
    pub(crate) fn new(first: Photo, last: Photo, width: usize, height: usize, seed: u64) -> Self {
        Self {
            first,
            last,
            mask: Patches::new(width, height, |place| {
                let patches = cloudy(seed, place.x * 1.8, place.y * 1.8, 2);
                (0.5 + patches * 0.75).clamp(0.0, 1.0)
            }),
        }
    }

    /// Draws `share` (0.0 the first picture, 1.0 the last) of the way; `second` is working memory.
    pub(crate) fn draw(
        &self,
        share: f32,
        grade: f32,
        pulse: Pulse,
        canvas: &mut Canvas,
        second: &mut Canvas,
    ) {
        let turn = ((share - FROM) / (TO - FROM)).clamp(0.0, 1.0);
        if turn >= 1.0 {
            self.last.draw(share, grade, pulse, canvas);
            return;
        }
        self.first.draw(share, grade, pulse, canvas);
        if turn <= 0.0 {
            return;
        }
        self.last.draw(share, grade, pulse, second);
        let mut shares = vec![[0; 4]; canvas.width];
        for y in 0..canvas.height {
            for (share, when) in shares.iter_mut().zip(self.mask.row(y)) {
                let start = when * (1.0 - SOFT);
                *share = [(smooth(start, start + SOFT, turn) * 65_535.0) as u16; 4];
            }
            canvas.dissolve_row(second, y, &shares);
        }
    }
}
