//! The frame while it is painted: 15 bits per component, so that blends and light leave no
//! bands, and the last step down to 8 bits with a dither that stands still.

/// A frame in progress.
#[derive(Debug)]
pub(super) struct Canvas {
    pub(super) width: usize,
    pub(super) height: usize,
    /// `[height][width][4] u16`: red, green, blue 0 to 32,640, and one unused.
    pub(super) pixels: Vec<u16>,
}

/// Components at full signal.
pub(super) const FULL: u16 = 32_640;

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
                value |= (((a ^ b) << 1) | b) << (2 * (2 - bit));
                bit += 1;
            }
            matrix[y][x] = (value * 2) as u16;
            x += 1;
        }
        y += 1;
    }
    matrix
}

impl Canvas {
    pub(super) fn new(width: usize, height: usize) -> Self {
        Self {
            width,
            height,
            pixels: vec![0; width * height * 4],
        }
    }

    pub(super) fn row(&mut self, y: usize) -> &mut [u16] {
        &mut self.pixels[y * self.width * 4..][..self.width * 4]
    }

    /// Blends `other` over this: 0.0 keeps this, 1.0 gives the other.
    pub(super) fn dissolve(&mut self, other: &Self, share: f32) {
        let to = (share.clamp(0.0, 1.0) * 32_767.0) as u32;
        for (own, new) in self.pixels.iter_mut().zip(&other.pixels) {
            *own = ((u32::from(*own) * (32_768 - to) + u32::from(*new) * to) >> 15) as u16;
        }
    }

    /// Blends row `y` of `other` over this by `shares: [width] u16`, in 32,768ths.
    pub(super) fn dissolve_row(&mut self, other: &Self, y: usize, shares: &[u16]) {
        let line = &other.pixels[y * self.width * 4..][..self.width * 4];
        let pixels = self.row(y).as_chunks_mut::<4>().0.iter_mut();
        for ((own, new), to) in pixels.zip(line.as_chunks::<4>().0).zip(shares) {
            let to = u32::from(*to);
            for lane in 0..4 {
                own[lane] = ((u32::from(own[lane]) * (32_768 - to) + u32::from(new[lane]) * to)
                    >> 15) as u16;
            }
        }
    }

    /// Scales red, green and blue.
    pub(super) fn gain(&mut self, gains: [f32; 3]) {
        let [r, g, b] = gains.map(|gain| (gain.max(0.0) * 32_768.0) as u32);
        let gains = [r, g, b, 0];
        for pixel in self.pixels.as_chunks_mut::<4>().0 {
            for lane in 0..4 {
                let value = (u32::from(pixel[lane]) * gains[lane]) >> 15;
                pixel[lane] = value.min(u32::from(FULL)) as u16;
            }
        }
    }

    /// Writes the frame as `rgb: [height][width][3] u8`, darkened towards the corners by
    /// `vignette` (0.0 to 1.0) and scaled by `light` (0.0 black to 1.0).
    pub(super) fn finish(&self, vignette: f32, light: f32, rgb: &mut Vec<u8>) {
        rgb.resize(self.width * self.height * 3, 0);
        let edge = |at: usize, size: usize| {
            let away = (at as f32 + 0.5) / size as f32 * 2.0 - 1.0;
            let square = away * away;
            (square * square * vignette * 0.5 * 65_535.0) as u16
        };
        let columns: Vec<u16> = (0..self.width).map(|x| edge(x, self.width)).collect();
        let light = (light.clamp(0.0, 1.0) * 65_535.0) as u16;
        let mut lit = vec![0_u16; self.width * 4];
        for y in 0..self.height {
            let row = &self.pixels[y * self.width * 4..][..self.width * 4];
            let down = edge(y, self.height);
            let dither = DITHER[y % 8];
            let pixels = lit
                .as_chunks_mut::<4>()
                .0
                .iter_mut()
                .zip(row.as_chunks::<4>().0);
            for ((out, pixel), (x, across)) in pixels.zip(columns.iter().enumerate()) {
                let keep = light.saturating_sub(across.saturating_add(down));
                let noise = dither[x % 8];
                for lane in 0..4 {
                    let value = (u32::from(pixel[lane] << 1) * u32::from(keep)) >> 16;
                    out[lane] = ((value as u16 >> 1) + noise) >> 7;
                }
            }
            let packed = &mut rgb[y * self.width * 3..][..self.width * 3];
            for (out, pixel) in packed.chunks_exact_mut(3).zip(lit.chunks_exact(4)) {
                out[0] = pixel[0] as u8;
                out[1] = pixel[1] as u8;
                out[2] = pixel[2] as u8;
            }
        }
    }
}

/// Lays a premultiplied source over the canvas. Both `[n][4] u16`, 15 bits, alpha last.
pub(super) fn lay_over(canvas: &mut [u16], source: &[u16]) {
    let ((pairs, last), (overs, over)) = (canvas.as_chunks_mut::<8>(), source.as_chunks::<8>());
    // Two pixels are one register; most are fully clear or fully opaque.
    for (under, over) in pairs.iter_mut().zip(overs) {
        match (over[3], over[7]) {
            (0, 0) => {}
            (FULL.., FULL..) => *under = *over,
            (a, b) => {
                let (a, b) = (kept(a), kept(b));
                let keep = [a, a, a, a, b, b, b, b];
                for lane in 0..8 {
                    let part = (u32::from(under[lane] << 1) * u32::from(keep[lane])) >> 16;
                    under[lane] = part as u16 + over[lane];
                }
            }
        }
    }
    if let ([.., _], [.., alpha]) = (&*last, over) {
        let keep = kept(*alpha);
        for (under, over) in last.iter_mut().zip(over) {
            *under = ((u32::from(*under << 1) * u32::from(keep)) >> 16) as u16 + over;
        }
    }
}

/// What is left of the ground under `alpha`, in 32,768ths.
fn kept(alpha: u16) -> u16 {
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
        lay_over(&mut canvas, &[0; 4]);
        assert_eq!(canvas, [20_000, 10_000, 5_000, 0]);
        lay_over(&mut canvas, &[30_000, 1, 2, FULL]);
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
