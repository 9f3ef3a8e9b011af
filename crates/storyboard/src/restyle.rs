//! An edit's frames: the source in the light and colours of the new picture, while the new
//! picture itself closes in from the edges. No two pictures are ever seen through each other
//! but along a soft seam.

use super::canvas::{Canvas, FULL};
use super::colour::{Rgb, smooth};
use super::noise::cloudy;
use super::palette::Palette;
use super::patches::{Patches, Place};

/// Cells of the blurred new picture, whose light falls on the source.
const COLUMNS: usize = 9;
const ROWS: usize = 6;
/// Share of the palette's tint in the new light; the rest is the new picture's own colour.
const TINT: f32 = 0.4;
/// How much of the source's own colour stays.
const CHROMA: f32 = 0.4;
/// Contrast of the source in the new light, as the exponent of its light.
const CONTRAST: f32 = 0.8;
/// Share of the source's brightness that stays.
const EXPOSURE: f32 = 0.25;
/// Brightest that the source may be, relative to its mean.
const GAIN_MAX: f32 = 2.0;

/// Rows that share one line of the blurred picture.
const LINE: usize = 4;
/// How long before its turn a place begins to show the new picture, in strength.
const SEAM: f32 = 0.24;
/// The height, as a share of the frame, that turns last.
const MIDDLE: f32 = 0.44;

/// The palette as a tint for each level of light: dark, middle and bright, each of luma 1.0.
#[derive(Debug)]
pub(super) struct Tints(Vec<[f32; 3]>);

/// Rec. 709 luma.
fn luma(rgb: [f32; 3]) -> f32 {
    rgb[0] * 0.2126 + rgb[1] * 0.7152 + rgb[2] * 0.0722
}

impl Tints {
    pub(super) fn new(palette: &Palette) -> Self {
        let dark = palette.sky_top.mix(Rgb::BLACK, 0.3);
        let middle = palette.haze.mix(palette.ground, 0.35);
        let bright = palette.sky_low.mix(Rgb::WHITE, 0.35);
        let level = |level: i32| {
            let share = level as f32 / 255.0;
            let hue = if share < 0.5 {
                dark.mix(middle, share * 2.0)
            } else {
                middle.mix(bright, share * 2.0 - 1.0)
            };
            let hue = [hue.r, hue.g, hue.b];
            let own = luma(hue).max(0.02);
            // Near black the hue of a colour runs wild; it is held.
            hue.map(|part| (part / own).min(3.0))
        };
        Self((0..256).map(level).collect())
    }
}

/// How far an edit goes, over the frame.
#[derive(Debug)]
pub(super) struct Restyle {
    /// How much of the new light lies on the source, 0.0 to 1.0.
    light: f32,
    /// `[height][width]`: share of the new picture, in 65,535ths.
    shares: Vec<u16>,
}

impl Restyle {
    /// For frames of `width` by `height`: `strength` 0.0 leaves the source, 1.0 only the new.
    pub(super) fn new(strength: f32, width: usize, height: usize, seed: u64) -> Self {
        let share = |place: Place| {
            let when = turns(place, seed);
            smooth(when - SEAM, when + 0.1, strength)
        };
        let shares = Patches::new(width, height, share);
        let fixed = |share: f32| (share * 65_535.0 + 0.5) as u16;
        Self {
            light: smooth(0.0, 0.55, strength),
            shares: (0..height).flat_map(|y| shares.row(y).map(fixed)).collect(),
        }
    }

    /// Lays the source's frame over the new one on `canvas`. `mean` is the mean light of the
    /// source's stretch, 0.0 to 1.0; `fade` darkens the new picture as the source is darkened.
    pub(super) fn blend(
        &self,
        rgb: &[u8],
        tints: &Tints,
        (mean, fade): (f32, f32),
        canvas: &mut Canvas,
    ) {
        let mean = mean.clamp(0.04, 1.0);
        let cells = Cells::of(canvas, mean);
        let gains = gains(tints, mean);
        let width = canvas.width;
        let mut line = vec![[0.0; 4]; width];
        for y in 0..canvas.height {
            if y % LINE == 0 {
                let middle = (y + LINE / 2) as f32 / canvas.height as f32;
                cells.row(middle, &mut line);
            }
            let source = rgb[y * width * 3..][..width * 3].as_chunks::<3>().0.iter();
            let shares = &self.shares[y * width..][..width];
            let pixels = canvas.row(y).as_chunks_mut::<4>().0.iter_mut();
            for (((out, rgb), low), share) in pixels.zip(source).zip(&line).zip(shares) {
                // Rec. 709 luma in 256ths.
                let level =
                    (u32::from(rgb[0]) * 54 + u32::from(rgb[1]) * 183 + u32::from(rgb[2]) * 19)
                        >> 8;
                let gain = &gains[level as usize & 255];
                let share = f32::from(*share) / 65_535.0;
                for lane in 0..3 {
                    let own = f32::from(rgb[lane]);
                    let lit = low[lane] * gain[3] + low[3] * gain[lane];
                    let lit = lit + (own - level as f32) * CHROMA;
                    let old = own + (lit.clamp(0.0, 255.0) - own) * self.light;
                    let new = f32::from(out[lane]) * fade;
                    out[lane] = (old * 128.0 + (new - old * 128.0) * share + 0.5) as u16;
                }
            }
        }
    }
}

/// What each level of the source's light becomes: the palette's tints and, last, the gain of the
/// new picture's own colour.
fn gains(tints: &Tints, mean: f32) -> Vec<[f32; 4]> {
    let gain = |(level, tint): (u8, &[f32; 3])| {
        let gain = (f32::from(level) / 255.0 / mean).powf(CONTRAST);
        let gain = gain.min(GAIN_MAX);
        let [r, g, b] = tint.map(|part| part * gain * TINT);
        [r, g, b, gain * (1.0 - TINT)]
    };
    (0_u8..=255).zip(&tints.0).map(gain).collect()
}

/// The strength at which a place turns to the new picture, 0.46 to 0.9: the rim of an oval and
/// the ground on which words stand first, the middle last, in soft patches.
fn turns(place: Place, seed: u64) -> f32 {
    let across = (place.across * 2.0 - 1.0).abs();
    let down = if place.down < MIDDLE {
        (MIDDLE - place.down) / MIDDLE * 0.9
    } else {
        (place.down - MIDDLE) / (1.0 - MIDDLE)
    };
    let rim = (across.powf(2.6) + down.powf(2.6)) / 1.2;
    let words = smooth(0.68, 0.87, place.down);
    let patches = cloudy(seed, place.x * 2.2, place.y * 2.2, 3);
    (0.9 - 0.44 * rim.max(words) + patches * 0.3).clamp(0.46, 0.9)
}

/// The new picture, blurred to a few cells.
struct Cells(Vec<[f32; 4]>);

impl Cells {
    /// Means from every fourth pixel of every fourth row: red, green, blue and luma, 0 to 255,
    /// lifted towards `mean`.
    fn of(canvas: &Canvas, mean: f32) -> Self {
        let mut sums = vec![[0_u64; 4]; COLUMNS * ROWS];
        let rows = canvas.pixels.chunks_exact(canvas.width * 4).enumerate();
        for (y, row) in rows.step_by(4) {
            let line = y * ROWS / canvas.height * COLUMNS;
            for (x, pixel) in row.as_chunks::<4>().0.iter().enumerate().step_by(4) {
                let sum = &mut sums[line + x * COLUMNS / canvas.width];
                for (sum, part) in sum.iter_mut().zip([pixel[0], pixel[1], pixel[2], 1]) {
                    *sum += u64::from(part);
                }
            }
        }
        let mean_of = |sum: [u64; 4]| {
            let scale = 1.0 / (sum[3].max(1) as f32 * f32::from(FULL));
            let rgb = [0, 1, 2].map(|lane: usize| sum[lane] as f32 * scale);
            let own = luma(rgb).max(0.01);
            let lift = (own * (1.0 - EXPOSURE) + mean * EXPOSURE) / own;
            let [r, g, b] = rgb.map(|part| part * lift);
            [r, g, b, own * lift].map(|part| part * 255.0)
        };
        Self(sums.into_iter().map(mean_of).collect())
    }

    /// The light along the row at share `down` of the frame.
    fn row(&self, down: f32, line: &mut [[f32; 4]]) {
        let spot = |share: f32, count: usize| {
            let at = (share * count as f32 - 0.5).clamp(0.0, (count - 1) as f32);
            let first = (at as usize).min(count - 2);
            // Eased, so that no cell's border shows as a crease.
            (first, smooth(0.0, 1.0, at - first as f32))
        };
        let blend = |a: [f32; 4], b: [f32; 4], share: f32| {
            let mut out = a;
            for (out, b) in out.iter_mut().zip(b) {
                *out += (b - *out) * share;
            }
            out
        };
        let (upper, part) = spot(down, ROWS);
        let cell = |column: usize| {
            let at = upper * COLUMNS + column;
            blend(self.0[at], self.0[at + COLUMNS], part)
        };
        let cells: [[f32; 4]; COLUMNS] = std::array::from_fn(cell);
        let width = line.len() as f32;
        for (x, out) in line.iter_mut().enumerate() {
            let (left, side) = spot((x as f32 + 0.5) / width, COLUMNS);
            *out = blend(cells[left], cells[left + 1], side);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_goes_from_the_source_to_the_new_picture() {
        let mut before = vec![0; 64];
        for tenth in 0..=10 {
            let restyle = Restyle::new(tenth as f32 / 10.0, 64, 36, 5);
            for y in [0, 18, 35] {
                let row = restyle.shares[y * 64..][..64].to_vec();
                assert!(tenth > 0 || row.iter().all(|share| *share == 0));
                assert!(tenth < 10 || row.iter().all(|share| *share == u16::MAX));
                if y == 18 {
                    let rises = row.iter().zip(&before).all(|(new, old)| new >= old);
                    assert!(rises, "{tenth}");
                    before = row;
                }
            }
        }
    }
}
