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
    /// How far the light breathes, as a share of itself.
    pulse: f32,
}

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
                texels.extend(colour(x, y).fixed());
            }
        }
        let Field { left, top, pitch, depth, .. } = field;
        Self { width, height, texels, pitch, left, top, depth, meeting, pulse: 0.0 }
    }

    pub(super) fn pulsing(self, pulse: f32) -> Self {
        Self { pulse, ..self }
    }

    /// Lays the wash onto rows `from..to` of the canvas.
    pub(super) fn lay(&self, view: &View, canvas: &mut Canvas, from: usize, to: usize) {
        let map = view.map(self.depth);
        let breath = 1.0 - self.pulse * (0.5 + 0.5 * (view.time_s * 0.9).sin());
        let gain = (breath * 65_535.0) as u16;
        let mut mixed = Vec::new();
        for y in from..to {
            self.lay_row(&map, y, gain, canvas.row(y), &mut mixed);
        }
    }

    fn lay_row(&self, map: &Map, y: usize, gain: u16, canvas: &mut [u16], mixed: &mut Vec<u16>) {
        let at = ((y as f32 + 0.5 - map.down) / map.scale - self.top) / self.pitch - 0.5;
        let at = at.clamp(0.0, (self.height - 1) as f32);
        let (upper, share) = (at.floor() as usize, weight(at - at.floor()));
        let lower = (upper + 1).min(self.height - 1);
        let row = |index: usize| &self.texels[index * self.width * 4..][..self.width * 4];
        mixed.resize(self.width * 4, 0);
        for ((out, a), b) in mixed.iter_mut().zip(row(upper)).zip(row(lower)) {
            *out = mix(*a, *b, share);
        }
        let step = 1.0 / (map.scale * self.pitch);
        let start = ((0.5 - map.right) / map.scale - self.left) / self.pitch - 0.5;
        let stride = (f64::from(step) * 65_536.0) as i64;
        let mut at = (f64::from(start) * 65_536.0) as i64;
        let top = (self.width as i64 - 2) << 16;
        for out in canvas.chunks_exact_mut(4) {
            let held = at.clamp(0, top);
            let texel = (held >> 16) as usize * 4;
            let pair = &mixed[texel..texel + 8];
            let share = ((held & 0xffff) >> 1) as u16;
            for (lane, out) in out.iter_mut().enumerate() {
                let value = mix(pair[lane], pair[lane + 4], share);
                *out = match self.meeting {
                    Meeting::Cover => value,
                    Meeting::Light => {
                        let value = (u32::from(value) * u32::from(gain)) >> 16;
                        let room = u32::from(FULL.saturating_sub(*out) << 1);
                        *out + ((room * value) >> 16) as u16
                    }
                };
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
