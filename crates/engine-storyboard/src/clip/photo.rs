//! The caller's pictures as shots: scaled to the frame, with a slow camera inside them, and one dissolving into another
//! in soft patches. Resampling between the texels lets the camera glide without shimmer; at rest a picture shows its
//! own pixels. It warps no shapes and tracks no features.

use kinora_engine::RgbPicture;

use crate::lexicon::{Framing, Motion, Reading};
use crate::raster::canvas::Canvas;
use crate::raster::colour::{Rgb, lerp, smooth};
use crate::raster::noise::cloudy;
use crate::rng::Rng;
use crate::scene::camera::{FramePulse, ease};
use crate::scene::palette::Palette;

/// Strength with which the palette's light colours a picture.
const GRADE: f32 = 0.3;
/// Share of the light that grading keeps.
const GRADED_LIGHT: f32 = 0.96;

/// View of the camera: its middle, as a share (-1.0 to 1.0) of the room that the picture leaves at
/// each side, and its magnification, 1.0 or more.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PhotoView {
    pub(crate) across: f32,
    pub(crate) down: f32,
    pub(crate) zoom: f32,
}

impl PhotoView {
    /// The picture as it covers the frame.
    pub(crate) const REST: Self = Self::new(0.0, 0.0, 1.0);

    const fn new(across: f32, down: f32, zoom: f32) -> Self {
        Self { across, down, zoom }
    }

    fn blend(self, other: Self, share: f32) -> Self {
        Self {
            across: lerp(self.across, other.across, share),
            down: lerp(self.down, other.down, share),
            zoom: lerp(self.zoom, other.zoom, share),
        }
    }

    /// The way `(from, to)` for a picture that is shown whole: straight in or out, and gently,
    /// so that its surround stays even.
    pub(crate) fn straight((from, to): (Self, Self)) -> (Self, Self) {
        let [from, to] = [from, to].map(|look| Self::new(0.0, 0.0, 1.0 + (look.zoom - 1.0) * 0.4));
        if from == to {
            (Self::REST, to)
        } else {
            (from, to)
        }
    }

    /// The way `(from, to)` for a picture that is cut above and below: a little higher, where
    /// heads are.
    pub(crate) fn raised((from, to): (Self, Self)) -> (Self, Self) {
        let [from, to] = [from, to].map(|look| Self::new(look.across, look.down - 0.5, look.zoom));
        (from, to)
    }

    /// End of a move that begins at rest, as the words ask or by chance.
    pub(crate) fn camera_goal(reading: &Reading, rng: &mut Rng) -> Self {
        let (from, to) = Self::camera_move(reading, rng);
        if (to.zoom, to.across, to.down) == (1.0, 0.0, 0.0) {
            from
        } else {
            to
        }
    }

    /// The way of a camera through a picture, as the words ask or by chance.
    pub(crate) fn camera_move(reading: &Reading, rng: &mut Rng) -> (Self, Self) {
        let wild = [
            Framing::PushIn,
            Framing::PullOut,
            Framing::PanLeft,
            Framing::PanRight,
            Framing::PushIn,
        ];
        // A distance is no move: a picture has the distance that it has.
        let asked = reading.framing.iter().copied().find(|framing| {
            !matches!(framing, Framing::Close | Framing::Wide | Framing::Timelapse)
        });
        let chance = wild[rng.below(wild.len())];
        // Drawn before the choice, so that each kind of move leaves the stream at the same place.
        let (side, tilt) = (rng.signed() * 0.3, rng.signed() * 0.25);
        let pace = if reading.has_motion(Motion::Still) {
            0.3
        } else if reading.has_motion(Motion::Slow) {
            0.6
        } else if reading.has_motion(Motion::Fast) {
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
    texture: ScaledPicture,
    /// Passed at even times; never empty.
    path: Vec<PhotoView>,
    /// Gains of red, green and blue when fully graded.
    gains: [f32; 3],
}

/// The taps of one column or row: first texel (may lie outside) and four weights, sum 4,096.
type CubicTaps = (isize, [i16; 4]);

impl Photo {
    pub(crate) fn new(texture: ScaledPicture, path: Vec<PhotoView>, palette: &Palette) -> Self {
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
    pub(crate) fn draw(&self, share: f32, grade: f32, pulse: FramePulse, canvas: &mut Canvas) {
        let mut look = self.view_at(share);
        look.zoom *= pulse.zoom;
        let zoom = f64::from(look.zoom.max(1.0));
        let [columns, rows] = [
            (self.texture.width, canvas.width, look.across),
            (self.texture.height, canvas.height, look.down),
        ]
        .map(|(side, frame, lean)| {
            // In double precision: beyond texel 2,048 a float resolves no more than the 4,096ths in
            // which taps are weighted, and a slow camera would tremble.
            let half = frame as f64 * 0.5 / zoom;
            let middle =
                side as f64 * 0.5 + f64::from(lean.clamp(-1.0, 1.0)) * (side as f64 * 0.5 - half);
            (0..frame)
                .map(|at| tap(middle - half + (at as f64 + 0.5) / zoom - 0.5))
                .collect::<Vec<CubicTaps>>()
        });
        let gains = self.gains.map(|gain| 1.0 + (gain - 1.0) * grade);
        self.sample(&columns, &rows, canvas);
        if grade > 0.0 {
            canvas.gain(gains);
        }
    }

    /// The camera at a share of its way: through all looks on one smooth curve.
    fn view_at(&self, share: f32) -> PhotoView {
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
    fn sample(&self, columns: &[CubicTaps], rows: &[CubicTaps], canvas: &mut Canvas) {
        let width = columns.len();
        // The last four texel rows, sampled across. Neighbouring rows of the frame share most of
        // their four; as these are consecutive, `row mod 4` gives each a slot of its own.
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
            let [a, b, c, d] =
                [0, 1, 2, 3].map(|tap| &held[(first + tap).rem_euclid(4).cast_unsigned()].1);
            let lines = a.iter().zip(b).zip(c).zip(d);
            for (out, (((a, b), c), d)) in canvas.row(y).iter_mut().zip(lines) {
                let part = |value: i16, tap: usize| i32::from(value) * i32::from(shares[tap]);
                let sum = part(*a, 0) + part(*b, 1) + part(*c, 2) + part(*d, 3);
                // 64 per 8-bit step times weights that sum 4,096 is 2^18 per step. 15 bits have 128
                // per step: 11 bits go, rounded. The cubic overshoots at edges, hence the clamp.
                *out = ((sum + 1_024) >> 11).clamp(0, 32_640) as u16;
            }
        }
    }

    /// Samples texel row `row` at `columns` into `out: [columns][4] i16`, 64 per 8-bit step.
    fn across(&self, row: usize, columns: &[CubicTaps], out: &mut [i16]) {
        let width = self.texture.width;
        let texels = &self.texture.texels[row * width * 4..][..width * 4];
        let last = width.cast_signed() - 1;
        for (out, (first, shares)) in out.as_chunks_mut::<4>().0.iter_mut().zip(columns) {
            let mut sum = [0_i32; 4];
            let start = first.cast_unsigned();
            // All four taps inside the row: the usual case, and without a bound check for each.
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
fn tap(at: f64) -> CubicTaps {
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

/// Largest part of a picture beyond each edge of the frame, as a share of the frame.
const SPARE: f64 = 0.25;
/// Ratio of the aspect ratios of picture and frame above which a picture is shown whole.
const SHAPE_MAX: f64 = 1.5;
/// Light of the blurred ground around a picture that is shown whole.
const GROUND: u32 = 140;
/// The room that such a picture takes of the frame.
const HUNG: f64 = 0.92;
/// Darkness of the shadow at the rim of such a picture, and its reach as a share of the frame's
/// shorter side.
const SHADOW: f64 = 0.5;
const SHADOW_REACH: f64 = 0.03;

/// A scaled picture.
#[derive(Debug)]
pub(crate) struct ScaledPicture {
    width: usize,
    height: usize,
    /// `[height][width][4] u8`: red, green, blue and one unused.
    texels: Vec<u8>,
}

/// Part of a picture along one side, in its pixels: texel `n` is centred at
/// `start + (n + 0.5) * step`.
#[derive(Clone, Copy, Debug)]
struct SideSpan {
    start: f64,
    step: f64,
    count: usize,
}

/// Scales `picture` so that it covers `width` by `height`. The parts beyond both edges are kept for
/// the camera, up to a bound, evenly at both sides.
pub(crate) fn scale_to_cover(picture: &RgbPicture, width: usize, height: usize) -> ScaledPicture {
    let (across, down) = sides(picture);
    // The smaller of the two ratios: the picture covers the frame on both axes.
    let step = (across / width as f64).min(down / height as f64);
    let [across, down] = [(across, width), (down, height)].map(|(side, count)| {
        // Texels beyond the frame on each side. Up to a quarter of the frame of them is kept, so
        // that the camera can pan over what a plain crop would lose.
        let cut = ((side / step - count as f64) * 0.5).max(0.0);
        let spare = cut.min(count as f64 * SPARE).floor();
        SideSpan {
            start: (cut - spare) * step,
            step,
            count: count + spare as usize * 2,
        }
    });
    scale(picture, across, down)
}

/// Relation of a picture's aspect ratio to the frame's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PictureFit {
    /// Too different to cut.
    Whole,
    /// Cut above and below, if at all.
    Tall,
    /// Cut at the sides.
    Wide,
}

/// Decides whether to cut `picture` to `width` by `height`, and where.
pub(crate) fn picture_fit(picture: &RgbPicture, width: usize, height: usize) -> PictureFit {
    let (across, down) = sides(picture);
    let ratio = across / down / (width as f64 / height as f64);
    if ratio.max(1.0 / ratio) > SHAPE_MAX {
        PictureFit::Whole
    } else if ratio <= 1.0 {
        PictureFit::Tall
    } else {
        PictureFit::Wide
    }
}

/// `picture` whole within `width` by `height`, over a ground made of itself.
pub(crate) fn scale_whole(picture: &RgbPicture, width: usize, height: usize) -> ScaledPicture {
    let mut texture = ground(picture, width, height);
    let (across, down) = sides(picture);
    let step = (across / width as f64).max(down / height as f64) / HUNG;
    let [across, down] = [(across, width), (down, height)].map(|(side, most)| {
        let count = ((side / step).round() as usize).clamp(1, most);
        SideSpan {
            start: 0.0,
            step: side / count as f64,
            count,
        }
    });
    let (w, h) = (across.count, down.count);
    let whole = scale(picture, across, down);
    let (left, top) = ((width - w) / 2, (height - h) / 2);
    shade(&mut texture, (left, left + w), (top, top + h));
    for (row, y) in whole.texels.chunks_exact(w * 4).zip(top..) {
        let at = (y * width + left) * 4;
        texture.texels[at..at + w * 4].copy_from_slice(row);
    }
    texture
}

/// Darkens `texture` softly around the rectangle of `columns` by `rows`.
fn shade(texture: &mut ScaledPicture, columns: (usize, usize), rows: (usize, usize)) {
    let reach = texture.width.min(texture.height) as f64 * SHADOW_REACH;
    let fall = |at: usize, (from, to): (usize, usize)| {
        let away = from.saturating_sub(at).max((at + 1).saturating_sub(to));
        (-(away as f64 / reach).powi(2)).exp()
    };
    let across: Vec<f64> = (0..texture.width).map(|x| fall(x, columns)).collect();
    for (y, row) in texture
        .texels
        .chunks_exact_mut(texture.width * 4)
        .enumerate()
    {
        let down = fall(y, rows) * SHADOW;
        for (texel, across) in row.as_chunks_mut::<4>().0.iter_mut().zip(&across) {
            let keep = ((1.0 - down * across) * 256.0) as u32;
            *texel = texel.map(|part| ((u32::from(part) * keep) >> 8) as u8);
        }
    }
}

/// A blurred, darkened cover: reduced to a few texels, smoothed, and enlarged again.
fn ground(picture: &RgbPicture, width: usize, height: usize) -> ScaledPicture {
    // Two 3 x 3 averages at a 24th of the size blur as far as a very wide kernel would at full
    // size.
    let (w, h) = ((width / 24).max(2), (height / 24).max(2));
    let mut small = scale_to_cover(picture, w, h);
    for _ in 0..2 {
        small.texels = smoothed(&small);
    }
    let rgb = small
        .texels
        .chunks_exact(4)
        .flat_map(|texel| [texel[0], texel[1], texel[2]])
        .map(|part| ((u32::from(part) * GROUND) >> 8) as u8)
        .collect();
    let size = kinora_contract::Size::new(small.width as u32, small.height as u32);
    let mut blurred = scale_to_cover(&RgbPicture { size, rgb }, width, height);
    blurred.crop(width, height);
    blurred
}

/// The texels averaged with their neighbours, edges repeated.
fn smoothed(texture: &ScaledPicture) -> Vec<u8> {
    let (width, height) = (texture.width, texture.height);
    let mut out = Vec::with_capacity(texture.texels.len());
    for index in 0..width * height * 4 {
        let (x, y, lane) = (index / 4 % width, index / 4 / width, index % 4);
        let mut sum = 0;
        for (down, across) in (0..9).map(|n| (n / 3, n % 3)) {
            let row = (y + down).saturating_sub(1).min(height - 1);
            let column = (x + across).saturating_sub(1).min(width - 1);
            sum += u32::from(texture.texels[(row * width + column) * 4 + lane]);
        }
        out.push((sum / 9) as u8);
    }
    out
}

impl ScaledPicture {
    /// Keeps the middle `width` by `height`.
    fn crop(&mut self, width: usize, height: usize) {
        let (left, top) = ((self.width - width) / 2, (self.height - height) / 2);
        let rows = self.texels.chunks_exact(self.width * 4).skip(top);
        let kept: Vec<u8> = rows
            .take(height)
            .flat_map(|row| row[left * 4..(left + width) * 4].iter().copied())
            .collect();
        *self = Self {
            width,
            height,
            texels: kept,
        };
    }
}

fn sides(picture: &RgbPicture) -> (f64, f64) {
    (
        f64::from(picture.size.width),
        f64::from(picture.size.height),
    )
}

/// Cubic convolution with a = -0.5 (Keys, "Cubic convolution interpolation for digital image
/// processing", 1981), also called Catmull-Rom.
fn keys(x: f64) -> f64 {
    let x = x.abs();
    if x < 1.0 {
        (1.5 * x - 2.5) * x * x + 1.0
    } else if x < 2.0 {
        ((-0.5 * x + 2.5) * x - 4.0) * x + 2.0
    } else {
        0.0
    }
}

/// Computes, for each texel of `span`, the first source pixel and the weights from there on, which
/// add up to 1.0.
fn weights(span: SideSpan, side: usize) -> Vec<(usize, Vec<f32>)> {
    // Enlarging reads the nearest four pixels. Reducing widens the kernel to the step, so that
    // every source pixel counts and fine patterns do not alias.
    let reach = span.step.max(1.0);
    (0..span.count)
        .map(|nth| {
            let centre = span.start + (nth as f64 + 0.5) * span.step;
            let first = (centre - 2.0 * reach).floor().max(0.0) as usize;
            let last = ((centre + 2.0 * reach).ceil().max(0.0) as usize).min(side);
            // At least one source pixel, even where rounding puts the centre behind the last.
            let first = first.min(side.saturating_sub(1));
            let raw: Vec<f64> = (first..last.max(first + 1))
                .map(|at| keys((at as f64 + 0.5 - centre) / reach))
                .collect();
            let sum: f64 = raw.iter().sum();
            (first, raw.iter().map(|one| (one / sum) as f32).collect())
        })
        .collect()
}

fn scale(picture: &RgbPicture, across: SideSpan, down: SideSpan) -> ScaledPicture {
    let width = picture.size.width as usize;
    let columns = weights(across, width);
    let mut line = vec![0.0_f32; width * 3];
    let mut texels = Vec::with_capacity(across.count * down.count * 4);
    for (first, shares) in weights(down, picture.size.height as usize) {
        // Down first, into one row of floats: memory stays at one row, whatever the size of the
        // picture.
        line.fill(0.0);
        for (row, share) in picture.rgb[first * width * 3..]
            .chunks_exact(width * 3)
            .zip(&shares)
        {
            for (sum, part) in line.iter_mut().zip(row) {
                *sum += f32::from(*part) * share;
            }
        }
        for (first, shares) in &columns {
            let mut sum = [0.0_f32; 3];
            for (pixel, share) in line[first * 3..].chunks_exact(3).zip(shares) {
                for lane in 0..3 {
                    sum[lane] += pixel[lane] * share;
                }
            }
            texels.extend(sum.map(|part| (part + 0.5).clamp(0.0, 255.0) as u8));
            texels.push(255);
        }
    }
    ScaledPicture {
        width: across.count,
        height: down.count,
        texels,
    }
}

/// Share of the dissolve that a single place takes.
const MORPH_SOFT: f32 = 0.7;
/// The part of the clip in which the dissolve happens.
const MORPH_FROM: f32 = 0.18;
const MORPH_TO: f32 = 0.82;

/// Two pictures and how one gives way to the other.
#[derive(Debug)]
pub(crate) struct PhotoMorph {
    first: Photo,
    last: Photo,
    /// When each place turns, 0.0 to 1.0.
    mask: PatchField,
}

impl PhotoMorph {
    pub(crate) fn new(first: Photo, last: Photo, width: usize, height: usize, seed: u64) -> Self {
        Self {
            first,
            last,
            mask: PatchField::new(width, height, |x, y| {
                // Low noise around the middle: broad patches turn early or late, hardly any at the
                // very ends.
                let patches = cloudy(seed, x * 1.8, y * 1.8, 2);
                (0.5 + patches * 0.75).clamp(0.0, 1.0)
            }),
        }
    }

    /// Draws `share` (0.0 the first picture, 1.0 the last) of the way; `second` is working memory.
    pub(crate) fn draw(
        &self,
        share: f32,
        grade: f32,
        pulse: FramePulse,
        canvas: &mut Canvas,
        second: &mut Canvas,
    ) {
        // Outside the middle of the clip only one picture is drawn: half the work, and given frames
        // stay as they are.
        let turn = ((share - MORPH_FROM) / (MORPH_TO - MORPH_FROM)).clamp(0.0, 1.0);
        if turn >= 1.0 {
            self.last.draw(share, grade, pulse, canvas);
            return;
        }
        self.first.draw(share, grade, pulse, canvas);
        if turn <= 0.0 {
            return;
        }
        self.last.draw(share, grade, pulse, second);
        let mut shares = vec![[0; 4]; canvas.width];
        for y in 0..canvas.height {
            for (share, when) in shares.iter_mut().zip(self.mask.row(y)) {
                // Each place dissolves for the same time; the latest starts at 1 - SOFT, so that
                // all are done at the end.
                let start = when * (1.0 - MORPH_SOFT);
                *share = [(smooth(start, start + MORPH_SOFT, turn) * 65_535.0) as u16; 4];
            }
            canvas.dissolve_row(second, y, &shares);
        }
    }
}

/// Frame pixels per value, for a short side of 720.
const PITCH: f32 = 12.0;

/// Values over a frame.
#[derive(Debug)]
struct PatchField {
    /// `[rows][columns]`
    values: Vec<f32>,
    columns: usize,
    rows: usize,
    width: usize,
    height: usize,
}

impl PatchField {
    /// The values at places `(x, y)` in shares of the frame's shorter side.
    fn new(width: usize, height: usize, value: impl Fn(f32, f32) -> f32) -> Self {
        let short = width.min(height) as f32;
        let pitch = (PITCH * short / 720.0).max(1.0);
        let [columns, rows] = [width, height].map(|side| (side as f32 / pitch).ceil() as usize + 1);
        let values = (0..columns * rows).map(|index| {
            let across = (index % columns) as f32 / (columns - 1) as f32;
            let down = (index / columns) as f32 / (rows - 1) as f32;
            value(across * width as f32 / short, down * height as f32 / short)
        });
        Self {
            values: values.collect(),
            columns,
            rows,
            width,
            height,
        }
    }

    /// The values along row `y` of the frame.
    fn row(&self, y: usize) -> impl Iterator<Item = f32> + '_ {
        let down = y as f32 / self.height as f32 * (self.rows - 1) as f32;
        let upper = (down as usize).min(self.rows - 2);
        let part = down - upper as f32;
        let lines =
            [upper, upper + 1].map(|row| &self.values[row * self.columns..][..self.columns]);
        let step = (self.columns - 1) as f32 / self.width as f32;
        (0..self.width).map(move |x| {
            let across = x as f32 * step;
            let left = (across as usize).min(self.columns - 2);
            let side = across - left as f32;
            let [a, b] = lines.map(|line| line[left] + (line[left + 1] - line[left]) * side);
            a + (b - a) * part
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_between_their_places() {
        let field = PatchField::new(320, 180, |x, y| x + 10.0 * y);
        for y in [0, 1, 90, 179] {
            let row: Vec<f32> = field.row(y).collect();
            assert_eq!(row.len(), 320);
            for (x, value) in row.into_iter().enumerate() {
                let wanted = x as f32 / 180.0 + 10.0 * y as f32 / 180.0;
                assert!((value - wanted).abs() < 1e-3, "{x} {y}: {value}");
            }
        }
    }
}
