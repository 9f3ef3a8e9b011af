//! Rain, snow, stars, fireflies, bubbles, glints and leaves: many small marks whose places are
//! fixed by the seed and whose paths are functions of time, so that nothing pops.

use super::canvas::Canvas;
use super::colour::Rgb;
use super::marks::{dash, dot, line};
use super::rng::Rng;
use super::view::View;

/// What the marks are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
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
struct Speck {
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
    mark: Mark,
    colour: Rgb,
    unit: f32,
    depth: f32,
    area: [f32; 4],
    wind: f32,
    size: f32,
    specks: Vec<Speck>,
}

impl Particles {
    /// `count` marks over `area: [left, top, right, bottom]`; `wind` leans and drives them.
    pub(crate) fn new(
        mark: Mark,
        count: usize,
        area: [f32; 4],
        unit: f32,
        colour: Rgb,
        rng: &mut Rng,
    ) -> Self {
        let specks = (0..count).map(|_| {
            let near = rng.unit();
            Speck {
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

    /// Draws the marks towards a column, as glints are under a sun at `x`.
    pub(crate) fn gathered(mut self, x: f32, tightness: f32) -> Self {
        let [left, _, right, _] = self.area;
        let goal = ((x - left) / (right - left)).clamp(0.0, 1.0);
        for speck in &mut self.specks {
            let spread = (0.16 + 0.8 * speck.y) * (1.0 - tightness) + 0.05;
            let away = (speck.x - 0.5) * 2.0;
            speck.x = goal + away * away.abs() * spread;
        }
        self
    }

    /// Marks of the usual size times `size`.
    pub(crate) fn sized(self, size: f32) -> Self {
        Self { size, ..self }
    }

    pub(crate) fn lay(&self, view: &View, canvas: &mut Canvas) {
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
                Mark::Rain => self.streak(canvas, (x, y), u, pixel, alpha),
                Mark::Glint => {
                    let sides = (u * 0.02, u * 0.0021);
                    dash(canvas, (x, y), sides, pixel, self.colour, alpha);
                }
                Mark::Star => round(u * 0.0021 + 0.25 * pixel, alpha),
                Mark::Snow if self.wind > 0.5 => self.driven(canvas, (x, y), u, speck.near, alpha),
                Mark::Snow => round(u * 0.0052, alpha),
                Mark::Firefly => {
                    round(u * 0.012, alpha * 0.35);
                    round(u * 0.003, alpha);
                }
                Mark::Bubble => round(u * 0.006, alpha),
                Mark::Dust => round(u * 0.0035, alpha),
                Mark::Leaf => self.leaf(speck, canvas, (x, y), u, view.time_s),
                Mark::Meteor => {
                    let tail = (x - u * 0.3 * self.wind.signum(), y - u * 0.13);
                    line(canvas, tail, (x, y), u * 0.004, self.colour, alpha);
                }
            }
        }
    }

    fn place(&self, speck: &Speck, t: f32) -> (f32, f32, f32) {
        let [left, top, right, bottom] = self.area;
        let (width, height) = (right - left, bottom - top);
        let wrap = |v: f32| v.rem_euclid(1.0);
        let (speed, sideways) = match self.mark {
            Mark::Rain => (1.05 + 0.5 * speck.near, self.wind * 0.9),
            Mark::Snow => (0.035 + 0.06 * speck.near, self.wind * (0.3 + speck.near)),
            Mark::Bubble => (-0.05 - 0.06 * speck.near, 0.0),
            Mark::Dust => (-0.004, 0.008 + self.wind * 0.2),
            Mark::Leaf => (0.05 + 0.1 * speck.near, self.wind * (0.7 + speck.near)),
            Mark::Star | Mark::Firefly | Mark::Glint | Mark::Meteor => (0.0, 0.0),
        };
        if self.mark == Mark::Meteor {
            return self.meteor(speck, t);
        }
        let wander = |rate: f32, reach: f32| (t * rate + speck.phase).sin() * reach;
        let per_unit = self.unit / width.max(1.0);
        let (dx, dy) = match self.mark {
            Mark::Snow => (wander(0.9, 0.012 * per_unit), 0.0),
            Mark::Firefly => (wander(0.5, 0.03 * per_unit), wander(0.37, 0.02)),
            Mark::Bubble => (wander(2.1, 0.006 * per_unit), 0.0),
            Mark::Dust => (wander(0.4, 0.01), wander(0.31, 0.01)),
            Mark::Leaf => (wander(1.3, 0.02 * per_unit), wander(1.9, 0.03)),
            _ => (0.0, 0.0),
        };
        let x = speck.x + sideways * t * per_unit + dx;
        let y = speck.y + speed * t * self.unit / height.max(1.0) + dy;
        let x = if sideways == 0.0 { x } else { wrap(x) };
        let y = if speed == 0.0 { y } else { wrap(y) };
        // Marks that wrap around fade at the ends of their way, so that none pops.
        let fade = if speed == 0.0 || self.mark == Mark::Rain {
            1.0
        } else {
            (y.min(1.0 - y) * 12.0).clamp(0.0, 1.0)
        };
        let twinkle = |rate: f32| 0.5 + 0.5 * (t * rate * (0.6 + speck.near) + speck.phase).sin();
        let alpha = match self.mark {
            Mark::Rain => 0.2 + 0.26 * speck.near,
            Mark::Snow => 0.5 + 0.45 * speck.near,
            Mark::Star => (0.25 + 0.75 * speck.near * speck.near) * (0.75 + 0.25 * twinkle(1.6)),
            Mark::Firefly => twinkle(1.3).powi(2),
            Mark::Bubble => 0.3,
            Mark::Glint => twinkle(2.2).powi(3) * (0.5 + 0.5 * speck.near),
            Mark::Dust => 0.28 * twinkle(0.7),
            Mark::Leaf | Mark::Meteor => 1.0,
        };
        (left + x * width, top + y * height, alpha * fade)
    }

    /// Each shooting star falls once in a few seconds, in a third of one.
    fn meteor(&self, speck: &Speck, t: f32) -> (f32, f32, f32) {
        let [left, top, right, bottom] = self.area;
        let period = 2.4 + 3.2 * speck.near;
        let share = (t / period + speck.phase / std::f32::consts::TAU).fract() * period / 0.45;
        let alpha = (share * (1.0 - share) * 4.0).max(0.0);
        let way = self.unit * 0.42 * share.min(1.0);
        let x = left + speck.x * (right - left) + way * self.wind.signum();
        let y = top + speck.y * (bottom - top) + way * 0.43;
        (x, y, alpha)
    }

    /// A drop's way during one exposure, brightest in its middle.
    fn streak(&self, canvas: &mut Canvas, (x, y): (f32, f32), u: f32, pixel: f32, alpha: f32) {
        let long = u * 0.07;
        let tip = (x + self.wind * 0.65 * long, y + long);
        line(canvas, (x, y), tip, 0.8 * pixel, self.colour, alpha);
    }

    /// A flake's way during one exposure in a strong wind.
    fn driven(&self, canvas: &mut Canvas, (x, y): (f32, f32), u: f32, near: f32, alpha: f32) {
        let long = u * 0.04 * self.wind;
        let tip = (x + long, y + long * (0.1 + 0.15 * near));
        line(canvas, (x, y), tip, u * 0.0045, self.colour, alpha);
    }

    /// A leaf that turns over as it flies.
    fn leaf(&self, speck: &Speck, canvas: &mut Canvas, (x, y): (f32, f32), u: f32, t: f32) {
        let turn = t * (2.0 + 3.0 * speck.near) + speck.phase;
        let (long, wide) = (u * 0.011, u * 0.009 * (turn * 1.3).sin().abs().max(0.25));
        let (across, down) = (turn.cos() * long, turn.sin() * long * 0.7);
        let (from, to) = ((x - across, y - down), (x + across, y + down));
        line(canvas, from, to, wide, self.colour, 1.0);
    }
}
