//! Pictures scaled to a frame: cut to cover it, or hung whole, with a soft shadow, before a
//! blurred, darkened cover of themselves. Scaling is bicubic (Catmull-Rom, its reach widened when it reduces).

use kinora_engine::Picture;

/// How much of a picture may lie beyond each edge of the frame, as a share of the frame.
const SPARE: f64 = 0.25;
/// From this ratio of the two shapes on, a picture is shown whole.
const SHAPE_MAX: f64 = 1.5;
/// Light of the blurred ground around a picture that is shown whole.
const GROUND: u32 = 140;
/// The room that such a picture takes of the frame.
const HUNG: f64 = 0.92;
/// How much of the ground's light the shadow at its rim takes, and how far the shadow reaches,
/// as a share of the frame's shorter side.
const SHADOW: f64 = 0.5;
const SHADOW_REACH: f64 = 0.03;

/// A scaled picture.
#[derive(Debug)]
pub(crate) struct Texture {
    pub(crate) width: usize,
    pub(crate) height: usize,
    /// `[height][width][4] u8`: red, green, blue and one unused.
    pub(crate) texels: Vec<u8>,
}

/// Part of a picture along one side, in its pixels: texel `n` is centred at
/// `start + (n + 0.5) * step`.
#[derive(Clone, Copy, Debug)]
struct Span {
    start: f64,
    step: f64,
    count: usize,
}

/// `picture` so that it covers `width` by `height`, cut evenly at both sides; what is cut is
/// kept for the camera, up to a bound, evenly at both sides of the frame.
pub(crate) fn cover(picture: &Picture, width: usize, height: usize) -> Texture {
    let (across, down) = sides(picture);
    let step = (across / width as f64).min(down / height as f64);
    let span = |side: f64, count: usize| {
        let cut = ((side / step - count as f64) * 0.5).max(0.0);
        let spare = cut.min(count as f64 * SPARE).floor();
        Span {
            start: (cut - spare) * step,
            step,
            count: count + spare as usize * 2,
        }
    };
    scale(picture, span(across, width), span(down, height))
}

/// How a picture's shape goes into a frame's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fit {
    /// Too unlike to be cut to it.
    Whole,
    /// Cut above and below, if at all.
    Tall,
    /// Cut at the sides.
    Wide,
}

/// How `picture` goes into `width` by `height`.
pub(crate) fn fit(picture: &Picture, width: usize, height: usize) -> Fit {
    let (across, down) = sides(picture);
    let ratio = across / down / (width as f64 / height as f64);
    if ratio.max(1.0 / ratio) > SHAPE_MAX {
        Fit::Whole
    } else if ratio <= 1.0 {
        Fit::Tall
    } else {
        Fit::Wide
    }
}

/// `picture` whole within `width` by `height`, over a ground made of itself.
pub(crate) fn fitted(picture: &Picture, width: usize, height: usize) -> Texture {
    let mut texture = ground(picture, width, height);
    let (across, down) = sides(picture);
    let step = (across / width as f64).max(down / height as f64) / HUNG;
    let count = |side: f64, most: usize| ((side / step).round() as usize).clamp(1, most);
    let span = |side: f64, count: usize| Span {
        start: 0.0,
        step: side / count as f64,
        count,
    };
    let (w, h) = (count(across, width), count(down, height));
    let whole = scale(picture, span(across, w), span(down, h));
    let (left, top) = ((width - w) / 2, (height - h) / 2);
    shade(&mut texture, (left, left + w), (top, top + h));
    for (row, y) in whole.texels.chunks_exact(w * 4).zip(top..) {
        let at = (y * width + left) * 4;
        texture.texels[at..at + w * 4].copy_from_slice(row);
    }
    texture
}

/// Darkens `texture` softly around the rectangle of `columns` by `rows`.
fn shade(texture: &mut Texture, columns: (usize, usize), rows: (usize, usize)) {
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
fn ground(picture: &Picture, width: usize, height: usize) -> Texture {
    let (w, h) = ((width / 24).max(2), (height / 24).max(2));
    let mut small = cover(picture, w, h);
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
    let mut blurred = cover(&Picture { size, rgb }, width, height);
    blurred.crop(width, height);
    blurred
}

/// The texels averaged with their neighbours, edges repeated.
fn smoothed(texture: &Texture) -> Vec<u8> {
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

impl Texture {
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

fn sides(picture: &Picture) -> (f64, f64) {
    (
        f64::from(picture.size.width),
        f64::from(picture.size.height),
    )
}

/// Cubic convolution with a = -0.5 (Keys, "Cubic convolution interpolation for digital image
/// processing", 1981), also called Catmull-Rom.
pub(crate) fn keys(x: f64) -> f64 {
    let x = x.abs();
    if x < 1.0 {
        (1.5 * x - 2.5) * x * x + 1.0
    } else if x < 2.0 {
        ((-0.5 * x + 2.5) * x - 4.0) * x + 2.0
    } else {
        0.0
    }
}

/// For each texel of `span` its first source pixel and the weights from there on, sum 1.0.
fn weights(span: Span, side: usize) -> Vec<(usize, Vec<f32>)> {
    let reach = span.step.max(1.0);
    (0..span.count)
        .map(|nth| {
            let centre = span.start + (nth as f64 + 0.5) * span.step;
            let first = (centre - 2.0 * reach).floor().max(0.0) as usize;
            let last = ((centre + 2.0 * reach).ceil().max(0.0) as usize).min(side);
            let first = first.min(side.saturating_sub(1));
            let raw: Vec<f64> = (first..last.max(first + 1))
                .map(|at| keys((at as f64 + 0.5 - centre) / reach))
                .collect();
            let sum: f64 = raw.iter().sum();
            (first, raw.iter().map(|one| (one / sum) as f32).collect())
        })
        .collect()
}

fn scale(picture: &Picture, across: Span, down: Span) -> Texture {
    let width = picture.size.width as usize;
    let columns = weights(across, width);
    let mut line = vec![0.0_f32; width * 3];
    let mut texels = Vec::with_capacity(across.count * down.count * 4);
    for (first, shares) in weights(down, picture.size.height as usize) {
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
    Texture {
        width: across.count,
        height: down.count,
        texels,
    }
}
