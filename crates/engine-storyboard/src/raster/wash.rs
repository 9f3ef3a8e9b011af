//! A smooth field of colour (sky, glow, mist) at low resolution but with 15 bits, so that it costs
//! little and never shows a band.

use super::canvas::FULL;
use super::colour::Rgb;
use super::resample::{PixelStep, RowCache, RowSampler, RowScratch, Texel, blend_rows, mul_high};
use crate::scene::camera::{CameraView, StageMap};

/// Blending of a wash with the elements below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WashBlend {
    /// Hides them.
    Cover,
    /// Adds light to them, never beyond white ("screen").
    Light,
}

/// A smooth field of colour.
#[derive(Debug)]
pub(crate) struct Wash {
    width: usize,
    height: usize,
    /// `[height][width]`.
    texels: Vec<Texel>,
    area: WashArea,
    meeting: WashBlend,
    /// Rows of texels that add any visible light.
    lit: Vec<bool>,
    /// Amplitude of the light's slow pulse, as a share of itself.
    pulse: f32,
}

/// Smallest component that is kept: an eighth of an 8-bit step.
const FAINT: u16 = 16;

/// The part of the stage that a wash covers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WashArea {
    pub(crate) left: f32,
    pub(crate) top: f32,
    pub(crate) right: f32,
    pub(crate) bottom: f32,
    pub(crate) pitch: f32,
    pub(crate) depth: f32,
}

impl Wash {
    /// A wash whose colour at a stage point is `colour(x, y)`.
    pub(crate) fn new(
        area: WashArea,
        meeting: WashBlend,
        colour: impl Fn(f32, f32) -> Rgb,
    ) -> Self {
        let width = ((area.right - area.left) / area.pitch).ceil() as usize + 2;
        let height = ((area.bottom - area.top) / area.pitch).ceil() as usize + 2;
        let mut texels = Vec::with_capacity(width * height);
        for row in 0..height {
            let y = area.top + (row as f32 + 0.5) * area.pitch;
            for column in 0..width {
                let x = area.left + (column as f32 + 0.5) * area.pitch;
                texels.push(
                    colour(x, y)
                        .fixed()
                        // Cut to 0, so that whole rows without light are skipped (`lit`).
                        .map(|part| if part < FAINT { 0 } else { part }),
                );
            }
        }
        let lit = texels
            .chunks_exact(width)
            .map(|row| row.as_flattened().iter().any(|part| *part > 0))
            .collect();
        Self {
            width,
            height,
            texels,
            lit,
            area,
            meeting,
            pulse: 0.0,
        }
    }

    pub(crate) fn pulsing(self, pulse: f32) -> Self {
        Self { pulse, ..self }
    }
}

/// A wash under one camera view, ready to be drawn row by row.
#[derive(Debug)]
pub(crate) struct ProjectedWash<'a> {
    wash: &'a Wash,
    map: StageMap,
    /// Its light at this time, in 65,536ths.
    gain: u16,
    step: PixelStep,
    held: RowCache,
}

impl<'a> ProjectedWash<'a> {
    pub(crate) fn new(wash: &'a Wash, view: &CameraView) -> Self {
        let breath = 1.0 - wash.pulse * (0.5 + 0.5 * (view.time_s * 0.9).sin());
        let map = view.map(wash.area.depth);
        Self {
            wash,
            map,
            step: PixelStep::new(1.0 / (map.scale * wash.area.pitch)),
            held: RowCache::default(),
            gain: (breath * 65_535.0) as u16,
        }
    }

    /// Lays row `y` of the frame onto `canvas: [width][4] u16`.
    pub(crate) fn draw_row(&mut self, y: usize, canvas: &mut [u16], scratch: &mut RowScratch) {
        let canvas = canvas.as_chunks_mut::<4>().0;
        match self.wash.meeting {
            WashBlend::Cover => self.sample(y, canvas),
            WashBlend::Light if !self.adds_light(y) => {}
            WashBlend::Light => {
                let pixels = &mut scratch.pixels;
                pixels.resize(canvas.len(), [0; 4]);
                self.sample(y, pixels);
                let light = pixels.as_flattened().iter();
                for (out, light) in canvas.as_flattened_mut().iter_mut().zip(light) {
                    // "Screen": light fills a share of what is missing to white. Doubled, because
                    // `mul_high` drops 16 bits.
                    let room = FULL.saturating_sub(*out) << 1;
                    *out += mul_high(room, mul_high(*light, self.gain));
                }
            }
        }
    }

    /// Position of row `y` of the frame, in texels.
    fn place(&self, y: usize) -> f32 {
        let (wash, map) = (self.wash, &self.map);
        let at = ((y as f32 + 0.5 - map.down) / map.scale - wash.area.top) / wash.area.pitch - 0.5;
        at.clamp(0.0, (wash.height - 1) as f32)
    }

    fn adds_light(&self, y: usize) -> bool {
        let upper = self.place(y).floor() as usize;
        self.wash.lit[upper] || self.wash.lit[(upper + 1).min(self.wash.height - 1)]
    }

    /// Samples row `y` of the frame.
    fn sample(&mut self, y: usize, out: &mut [Texel]) {
        let (wash, map, at) = (self.wash, &self.map, self.place(y));
        let upper = at.floor() as usize;
        let lower = (upper + 1).min(wash.height - 1);
        let share = ((at - at.floor()) * 65_535.0) as u16;
        let start = ((0.5 - map.right) / map.scale - wash.area.left) / wash.area.pitch - 0.5;
        let across = RowSampler::new(start, &self.step);
        let (above, below) = self.held.rows((upper, lower), out.len(), |at, pixels| {
            across.sample(&wash.texels[at * wash.width..][..wash.width], 0, 0, pixels);
        });
        blend_rows(above, below, share, out);
    }
}
