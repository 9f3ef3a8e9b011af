//! A page of text as a picture: white letters with a dark outline on a soft dark band, so that
//! the contrast holds on any background.

use ab_glyph::{Font, PxScale, ScaleFont, point};
use kinora_contract::Size;

use super::super::canvas::{Canvas, lay_over};
use super::super::colour::smooth;
use super::super::scene::stage_of;
use super::layout::{fonts, place};

/// How dark the band is behind the middle of the text, 0.0 to 1.0.
const BAND: f32 = 0.46;
/// Part of the width, and of the height, that stays free at each side (title-safe area).
const MARGIN: f32 = 0.06;

/// Text ready to be laid over frames.
#[derive(Debug)]
pub(in super::super) struct Page {
    left: usize,
    top: usize,
    width: usize,
    /// `[height][width][4] u16`, premultiplied, 15 bits, alpha last.
    pixels: Vec<u16>,
}

/// Height of the letters' line in stage pixels; `pixels` frame pixels are one of them.
pub(super) fn text_size(stage: Size, pixels: f32) -> f32 {
    let short = stage.width.min(stage.height) as f32;
    (short * 0.047).max(11.0 / pixels)
}

/// The widest line in stage pixels.
pub(super) fn line_width(stage: Size) -> f32 {
    // Long lines are hard to read in very wide frames.
    let wide = stage.width > stage.height * 2;
    stage.width as f32 * (1.0 - 2.0 * MARGIN) * if wide { 0.74 } else { 0.9 }
}

impl Page {
    /// A caption, centred in the lower part of a frame.
    pub(super) fn caption(
        lines: &[String],
        size: f32,
        width: usize,
        height: usize,
    ) -> Option<Self> {
        let pitch = size * 1.3;
        let block = pitch * lines.len() as f32;
        let base = height as f32 * (1.0 - MARGIN) - block;
        let top = (base - size * 3.2).max(0.0).floor() as usize;
        let mut mask = Mask::new(width, height.checked_sub(top)?)?;
        for (index, line) in lines.iter().enumerate() {
            let (glyphs, wide) = place(line, size, 0.0);
            let y = base - top as f32 + pitch * index as f32;
            mask.write(&glyphs, (width as f32 - wide) * 0.5, y, size);
        }
        let inner = base - top as f32;
        let band = |y: f32| {
            let rise = smooth(0.0, inner + size * 0.6, y);
            BAND * rise
        };
        Some(mask.page(0, top, size, band, 1.0))
    }

    /// The slate in the upper left corner.
    pub(in super::super) fn slate(text: &str, frame: Size) -> Option<Self> {
        let (stage, pixels) = stage_of(frame);
        let (width, height) = (frame.width as usize, frame.height as usize);
        let size = (text_size(stage, pixels) * pixels * 0.46).max(8.0);
        let (glyphs, wide) = place(text, size, size * 0.1);
        let inset = width.min(height) as f32 * 0.042;
        let mut mask = Mask::new((wide + size * 2.0) as usize, (size * 2.2) as usize)?;
        mask.write(&glyphs, size, size * 0.5, size);
        let (left, top) = ((inset - size) as usize, (inset - size * 0.5) as usize);
        Some(mask.page(left, top, size, |_| 0.0, 0.86))
    }

    /// Lays the page over a frame with opacity `alpha`.
    pub(in super::super) fn lay(&self, canvas: &mut Canvas, alpha: f32) {
        if alpha <= 0.0 || self.left + self.width > canvas.width {
            return;
        }
        let share = (alpha.min(1.0) * 32_768.0) as u32;
        let mut line = vec![0_u16; self.width * 4];
        for (row, y) in self
            .pixels
            .chunks_exact(self.width * 4)
            .zip(self.top..canvas.height)
        {
            for (out, part) in line.iter_mut().zip(row) {
                *out = ((u32::from(*part) * share) >> 15) as u16;
            }
            lay_over(
                &mut canvas.row(y)[self.left * 4..(self.left + self.width) * 4],
                &line,
            );
        }
    }
}

/// Coverage of letters, 0.0 to 1.0 per pixel.
struct Mask {
    width: usize,
    height: usize,
    cover: Vec<f32>,
}

impl Mask {
    fn new(width: usize, height: usize) -> Option<Self> {
        (width > 0 && height > 0).then(|| Self {
            width,
            height,
            cover: vec![0.0; width * height],
        })
    }

    fn write(&mut self, glyphs: &[super::layout::Placed], left: f32, top: f32, size: f32) {
        let scale = PxScale::from(size);
        // One baseline for all fonts of a line.
        let ascent = fonts()
            .first()
            .map_or(size * 0.8, |font| font.as_scaled(scale).ascent());
        for placed in glyphs {
            let at = point(left + placed.x, top + ascent);
            let glyph = placed.glyph.with_scale_and_position(scale, at);
            let Some(outline) = placed.font.outline_glyph(glyph) else {
                continue;
            };
            let bounds = outline.px_bounds();
            outline.draw(|x, y, cover| {
                let (px, py) = (bounds.min.x + x as f32, bounds.min.y + y as f32);
                let inside =
                    px >= 0.0 && py >= 0.0 && px < self.width as f32 && py < self.height as f32;
                if inside {
                    let spot = &mut self.cover[py as usize * self.width + px as usize];
                    *spot = (*spot + cover).min(1.0);
                }
            });
        }
    }

    /// The coverage widened by about `radius` pixels and softened.
    fn halo(&self, radius: usize) -> Vec<f32> {
        let mut halo = self.cover.clone();
        for _ in 0..2 {
            halo = blur(&halo, self.width, self.height, radius, true);
            halo = blur(&halo, self.width, self.height, radius, false);
        }
        halo.iter().map(|cover| (cover * 2.6).min(1.0)).collect()
    }

    fn page(self, left: usize, top: usize, size: f32, band: impl Fn(f32) -> f32, ink: f32) -> Page {
        let halo = self.halo(((size * 0.07) as usize).max(1));
        let mut pixels = Vec::with_capacity(self.cover.len() * 4);
        for (index, (cover, halo)) in self.cover.iter().zip(&halo).enumerate() {
            let dark = band((index / self.width) as f32);
            let under = 1.0 - (1.0 - dark) * (1.0 - halo * 0.74);
            let letter = cover * ink;
            let alpha = letter + under * (1.0 - letter);
            let white = (letter * 0.985 * 32_640.0) as u16;
            pixels.extend([white, white, white, (alpha * 32_640.0) as u16]);
        }
        Page {
            left,
            top,
            width: self.width,
            pixels,
        }
    }
}

/// A box blur of `2 * radius + 1` along rows or columns.
fn blur(from: &[f32], width: usize, height: usize, radius: usize, across: bool) -> Vec<f32> {
    let mut out = vec![0.0; from.len()];
    let (lines, length, line_step, step) = if across {
        (height, width, width, 1)
    } else {
        (width, height, 1, width)
    };
    let share = 1.0 / (2 * radius + 1) as f32;
    for line in 0..lines {
        let start = line * line_step;
        let mut sum: f32 = (0..radius.min(length))
            .map(|at| from[start + at * step])
            .sum();
        for at in 0..length {
            if at + radius < length {
                sum += from[start + (at + radius) * step];
            }
            if at > radius {
                sum -= from[start + (at - radius - 1) * step];
            }
            out[start + at * step] = (sum * share).max(0.0);
        }
    }
    out
}
