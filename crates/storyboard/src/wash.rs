//! A smooth field of colour (sky, glow, mist), kept coarse but at 15 bits, so that it costs
//! little and never shows a band.

use super::canvas::{Canvas, FULL};
use super::colour::Rgb;
use super::view::{Map, View};

/// How a wash meets what lies under it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meeting {
    /// Hides it.
    Cover,
    /// Adds light to it, never beyond white ("screen").
    Light,
}

/// A smooth field of colour.
#[derive(Debug)]
pub(super) struct Wash {
    width: usize,
    height: usize,
    /// `[height][width][4] u16`, 15 bits.
    texels: Vec<u16>,
    pitch: f32,
    left: f32,
    top: f32,
    depth: f32,
    meeting: Meeting,
    /// Which rows of texels hold any light worth adding.
    lit: Vec<bool>,
    /// How far the light breathes, as a share of itself.
    pulse: f32,
}

/// Less is dark: an eighth of an 8-bit step.
const FAINT: u16 = 16;

/// The part of the stage that a wash covers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field {
    pub(super) left: f32,
    pub(super) top: f32,
    pub(super) right: f32,
    pub(super) bottom: f32,
    pub(super) pitch: f32,
    pub(super) depth: f32,
}

impl Wash {
    /// A wash whose colour at a stage point is `colour(x, y)`.
    pub(super) fn new(field: Field, meeting: Meeting, colour: impl Fn(f32, f32) -> Rgb) -> Self {
        let width = ((field.right - field.left) / field.pitch).ceil() as usize + 2;
        let height = ((field.bottom - field.top) / field.pitch).ceil() as usize + 2;
        let mut texels = Vec::with_capacity(width * height * 4);
        for row in 0..height {
            let y = field.top + (row as f32 + 0.5) * field.pitch;
            for column in 0..width {
                let x = field.left + (column as f32 + 0.5) * field.pitch;
                texels.extend(
                    colour(x, y)
                        .fixed()
                        .map(|part| if part < FAINT { 0 } else { part }),
                );
            }
        }
        let lit = texels
            .chunks_exact(width * 4)
            .map(|row| row.iter().any(|part| *part > 0))
            .collect();
        let Field {
            left,
            top,
            pitch,
            depth,
            ..
        } = field;
        Self {
            width,
            height,
            texels,
            lit,
            pitch,
            left,
            top,
            depth,
            meeting,
            pulse: 0.0,
        }
    }

    pub(super) fn pulsing(self, pulse: f32) -> Self {
        Self { pulse, ..self }
    }

    /// Lays the wash onto those rows of the canvas that are `needed`.
    pub(super) fn lay(&self, view: &View, canvas: &mut Canvas, needed: impl Fn(usize) -> bool) {
        let map = view.map(self.depth);
        let breath = 1.0 - self.pulse * (0.5 + 0.5 * (view.time_s * 0.9).sin());
        let gain = (breath * 65_535.0) as u16;
        let (mut mixed, mut line) = (Vec::new(), vec![0; canvas.width * 4]);
        for y in (0..canvas.height).filter(|y| needed(*y)) {
            match self.meeting {
                Meeting::Cover => self.sample(&map, y, canvas.row(y), &mut mixed),
                Meeting::Light if !self.shines(&map, y) => {}
                Meeting::Light => {
                    self.sample(&map, y, &mut line, &mut mixed);
                    for (out, light) in canvas.row(y).iter_mut().zip(&line) {
                        let light = (u32::from(*light) * u32::from(gain)) >> 16;
                        let room = FULL.saturating_sub(*out) << 1;
                        *out += ((u32::from(room) * light) >> 16) as u16;
                    }
                }
            }
        }
    }

    /// Where row `y` of the frame lies in texels.
    fn place(&self, map: &Map, y: usize) -> f32 {
        let at = ((y as f32 + 0.5 - map.down) / map.scale - self.top) / self.pitch - 0.5;
        at.clamp(0.0, (self.height - 1) as f32)
    }

    fn shines(&self, map: &Map, y: usize) -> bool {
        let upper = self.place(map, y).floor() as usize;
        self.lit[upper] || self.lit[(upper + 1).min(self.height - 1)]
    }

    /// Samples row `y` of the frame into `out: [width][4] u16`.
    fn sample(&self, map: &Map, y: usize, out: &mut [u16], mixed: &mut Vec<u16>) {
        let at = self.place(map, y);
        let (upper, share) = (at.floor() as usize, weight(at - at.floor()));
        let lower = (upper + 1).min(self.height - 1);
        let row = |index: usize| &self.texels[index * self.width * 4..][..self.width * 4];
        mixed.resize(self.width * 4, 0);
        for ((out, a), b) in mixed.iter_mut().zip(row(upper)).zip(row(lower)) {
            *out = mix(*a, *b, share);
        }
        let step = 1.0 / (map.scale * self.pitch);
        let start = ((0.5 - map.right) / map.scale - self.left) / self.pitch - 0.5;
        let stride = (f64::from(step) * 65_536.0) as i32;
        let mut at = (f64::from(start) * 65_536.0) as i32;
        // A wash is some hundreds of texels wide: 16 bits hold the whole part.
        let top = (i32::try_from(self.width).map_or(32_000, |width| width.min(32_000)) - 2) << 16;
        let (texels, _) = mixed.as_chunks::<4>();
        for out in out.as_chunks_mut::<4>().0 {
            let held = at.clamp(0, top);
            let texel = (held >> 16) as usize;
            let share = ((held & 0xffff) >> 1) as u16;
            if let [left, right, ..] = &texels[texel..] {
                for lane in 0..4 {
                    out[lane] = mix(left[lane], right[lane], share);
                }
            }
            at += stride;
        }
    }
}

fn weight(share: f32) -> u16 {
    (share.clamp(0.0, 1.0) * 32_767.0) as u16
}

/// Blends 15-bit components; `share` in 32,768ths of `b`.
fn mix(a: u16, b: u16, share: u16) -> u16 {
    let from = (u32::from(a) * u32::from(32_768 - share)) >> 15;
    let to = (u32::from(b) * u32::from(share)) >> 15;
    (from + to) as u16
}
