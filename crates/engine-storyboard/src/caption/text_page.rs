//! A page of text as a picture: font outlines filled as coverage, white letters with a dark outline on a soft dark plate, so
//! that the contrast holds on any background. All of it is inside the title-safe area. It decides no times.

use std::ops::Range;

use harfrust::font::glyph::outline::{DrawMemory, DrawOptions, PathSink};
use kinora_contract::Size;
use zeno::{Command, Vector};

use super::lines::{TextPages, TextRoom};
use super::shaping::{GlyphLine, PlacedGlyph};
use crate::raster::canvas::{Canvas, blend_over};
use crate::raster::colour::smooth;
use crate::scene::stage_size;

/// Opacity of the dark plate, 0.0 to 1.0.
const PLATE: f32 = 0.5;
/// Part of the width, and of the height, that stays free at each side (title-safe area, EBU R 95).
const MARGIN: f32 = 0.05;
/// Distance of baselines, ems.
const PITCH: f32 = 1.3;
/// Ems between the letters and the edge of their plate.
const PAD: (f32, f32) = (0.75, 0.35);
/// Minimum extent of a line above and below its baseline, ems, so that similar lines have equal positions.
const LINE: (f32, f32) = (0.8, 0.26);
/// Maximum extent of marks on a letter, ems; the rest is cut off.
const STACK: f32 = 1.5;

/// Space beside the lines of a mark, in ems.
const MARK_EDGE: f32 = 0.3;

/// Position of a caption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CaptionAnchor {
    Lower,
    /// Top of the frame, from this row on, below the mark.
    Upper(usize),
}

/// Text ready to be laid over frames.
#[derive(Debug)]
pub(crate) struct TextPage {
    left: usize,
    top: usize,
    width: usize,
    /// `[height][width][4] u16`, premultiplied, 15 bits, alpha last.
    pixels: Vec<u16>,
}

/// Height of an em of a caption in stage pixels; `pixels` frame pixels are one of them.
pub(super) fn text_size(stage: Size, pixels: f32) -> f32 {
    // About a 23rd of the short side, but never less than 11 pixels of the frame, where small
    // letters break up.
    let short = stage.width.min(stage.height) as f32;
    (short * 0.044).max(11.0 / pixels)
}

/// The widest line in stage pixels.
pub(super) fn line_width(stage: Size) -> f32 {
    // Long lines are hard to read in very wide frames.
    // The eye loses the next line on its way back over a very long one.
    let wide = stage.width > stage.height * 2;
    stage.width as f32 * if wide { 0.65 } else { 0.8 }
}

/// The area of a frame for letters, pixels: left, top, right, bottom.
fn title_safe_area(frame: Size) -> [usize; 4] {
    let [across, down] =
        [frame.width, frame.height].map(|side| (side as f32 * MARGIN).ceil() as usize);
    let (width, height) = (frame.width as usize, frame.height as usize);
    [across, down, width - across, height - down]
}

/// Lines below each other, and the box around them in pixels.
pub(super) struct TextBlock {
    lines: Vec<GlyphLine>,
    /// Pixels of an em.
    size: f32,
    /// Baseline of each line, pixels from the top of the box.
    baselines: Vec<f32>,
    width: usize,
    height: usize,
}

impl TextBlock {
    /// The lines of a page of `pages`, an em being `size` pixels.
    pub(super) fn new(pages: &TextPages, page: &[Range<usize>], size: f32) -> Self {
        let lines: Vec<GlyphLine> = page.iter().map(|part| pages.paragraph.line(part)).collect();
        let mut baselines = Vec::new();
        let (mut at, mut below) = (PAD.1, 0.0_f32);
        for (index, line) in lines.iter().enumerate() {
            let (rise, fall) = extent(&line.glyphs);
            let rise = rise.clamp(LINE.0, STACK);
            let step = if index == 0 {
                rise
            } else {
                // The usual distance, or more where stacked marks of two lines would touch.
                (below + rise + 0.08).max(PITCH)
            };
            at += step;
            baselines.push(at * size);
            below = fall.clamp(LINE.1, STACK);
        }
        let widest = lines.iter().map(|line| line.width).fold(0.0, f32::max);
        Self {
            lines,
            size,
            baselines,
            width: ((widest + PAD.0 * 2.0) * size).ceil() as usize,
            height: ((at + below + PAD.1) * size).ceil() as usize,
        }
    }

    /// At most two lines, an em being a share of a caption's and at least some pixels: `(share, least)`.
    fn mark(text: &str, frame: Size, (share, least): (f32, f32), system: bool) -> Option<Self> {
        let (stage, pixels) = stage_size(frame);
        let size = (text_size(stage, pixels) * pixels * share).max(least);
        let [left, _, right, _] = title_safe_area(frame);
        let room = TextRoom {
            width: ((right - left) as f32 - size * MARK_EDGE * 2.0) / size,
            lines: 2,
            pages: 1,
        };
        let pages = TextPages::new(text, room, system);
        let mut block = Self::new(&pages, pages.pages.first()?, size);
        block.width = block.width.min(right - left);
        Some(block)
    }

    /// Left and top of the box at `place` of a frame.
    fn corner(&self, place: CaptionAnchor, frame: Size) -> (usize, usize) {
        let [_, top, _, bottom] = title_safe_area(frame);
        let left = (frame.width as usize).saturating_sub(self.width) / 2;
        let top = match place {
            CaptionAnchor::Lower => bottom.saturating_sub(self.height),
            CaptionAnchor::Upper(below) => below.max(top + (self.size * 1.2) as usize),
        };
        (left, top)
    }

    /// Whether the frame has room for it at `place`.
    pub(super) fn fits(&self, place: CaptionAnchor, frame: Size) -> bool {
        let [_, _, _, bottom] = title_safe_area(frame);
        self.corner(place, frame).1 + self.height <= bottom
    }

    /// The box at `place` as shares of the frame: left, top, right, bottom.
    pub(super) fn shares(&self, place: CaptionAnchor, frame: Size) -> [f32; 4] {
        let (left, top) = self.corner(place, frame);
        let (across, down) = (frame.width as f32, frame.height as f32);
        [
            left as f32 / across,
            top as f32 / down,
            (left + self.width) as f32 / across,
            (top + self.height) as f32 / down,
        ]
    }

    /// The coverage of the block, whose lines begin at the columns that `left` gives.
    fn mask(&self, left: impl Fn(&GlyphLine) -> f32) -> Option<CoverageMask> {
        let lines: Vec<(&GlyphLine, f32, f32)> = self
            .lines
            .iter()
            .zip(&self.baselines)
            .map(|(line, base)| (line, left(line), *base))
            .collect();
        CoverageMask::from_lines(&lines, self.size, (self.width, self.height))
    }

    /// The block as a caption, its lines centred; `None` where nothing is left of it.
    pub(super) fn caption(self, place: CaptionAnchor, frame: Size) -> Option<TextPage> {
        let (left, top) = self.corner(place, frame);
        let (width, height, size) = (self.width, self.height, self.size);
        let mask = self.mask(|line| (width as f32 - line.width * size) * 0.5)?;
        let edge =
            |at: usize, length: usize| (at.min(length - 1 - at) as f32 + 0.5) / (size * 0.55);
        TextPage::from_mask(
            &mask,
            (left, top),
            size,
            |x, y| {
                let (across, down) = (
                    1.0 - edge(x, width).min(1.0),
                    1.0 - edge(y, height).min(1.0),
                );
                PLATE * smooth(0.0, 1.0, 1.0 - across.hypot(down))
            },
            1.0,
        )
        .within(frame)
    }
}

impl TextPage {
    /// The mark in the upper left corner, at most two lines.
    pub(crate) fn mark(text: &str, frame: Size, system: bool) -> Option<Self> {
        let block = TextBlock::mark(text, frame, (0.5, 10.0), system)?;
        let (size, [left, top, ..]) = (block.size, title_safe_area(frame));
        let mask = block.mask(|_| size * MARK_EDGE)?;
        Self::from_mask(&mask, (left, top), size, |_, _| 0.0, 0.86).within(frame)
    }

    /// An operator's mark in the upper right corner, at most two lines. There is nothing else of this engine.
    pub(crate) fn watermark(text: &str, frame: Size) -> Option<Self> {
        let block = TextBlock::mark(text, frame, (0.62, 12.0), false)?;
        let (size, [_, top, right, _]) = (block.size, title_safe_area(frame));
        let width = block.width;
        let mask = block.mask(|line| width as f32 - size * MARK_EDGE - line.width * size)?;
        Self::from_mask(&mask, (right - width, top), size, |_, _| 0.0, 0.9).within(frame)
    }

    /// Left and top, and the width of its rows of premultiplied grey and alpha, 15 bits each.
    pub(crate) fn grey_rows(&self) -> (usize, usize, usize, impl Iterator<Item = [u16; 2]>) {
        let pixels = self.pixels.chunks_exact(4).map(|one| [one[0], one[3]]);
        (self.left, self.top, self.width, pixels)
    }

    /// The row below it.
    pub(crate) fn bottom(&self) -> usize {
        self.top + self.pixels.len() / (self.width * 4).max(1)
    }

    #[cfg(test)]
    pub(super) const fn top(&self) -> usize {
        self.top
    }

    /// Lays the page over a frame with opacity `alpha`.
    pub(crate) fn draw(&self, canvas: &mut Canvas, alpha: f32) {
        if alpha <= 0.0 || self.left + self.width > canvas.width {
            return;
        }
        let share = (alpha.min(1.0) * 32_768.0) as u32;
        let mut line = vec![0_u16; self.width * 4];
        let rows = self.pixels.chunks_exact(self.width * 4);
        for (row, y) in rows.zip(self.top..canvas.height) {
            for (out, part) in line.iter_mut().zip(row) {
                *out = ((u32::from(*part) * share) >> 15) as u16;
            }
            blend_over(&mut canvas.row(y)[self.left * 4..][..self.width * 4], &line);
        }
    }

    /// Letters of `mask` with opacity `ink` on a plate of darkness `plate(x, y)`.
    fn from_mask(
        mask: &CoverageMask,
        (left, top): (usize, usize),
        size: f32,
        plate: impl Fn(usize, usize) -> f32,
        ink: f32,
    ) -> Self {
        let halo = mask.halo(((size * 0.08) as usize).max(1));
        let mut pixels = Vec::with_capacity(mask.cover.len() * 4);
        for (index, (cover, halo)) in mask.cover.iter().zip(&halo).enumerate() {
            let dark = plate(index % mask.width, index / mask.width);
            // Letters over halo over plate: what each lets through is multiplied. Only letters are
            // white, so that the colour is premultiplied by their part alone.
            let under = 1.0 - (1.0 - dark) * (1.0 - halo * 0.74);
            let letter = cover * ink;
            let alpha = letter + under * (1.0 - letter);
            let white = (letter * 0.985 * 32_640.0) as u16;
            pixels.extend([white, white, white, (alpha * 32_640.0) as u16]);
        }
        Self {
            left,
            top,
            width: mask.width,
            pixels,
        }
    }

    /// The page, unless a frame has no room for it.
    fn within(self, frame: Size) -> Option<Self> {
        let [left, top, right, bottom] = title_safe_area(frame);
        let across = self.left >= left && self.left + self.width <= right;
        (across && self.top >= top && self.bottom() <= bottom).then_some(self)
    }
}

/// Converts an outline from font units to pixels.
struct OutlinePen {
    commands: Vec<Command>,
    scale: f32,
    /// The glyph's origin, pixels, y downwards.
    origin: (f32, f32),
}

impl OutlinePen {
    fn at(&self, x: f32, y: f32) -> Vector {
        let (left, base) = self.origin;
        Vector::new(left + x * self.scale, base - y * self.scale)
    }
}

impl PathSink for OutlinePen {
    fn move_to(&mut self, x: f32, y: f32) {
        self.commands.push(Command::MoveTo(self.at(x, y)));
    }

    fn line_to(&mut self, x: f32, y: f32) {
        self.commands.push(Command::LineTo(self.at(x, y)));
    }

    fn quad_to(&mut self, cx0: f32, cy0: f32, x: f32, y: f32) {
        let command = Command::QuadTo(self.at(cx0, cy0), self.at(x, y));
        self.commands.push(command);
    }

    fn curve_to(&mut self, cx0: f32, cy0: f32, cx1: f32, cy1: f32, x: f32, y: f32) {
        let command = Command::CurveTo(self.at(cx0, cy0), self.at(cx1, cy1), self.at(x, y));
        self.commands.push(command);
    }

    fn close(&mut self) {
        self.commands.push(Command::Close);
    }
}

/// The outlines of `glyphs` around a baseline that begins at `left`, `base`; an em is `size` pixels.
fn outlines(glyphs: &[PlacedGlyph], left: f32, base: f32, size: f32) -> Vec<Command> {
    let mut pen = OutlinePen {
        commands: Vec::new(),
        scale: 1.0,
        origin: (0.0, 0.0),
    };
    for glyph in glyphs {
        // Glyph 0 is the box that stands for a missing one.
        let outline = glyph.font.outline_glyphs().get(glyph.id);
        let Some(outline) = outline.filter(|_| glyph.id.to_u32() > 0) else {
            continue;
        };
        pen.scale = size / f32::from(glyph.font.units_per_em().max(1));
        pen.origin = (left + glyph.x * size, base - glyph.y * size);
        let drawn = pen.commands.len();
        let options = DrawOptions::new();
        // Half of a broken outline would be filled across the line.
        if outline
            .draw(&options, DrawMemory::Scratch, &mut pen)
            .is_err()
        {
            pen.commands.truncate(drawn);
        }
    }
    pen.commands
}

/// Extent of `glyphs` above and below their baseline, ems.
fn extent(glyphs: &[PlacedGlyph]) -> (f32, f32) {
    let mut reach = (0.0_f32, 0.0_f32);
    for command in outlines(glyphs, 0.0, 0.0, 1.0) {
        let points: &[Vector] = match command {
            Command::MoveTo(to) | Command::LineTo(to) => &[to],
            Command::QuadTo(a, to) => &[a, to],
            Command::CurveTo(a, b, to) => &[a, b, to],
            Command::Close => &[],
        };
        for point in points {
            reach = (reach.0.max(-point.y), reach.1.max(point.y));
        }
    }
    reach
}

/// Coverage of letters.
pub(super) struct CoverageMask {
    pub(super) width: usize,
    /// `[height][width]`, 0.0 to 1.0.
    pub(super) cover: Vec<f32>,
}

impl CoverageMask {
    /// The coverage of `lines`, each with the pixel at which its baseline begins; an em is `size` pixels.
    /// Clipped to `width` by `height`. `None` without any pixels.
    pub(super) fn from_lines(
        lines: &[(&GlyphLine, f32, f32)],
        size: f32,
        (width, height): (usize, usize),
    ) -> Option<Self> {
        let mut filled = vec![0; width * height];
        if filled.is_empty() {
            return None;
        }
        let commands: Vec<Command> = lines
            .iter()
            .flat_map(|(line, left, base)| outlines(&line.glyphs, *left, *base, size))
            .collect();
        let mut ink = zeno::Mask::new(commands.as_slice());
        ink.size(width as u32, height as u32)
            .render_into(&mut filled, None);
        let cover = filled.into_iter().map(|part| f32::from(part) / 255.0);
        Some(Self {
            width,
            cover: cover.collect(),
        })
    }

    /// The coverage widened by about `radius` pixels and softened.
    fn halo(&self, radius: usize) -> Vec<f32> {
        let mut halo = self.cover.clone();
        for _ in 0..2 {
            halo = blur_across(&halo, self.width, radius);
            halo = blur_down(&halo, self.width, radius);
        }
        // The blur thins out the rim; the gain makes it solid again next to the letters.
        halo.iter().map(|cover| (cover * 2.6).min(1.0)).collect()
    }
}

/// A box blur of `2 * radius + 1` along each row of `width`.
fn blur_across(from: &[f32], width: usize, radius: usize) -> Vec<f32> {
    let share = 1.0 / (2 * radius + 1) as f32;
    let mut out = Vec::with_capacity(from.len());
    for row in from.chunks_exact(width) {
        // A running sum: the cost of a pixel does not depend on the radius.
        let mut sum: f32 = row.iter().take(radius).sum();
        for at in 0..width {
            sum += row.get(at + radius).unwrap_or(&0.0);
            if let Some(past) = at.checked_sub(radius + 1) {
                sum -= row[past];
            }
            out.push((sum * share).max(0.0));
        }
    }
    out
}

/// A box blur of `2 * radius + 1` along columns, all of a row at once.
fn blur_down(from: &[f32], width: usize, radius: usize) -> Vec<f32> {
    let share = 1.0 / (2 * radius + 1) as f32;
    let rows: Vec<&[f32]> = from.chunks_exact(width).collect();
    let mut sums = vec![0.0; width];
    for row in rows.iter().take(radius) {
        add_row(&mut sums, Some(row), 1.0);
    }
    let mut out = Vec::with_capacity(from.len());
    for at in 0..rows.len() {
        add_row(&mut sums, rows.get(at + radius), 1.0);
        let past = at.checked_sub(radius + 1);
        add_row(&mut sums, past.and_then(|past| rows.get(past)), -1.0);
        out.extend(sums.iter().map(|sum| (sum * share).max(0.0)));
    }
    out
}

fn add_row(sums: &mut [f32], row: Option<&&[f32]>, sign: f32) {
    for (sum, value) in sums.iter_mut().zip(row.copied().unwrap_or_default()) {
        *sum += sign * value;
    }
}
