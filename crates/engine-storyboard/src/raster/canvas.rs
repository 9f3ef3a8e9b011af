//! The frame while it is painted: 15 bits per component, so that blends and light leave no
//! bands, and the last step down to 8 bits with a dither that stands still.

use std::ops::Range;

use super::resample::{Texel, blend, mul_high};

/// A frame in progress.
#[derive(Debug)]
pub(crate) struct Canvas {
    pub(crate) width: usize,
    pub(crate) height: usize,
    /// `[height][width][4] u16`: red, green, blue 0 to 32,640, and one unused.
    pub(crate) pixels: Vec<u16>,
}

/// Components at full signal.
pub(crate) const FULL: u16 = 32_640;

/// 8 x 8 ordered dither (Bayer 1973), in 128ths of an 8-bit step.
const DITHER: [[u16; 8]; 8] = dither();

const fn dither() -> [[u16; 8]; 8] {
    let mut matrix = [[0; 8]; 8];
    let mut y = 0;
    while y < 8 {
        let mut x = 0;
        while x < 8 {
            let (mut value, mut bit) = (0, 0);
            while bit < 3 {
                let (a, b) = ((x >> bit) & 1, (y >> bit) & 1);
                // Bayer's matrix by interleaving bits: each pair (x ^ y, y) gives two bits of the
                // rank, the lowest bits of the coordinates the highest of the rank.
                value |= (((a ^ b) << 1) | b) << (2 * (2 - bit));
                bit += 1;
            }
            // 64 ranks, spread over the 128 parts of an 8-bit step.
            matrix[y][x] = (value * 2) as u16;
            x += 1;
        }
        y += 1;
    }
    matrix
}

impl Canvas {
    pub(crate) fn new(width: usize, height: usize) -> Self {
        Self {
            width,
            height,
            pixels: vec![0; width * height * 4],
        }
    }

    pub(crate) fn row(&mut self, y: usize) -> &mut [u16] {
        &mut self.pixels[y * self.width * 4..][..self.width * 4]
    }

    /// The pixels of row `y` in `columns`.
    pub(crate) fn run(&mut self, y: usize, columns: &Range<usize>) -> &mut [Texel] {
        let run = &mut self.row(y)[columns.start * 4..columns.end * 4];
        run.as_chunks_mut::<4>().0
    }

    /// Blends `other` over this: 0.0 keeps this, 1.0 gives the other.
    pub(crate) fn dissolve(&mut self, other: &Self, share: f32) {
        let share = (share.clamp(0.0, 1.0) * 65_535.0) as u16;
        for (own, new) in self.pixels.iter_mut().zip(&other.pixels) {
            *own = blend(*own, *new, share);
        }
    }

    /// Blends row `y` of `other` over this by `shares: [width][4] u16`, in 65,536ths.
    pub(crate) fn dissolve_row(&mut self, other: &Self, y: usize, shares: &[Texel]) {
        let line = &other.pixels[y * self.width * 4..][..self.width * 4];
        let parts = line.iter().zip(shares.as_flattened());
        for (own, (new, share)) in self.row(y).iter_mut().zip(parts) {
            *own = blend(*own, *new, *share);
        }
    }

    /// Scales red, green and blue.
    pub(crate) fn gain(&mut self, gains: [f32; 3]) {
        let [r, g, b] = gains.map(|gain| (gain.clamp(0.0, 1.99) * 32_768.0) as u16);
        // One gain per lane of a strip, so that the loop below is one run of equal multiplications
        // for the compiler to vectorise.
        let gains = [[r, g, b, 0]; STRIP];
        for strip in self.pixels.chunks_mut(STRIP * 4) {
            for (part, gain) in strip.iter_mut().zip(gains.as_flattened()) {
                // `mul_high` drops 16 bits and gains are in 32,768ths, so the part is doubled first;
                // 65,280 at most still fits.
                *part = mul_high(*part << 1, *gain).min(FULL);
            }
        }
    }

    /// Writes the frame as `rgb: [height][width][3] u8`, darkened towards the corners by
    /// `vignette` (0.0 to 1.0) and scaled by `light` (0.0 black to 1.0).
    pub(crate) fn finish(&self, vignette: f32, light: f32, rgb: &mut Vec<u8>) {
        rgb.resize(self.width * self.height * 3, 0);
        // The fourth power of the distance from the middle, added up from row and column: the
        // middle half of the frame stays untouched, and no pixel needs a square root.
        let edge = |at: usize, size: usize| {
            let away = (at as f32 + 0.5) / size as f32 * 2.0 - 1.0;
            let square = away * away;
            (square * square * vignette * 0.5 * 65_535.0) as u16
        };
        let columns: Vec<u16> = (0..self.width)
            .flat_map(|x| [edge(x, self.width); 4])
            .collect();
        let light = (light.clamp(0.0, 1.0) * 65_535.0) as u16;
        for y in 0..self.height {
            let row = &self.pixels[y * self.width * 4..][..self.width * 4];
            let packed = &mut rgb[y * self.width * 3..][..self.width * 3];
            let keep = light.saturating_sub(edge(y, self.height));
            // The dither is the same in every frame, so that still areas stay still for the
            // encoder.
            let mut noise = [0; BLOCK * 4];
            for (nth, noise) in noise.iter_mut().enumerate() {
                *noise = DITHER[y % 8][nth / 4 % 8];
            }
            // Blocks of one size, so that each is a few registers; the last may be cut.
            let (blocks, rest) = row.as_chunks::<{ BLOCK * 4 }>();
            let (shades, last) = columns.as_chunks::<{ BLOCK * 4 }>();
            let (out, end) = packed.as_chunks_mut::<{ BLOCK * 3 }>();
            for ((out, block), shade) in out.iter_mut().zip(blocks).zip(shades) {
                finish_block(block, shade, keep, &noise, out);
            }
            let (mut block, mut shade) = ([0; BLOCK * 4], [0; BLOCK * 4]);
            block[..rest.len()].copy_from_slice(rest);
            shade[..last.len()].copy_from_slice(last);
            let mut cut = [0; BLOCK * 3];
            finish_block(&block, &shade, keep, &noise, &mut cut);
            end.copy_from_slice(&cut[..end.len()]);
        }
    }
}

/// The pixels of a side of `most` between `low` and `high`.
pub(crate) fn pixel_range(low: f32, high: f32, most: usize) -> Range<usize> {
    let from = (low.floor().max(0.0) as usize).min(most);
    from..(high.ceil().max(0.0) as usize).clamp(from, most)
}

/// Pixels that are packed together: one row of the dither.
const BLOCK: usize = 8;

/// Scales, dithers and packs a block.
fn finish_block(
    pixels: &[u16; BLOCK * 4],
    shade: &[u16; BLOCK * 4],
    keep: u16,
    noise: &[u16; BLOCK * 4],
    out: &mut [u8; BLOCK * 3],
) {
    let mut bytes = [0_u8; BLOCK * 4];
    for lane in 0..BLOCK * 4 {
        let keep = keep.saturating_sub(shade[lane]);
        // `keep` is in 65,536ths. Halved again, the value has 7 bits below an 8-bit level; the
        // dither (0 to 126) decides whether they round up.
        let value = mul_high(pixels[lane] << 1, keep);
        bytes[lane] = (((value >> 1) + noise[lane]) >> 7) as u8;
    }
    // Four pixels of four bytes are three words of three.
    let (words, _) = bytes.as_chunks::<16>();
    for (out, four) in out.as_chunks_mut::<12>().0.iter_mut().zip(words) {
        let [a, b, c, d] =
            [0, 4, 8, 12].map(|at| u32::from_le_bytes([four[at], four[at + 1], four[at + 2], 0]));
        let packed = [a | (b << 24), (b >> 8) | (c << 16), (c >> 16) | (d << 8)];
        for (out, word) in out.as_chunks_mut::<4>().0.iter_mut().zip(packed) {
            *out = word.to_le_bytes();
        }
    }
}

/// Pixels per strip. A strip is short enough for its working values to stay in the first-level
/// cache.
pub(crate) const STRIP: usize = 32;

/// Lays a premultiplied source over the canvas. Both `[n][4] u16`, 15 bits, alpha last.
pub(crate) fn blend_over(canvas: &mut [u16], source: &[u16]) {
    // What is kept is noted first: the second loop is then one run of equal steps.
    let mut keeps = [[0; 4]; STRIP];
    let strips = canvas.chunks_mut(STRIP * 4).zip(source.chunks(STRIP * 4));
    for (unders, overs) in strips {
        for (keep, over) in keeps.iter_mut().zip(overs.as_chunks::<4>().0) {
            *keep = [background_share(over[3]); 4];
        }
        let overs = overs.iter().zip(keeps.as_flattened());
        for (under, (over, keep)) in unders.iter_mut().zip(overs) {
            *under = mul_high(*under << 1, *keep) + over;
        }
    }
}

/// Share of the background that stays visible under `alpha`, in 32,768ths.
fn background_share(alpha: u16) -> u16 {
    // Alpha ends at 32,640, not at 32,768; a 256th more makes an opaque source leave 1, which
    // `mul_high` then rounds to nothing.
    32_768 - (alpha + (alpha >> 8))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dither_uses_every_level_once() {
        let mut levels: Vec<u16> = DITHER.iter().flatten().copied().collect();
        levels.sort_unstable();
        assert_eq!(levels, (0..64).map(|n| n * 2).collect::<Vec<u16>>());
    }

    #[test]
    fn opaque_hides_and_clear_shows() {
        let mut canvas = [20_000, 10_000, 5_000, 0];
        blend_over(&mut canvas, &[0; 4]);
        assert_eq!(canvas, [20_000, 10_000, 5_000, 0]);
        blend_over(&mut canvas, &[30_000, 1, 2, FULL]);
        assert!(canvas[0] >= 30_000 && canvas[1] <= 2 && canvas[2] <= 3);
    }

    #[test]
    fn white_stays_white_and_black_black() {
        let mut canvas = Canvas::new(8, 8);
        let mut rgb = Vec::new();
        canvas.finish(0.0, 1.0, &mut rgb);
        assert!(rgb.iter().all(|&byte| byte == 0));
        canvas.pixels.fill(FULL);
        canvas.finish(0.0, 1.0, &mut rgb);
        assert!(rgb.iter().all(|&byte| byte >= 254), "{:?}", &rgb[..8]);
    }
}
