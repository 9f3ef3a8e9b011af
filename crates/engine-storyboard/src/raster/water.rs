//! Water: a mirror of what is painted above it, wavering row by row, tinted and darkened
//! towards the viewer. It mirrors pixels, it simulates no waves.

use super::canvas::{Canvas, STRIP};
use super::colour::Rgb;
use super::resample::{blend, mul_high};
use crate::scene::camera::CameraView;

/// A level sheet of water from the horizon down.
#[derive(Clone, Debug)]
pub(crate) struct Water {
    /// Stage row of the far edge.
    pub(crate) horizon: f32,
    /// Stage row at which it ends.
    pub(crate) bottom: f32,
    pub(crate) depth: f32,
    pub(crate) far: Rgb,
    pub(crate) near: Rgb,
    /// Share of the mirror image that the water's own colour covers, far and near.
    pub(crate) cover: (f32, f32),
    /// Waver in stage pixels, at the near edge.
    pub(crate) reach: f32,
    /// Radians per second.
    pub(crate) rate: f32,
}

impl Water {
    /// The first row of the frame that the water covers.
    pub(crate) fn first_row(&self, view: &CameraView) -> usize {
        view.map(self.depth).y(self.horizon).floor().max(1.0) as usize
    }

    /// Lays the water onto those of its rows that are `needed`.
    pub(crate) fn draw(
        &self,
        view: &CameraView,
        canvas: &mut Canvas,
        needed: impl Fn(usize) -> bool,
    ) {
        let map = view.map(self.depth);
        let horizon = map.y(self.horizon);
        let first = self.first_row(view);
        let last = (map.y(self.bottom).ceil().max(0.0) as usize).min(canvas.height);
        let width = canvas.width * 4;
        let span = (map.y(self.bottom) - horizon).max(1.0);
        let reach = self.reach * view.pixels;
        let mut line = vec![0_u16; width];
        for y in (first..last).filter(|y| needed(*y)) {
            let below = (y as f32 + 0.5 - horizon).max(0.0);
            let share = (below / span).clamp(0.0, 1.0);
            // Ripples crowd together towards the horizon as they would in perspective.
            let wave = 34.0 * (1.0 + 14.0 * share).ln();
            let swing = (wave - self.rate * view.time_s).sin()
                + 0.6 * (wave * 2.3 - self.rate * 1.4 * view.time_s + 1.3).sin();
            let shift = reach * (0.15 + share) * swing;
            let sink = reach * 0.9 * share * (wave * 1.2 - self.rate * 1.1 * view.time_s).sin();
            // Less than one row up for each row down: reflections in moving water are a little
            // longer than what they mirror. `sink` moves them up and down with the waves.
            let source = (horizon - below * 0.92 - 1.0 + sink).clamp(0.0, horizon.max(1.0) - 1.0);
            // It mirrors the canvas itself: what it mirrors is painted before it.
            let (above, rest) = canvas.pixels.split_at_mut(y * width);
            let mirrored = &above[(source as usize).min(y - 1) * width..][..width];
            slide(mirrored, shift, &mut line);
            let crest = 0.04 * swing * share;
            let cover = self.cover.0 + (self.cover.1 - self.cover.0) * share.sqrt() - crest;
            let tone = self.far.mix_plain(self.near, share.sqrt());
            blend_row(&mut rest[..width], &line, tone, cover, edge(below));
        }
    }
}

/// The far edge is soft over the first pixel.
fn edge(below: f32) -> f32 {
    below.clamp(0.0, 1.0)
}

/// Copies a row, moved right by `shift` pixels, its ends repeated.
fn slide(row: &[u16], shift: f32, out: &mut [u16]) {
    let width = row.len() / 4;
    let whole = shift.floor();
    let share = ((shift - whole) * 65_535.0) as u16;
    let (ahead, back) = (whole.max(0.0) as usize, (-whole).max(0.0) as usize);
    // Pixel x is a blend of row[x - whole] and row[x - whole - 1].
    let first = (ahead + 1).saturating_sub(back).min(width);
    let last = width.saturating_sub(back).max(first);
    let from = (first + back).saturating_sub(ahead);
    let count = (last - first).min(width - from.min(width));
    if count > 0 && from > 0 {
        let (right, left) = (
            &row[from * 4..][..count * 4],
            &row[(from - 1) * 4..][..count * 4],
        );
        for ((out, a), b) in out[first * 4..].iter_mut().zip(right).zip(left) {
            *out = blend(*a, *b, share);
        }
    }
    let (start, end) = (first * 4, (first + count) * 4);
    for pixel in out[..start].chunks_exact_mut(4) {
        pixel.copy_from_slice(&row[..4]);
    }
    for pixel in out[end..].chunks_exact_mut(4) {
        pixel.copy_from_slice(&row[row.len() - 4..]);
    }
}

fn blend_row(row: &mut [u16], line: &[u16], tone: Rgb, cover: f32, edge: f32) {
    let cover = cover.clamp(0.0, 1.0);
    let tone = tone.fixed().map(|part| (f32::from(part) * cover) as u16);
    let keep = ((1.0 - cover) * 65_535.0) as u16;
    let edge = (edge * 65_535.0) as u16;
    let tones = [tone; STRIP];
    for (row, line) in row.chunks_mut(STRIP * 4).zip(line.chunks(STRIP * 4)) {
        let parts = line.iter().zip(tones.as_flattened());
        for (out, (line, tone)) in row.iter_mut().zip(parts) {
            *out = blend(*out, mul_high(*line, keep) + tone, edge);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sliding_moves_a_row_and_repeats_its_ends() {
        let row: Vec<u16> = (0..8).flat_map(|x| [x * 100; 4]).collect();
        for (shift, want) in [
            (0.0, [0, 100, 200, 300, 400, 500, 600, 700]),
            (2.0, [0, 0, 0, 100, 200, 300, 400, 500]),
            (-3.0, [300, 400, 500, 600, 700, 700, 700, 700]),
            (40.0, [0; 8]),
            (-40.0, [700; 8]),
        ] {
            let mut out = vec![9; 32];
            slide(&row, shift, &mut out);
            let got: Vec<u16> = out.chunks_exact(4).map(|pixel| pixel[0]).collect();
            assert_eq!(got, want, "by {shift}");
        }
    }
}
