//! A painted plane, larger than the frame, and its laying onto the canvas at any sub-pixel
//! place and scale. Planes are painted once per shot; only their sampling is paid per frame.

use tiny_skia::Pixmap;

use super::canvas::{Canvas, lay_over};
use super::view::{Map, View};

/// Sideways waver of a plane's rows: grass in wind, kelp in a current.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sway {
    /// Largest shift in pixels, at the plane's top.
    pub(super) reach: f32,
    /// The row, in stage pixels, that stands still; rows above it sway.
    pub(super) root: f32,
    /// Radians per second.
    pub(super) rate: f32,
    /// Radians per pixel of height.
    pub(super) bend: f32,
}

/// The visible part of a row of texels.
#[derive(Clone, Copy, Debug)]
struct Run {
    from: usize,
    to: usize,
    solid: bool,
}

/// A painted plane.
#[derive(Debug)]
pub(super) struct Layer {
    width: usize,
    height: usize,
    /// `[height][width][4] u8`, premultiplied RGBA.
    texels: Vec<u8>,
    runs: Vec<Run>,
    /// Stage pixels per texel.
    pitch: f32,
    /// Stage place of the first texel's corner.
    left: f32,
    top: f32,
    depth: f32,
    /// Own motion, pixels per second to the right.
    drift: f32,
    sway: Option<Sway>,
}

/// Where and how a plane moves.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Placing {
    pub(super) pitch: f32,
    pub(super) left: f32,
    pub(super) top: f32,
    pub(super) depth: f32,
    pub(super) drift: f32,
    pub(super) sway: Option<Sway>,
}

impl Layer {
    pub(super) fn new(pixmap: Pixmap, placing: Placing) -> Self {
        let (width, height) = (pixmap.width() as usize, pixmap.height() as usize);
        let texels = pixmap.take();
        let run = |row: &[u8]| {
            let shows = |texel: &[u8]| texel[3] != 0;
            let from = row.chunks_exact(4).position(shows).unwrap_or(width);
            let to = row
                .chunks_exact(4)
                .rposition(shows)
                .map_or(from, |at| at + 1);
            Run {
                from,
                to,
                solid: row.chunks_exact(4).all(|texel| texel[3] == 255),
            }
        };
        let runs: Vec<Run> = texels.chunks_exact(width * 4).map(run).collect();
        let mut layer = Self {
            width,
            height,
            texels,
            runs,
            pitch: placing.pitch,
            left: placing.left,
            top: placing.top,
            depth: placing.depth,
            drift: placing.drift,
            sway: placing.sway,
        };
        layer.trim();
        layer
    }

    /// Drops the empty rows at the top and bottom.
    fn trim(&mut self) {
        let shows = |run: &Run| run.to > run.from;
        let first = self
            .runs
            .iter()
            .position(shows)
            .unwrap_or(self.height)
            .saturating_sub(1);
        let last = self.runs.iter().rposition(shows).map_or(first, |at| at + 1);
        self.texels.truncate(last * self.width * 4);
        self.texels.drain(..first * self.width * 4);
        self.texels.shrink_to_fit();
        self.runs.truncate(last);
        self.runs.drain(..first);
        self.top += first as f32 * self.pitch;
        self.height = self.runs.len();
    }

    fn source_row(&self, map: &Map, y: usize) -> f32 {
        ((y as f32 + 0.5 - map.down) / map.scale - self.top) / self.pitch - 0.5
    }

    fn pair(&self, at: f32) -> Option<(usize, usize, u32)> {
        let floor = at.floor();
        if at < -1.0 || floor >= self.height as f32 || self.height == 0 {
            return None;
        }
        let last = self.height - 1;
        let upper = (floor.max(0.0) as usize).min(last);
        let lower = ((floor + 1.0).max(0.0) as usize).min(last);
        Some((upper, lower, ((at - floor) * 256.0) as u32))
    }

    fn shift(&self, y: f32, time_s: f32) -> f32 {
        self.sway.map_or(0.0, |sway| {
            let height = (sway.root - y).max(0.0);
            let share = (height / (sway.root - self.top).max(1.0)).min(1.0);
            sway.reach * share * share.sqrt() * (sway.rate * time_s + sway.bend * height).sin()
        })
    }
}

/// Working rows of one painter, reused from row to row and frame to frame.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    /// Two rows sampled across, and which texel rows they are.
    across: [Vec<u8>; 2],
    held: [Option<usize>; 2],
    mixed: Vec<u16>,
}

/// A plane seen through one view, ready to be laid row by row.
#[derive(Debug)]
pub(super) struct Seen<'a> {
    layer: &'a Layer,
    map: Map,
    pixels: f32,
    time_s: f32,
    scratch: Scratch,
}

impl<'a> Seen<'a> {
    pub(super) fn new(layer: &'a Layer, view: &View, scratch: Scratch) -> Self {
        let mut map = view.map(layer.depth);
        map.right += layer.drift * view.time_s * map.scale;
        Self {
            layer,
            map,
            pixels: view.pixels,
            time_s: view.time_s,
            scratch: Scratch {
                held: [None; 2],
                ..scratch
            },
        }
    }

    pub(super) fn into_scratch(self) -> Scratch {
        self.scratch
    }

    /// Whether this plane hides everything behind it in row `y` of the frame.
    pub(super) fn hides(&self, y: usize) -> bool {
        let layer = self.layer;
        let at = layer.source_row(&self.map, y);
        at >= 0.0
            && layer
                .pair(at)
                .is_some_and(|(a, b, _)| layer.runs[a].solid && layer.runs[b].solid)
    }

    /// Lays row `y` of the frame onto `canvas: [width][4] u16`.
    pub(super) fn lay(&mut self, y: usize, canvas: &mut [u16]) {
        let layer = self.layer;
        let at = layer.source_row(&self.map, y);
        let Some((upper, lower, share)) = layer.pair(at) else {
            return;
        };
        let (a, b) = (layer.runs[upper], layer.runs[lower]);
        let (from, to) = (a.from.min(b.from), a.to.max(b.to));
        if from >= to {
            return;
        }
        let width = canvas.len() / 4;
        let shift = layer.shift(
            (y as f32 + 0.5 - self.map.down) / self.map.scale,
            self.time_s,
        );
        let right = self.map.right + shift * self.pixels;
        let step = 1.0 / (self.map.scale * layer.pitch);
        let start = ((0.5 - right) / self.map.scale - layer.left) / layer.pitch - 0.5;
        let column = |texel: f32| ((texel - start) / step).clamp(0.0, width as f32);
        let first = column(from as f32 - 1.0).floor() as usize;
        let last = column(to as f32).ceil() as usize;
        if first >= last {
            return;
        }
        let slots = self.sample_rows([upper, lower], start, step, width, layer.sway.is_some());
        let Scratch { across, mixed, .. } = &mut self.scratch;
        let (a, b) = (
            &across[slots[0]][first * 4..last * 4],
            &across[slots[1]][first * 4..last * 4],
        );
        mixed.resize(width * 4, 0);
        let mixed = &mut mixed[first * 4..last * 4];
        let (near, far) = ((256 - share) as u16, share as u16);
        for ((out, a), b) in mixed.iter_mut().zip(a).zip(b) {
            *out = (u16::from(*a) * near + u16::from(*b) * far) >> 1;
        }
        lay_over(&mut canvas[first * 4..last * 4], mixed);
    }

    /// Samples two texel rows across, unless they are held already; answers in which slots.
    fn sample_rows(
        &mut self,
        rows: [usize; 2],
        start: f32,
        step: f32,
        width: usize,
        sways: bool,
    ) -> [usize; 2] {
        let Scratch { across, held, .. } = &mut self.scratch;
        if sways {
            *held = [None; 2];
        }
        let mut slots = [0, 0];
        for at in 0..2 {
            let row = rows[at];
            if let Some(slot) = held.iter().position(|one| *one == Some(row)) {
                slots[at] = slot;
                continue;
            }
            // The slot that the other row of this pair does not need.
            let other = rows[1 - at];
            let slot = usize::from(held[0] == Some(other) && other != row);
            sample(self.layer, row, start, step, width, &mut across[slot]);
            held[slot] = Some(row);
            slots[at] = slot;
        }
        slots
    }
}

/// Samples one row of texels at `start + x * step` for each column x, linearly.
fn sample(layer: &Layer, row: usize, start: f32, step: f32, width: usize, out: &mut Vec<u8>) {
    out.resize(width * 4, 0);
    let run = layer.runs[row];
    let texels = &layer.texels[row * layer.width * 4..][..layer.width * 4];
    let column = |texel: f32| ((texel - start) / step).clamp(0.0, width as f32) as usize;
    let first = column(run.from as f32 - 1.0);
    let last = (column(run.to as f32) + 1).min(width).max(first);
    out[..first * 4].fill(0);
    out[last * 4..].fill(0);
    let fixed = (f64::from(start) * 65_536.0) as i64;
    let stride = (f64::from(step) * 65_536.0) as i64;
    let top = layer.width.cast_signed() as i64 - 1;
    let texel = |at: i64| -> u32 {
        let at = at.clamp(0, top) as usize * 4;
        texels
            .get(at..at + 4)
            .map_or(0, |t| u32::from_le_bytes([t[0], t[1], t[2], t[3]]))
    };
    let mut at = fixed + stride * first.cast_signed() as i64;
    for pixel in out[first * 4..last * 4].chunks_exact_mut(4) {
        let (left, right) = (texel(at >> 16), texel((at >> 16) + 1));
        let share = ((at >> 8) & 255) as u32;
        pixel.copy_from_slice(&blend(left, right, share).to_le_bytes());
        at += stride;
    }
}

/// Blends four bytes at once; `share` 0 to 256 of `right`.
fn blend(left: u32, right: u32, share: u32) -> u32 {
    const LOW: u32 = 0x00ff_00ff;
    let low = (left & LOW) * (256 - share) + (right & LOW) * share + 0x0080_0080;
    let high = ((left >> 8) & LOW) * (256 - share) + ((right >> 8) & LOW) * share + 0x0080_0080;
    ((low >> 8) & LOW) | (high & !LOW)
}

/// Lays planes, back to front, each with its place in the scene, row by row; in row `y` only
/// those from place `first[y]` on.
pub(super) fn lay_all(planes: &mut [(usize, Seen<'_>)], canvas: &mut Canvas, first: &[usize]) {
    for (y, first) in first.iter().enumerate() {
        let row = canvas.row(y);
        for (_, plane) in planes.iter_mut().filter(|(place, _)| place >= first) {
            plane.lay(y, row);
        }
    }
}
