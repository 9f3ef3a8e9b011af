//! Rain, snow, stars, fireflies, bubbles, glints and leaves: many small marks whose places are fixed by the seed
//! and whose paths are functions of time, so that nothing pops. A mark smaller than a pixel keeps the sum of its
//! light, so that every resolution of a clip shows the same.

use super::canvas::Canvas;
use super::colour::Rgb;
use crate::rng::Rng;
use crate::scene::camera::CameraView;

/// Kind of mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ParticleKind {
    Rain,
    Snow,
    Star,
    Firefly,
    Bubble,
    Glint,
    Dust,
    /// Leaves in the wind.
    Leaf,
    /// Shooting stars.
    Meteor,
}

/// One mark at rest.
#[derive(Clone, Copy, Debug)]
struct Particle {
    x: f32,
    y: f32,
    size: f32,
    phase: f32,
    /// 0.0 far to 1.0 near.
    near: f32,
}

/// A field of marks.
#[derive(Clone, Debug)]
pub(crate) struct Particles {
    mark: ParticleKind,
    colour: Rgb,
    unit: f32,
    depth: f32,
    area: [f32; 4],
    wind: f32,
    size: f32,
    specks: Vec<Particle>,
}

impl Particles {
    /// `count` marks over `area: [left, top, right, bottom]`; `wind` leans and drives them.
    pub(crate) fn new(
        mark: ParticleKind,
        count: usize,
        area: [f32; 4],
        unit: f32,
        colour: Rgb,
        rng: &mut Rng,
    ) -> Self {
        let specks = (0..count).map(|_| {
            let near = rng.unit();
            Particle {
                x: rng.unit(),
                y: rng.unit(),
                size: rng.range(0.6, 1.0) * (0.4 + 0.6 * near),
                phase: rng.range(0.0, std::f32::consts::TAU),
                near,
            }
        });
        let specks = specks.collect();
        Self {
            mark,
            colour,
            unit,
            depth: 1.0,
            area,
            wind: 0.0,
            size: 1.0,
            specks,
        }
    }

    pub(crate) fn at_depth(self, depth: f32) -> Self {
        Self { depth, ..self }
    }

    pub(crate) fn in_wind(self, wind: f32) -> Self {
        Self { wind, ..self }
    }

    /// Moves the marks towards column `x`, like glints under a low sun.
    pub(crate) fn gathered(mut self, x: f32, tightness: f32) -> Self {
        let [left, _, right, _] = self.area;
        let goal = ((x - left) / (right - left)).clamp(0.0, 1.0);
        for speck in &mut self.specks {
            let spread = (0.16 + 0.8 * speck.y) * (1.0 - tightness) + 0.05;
            // The square of the distance, sign kept: marks crowd around the column, and lower ones
            // spread wider, like the path of glitter under a low sun.
            let away = (speck.x - 0.5) * 2.0;
            speck.x = goal + away * away.abs() * spread;
        }
        self
    }

    /// Marks of the usual size times `size`.
    pub(crate) fn sized(self, size: f32) -> Self {
        Self { size, ..self }
    }

    pub(crate) fn draw(&self, view: &CameraView, canvas: &mut Canvas) {
        let map = view.map(self.depth);
        let pixel = view.pixels;
        for speck in &self.specks {
            let (x, y, alpha) = self.place(speck, view.time_s);
            let (x, y) = (map.x(x), map.y(y));
            let u = self.unit * speck.size * self.size * map.scale;
            let mut round = |radius: f32, alpha: f32| {
                dot(canvas, (x, y), radius, pixel, self.colour, alpha);
            };
            match self.mark {
                ParticleKind::Rain => self.draw_streak(canvas, (x, y), u, pixel, alpha),
                ParticleKind::Glint => {
                    let sides = (u * 0.02, u * 0.0021);
                    dash(canvas, (x, y), sides, pixel, self.colour, alpha);
                }
                ParticleKind::Star => round(u * 0.0021 + 0.25 * pixel, alpha),
                ParticleKind::Snow if self.wind > 0.5 => {
                    self.draw_driven_flake(canvas, (x, y), u, speck.near, alpha);
                }
                ParticleKind::Snow => round(u * 0.0052, alpha),
                ParticleKind::Firefly => {
                    round(u * 0.012, alpha * 0.35);
                    round(u * 0.003, alpha);
                }
                ParticleKind::Bubble => round(u * 0.006, alpha),
                ParticleKind::Dust => round(u * 0.0035, alpha),
                ParticleKind::Leaf => self.leaf(speck, canvas, (x, y), u, view.time_s),
                ParticleKind::Meteor => {
                    let tail = (x - u * 0.3 * self.wind.signum(), y - u * 0.13);
                    line(canvas, tail, (x, y), u * 0.004, self.colour, alpha);
                }
            }
        }
    }

    fn place(&self, speck: &Particle, t: f32) -> (f32, f32, f32) {
        let [left, top, right, bottom] = self.area;
        let (width, height) = (right - left, bottom - top);
        let (speed, sideways) = match self.mark {
            ParticleKind::Rain => (1.05 + 0.5 * speck.near, self.wind * 0.9),
            ParticleKind::Snow => (0.035 + 0.06 * speck.near, self.wind * (0.3 + speck.near)),
            ParticleKind::Bubble => (-0.05 - 0.06 * speck.near, 0.0),
            ParticleKind::Dust => (-0.004, 0.008 + self.wind * 0.2),
            ParticleKind::Leaf => (0.05 + 0.1 * speck.near, self.wind * (0.7 + speck.near)),
            ParticleKind::Star
            | ParticleKind::Firefly
            | ParticleKind::Glint
            | ParticleKind::Meteor => (0.0, 0.0),
        };
        if self.mark == ParticleKind::Meteor {
            return self.meteor(speck, t);
        }
        let wander = |rate: f32, reach: f32| (t * rate + speck.phase).sin() * reach;
        // Places are shares of the area; speeds and reaches are in stage units, so that a wide
        // frame is not faster.
        let per_unit = self.unit / width.max(1.0);
        let (dx, dy) = match self.mark {
            ParticleKind::Snow => (wander(0.9, 0.012 * per_unit), 0.0),
            ParticleKind::Firefly => (wander(0.5, 0.03 * per_unit), wander(0.37, 0.02)),
            ParticleKind::Bubble => (wander(2.1, 0.006 * per_unit), 0.0),
            ParticleKind::Dust => (wander(0.4, 0.01), wander(0.31, 0.01)),
            ParticleKind::Leaf => (wander(1.3, 0.02 * per_unit), wander(1.9, 0.03)),
            _ => (0.0, 0.0),
        };
        let x = speck.x + sideways * t * per_unit + dx;
        let y = speck.y + speed * t * self.unit / height.max(1.0) + dy;
        let x = if sideways == 0.0 {
            x
        } else {
            x.rem_euclid(1.0)
        };
        let y = if speed == 0.0 { y } else { y.rem_euclid(1.0) };
        // Marks that wrap around fade at the ends of their way, so that none pops.
        let fade = if speed == 0.0 || self.mark == ParticleKind::Rain {
            1.0
        } else {
            (y.min(1.0 - y) * 12.0).clamp(0.0, 1.0)
        };
        let twinkle = |rate: f32| 0.5 + 0.5 * (t * rate * (0.6 + speck.near) + speck.phase).sin();
        let alpha = match self.mark {
            ParticleKind::Rain => 0.2 + 0.26 * speck.near,
            ParticleKind::Snow => 0.5 + 0.45 * speck.near,
            ParticleKind::Star => {
                (0.25 + 0.75 * speck.near * speck.near) * (0.75 + 0.25 * twinkle(1.6))
            }
            ParticleKind::Firefly => twinkle(1.3).powi(2),
            ParticleKind::Bubble => 0.3,
            ParticleKind::Glint => twinkle(2.2).powi(3) * (0.5 + 0.5 * speck.near),
            ParticleKind::Dust => 0.28 * twinkle(0.7),
            ParticleKind::Leaf | ParticleKind::Meteor => 1.0,
        };
        (left + x * width, top + y * height, alpha * fade)
    }

    /// Each shooting star falls once in a few seconds, in a third of one.
    fn meteor(&self, speck: &Particle, t: f32) -> (f32, f32, f32) {
        let [left, top, right, bottom] = self.area;
        let period = 2.4 + 3.2 * speck.near;
        let share = (t / period + speck.phase / std::f32::consts::TAU).fract() * period / 0.45;
        let alpha = (share * (1.0 - share) * 4.0).max(0.0);
        let way = self.unit * 0.42 * share.min(1.0);
        let x = left + speck.x * (right - left) + way * self.wind.signum();
        let y = top + speck.y * (bottom - top) + way * 0.43;
        (x, y, alpha)
    }

    /// Path of a drop during one exposure, brightest in its middle.
    fn draw_streak(&self, canvas: &mut Canvas, (x, y): (f32, f32), u: f32, pixel: f32, alpha: f32) {
        let long = u * 0.07;
        let tip = (x + self.wind * 0.65 * long, y + long);
        line(canvas, (x, y), tip, 0.8 * pixel, self.colour, alpha);
    }

    /// Path of a flake during one exposure in a strong wind.
    fn draw_driven_flake(
        &self,
        canvas: &mut Canvas,
        (x, y): (f32, f32),
        u: f32,
        near: f32,
        alpha: f32,
    ) {
        let long = u * 0.04 * self.wind;
        let tip = (x + long, y + long * (0.1 + 0.15 * near));
        line(canvas, (x, y), tip, u * 0.0045, self.colour, alpha);
    }

    /// A leaf that turns over as it flies.
    fn leaf(&self, speck: &Particle, canvas: &mut Canvas, (x, y): (f32, f32), u: f32, t: f32) {
        let turn = t * (2.0 + 3.0 * speck.near) + speck.phase;
        let (long, wide) = (u * 0.011, u * 0.009 * (turn * 1.3).sin().abs().max(0.25));
        let (across, down) = (turn.cos() * long, turn.sin() * long * 0.7);
        let (from, to) = ((x - across, y - down), (x + across, y + down));
        line(canvas, from, to, wide, self.colour, 1.0);
    }
}

/// Minimum radius or half width of a drawn mark, pixels.
const LEAST: f32 = 1.0;

/// Blends `goal` over a pixel.
fn tint(pixel: &mut [u16; 4], goal: [u16; 4], alpha: f32) {
    // Half of an 8-bit step: invisible, and the rim of a soft mark has many such pixels.
    if alpha <= 0.002 {
        return;
    }
    let share = (alpha.min(1.0) * 32_768.0) as i32;
    for (out, goal) in pixel[..3].iter_mut().zip(goal) {
        let own = i32::from(*out);
        *out = (own + (((i32::from(goal) - own) * share) >> 15)) as u16;
    }
}

/// The side that is drawn for one of `own` pixels, and the share of light that this leaves.
fn widen_to_pixel(own: f32) -> (f32, f32) {
    (own.max(LEAST), (own / LEAST).min(1.0))
}

/// A soft round mark of `radius` pixels; `pixel` is the length of a stage pixel in them.
fn dot(canvas: &mut Canvas, (x, y): (f32, f32), radius: f32, pixel: f32, colour: Rgb, alpha: f32) {
    // Smaller than a pixel of the stage: the light spreads, its sum stays.
    let (soft, alpha) = if radius < 0.7 * pixel {
        (0.7 * pixel, alpha * (radius / (0.7 * pixel)).powi(2))
    } else {
        (radius, alpha)
    };
    let (reach, kept) = widen_to_pixel(soft + 0.5 * pixel);
    // A mark drawn too large on both axes is dimmed by the square.
    let (alpha, goal) = (alpha * kept * kept, colour.fixed());
    if alpha <= 0.002 {
        return;
    }
    let columns = span(x - reach, x + reach, canvas.width);
    for py in span(y - reach, y + reach, canvas.height) {
        let v = (py as f32 + 0.5 - y) / reach;
        for (pixel, px) in canvas.run(py, &columns).iter_mut().zip(columns.clone()) {
            let h = (px as f32 + 0.5 - x) / reach;
            tint(pixel, goal, alpha * (1.0 - h * h - v * v).max(0.0));
        }
    }
}

/// A flat soft mark, as light on water, of half `sides` across and down.
fn dash(
    canvas: &mut Canvas,
    (x, y): (f32, f32),
    sides: (f32, f32),
    pixel: f32,
    colour: Rgb,
    alpha: f32,
) {
    let (across, thin) = widen_to_pixel(sides.0.max(pixel));
    let (down, flat) = widen_to_pixel(sides.1.max(0.6 * pixel) + 0.5 * pixel);
    let (alpha, goal) = (alpha * thin * flat, colour.fixed());
    let columns = span(x - across, x + across, canvas.width);
    for py in span(y - down, y + down, canvas.height) {
        let v = (py as f32 + 0.5 - y) / down;
        let row = (1.0 - v * v).max(0.0) * alpha;
        if row <= 0.004 {
            continue;
        }
        for (pixel, px) in canvas.run(py, &columns).iter_mut().zip(columns.clone()) {
            let h = (px as f32 + 0.5 - x) / across;
            tint(pixel, goal, row * (1.0 - h * h).max(0.0));
        }
    }
}

/// A soft line `width` pixels wide, brightest in the middle of its length.
fn line(
    canvas: &mut Canvas,
    from: (f32, f32),
    to: (f32, f32),
    width: f32,
    colour: Rgb,
    alpha: f32,
) {
    let (half, kept) = widen_to_pixel(width);
    let (alpha, goal) = (alpha * kept, colour.fixed());
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let long = dx.hypot(dy).max(0.001);
    let (ux, uy) = (dx / long, dy / long);
    let (left, right) = (from.0.min(to.0) - half, from.0.max(to.0) + half);
    let rows = span(
        from.1.min(to.1) - half,
        from.1.max(to.1) + half,
        canvas.height,
    );
    // One pixel to the right goes so far along the line and away from its middle.
    let (along_step, away_step) = (ux / long, uy / half);
    for py in rows {
        let y = py as f32 + 0.5 - from.1;
        // The pixels of this row that the line's band crosses.
        let (low, high) = if uy.abs() > 0.02 {
            let (middle, wide) = (from.0 + y / uy * ux, half / uy.abs());
            ((middle - wide).max(left), (middle + wide).min(right))
        } else {
            (left, right)
        };
        let columns = span(low, high, canvas.width);
        let x = columns.start as f32 + 0.5 - from.0;
        let mut along = (x * ux + y * uy) / long;
        let mut away = (x * uy - y * ux) / half;
        for pixel in canvas.run(py, &columns) {
            let share = (1.0 - away * away).max(0.0) * (along * (1.0 - along) * 4.0).max(0.0);
            tint(pixel, goal, alpha * share);
            along += along_step;
            away += away_step;
        }
    }
}

/// The pixels between two places of a side of `most` pixels, those that are cut included.
fn span(low: f32, high: f32, most: usize) -> std::ops::Range<usize> {
    // A cast drops what follows the point and holds the rest at 0.
    let from = ((low - 0.5) as usize).min(most);
    from..((high + 1.5) as usize).clamp(from, most)
}

#[cfg(test)]
mod tests {
    use super::*;

    type Draw<'a> = &'a dyn Fn(&mut Canvas, f32);

    /// All light on a black canvas of `side` by `side`, as a share of its area.
    fn light(side: usize, draw: impl Fn(&mut Canvas, f32)) -> f64 {
        let mut canvas = Canvas::new(side, side);
        draw(&mut canvas, side as f32 / 96.0);
        let sum: f64 = canvas.pixels.iter().map(|part| f64::from(*part)).sum();
        sum / (side * side) as f64
    }

    #[test]
    fn a_mark_has_as_much_light_in_every_resolution() {
        let white = Rgb::WHITE;
        for size in [0.3, 0.8, 1.5, 4.0] {
            let marks: [Draw<'_>; 3] = [
                &|canvas, k| dot(canvas, (48.3 * k, 47.8 * k), size * k, k, white, 0.6),
                &|canvas, k| {
                    let sides = (size * 6.0 * k, size * k);
                    dash(canvas, (48.3 * k, 47.8 * k), sides, k, white, 0.6);
                },
                &|canvas, k| {
                    let ends = ((40.0 * k, 20.0 * k), (52.0 * k, 70.0 * k));
                    line(canvas, ends.0, ends.1, size * k, white, 0.6);
                },
            ];
            for (nth, draw) in marks.into_iter().enumerate() {
                let whole = light(96, draw);
                for side in [48, 64, 144] {
                    let ratio = light(side, draw) / whole;
                    assert!(
                        (0.75..1.3).contains(&ratio),
                        "mark {nth} of {size} at {side}: {ratio:.2}"
                    );
                }
            }
        }
    }
}
