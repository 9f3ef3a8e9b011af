//! From one picture to another: both move on as one camera while the second comes through the
//! first in soft patches. It warps no shapes and tracks no features.

use super::canvas::Canvas;
use super::colour::smooth;
use super::motion::Pulse;
use super::noise::cloudy;
use super::photo::Photo;

/// Frame pixels per value of the mask, for a short side of 720.
const PITCH: f32 = 12.0;
/// Share of the dissolve that a single place takes.
const SOFT: f32 = 0.7;
/// The part of the clip in which the dissolve happens.
const FROM: f32 = 0.18;
const TO: f32 = 0.82;

/// Two pictures and how one gives way to the other.
#[derive(Debug)]
pub(super) struct Morph {
    first: Photo,
    last: Photo,
    /// `[rows][columns]`: when each place turns, 0.0 to 1.0.
    mask: Vec<f32>,
    columns: usize,
    rows: usize,
}

impl Morph {
    pub(super) fn new(first: Photo, last: Photo, width: usize, height: usize, seed: u64) -> Self {
        let pitch = (PITCH * width.min(height) as f32 / 720.0).max(1.0);
        let columns = (width as f32 / pitch).ceil() as usize + 1;
        let rows = (height as f32 / pitch).ceil() as usize + 1;
        let unit = width.min(height) as f32 / pitch;
        let value = |index: usize| {
            let (x, y) = ((index % columns) as f32, (index / columns) as f32);
            let patches = cloudy(seed, x / unit * 1.8, y / unit * 1.8, 2);
            (0.5 + patches * 0.75).clamp(0.0, 1.0)
        };
        let mask = (0..columns * rows).map(value).collect();
        Self {
            first,
            last,
            mask,
            columns,
            rows,
        }
    }

    /// Draws `share` (0.0 the first picture, 1.0 the last) of the way; `second` is working memory.
    pub(super) fn draw(
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
        let mut shares = vec![0; canvas.width];
        for y in 0..canvas.height {
            self.row(y, turn, (canvas.width, canvas.height), &mut shares);
            canvas.dissolve_row(second, y, &shares);
        }
    }

    /// The share of the last picture, in 32,768ths, along row `y` of the frame.
    fn row(&self, y: usize, turn: f32, (width, height): (usize, usize), shares: &mut [u16]) {
        let down = y as f32 / height as f32 * (self.rows - 1) as f32;
        let upper = (down as usize).min(self.rows - 2);
        let part = down - upper as f32;
        let line = |row: usize| &self.mask[row * self.columns..][..self.columns];
        let (a, b) = (line(upper), line(upper + 1));
        let step = (self.columns - 1) as f32 / width as f32;
        for (x, share) in shares.iter_mut().enumerate() {
            let across = x as f32 * step;
            let left = (across as usize).min(self.columns - 2);
            let side = across - left as f32;
            let at = |line: &[f32]| line[left] + (line[left + 1] - line[left]) * side;
            let when = at(a) + (at(b) - at(a)) * part;
            let start = when * (1.0 - SOFT);
            *share = (smooth(start, start + SOFT, turn) * 32_768.0) as u16;
        }
    }
}
