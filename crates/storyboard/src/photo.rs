//! A picture as a shot: a slow camera inside it, resampled between the texels for each frame,
//! so that it glides without shimmer. At rest it shows the picture's own pixels.

use super::camera::ease;
use super::canvas::Canvas;
use super::colour::Rgb;
use super::cover::{Texture, keys};
use super::lexicon::{Framing, Motion, Reading};
use super::palette::Palette;
use super::pulse::Pulse;
use super::rng::Rng;

/// How far the palette's light may colour a picture.
const GRADE: f32 = 0.3;
/// Share of the light that grading keeps.
const GRADED_LIGHT: f32 = 0.96;

/// Where the camera looks: the middle, as a share (-1.0 to 1.0) of the room that the picture
/// leaves at each side, and the magnification, 1.0 or more.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Look {
    pub(crate) across: f32,
    pub(crate) down: f32,
    pub(crate) zoom: f32,
}

impl Look {
    /// The picture as it covers the frame.
    pub(crate) const REST: Self = Self::new(0.0, 0.0, 1.0);

    const fn new(across: f32, down: f32, zoom: f32) -> Self {
        Self { across, down, zoom }
    }

    fn blend(self, other: Self, share: f32) -> Self {
        let mix = |a: f32, b: f32| a + (b - a) * share;
        Self {
            across: mix(self.across, other.across),
            down: mix(self.down, other.down),
            zoom: mix(self.zoom, other.zoom),
        }
    }

    /// The way `(from, to)` for a picture that is shown whole: straight in or out, and gently,
    /// so that its surround stays even.
    pub(crate) fn straight((from, to): (Self, Self)) -> (Self, Self) {
        let near = |look: Self| Self::new(0.0, 0.0, 1.0 + (look.zoom - 1.0) * 0.4);
        let (from, to) = (near(from), near(to));
        if from == to {
            (Self::REST, to)
        } else {
            (from, to)
        }
    }

    /// The way `(from, to)` for a picture that is cut above and below: a little higher, where
    /// heads are.
    pub(crate) fn raised((from, to): (Self, Self)) -> (Self, Self) {
        let higher = |look: Self| Self::new(look.across, look.down - 0.5, look.zoom);
        (higher(from), higher(to))
    }

    /// Where a camera that begins at rest goes, as the words ask or by chance.
    pub(crate) fn goal(reading: &Reading, rng: &mut Rng) -> Self {
        let (from, to) = Self::way(reading, rng);
        if (to.zoom, to.across, to.down) == (1.0, 0.0, 0.0) {
            from
        } else {
            to
        }
    }

    /// The way of a camera through a picture, as the words ask or by chance.
    pub(crate) fn way(reading: &Reading, rng: &mut Rng) -> (Self, Self) {
        let wild = [
            Framing::PushIn,
            Framing::PullOut,
            Framing::PanLeft,
            Framing::PanRight,
            Framing::PushIn,
        ];
        let asked = reading.framing.iter().copied().find(|framing| {
            !matches!(framing, Framing::Close | Framing::Wide | Framing::Timelapse)
        });
        let chance = wild[rng.below(wild.len())];
        let (side, tilt) = (rng.signed() * 0.3, rng.signed() * 0.25);
        let pace = if reading.moves(Motion::Still) {
            0.3
        } else if reading.moves(Motion::Slow) {
            0.6
        } else if reading.moves(Motion::Fast) {
            1.3
        } else {
            1.0
        };
        let near = 1.0 + 0.13 * pace;
        let level = 1.0 + 0.09 * pace;
        let pan = 0.75;
        match asked.unwrap_or(chance) {
            Framing::PanRight => (Self::new(-pan, 0.0, level), Self::new(pan, 0.0, level)),
            Framing::PanLeft => (Self::new(pan, 0.0, level), Self::new(-pan, 0.0, level)),
            Framing::TiltUp => (Self::new(0.0, pan, level), Self::new(0.0, -pan, level)),
            Framing::TiltDown => (Self::new(0.0, -pan, level), Self::new(0.0, pan, level)),
            Framing::PullOut => (Self::new(side, tilt, near), Self::REST),
            Framing::Orbit => (Self::new(-pan, 0.1, level), Self::new(pan, -0.1, near)),
            _ => (Self::REST, Self::new(side, tilt, near)),
        }
    }
}

/// A picture with its camera.
#[derive(Debug)]
pub(crate) struct Photo {
    texture: Texture,
    /// Passed at even times; never empty.
    path: Vec<Look>,
    /// Gains of red, green and blue when fully graded.
    gains: [f32; 3],
}

/// The taps of one column or row: first texel (may lie outside) and four weights, sum 4,096.
type Taps = (isize, [i16; 4]);

impl Photo {
    pub(crate) fn new(texture: Texture, path: Vec<Look>, palette: &Palette) -> Self {
        let light = Rgb::WHITE.mix(palette.light, GRADE);
        // The hour colours a picture but hardly darkens it.
        let most = light.r.max(light.g).max(light.b).max(0.1);
        let gains = [light.r, light.g, light.b].map(|gain| gain / most * GRADED_LIGHT);
        Self {
            texture,
            path,
            gains,
        }
    }

    /// Draws the picture `share` (0.0 to 1.0) along its path, coloured by the hour with
    /// `grade` (0.0 to 1.0).
    pub(crate) fn draw(&self, share: f32, grade: f32, pulse: Pulse, canvas: &mut Canvas) {
        let mut look = self.look(share);
        look.zoom *= pulse.zoom;
        let zoom = f64::from(look.zoom.max(1.0));
        let taps = |side: usize, frame: usize, lean: f32| -> Vec<Taps> {
            let half = frame as f64 * 0.5 / zoom;
            let middle =
                side as f64 * 0.5 + f64::from(lean.clamp(-1.0, 1.0)) * (side as f64 * 0.5 - half);
            (0..frame)
                .map(|at| tap(middle - half + (at as f64 + 0.5) / zoom - 0.5))
                .collect()
        };
        let columns = taps(self.texture.width, canvas.width, look.across);
        let rows = taps(self.texture.height, canvas.height, look.down);
        let gains = self.gains.map(|gain| 1.0 + (gain - 1.0) * grade);
        self.sample(&columns, &rows, canvas);
        if grade > 0.0 {
            canvas.gain(gains);
        }
    }

    /// The camera at a share of its way: through all looks on one smooth curve.
    fn look(&self, share: f32) -> Look {
        let legs = self.path.len() - 1;
        let Some(last) = self.path.last().filter(|_| legs > 0) else {
            return self.path[0];
        };
        if share >= 1.0 {
            return *last;
        }
        if legs == 1 {
            return self.path[0].blend(*last, ease(share.max(0.0)));
        }
        let at = share.max(0.0) * legs as f32;
        let leg = (at as usize).min(legs - 1);
        let part = at - leg as f32;
        let here = |nth: usize| self.path[nth.min(legs)];
        // Between the middles of straight legs the corner is rounded by a parabola (a quadratic
        // B-spline), with the two ends kept.
        let (before, after) = (here(leg), here(leg + 1));
        if part < 0.5 {
            let from = if leg == 0 {
                before
            } else {
                here(leg - 1).blend(before, 0.5)
            };
            let to = before.blend(after, 0.5);
            if leg == 0 {
                return from.blend(to, part * 2.0);
            }
            let t = part + 0.5;
            return from.blend(before, t).blend(before.blend(to, t), t);
        }
        let from = before.blend(after, 0.5);
        if leg + 1 == legs {
            return from.blend(after, part * 2.0 - 1.0);
        }
        let to = after.blend(here(leg + 2), 0.5);
        let t = part - 0.5;
        from.blend(after, t).blend(after.blend(to, t), t)
    }

    /// Samples across, each texel row once, then down.
    fn sample(&self, columns: &[Taps], rows: &[Taps], canvas: &mut Canvas) {
        let width = columns.len();
        let mut held: [(isize, Vec<i16>); 4] =
            std::array::from_fn(|_| (isize::MIN, vec![0; width * 4]));
        let last = self.texture.height.cast_signed() - 1;
        for (y, (first, shares)) in rows.iter().enumerate() {
            for row in *first..*first + 4 {
                let slot = &mut held[row.rem_euclid(4).cast_unsigned()];
                if slot.0 != row {
                    slot.0 = row;
                    self.across(row.clamp(0, last).cast_unsigned(), columns, &mut slot.1);
                }
            }
            let line = |tap: isize| &held[(first + tap).rem_euclid(4).cast_unsigned()].1;
            let lines = line(0).iter().zip(line(1)).zip(line(2)).zip(line(3));
            for (out, (((a, b), c), d)) in canvas.row(y).iter_mut().zip(lines) {
                let part = |value: i16, tap: usize| i32::from(value) * i32::from(shares[tap]);
                let sum = part(*a, 0) + part(*b, 1) + part(*c, 2) + part(*d, 3);
                *out = ((sum + 1_024) >> 11).clamp(0, 32_640) as u16;
            }
        }
    }

    /// Samples texel row `row` at `columns` into `out: [columns][4] i16`, 64 per 8-bit step.
    fn across(&self, row: usize, columns: &[Taps], out: &mut [i16]) {
        let width = self.texture.width;
        let texels = &self.texture.texels[row * width * 4..][..width * 4];
        let last = width.cast_signed() - 1;
        for (out, (first, shares)) in out.as_chunks_mut::<4>().0.iter_mut().zip(columns) {
            let mut sum = [0_i32; 4];
            let start = first.cast_unsigned();
            if let Some(near) = texels
                .get(start.wrapping_mul(4)..)
                .and_then(|t| t.get(..16))
                && *first >= 0
            {
                for tap in 0..4 {
                    for lane in 0..4 {
                        sum[lane] += i32::from(near[tap * 4 + lane]) * i32::from(shares[tap]);
                    }
                }
            } else {
                for (tap, share) in (0..4).zip(shares) {
                    let at = (first + tap).clamp(0, last).cast_unsigned() * 4;
                    for lane in 0..4 {
                        sum[lane] += i32::from(texels[at + lane]) * i32::from(*share);
                    }
                }
            }
            *out = sum.map(|sum| ((sum + 32) >> 6) as i16);
        }
    }
}

/// The four texels around place `at` and their weights.
fn tap(at: f64) -> Taps {
    // Places that are whole but for rounding are whole: a camera at rest shows texels as they are.
    let at = (at * 4_096.0).round() / 4_096.0;
    let floor = at.floor();
    let part = at - floor;
    let mut shares = [0; 4];
    for (tap, share) in shares.iter_mut().enumerate() {
        *share = (keys(part + 1.0 - tap as f64) * 4_096.0).round() as i16;
    }
    // What rounding left goes to the nearer of the middle two.
    let nearer = if part < 0.5 { 1 } else { 2 };
    shares[nearer] += 4_096 - shares.iter().sum::<i16>();
    (floor as isize - 1, shares)
}
