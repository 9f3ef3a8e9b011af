//! Rain, snow, stars, fireflies, bubbles, glints and leaves: many small marks whose places are
//! fixed by the seed and whose paths are functions of time, so that nothing pops.

use super::canvas::Canvas;
use super::colour::Rgb;
use super::rng::Rng;
use super::view::View;

/// What the marks are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    Rain,
    Snow,
    Star,
    Firefly,
    Bubble,
    Glint,
    Dust,
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
pub(super) struct Particles {
    mark: Mark,
    colour: Rgb,
    unit: f32,
    depth: f32,
    area: [f32; 4],
    wind: f32,
    specks: Vec<Speck>,
}

impl Particles {
    /// `count` marks over `area: [left, top, right, bottom]`; `wind` leans and drives them.
    pub(super) fn new(
        mark: Mark,
        count: usize,
        area: [f32; 4],
        unit: f32,
        colour: Rgb,
        rng: &mut Rng,
    ) -> Self {
        let speck = |rng: &mut Rng| {
            let near = rng.unit();
            Speck {
                x: rng.unit(),
                y: rng.unit(),
                size: rng.range(0.6, 1.0) * (0.4 + 0.6 * near),
                phase: rng.range(0.0, std::f32::consts::TAU),
                near,
            }
        };
        let specks = (0..count).map(|_| speck(rng)).collect();
        Self {
            mark,
            colour,
            unit,
            depth: 1.0,
            area,
            wind: 0.0,
            specks,
        }
    }

    pub(super) fn at_depth(self, depth: f32) -> Self {
        Self { depth, ..self }
    }

    pub(super) fn in_wind(self, wind: f32) -> Self {
        Self { wind, ..self }
    }

    /// Draws the marks towards a column, as glints are under a sun at `x`.
    pub(super) fn gathered(mut self, x: f32, tightness: f32) -> Self {
        let [left, _, right, _] = self.area;
        let goal = ((x - left) / (right - left)).clamp(0.0, 1.0);
        for speck in &mut self.specks {
            let spread = (0.16 + 0.8 * speck.y) * (1.0 - tightness) + 0.05;
            let away = (speck.x - 0.5) * 2.0;
            speck.x = goal + away * away.abs() * spread;
        }
        self
    }

    pub(super) fn lay(&self, view: &View, canvas: &mut Canvas) {
        let map = view.map(self.depth);
        for speck in &self.specks {
            let (x, y, alpha) = self.place(speck, view.time_s);
            let (x, y) = (map.x(x), map.y(y));
            let u = self.unit * speck.size * map.scale;
            match self.mark {
                Mark::Rain => self.streak(canvas, x, y, u, alpha),
                Mark::Glint => dash(canvas, x, y, u * 0.02, u * 0.0021, self.colour, alpha),
                Mark::Star => dot(canvas, x, y, u * 0.0021 + 0.25, self.colour, alpha),
                Mark::Snow => dot(canvas, x, y, u * 0.0052, self.colour, alpha),
                Mark::Firefly => {
                    dot(canvas, x, y, u * 0.012, self.colour, alpha * 0.35);
                    dot(canvas, x, y, u * 0.003, self.colour, alpha);
                }
                Mark::Bubble => dot(canvas, x, y, u * 0.006, self.colour, alpha),
                Mark::Dust => dot(canvas, x, y, u * 0.0035, self.colour, alpha),
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
            Mark::Star | Mark::Firefly | Mark::Glint => (0.0, 0.0),
        };
        let wander = |rate: f32, reach: f32| (t * rate + speck.phase).sin() * reach;
        let per_unit = self.unit / width.max(1.0);
        let (dx, dy) = match self.mark {
            Mark::Snow => (wander(0.9, 0.012 * per_unit), 0.0),
            Mark::Firefly => (wander(0.5, 0.03 * per_unit), wander(0.37, 0.02)),
            Mark::Bubble => (wander(2.1, 0.006 * per_unit), 0.0),
            Mark::Dust => (wander(0.4, 0.01), wander(0.31, 0.01)),
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
        };
        (left + x * width, top + y * height, alpha * fade)
    }

    fn streak(&self, canvas: &mut Canvas, x: f32, y: f32, u: f32, alpha: f32) {
        let length = (u * 0.07) as i32;
        let lean = self.wind * 0.65;
        for step in 0..length.max(2) {
            let share = step as f32 / length.max(2) as f32;
            let taper = 1.0 - (share * 2.0 - 1.0).abs();
            let (px, py) = (x + lean * step as f32, y + step as f32);
            let left = px.floor();
            let right = px - left;
            spot(
                canvas,
                left as i32,
                py as i32,
                self.colour,
                alpha * taper * (1.0 - right),
            );
            spot(
                canvas,
                left as i32 + 1,
                py as i32,
                self.colour,
                alpha * taper * right,
            );
        }
    }
}

fn spot(canvas: &mut Canvas, x: i32, y: i32, colour: Rgb, alpha: f32) {
    let (Ok(x), Ok(y)) = (usize::try_from(x), usize::try_from(y)) else {
        return;
    };
    if x >= canvas.width || y >= canvas.height || alpha <= 0.002 {
        return;
    }
    let at = (y * canvas.width + x) * 4;
    let share = (alpha.min(1.0) * 32_768.0) as i32;
    for (out, goal) in canvas.pixels[at..at + 3].iter_mut().zip(colour.fixed()) {
        let own = i32::from(*out);
        *out = (own + (((i32::from(goal) - own) * share) >> 15)) as u16;
    }
}

/// A soft round mark of `radius` pixels at a sub-pixel place.
fn dot(canvas: &mut Canvas, x: f32, y: f32, radius: f32, colour: Rgb, alpha: f32) {
    let reach = radius + 1.0;
    // Smaller than a pixel: the light spreads, its sum stays.
    let (soft, alpha) = if radius < 0.7 {
        (0.7, alpha * (radius / 0.7).powi(2))
    } else {
        (radius, alpha)
    };
    for py in (y - reach).floor() as i32..=(y + reach).ceil() as i32 {
        for px in (x - reach).floor() as i32..=(x + reach).ceil() as i32 {
            let away = (px as f32 + 0.5 - x).hypot(py as f32 + 0.5 - y) / (soft + 0.5);
            let share = (1.0 - away * away).max(0.0);
            spot(canvas, px, py, colour, alpha * share);
        }
    }
}

/// A flat soft mark, as light on water.
fn dash(canvas: &mut Canvas, x: f32, y: f32, across: f32, down: f32, colour: Rgb, alpha: f32) {
    let down = down.max(0.6);
    for py in (y - down - 1.0).floor() as i32..=(y + down + 1.0).ceil() as i32 {
        let v = (py as f32 + 0.5 - y) / (down + 0.5);
        let row = (1.0 - v * v).max(0.0) * alpha;
        if row <= 0.004 {
            continue;
        }
        for px in (x - across).floor() as i32..=(x + across).ceil() as i32 {
            let h = (px as f32 + 0.5 - x) / across.max(1.0);
            spot(canvas, px, py, colour, row * (1.0 - h * h).max(0.0));
        }
    }
}
