//! Glyphs as coverage: unhinted font outlines, filled by zeno. It knows no colours and no lines.

use harfrust::font::glyph::outline::{DrawMemory, DrawOptions, PathSink};
use zeno::{Command, Vector};

use super::shape::{Glyph, Line};

/// Converts an outline from font units to pixels.
struct Pen {
    commands: Vec<Command>,
    scale: f32,
    /// The glyph's origin, pixels, y downwards.
    origin: (f32, f32),
}

impl Pen {
    fn at(&self, x: f32, y: f32) -> Vector {
        let (left, base) = self.origin;
        Vector::new(left + x * self.scale, base - y * self.scale)
    }
}

impl PathSink for Pen {
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
fn outlines(glyphs: &[Glyph], left: f32, base: f32, size: f32) -> Vec<Command> {
    let mut pen = Pen {
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
pub(super) fn extent(glyphs: &[Glyph]) -> (f32, f32) {
    let mut reach = (0.0_f32, 0.0_f32);
    let mut see = |point: Vector| reach = (reach.0.max(-point.y), reach.1.max(point.y));
    for command in outlines(glyphs, 0.0, 0.0, 1.0) {
        match command {
            Command::MoveTo(to) | Command::LineTo(to) => see(to),
            Command::QuadTo(a, to) => [a, to].map(&mut see).into_iter().collect(),
            Command::CurveTo(a, b, to) => [a, b, to].map(&mut see).into_iter().collect(),
            Command::Close => {}
        }
    }
    reach
}

/// Coverage of letters.
pub(super) struct Mask {
    pub(super) width: usize,
    /// `[height][width]`, 0.0 to 1.0.
    pub(super) cover: Vec<f32>,
}

impl Mask {
    /// The coverage of `lines`, each with the pixel at which its baseline begins; an em is `size` pixels.
    /// Clipped to `width` by `height`. `None` without any pixels.
    pub(super) fn of(
        lines: &[(&Line, f32, f32)],
        size: f32,
        (width, height): (usize, usize),
    ) -> Option<Self> {
        let mut filled = vec![0; width * height];
        if filled.is_empty() {
            return None;
        }
        let outlines =
            |(line, left, base): &(&Line, f32, f32)| outlines(&line.glyphs, *left, *base, size);
        let commands: Vec<Command> = lines.iter().flat_map(outlines).collect();
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
    pub(super) fn halo(&self, radius: usize) -> Vec<f32> {
        let mut halo = self.cover.clone();
        for _ in 0..2 {
            halo = blur_across(&halo, self.width, radius);
            halo = blur_down(&halo, self.width, radius);
        }
        halo.iter().map(|cover| (cover * 2.6).min(1.0)).collect()
    }
}

/// A box blur of `2 * radius + 1` along each row of `width`.
fn blur_across(from: &[f32], width: usize, radius: usize) -> Vec<f32> {
    let share = 1.0 / (2 * radius + 1) as f32;
    let mut out = Vec::with_capacity(from.len());
    for row in from.chunks_exact(width) {
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
    let add = |sums: &mut Vec<f32>, row: Option<&&[f32]>, sign: f32| {
        for (sum, value) in sums.iter_mut().zip(row.copied().unwrap_or_default()) {
            *sum += sign * value;
        }
    };
    for row in rows.iter().take(radius) {
        add(&mut sums, Some(row), 1.0);
    }
    let mut out = Vec::with_capacity(from.len());
    for at in 0..rows.len() {
        add(&mut sums, rows.get(at + radius), 1.0);
        let past = at.checked_sub(radius + 1);
        add(&mut sums, past.and_then(|past| rows.get(past)), -1.0);
        out.extend(sums.iter().map(|sum| (sum * share).max(0.0)));
    }
    out
}
