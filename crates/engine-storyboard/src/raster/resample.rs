//! Reads rows of texels at positions between them, for planes and washes. Everything has 15 bits
//! and runs over four components at once, in operations that every processor has for 16-bit lanes.

/// A texel or pixel: red, green, blue and alpha, 0 to [`FULL`](crate::raster::canvas::FULL).
pub(crate) type Texel = [u16; 4];

/// Working rows of one painter, reused from row to row and frame to frame.
#[derive(Debug, Default)]
pub(crate) struct RowScratch {
    pub(crate) texels: Vec<Texel>,
    pub(crate) pixels: Vec<Texel>,
}

/// The last two rows of texels that were read across: where texels are larger than pixels, each
/// is read once for all the pixel rows beside it.
#[derive(Debug, Default)]
pub(crate) struct RowCache {
    rows: [(Option<usize>, Vec<Texel>); 2],
}

impl RowCache {
    /// Row `upper` and the same or the next row `lower`, `width` pixels each; `read` gives those
    /// that are not held.
    pub(crate) fn rows(
        &mut self,
        (upper, lower): (usize, usize),
        width: usize,
        mut read: impl FnMut(usize, &mut [Texel]),
    ) -> (&[Texel], &[Texel]) {
        // Slots by parity: `lower` is `upper` or the row after it, so that both fit. Down a frame
        // each row of texels is then read once.
        for row in [upper, lower] {
            let (held, pixels) = &mut self.rows[row % 2];
            if *held != Some(row) {
                pixels.resize(width, [0; 4]);
                read(row, pixels);
                *held = Some(row);
            }
        }
        (&self.rows[upper % 2].1, &self.rows[lower % 2].1)
    }
}

/// Distance of neighbouring pixels of a row, in texels.
#[derive(Clone, Debug)]
pub(crate) struct PixelStep {
    /// Distance in 65,536ths of a texel; more than 0.
    stride: i64,
    /// Fraction of a texel after so many pixels, repeated for each lane.
    ramp: [Texel; BLOCK],
}

impl PixelStep {
    pub(crate) fn new(texels: f32) -> Self {
        let stride = ((f64::from(texels) * 65_536.0) as i64).max(1);
        Self {
            stride,
            ramp: std::array::from_fn(|pixel| [(stride * pixel.cast_signed() as i64) as u16; 4]),
        }
    }

    /// Whether texels are much larger than pixels.
    pub(crate) fn is_coarse(&self) -> bool {
        // Less than 7/8 * 3/4, about two thirds of a texel per pixel: then a row serves often
        // enough to be worth keeping.
        self.stride < LEAST * 3 / 4
    }

    /// Number of pixels in a row that each read the texel after that of the pixel before, beginning
    /// at the fraction `share` of a texel.
    fn run_length(&self, share: usize) -> usize {
        // As long as each pixel reads the texel after that of the one before, the fraction shrinks
        // by `back` or grows by `ahead` per pixel; the run ends where it would leave 0 to 65,535.
        let (back, ahead) = (65_536 - self.stride, self.stride - 65_536);
        if back > 0 {
            share / back as usize + 1
        } else if ahead > 0 {
            (65_535 - share) / ahead as usize + 1
        } else {
            usize::MAX
        }
    }
}

/// Positions of the pixels of a row in a row of texels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowSampler<'a> {
    /// Position of pixel 0 in 65,536ths of a texel.
    start: i64,
    stride: i64,
    step: &'a PixelStep,
}

impl<'a> RowSampler<'a> {
    /// Pixel `x` lies `x` steps behind texel `start`.
    pub(crate) fn new(start: f32, step: &'a PixelStep) -> Self {
        Self {
            start: (f64::from(start) * 65_536.0) as i64,
            stride: step.stride,
            step,
        }
    }

    fn at(self, pixel: usize) -> i64 {
        self.start + self.stride * pixel.cast_signed() as i64
    }

    /// The texels that pixels `first` to before `last` read, of a row of `width`.
    pub(crate) fn texel_range(self, first: usize, last: usize, width: usize) -> (usize, usize) {
        let most = width.cast_signed() as i64 - 1;
        let from = (self.at(first) >> 16).clamp(0, most);
        // A pixel blends two neighbours, and the end is exclusive: hence 2 more.
        let to = (self.at(last.saturating_sub(1)) >> 16).clamp(0, (most - 1).max(0)) + 2;
        (from as usize, (to as usize).min(width))
    }

    /// Blends linearly between neighbours in `texels`, the first of which is the row's texel
    /// `from`; its ends are repeated. Writes pixels from `first` on, as many as `out` has.
    pub(crate) fn sample(self, texels: &[Texel], from: usize, first: usize, out: &mut [Texel]) {
        if texels.len() < 2 {
            let fill = texels.first().copied().unwrap_or_default();
            out.fill(fill);
            return;
        }
        let base = self.at(first) - ((from.cast_signed() as i64) << 16);
        // Pixels before the first texel and after the last are of their colours.
        let last = (texels.len().cast_signed() as i64 - 1) << 16;
        let pixel = |place: i64| (place - base).div_euclid(self.stride) + 1;
        let lead = pixel(-1).clamp(0, out.len().cast_signed() as i64) as usize;
        let (before, out) = out.split_at_mut(lead);
        let inner = pixel(last - 1).clamp(0, i64::MAX) as usize;
        let (out, after) = out.split_at_mut(inner.saturating_sub(lead).min(out.len()));
        before.fill(texels[0]);
        after.fill(texels[texels.len() - 1]);
        let at = base + self.stride * lead.cast_signed() as i64;
        match self.stride {
            LEAST..=MOST => glide(texels, at as usize, self.step, out),
            _ => gather(texels, at as usize, self.stride as usize, out),
        }
    }
}

/// Strides at which most pixels read the texel behind that of the one before.
// At an eighth more or less a run is at most eight pixels long; farther from one texel per pixel
// single texels are gathered instead.
const LEAST: i64 = 65_536 * 7 / 8;
const MOST: i64 = 65_536 * 9 / 8;

/// Blends pixels that lie between the first and the last texel and nearly as far apart as these,
/// from `at` in 65,536ths on: in runs whose texels lie side by side.
fn glide(texels: &[Texel], mut at: usize, step: &PixelStep, mut out: &mut [Texel]) {
    let parts = texels.as_flattened();
    while !out.is_empty() {
        let (place, share) = (at >> 16, at & 0xffff);
        let count = step.run_length(share).min(BLOCK).min(out.len());
        let (run, rest) = out.split_at_mut(count);
        let (left, right) = (&parts[place * 4..], &parts[place * 4 + 4..]);
        let sides = left.iter().zip(right).zip(step.ramp.as_flattened());
        for (out, ((left, right), over)) in run.as_flattened_mut().iter_mut().zip(sides) {
            // Whole texels are in `left` and `right` already, so that only fractions are added,
            // modulo one texel.
            *out = blend(*left, *right, over.wrapping_add(share as u16));
        }
        at += step.stride as usize * count;
        out = rest;
    }
}

/// Blends pixels that lie between the first and the last texel, from `at` on and by `stride`, in
/// 65,536ths.
///
/// Gathered first and blended after: the second loop is then one run of equal steps, which the
/// compiler makes of whole registers.
fn gather(texels: &[Texel], mut at: usize, stride: usize, out: &mut [Texel]) {
    let (mut lefts, mut rights) = ([[0; 4]; BLOCK], [[0; 4]; BLOCK]);
    let mut shares = [[0; 4]; BLOCK];
    for out in out.chunks_mut(BLOCK) {
        let places = lefts.iter_mut().zip(&mut rights).zip(&mut shares);
        for ((left, right), share) in places.take(out.len()) {
            if let [one, two, ..] = &texels[at >> 16..] {
                (*left, *right) = (*one, *two);
            }
            *share = [at as u16; 4];
            at += stride;
        }
        let sides = lefts.as_flattened().iter().zip(rights.as_flattened());
        let parts = sides.zip(shares.as_flattened());
        for (out, ((left, right), share)) in out.as_flattened_mut().iter_mut().zip(parts) {
            *out = blend(*left, *right, *share);
        }
    }
}

/// Most pixels that are blended in one go.
const BLOCK: usize = 32;

/// Blends two rows of bytes into 15 bits; `share` in 256ths of `lower`.
pub(crate) fn blend_bytes(upper: &[u8], lower: &[u8], share: u16, out: &mut [Texel]) {
    let (near, far) = (256 - share, share);
    // Part by part, so that it is one run of equal steps.
    let parts = out.as_flattened_mut().iter_mut();
    for ((out, upper), lower) in parts.zip(upper).zip(lower) {
        *out = (u16::from(*upper) * near + u16::from(*lower) * far) >> 1;
    }
}

/// Blends two rows of texels; `share` in 65,536ths of `lower`.
pub(crate) fn blend_rows(upper: &[Texel], lower: &[Texel], share: u16, out: &mut [Texel]) {
    let rows = upper.as_flattened().iter().zip(lower.as_flattened());
    for (out, (upper, lower)) in out.as_flattened_mut().iter_mut().zip(rows) {
        *out = blend(*upper, *lower, share);
    }
}

/// Blends two parts; `share` in 65,536ths of `right`. Of two equal ones it is exactly that part.
#[inline]
pub(crate) fn blend(left: u16, right: u16, share: u16) -> u16 {
    // Not `left + share * (right - left)`: without a sign it stays in 16-bit lanes.
    left - mul_high(left, share) + mul_high(right, share)
}

/// `share` of a part, in 65,536ths: one operation for eight of them.
#[inline]
pub(crate) fn mul_high(part: u16, share: u16) -> u16 {
    ((u32::from(part) * u32::from(share)) >> 16) as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raster::canvas::FULL;

    fn row(values: &[u16]) -> Vec<Texel> {
        values.iter().map(|value| [*value; 4]).collect()
    }

    fn read(values: &[u16], start: f32, step: f32, count: usize) -> Vec<u16> {
        let mut out = vec![[0; 4]; count];
        RowSampler::new(start, &PixelStep::new(step)).sample(&row(values), 0, 0, &mut out);
        out.iter().map(|pixel| pixel[2]).collect()
    }

    #[test]
    fn between_texels_lie_blends_and_beyond_them_the_ends() {
        assert_eq!(read(&[100, 200, 300], 0.0, 1.0, 3), [100, 200, 300]);
        assert_eq!(read(&[100, 200], -2.0, 1.0, 2), [100, 100]);
        assert_eq!(read(&[100, 200], 5.0, 1.0, 2), [200, 200]);
        assert_eq!(read(&[7], 0.0, 1.0, 3), [7; 3]);
        for (got, want) in read(&[0, 32_000, 64], 0.25, 0.5, 4)
            .iter()
            .zip([8_000, 24_000, 24_016, 8_048])
        {
            assert!(got.abs_diff(want) < 8, "{got} for {want}");
        }
    }

    #[test]
    fn what_is_full_stays_full() {
        assert_eq!(read(&[FULL; 9], 0.1, 0.37, 20), [FULL; 20]);
        let mut out = [[0; 4]; 2];
        for share in [0, 77, 255] {
            blend_bytes(&[255; 8], &[255; 8], share, &mut out);
            assert_eq!(out, [[FULL; 4]; 2]);
        }
    }

    #[test]
    fn pixels_nearly_as_far_apart_as_texels_read_the_same_in_runs() {
        let texels: Vec<Texel> = (0..300_u16)
            .map(|n| [n * 97, n % 8 * 4_000, 0, FULL])
            .collect();
        for stride in [
            LEAST, 60_001, 65_500, 65_535, 65_536, 65_537, 65_900, 70_003, MOST,
        ] {
            let step = PixelStep::new(stride as f32 / 65_536.0);
            for at in [0, 1, 40_000, 65_535, 3 * 65_536 + 7] {
                let (mut runs, mut single) = ([[0; 4]; 230], [[0; 4]; 230]);
                glide(&texels, at, &step, &mut runs);
                gather(&texels, at, step.stride as usize, &mut single);
                assert_eq!(runs, single, "by {stride} from {at}");
            }
        }
    }

    #[test]
    fn a_part_of_a_row_reads_as_the_whole() {
        let texels: Vec<Texel> = (0..50)
            .map(|n| [n * 600, n * 13 % 7 * 900, 0, FULL])
            .collect();
        for (start, step) in [(-3.2, 0.9), (0.4, 1.1), (20.0, 0.33)] {
            let step = PixelStep::new(step);
            let across = RowSampler::new(start, &step);
            let mut whole = vec![[0; 4]; 40];
            across.sample(&texels, 0, 0, &mut whole);
            let (from, to) = across.texel_range(10, 25, texels.len());
            let mut part = vec![[0; 4]; 15];
            across.sample(&texels[from..to], from, 10, &mut part);
            assert_eq!(part, whole[10..25]);
        }
    }
}
