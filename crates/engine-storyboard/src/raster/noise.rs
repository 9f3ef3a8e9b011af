//! Noise that is fixed in the world: ridges, clouds and brush texture never change from frame
//! to frame, so nothing flickers.

use tiny_skia::Pixmap;

use super::colour::smooth;
use crate::rng::lattice;

/// The corners of a cell of the lattice.
const CORNERS: [(i32, i32); 4] = [(0, 0), (1, 0), (0, 1), (1, 1)];

/// Value noise, -1.0 to 1.0, smooth, one feature per unit.
pub(crate) fn value(seed: u64, x: f32, y: f32) -> f32 {
    let (left, top) = (x.floor(), y.floor());
    let (across, down) = (fade(x - left), fade(y - top));
    let (left, top) = (left as i32, top as i32);
    let [a, b, c, d] =
        CORNERS.map(|(dx, dy)| lattice(seed, left.wrapping_add(dx), top.wrapping_add(dy)));
    let upper = a + (b - a) * across;
    let lower = c + (d - c) * across;
    (upper + (lower - upper) * down) * 2.0 - 1.0
}

/// Perlin's fade ("Improving noise", 2002): its second derivative is 0 at the lattice, which would
/// show as a grid in shaded slopes otherwise.
fn fade(t: f32) -> f32 {
    t * t * t * (t * (t * 6.0 - 15.0) + 10.0)
}

/// Several octaves of [`value`], about -1.0 to 1.0.
pub(crate) fn cloudy(seed: u64, x: f32, y: f32, octaves: u32) -> f32 {
    let (mut sum, mut share, mut scale) = (0.0, 0.5, 1.0);
    for octave in 0..octaves {
        sum += share * value(seed.wrapping_add(u64::from(octave)), x * scale, y * scale);
        share *= 0.5;
        // Not 2.0: the lattices of the octaves would coincide and show.
        scale *= 2.03;
    }
    sum
}

/// Sharp crests, 0.0 to 1.0 ("ridged multifractal", Musgrave 1994, without the feedback).
pub(crate) fn ridged(seed: u64, x: f32, octaves: u32) -> f32 {
    let (mut sum, mut share, mut scale) = (0.0, 0.55, 1.0);
    for octave in 0..octaves {
        let crest = 1.0 - value(seed.wrapping_add(u64::from(octave)), x * scale, 0.5).abs();
        sum += share * crest * crest;
        share *= 0.46;
        scale *= 2.1;
    }
    sum
}

/// Side of the brush tile, texels.
const TILE: usize = 256;

fn brush_tile() -> &'static Vec<i16> {
    static BRUSH: std::sync::OnceLock<Vec<i16>> = std::sync::OnceLock::new();
    BRUSH.get_or_init(|| {
        (0..TILE * TILE)
            .map(|index| {
                let (x, y) = (index % TILE, index / TILE);
                let (x, y) = (x as f32 / TILE as f32, y as f32 / TILE as f32);
                // About four times as many cells down as across: strokes lie flat.
                let strokes =
                    tiled_value(x, y, 12, 48, 11) * 0.5 + tiled_value(x, y, 28, 100, 12) * 0.3;
                let blots = tiled_value(x, y, 5, 6, 13) * 0.6;
                ((strokes + blots) * 128.0) as i16
            })
            .collect()
    })
}

/// Value noise of `across` by `down` cells over a square of side 1.0. It wraps around, so that the
/// tile repeats without a seam.
fn tiled_value(x: f32, y: f32, across: i32, down: i32, seed: u64) -> f32 {
    let (fx, fy) = (x * across as f32, y * down as f32);
    let (left, top) = (fx.floor() as i32, fy.floor() as i32);
    let (u, v) = (smooth(0.0, 1.0, fx.fract()), smooth(0.0, 1.0, fy.fract()));
    let [a, b, c, d] = CORNERS.map(|(dx, dy)| {
        let (column, row) = ((left + dx).rem_euclid(across), (top + dy).rem_euclid(down));
        lattice(seed, column, row) * 2.0 - 1.0
    });
    let upper = a * (1.0 - u) + b * u;
    let lower = c * (1.0 - u) + d * u;
    upper * (1.0 - v) + lower * v
}

/// Lays the brush over what is painted: brightness varies by about `strength` (a share).
/// `pixels` (frame pixels per stage pixel) keeps its strokes as long in every resolution.
pub(crate) fn brush(pixmap: &mut Pixmap, strength: f32, pixels: f32, seed: u64) {
    let tile = brush_tile();
    let width = pixmap.width() as usize;
    let gain = (strength * 256.0) as i32;
    // Each plane starts elsewhere in the tile, so that no two show the same strokes.
    let (shift_x, shift_y) = ((seed & 255) as usize, ((seed >> 8) & 255) as usize);
    // In 65,536ths of a texel of the tile, so that the strokes of all resolutions stay together.
    let stride = (65_536.0 / f64::from(pixels)) as usize;
    let mut strip = [0_i32; TILE];
    for (y, row) in pixmap.data_mut().chunks_exact_mut(width * 4).enumerate() {
        let (upper, down) = (
            ((y * stride) >> 16) + shift_y,
            i32::from(((y * stride) >> 8) as u8),
        );
        let [a, b] = [upper, upper + 1].map(|row| &tile[row % TILE * TILE..][..TILE]);
        for (out, (a, b)) in strip.iter_mut().zip(a.iter().zip(b)) {
            *out = i32::from(*a) * (256 - down) + i32::from(*b) * down;
        }
        for (x, texel) in row.chunks_exact_mut(4).enumerate() {
            let alpha = i32::from(texel[3]);
            if alpha == 0 {
                continue;
            }
            let (left, across) = (
                ((x * stride) >> 16) + shift_x,
                i32::from(((x * stride) >> 8) as u8),
            );
            let (a, b) = (strip[left % TILE], strip[(left + 1) % TILE]);
            let stroke = (a * (256 - across) + b * across) >> 16;
            let factor = 32_768 + stroke * gain;
            for part in &mut texel[..3] {
                // A premultiplied part above its alpha would shine through blends.
                *part = ((i32::from(*part) * factor + 16_384) >> 15).clamp(0, alpha) as u8;
            }
        }
    }
}
