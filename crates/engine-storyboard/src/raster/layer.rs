//! A painted plane, larger than the frame, and its laying onto the canvas at any sub-pixel place and scale.
//! Planes are painted once per shot; a frame pays only for sampling, and clear stretches of a row cost nothing.

use tiny_skia::Pixmap;

use super::canvas::blend_over;
use super::resample::{
    PixelStep, RowCache, RowSampler, RowScratch, Texel, blend_bytes, blend_rows,
};
use crate::scene::camera::{CameraView, StageMap};

/// Sideways waver of a plane's rows: grass in wind, kelp in a current.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sway {
    /// Largest shift in pixels, at the plane's top.
    pub(crate) reach: f32,
    /// The row, in stage pixels, that stands still; rows above it sway.
    pub(crate) root: f32,
    /// Radians per second.
    pub(crate) rate: f32,
    /// Radians per pixel of height.
    pub(crate) bend: f32,
}

/// Rise and fall of a whole plane: waves, floating bands. Lengths in stage pixels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heave {
    /// Largest way down (and up) from where it was painted.
    pub(crate) reach: f32,
    /// Radians per second.
    pub(crate) rate: f32,
    /// Radians at the start of the shot.
    pub(crate) phase: f32,
}

/// A painted plane.
#[derive(Debug)]
pub(crate) struct Layer {
    width: usize,
    height: usize,
    /// `[height][width][4] u8`, premultiplied RGBA.
    texels: Vec<u8>,
    spans: RowSpans,
    placing: LayerPlacement,
}

/// Position and motion of a layer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LayerPlacement {
    /// Stage pixels per texel.
    pub(crate) pitch: f32,
    /// Stage place of the first texel's corner.
    pub(crate) left: f32,
    pub(crate) top: f32,
    pub(crate) depth: f32,
    /// Own motion, pixels per second to the right.
    pub(crate) drift: f32,
    pub(crate) sway: Option<Sway>,
    pub(crate) heave: Option<Heave>,
}

impl Layer {
    pub(crate) fn new(pixmap: Pixmap, mut placing: LayerPlacement) -> Self {
        let width = pixmap.width() as usize;
        let mut texels = pixmap.take();
        placing.top += trim(&mut texels, width) as f32 * placing.pitch;
        Self {
            width,
            height: texels.len() / (width * 4),
            spans: RowSpans::from_texels(&texels, width),
            texels,
            placing,
        }
    }

    fn source_row(&self, map: &StageMap, y: usize) -> f32 {
        ((y as f32 + 0.5 - map.down) / map.scale - self.placing.top) / self.placing.pitch - 0.5
    }

    fn row_pair(&self, at: f32) -> Option<(usize, usize, u16)> {
        let floor = at.floor();
        // Up to one texel beyond either end a pixel still reads the last row there.
        if at < -1.0 || floor >= self.height as f32 || self.height == 0 {
            return None;
        }
        let last = self.height - 1;
        let upper = (floor.max(0.0) as usize).min(last);
        let lower = ((floor + 1.0).max(0.0) as usize).min(last);
        Some((upper, lower, ((at - floor) * 256.0) as u16))
    }

    fn row(&self, row: usize) -> &[u8] {
        &self.texels[row * self.width * 4..][..self.width * 4]
    }

    fn shift(&self, y: f32, time_s: f32) -> f32 {
        self.placing.sway.map_or(0.0, |sway| {
            let height = (sway.root - y).max(0.0);
            let share = (height / (sway.root - self.placing.top).max(1.0)).min(1.0);
            // The power 1.5 of the height: a stem bends mostly near its tip and stands still at its
            // root.
            sway.reach * share * share.sqrt() * (sway.rate * time_s + sway.bend * height).sin()
        })
    }
}

/// Drops the empty rows of `texels: [height][width][4] u8` at the top, except one, and at the
/// bottom. Returns the number removed at the top.
fn trim(texels: &mut Vec<u8>, width: usize) -> usize {
    let stride = width * 4;
    let height = texels.len() / stride;
    let first = texels.chunks_exact(stride).position(has_ink);
    // One clear row stays above: rows are blended with their neighbours, and the upper edge fades
    // into it.
    let first = first.unwrap_or(height).saturating_sub(1);
    let last = texels.chunks_exact(stride).rposition(has_ink);
    texels.truncate(last.map_or(first, |at| at + 1) * stride);
    texels.drain(..first * stride);
    texels.shrink_to_fit();
    first
}

/// Whether any texel of a row is not clear.
fn has_ink(row: &[u8]) -> bool {
    row.as_chunks::<4>().0.iter().any(|texel| texel[3] != 0)
}

/// A layer under one camera view, ready to be drawn row by row.
#[derive(Debug)]
pub(crate) struct ProjectedLayer<'a> {
    layer: &'a Layer,
    map: StageMap,
    pixels: f32,
    time_s: f32,
    step: PixelStep,
    /// Rows read across; only for a plane whose texels are larger than pixels and whose rows stand
    /// still.
    held: Option<RowCache>,
}

impl<'a> ProjectedLayer<'a> {
    pub(crate) fn new(layer: &'a Layer, view: &CameraView) -> Self {
        let mut map = view.map(layer.placing.depth);
        map.right += layer.placing.drift * view.time_s * map.scale;
        if let Some(heave) = layer.placing.heave {
            let swing = (heave.rate * view.time_s + heave.phase).sin();
            map.down += heave.reach * swing * map.scale;
        }
        let step = PixelStep::new(1.0 / (map.scale * layer.placing.pitch));
        // A sway shifts each row of pixels on its own, so that a row read across serves no other.
        let is_held = step.is_coarse() && layer.placing.sway.is_none();
        Self {
            layer,
            map,
            pixels: view.pixels,
            time_s: view.time_s,
            step,
            held: is_held.then(RowCache::default),
        }
    }

    /// Whether this plane hides everything behind it in row `y` of the frame.
    pub(crate) fn hides(&self, y: usize) -> bool {
        let layer = self.layer;
        let at = layer.source_row(&self.map, y);
        at >= 0.0
            && layer
                .row_pair(at)
                .is_some_and(|(upper, ..)| layer.spans.hides(upper))
    }

    /// Lays row `y` of the frame onto `canvas: [width][4] u16`.
    pub(crate) fn draw_row(&mut self, y: usize, canvas: &mut [u16], scratch: &mut RowScratch) {
        let layer = self.layer;
        let Some((upper, lower, share)) = layer.row_pair(layer.source_row(&self.map, y)) else {
            return;
        };
        let down = (y as f32 + 0.5 - self.map.down) / self.map.scale;
        let right = self.map.right + layer.shift(down, self.time_s) * self.pixels;
        let apart = 1.0 / (self.map.scale * layer.placing.pitch);
        let start =
            ((0.5 - right) / self.map.scale - layer.placing.left) / layer.placing.pitch - 0.5;
        let across = RowSampler::new(start, &self.step);
        let canvas = canvas.as_chunks_mut::<4>().0;
        let width = canvas.len();
        let RowScratch { texels, pixels } = scratch;
        let held = self.held.as_mut().map(|held| {
            held.rows((upper, lower), width, |row, out| {
                let (from, to) = across.texel_range(0, width, layer.width);
                texels.resize(to - from, [0; 4]);
                let bytes = &layer.row(row)[from * 4..to * 4];
                blend_bytes(bytes, bytes, 0, texels);
                across.sample(texels, from, 0, out);
            })
        });
        let mut sample = |first: usize, out: &mut [Texel]| {
            let last = first + out.len();
            if let Some((above, below)) = held {
                blend_rows(&above[first..last], &below[first..last], share << 8, out);
                return;
            }
            let (from, to) = across.texel_range(first, last, layer.width);
            texels.resize(to - from, [0; 4]);
            let part = from * 4..to * 4;
            let (above, below) = (layer.row(upper), layer.row(lower));
            blend_bytes(&above[part.clone()], &below[part], share, texels);
            across.sample(texels, from, first, out);
        };
        // Rounding may give a pixel to two neighbouring spans; `done` keeps it from being blended
        // twice.
        let mut done = 0;
        for span in layer.spans.row(upper) {
            let (first, last) = span_pixels(*span, |texel| (texel - start) / apart);
            let (first, last) = (first.max(done), last.min(width));
            if first >= last {
                continue;
            }
            done = last;
            let out = &mut canvas[first..last];
            if span.solid {
                sample(first, out);
            } else {
                pixels.resize(out.len(), [0; 4]);
                sample(first, pixels);
                blend_over(out.as_flattened_mut(), pixels.as_flattened());
            }
        }
    }
}

/// Pixel range covered by a span; for a solid span only pixels that read no texel outside it.
/// `column` maps a texel to its pixel column.
fn span_pixels(span: RowSpan, column: impl Fn(f32) -> f32) -> (usize, usize) {
    let (from, to) = (span.from as f32, span.to as f32);
    // A cast holds what is left of the frame at 0.
    if span.solid {
        let last = (column(to - 1.0) + 1.0).floor();
        (column(from).ceil() as usize, last as usize)
    } else {
        let first = column(from - 1.0).ceil();
        (first as usize, column(to).ceil() as usize)
    }
}

/// A stretch of a row that is not clear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RowSpan {
    /// The first texel.
    from: usize,
    /// Index after the last texel.
    to: usize,
    /// Whether all of it is opaque.
    solid: bool,
}

/// Opaque stretches and gaps of fewer texels are blended with their neighbours.
const SHORT: usize = 12;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SpanKind {
    Clear,
    Mixed,
    Solid,
}

/// The spans of a plane's rows, each row together with the one below it.
#[derive(Debug)]
struct RowSpans {
    spans: Vec<RowSpan>,
    /// Behind the last span of each row.
    ends: Vec<usize>,
    width: usize,
}

impl RowSpans {
    /// Finds the spans of `texels: [height][width][4] u8`, premultiplied.
    fn from_texels(texels: &[u8], width: usize) -> Self {
        let rows: Vec<&[[u8; 4]]> = texels
            .as_chunks::<4>()
            .0
            .chunks_exact(width.max(1))
            .collect();
        let mut spans = Vec::new();
        let mut ends = Vec::with_capacity(rows.len());
        for (at, row) in rows.iter().enumerate() {
            let below = rows.get(at + 1).unwrap_or(row);
            spans.extend(row_spans(row, below));
            ends.push(spans.len());
        }
        spans.shrink_to_fit();
        Self { spans, ends, width }
    }

    /// The spans of row `row` and the one below it, from left to right.
    fn row(&self, row: usize) -> &[RowSpan] {
        let first = row.checked_sub(1).map_or(0, |above| self.ends[above]);
        &self.spans[first..self.ends[row]]
    }

    /// Whether the row and the one below it are opaque from end to end.
    fn hides(&self, row: usize) -> bool {
        matches!(self.row(row), [span] if span.solid && span.from == 0 && span.to == self.width)
    }
}

/// The spans of two rows.
fn row_spans(upper: &[[u8; 4]], lower: &[[u8; 4]]) -> Vec<RowSpan> {
    let mut runs: Vec<(SpanKind, usize)> = Vec::new();
    for (upper, lower) in upper.iter().zip(lower) {
        let kind = match (upper[3], lower[3]) {
            (0, 0) => SpanKind::Clear,
            (255, 255) => SpanKind::Solid,
            _ => SpanKind::Mixed,
        };
        extend(&mut runs, kind, 1);
    }
    let mut plain = Vec::new();
    for (kind, long) in runs {
        // To change between copying, skipping and blending costs more than to blend a few texels
        // for nothing.
        let kind = if long < SHORT { SpanKind::Mixed } else { kind };
        extend(&mut plain, kind, long);
    }
    let mut at = 0;
    let spans = plain.into_iter().map(|(kind, long)| {
        at += long;
        (kind, at - long, at)
    });
    spans
        .filter(|(kind, ..)| *kind != SpanKind::Clear)
        .map(|(kind, from, to)| RowSpan {
            from,
            to,
            solid: kind == SpanKind::Solid,
        })
        .collect()
}

fn extend(runs: &mut Vec<(SpanKind, usize)>, kind: SpanKind, more: usize) {
    match runs.last_mut() {
        Some((last, long)) if *last == kind => *long += more,
        _ => runs.push((kind, more)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(parts: &[(u8, usize)]) -> Vec<u8> {
        let texel = |alpha: u8| [alpha / 2, alpha, 0, alpha];
        parts
            .iter()
            .flat_map(|(alpha, long)| vec![texel(*alpha); *long])
            .flatten()
            .collect()
    }

    fn span(from: usize, to: usize, solid: bool) -> RowSpan {
        RowSpan { from, to, solid }
    }

    #[test]
    fn clear_stretches_are_left_out_and_opaque_ones_told_apart() {
        let spans = RowSpans::from_texels(
            &row(&[(0, 20), (255, 30), (9, 5), (0, 20), (80, 1), (0, 14)]),
            90,
        );
        let expected = [span(20, 50, true), span(50, 55, false), span(75, 76, false)];
        assert_eq!(spans.row(0), expected);
        assert!(!spans.hides(0));
    }

    #[test]
    fn short_ones_join_what_is_beside_them() {
        let spans = RowSpans::from_texels(
            &row(&[(0, 20), (90, 6), (255, 5), (0, 4), (7, 1), (0, 20)]),
            56,
        );
        assert_eq!(spans.row(0), [span(20, 36, false)]);
    }

    #[test]
    fn a_row_counts_with_the_one_below_it() {
        let mut texels = row(&[(255, 40)]);
        texels.extend(row(&[(255, 40)]));
        texels.extend(row(&[(0, 40)]));
        let spans = RowSpans::from_texels(&texels, 40);
        assert!(spans.hides(0));
        assert!(!spans.hides(1));
        assert_eq!(spans.row(1), [span(0, 40, false)]);
        assert_eq!(spans.row(2), []);
    }
}
