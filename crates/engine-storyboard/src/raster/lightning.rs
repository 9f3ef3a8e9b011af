//! Lightning: flashes that light the sky or the whole frame, and bolts down to the horizon. The
//! events decide their times; here they are only drawn.

use tiny_skia::Transform;

use super::canvas::{Canvas, FULL, pixel_range};
use super::colour::{Rgb, smooth};
use super::pen::{Ink, Pen};
use crate::rng::Rng;
use crate::scene::camera::CameraView;
use crate::scene::events::{EventKind, LightningFlash, ShotEvent, flash_brightness};

/// Light of a flash overhead in the sky around it, and on everything else.
const SKY: f32 = 0.72;
const LAND: f32 = 0.3;
/// Light below which nothing is drawn.
const FAINT: f32 = 0.02;

/// A strike.
#[derive(Debug)]
struct LightningStrike {
    time_s: f32,
    flash: LightningFlash,
    /// The bolt and its branches in stage pixels; empty when it does not show.
    bolt: Vec<Vec<(f32, f32)>>,
}

/// The strikes of a shot, which light its sky or the whole frame.
#[derive(Debug)]
pub(crate) struct Lightning {
    strikes: Vec<LightningStrike>,
    /// Stage row down to which the sky is lit; `None` lights the whole frame evenly.
    horizon: Option<f32>,
    width: f32,
    unit: f32,
    colour: Rgb,
}

/// Depth of the clouds that flash.
const DEPTH: f32 = 0.1;

impl Lightning {
    /// Lightning in the sky above `horizon` of a stage that is `width` wide; `None` if there is no
    /// flash.
    pub(crate) fn behind(
        events: &[ShotEvent],
        horizon: f32,
        (width, unit): (f32, f32),
        rng: &mut Rng,
    ) -> Option<Self> {
        let mut made = Self::over(events, (width, unit))?;
        for strike in made.strikes.iter_mut().filter(|one| one.flash.bolt) {
            strike.bolt = bolt(strike.flash.across * width, horizon, unit, rng);
        }
        made.horizon = Some(horizon);
        Some(made)
    }

    /// Light over everything that is painted; `None` if there is no flash.
    pub(crate) fn over(events: &[ShotEvent], (width, unit): (f32, f32)) -> Option<Self> {
        let strikes: Vec<LightningStrike> = events
            .iter()
            .filter_map(|event| match event.kind {
                EventKind::Flash(flash) => Some(LightningStrike {
                    time_s: event.time_s,
                    flash,
                    bolt: Vec::new(),
                }),
                _ => None,
            })
            .collect();
        (!strikes.is_empty()).then_some(Self {
            strikes,
            horizon: None,
            width,
            unit,
            colour: Rgb::hex(0xdc_e2ff),
        })
    }

    pub(crate) fn draw(&self, view: &CameraView, canvas: &mut Canvas) {
        for strike in &self.strikes {
            let power = flash_brightness(view.time_s - strike.time_s);
            if power <= FAINT {
                continue;
            }
            match self.horizon {
                None => self.light_frame(canvas, power * LAND * (0.35 + 0.65 * strike.flash.near)),
                Some(horizon) => {
                    self.light_sky(view, canvas, strike, horizon, power);
                    self.draw_bolt(view, canvas, strike, power);
                }
            }
        }
    }

    /// Lights the whole frame evenly.
    fn light_frame(&self, canvas: &mut Canvas, share: f32) {
        let ink = self.ink(share);
        for pixel in canvas.pixels.as_chunks_mut::<4>().0 {
            screen(pixel, ink, 32_768);
        }
    }

    /// Lights the sky, most around the strike.
    fn light_sky(
        &self,
        view: &CameraView,
        canvas: &mut Canvas,
        strike: &LightningStrike,
        horizon: f32,
        power: f32,
    ) {
        let map = view.map(DEPTH);
        let reach = self.unit * map.scale * (0.5 + 0.5 * strike.flash.near);
        let middle = map.x(strike.flash.across * self.width);
        let columns: Vec<u32> = (0..canvas.width)
            .map(|x| {
                let away = (x as f32 + 0.5 - middle) / reach;
                ((0.45 + 0.55 * (-away * away).exp()) * 32_768.0) as u32
            })
            .collect();
        let ink = self.ink(power * SKY * (0.5 + 0.5 * strike.flash.near));
        let last = (map.y(horizon).max(0.0) as usize).min(canvas.height);
        for y in 0..last {
            let row = canvas.row(y).as_chunks_mut::<4>().0.iter_mut();
            for (pixel, share) in row.zip(&columns) {
                screen(pixel, ink, *share);
            }
        }
    }

    fn ink(&self, share: f32) -> [u32; 4] {
        self.colour
            .fixed()
            .map(|part| (f32::from(part) * share.min(1.0)) as u32)
    }

    /// Draws the bolt.
    fn draw_bolt(
        &self,
        view: &CameraView,
        canvas: &mut Canvas,
        strike: &LightningStrike,
        power: f32,
    ) {
        let lit = smooth(0.2, 0.6, power);
        if strike.bolt.is_empty() || lit <= FAINT {
            return;
        }
        let map = view.map(DEPTH);
        let (mut low, mut high) = ((f32::MAX, f32::MAX), (f32::MIN, f32::MIN));
        for (x, y) in strike.bolt.iter().flatten() {
            low = (low.0.min(*x), low.1.min(*y));
            high = (high.0.max(*x), high.1.max(*y));
        }
        let reach = self.unit * 0.02;
        let columns = pixel_range(map.x(low.0 - reach), map.x(high.0 + reach), canvas.width);
        let rows = pixel_range(map.y(low.1 - reach), map.y(high.1 + reach), canvas.height);
        let (across, down) = (
            map.right - columns.start as f32,
            map.down - rows.start as f32,
        );
        let onto = Transform::from_row(map.scale, 0.0, 0.0, map.scale, across, down);
        let Some(mut pen) = Pen::new(columns.len() as u32, rows.len() as u32, onto) else {
            return;
        };
        let wide = self.unit * 0.0042 * (0.5 + 0.5 * strike.flash.near);
        // A wide faint glow, a narrower one, and the white core.
        for (breadth, alpha) in [(5.0, 0.16), (2.2, 0.35), (0.8, 1.0)] {
            for (nth, branch) in strike.bolt.iter().enumerate() {
                let thin = if nth == 0 { 1.0 } else { 0.5 };
                let ink = Ink::Flat(Rgb::hex(0xf6_f7ff), alpha * lit);
                pen.stroke(branch, wide * breadth * thin, ink);
            }
        }
        pen.stamp(canvas, (columns.start, rows.start), 1.0);
    }
}

/// Adds light, never beyond white; `share` in 32,768ths.
fn screen(pixel: &mut [u16; 4], ink: [u32; 4], share: u32) {
    for lane in 0..3 {
        // "Screen": light fills a share of what is missing to white, so that it never overflows.
        let room = u32::from(FULL.saturating_sub(pixel[lane]));
        let light = (ink[lane] * share) >> 15;
        pixel[lane] += ((room * light) >> 15).min(room) as u16;
    }
}

/// A jagged way from the clouds at `x` down to `horizon`, and branches that end in the air.
fn bolt(x: f32, horizon: f32, unit: f32, rng: &mut Rng) -> Vec<Vec<(f32, f32)>> {
    let top = horizon * 0.02;
    let foot = (x + rng.signed() * unit * 0.16, horizon);
    let trunk = jagged((x, top), foot, rng);
    let mut branches = Vec::new();
    for _ in 0..3 {
        let at = trunk.len() / 6 + rng.below(trunk.len() / 2);
        let Some(from) = trunk.get(at).copied() else {
            continue;
        };
        let side = if rng.chance(0.5) { 1.0 } else { -1.0 };
        let long = (horizon - from.1) * rng.range(0.3, 0.6);
        let to = (
            from.0 + side * long * rng.range(0.5, 0.9),
            from.1 + long * rng.range(0.5, 0.9),
        );
        branches.push(jagged(from, to, rng));
    }
    branches.insert(0, trunk);
    branches
}

/// Midpoints moved aside by chance, again and again (midpoint displacement).
fn jagged(from: (f32, f32), to: (f32, f32), rng: &mut Rng) -> Vec<(f32, f32)> {
    let mut way = vec![from, to];
    let mut aside = (to.0 - from.0).hypot(to.1 - from.1) * 0.13;
    // Five halvings give 32 segments; each offset is about half of the last, so that the bolt is
    // rough at every scale.
    for _ in 0..5 {
        let mut finer = Vec::with_capacity(way.len() * 2);
        for pair in way.windows(2) {
            if let [a, b] = pair {
                let middle = ((a.0 + b.0) * 0.5, (a.1 + b.1) * 0.5);
                let moved = (
                    middle.0 + rng.signed() * aside,
                    middle.1 + rng.signed() * aside * 0.3,
                );
                finer.extend([*a, moved]);
            }
        }
        finer.extend(way.last());
        way = finer;
        aside *= 0.55;
    }
    way
}
