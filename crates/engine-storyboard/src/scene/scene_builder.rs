//! A scene under construction: planes, washes, actors and weather in order, back to front. It knows
//! margins and depths; the scenes decide what to draw.

use tiny_skia::Transform;

use super::actor::Actor;
use super::camera::REACH;
use super::events::ShotEvent;
use super::palette::Palette;
use crate::lexicon::{Place, Reading};
use crate::places::PreviousPlace;
use crate::raster::colour::Rgb;
use crate::raster::layer::{Heave, Layer, LayerPlacement, Sway};
use crate::raster::lightning::Lightning;
use crate::raster::noise;
use crate::raster::particles::Particles;
use crate::raster::pen::Pen;
use crate::raster::wash::{Wash, WashArea, WashBlend};
use crate::raster::water::Water;
use crate::rng::Rng;

/// One thing in a scene.
#[derive(Debug)]
pub(crate) enum SceneElement {
    Wash(Wash),
    Plane(Layer),
    Actor(Box<Actor>),
    Water(Water),
    Particles(Particles),
    Lightning(Lightning),
}

/// A scene under construction.
#[derive(Debug)]
pub(crate) struct SceneBuilder<'a> {
    pub(crate) width: f32,
    pub(crate) height: f32,
    /// Frame pixels per stage pixel: a stage is as large in every resolution of its shape, so
    /// that chance falls alike in all of them.
    pub(crate) pixels: f32,
    /// The length that shapes are sized by, pixels.
    pub(crate) unit: f32,
    pub(crate) seconds: f32,
    pub(crate) palette: Palette,
    pub(crate) reading: &'a Reading,
    pub(crate) place: Place,
    pub(crate) rng: Rng,
    /// Magnification of the subjects.
    pub(crate) nearness: f32,
    /// Events of the shot.
    pub(crate) events: Vec<ShotEvent>,
    pub(crate) elements: Vec<SceneElement>,
    /// Whether only the figures are placed and nothing is painted.
    pub(crate) bare: bool,
    /// Whether a street has a pavement in front.
    pub(crate) paved: bool,
    /// Positions of the figures before an edit; empty for the first version.
    pub(crate) previous_places: Vec<PreviousPlace>,
    /// Positions of the figures in this version.
    pub(crate) placed: Vec<PreviousPlace>,
}

/// Position and motion of a plane. Lengths in stage pixels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlaneLayout {
    pub(crate) depth: f32,
    pub(crate) top: f32,
    pub(crate) bottom: f32,
    /// Frame pixels per texel.
    pub(crate) pitch: f32,
    /// Pixels per second.
    pub(crate) drift: f32,
    pub(crate) sway: Option<Sway>,
    pub(crate) heave: Option<Heave>,
    /// Strength of the brush texture.
    pub(crate) brush: f32,
}

impl PlaneLayout {
    pub(crate) fn new(depth: f32, top: f32, bottom: f32) -> Self {
        Self {
            depth,
            top,
            bottom,
            pitch: 1.0,
            drift: 0.0,
            sway: None,
            heave: None,
            brush: 0.05,
        }
    }
}

impl SceneBuilder<'_> {
    /// Pixels by which a plane at `depth` must outreach the frame on each side.
    pub(crate) fn margin(&self, depth: f32) -> f32 {
        (REACH * depth * self.unit).ceil() + 4.0
    }

    /// Whether the frame is taller than wide.
    pub(crate) fn is_portrait(&self) -> bool {
        self.height > self.width
    }

    /// Paints a plane. `draw` gets the pen in stage coordinates and the left and right end.
    pub(crate) fn add_plane(&mut self, plane: PlaneLayout, draw: impl FnOnce(&mut Pen, f32, f32)) {
        if self.bare {
            // Chance goes on as if it were painted.
            if plane.brush > 0.0 {
                self.rng.next();
            }
            return;
        }
        // A plane is larger than the frame by all that camera, drift, sway and heave can move it:
        // its edge must never show.
        let margin = self.margin(plane.depth);
        let travel = plane.drift.abs() * self.seconds;
        let reach = plane.sway.map_or(0.0, |sway| sway.reach) + travel;
        let (left, right) = (-margin - reach, self.width + margin + reach);
        let rise = plane.heave.map_or(0.0, |heave| heave.reach);
        let top = plane.top.max(-margin - rise - 2.0).floor();
        let bottom = plane.bottom.min(self.height + margin + rise + 2.0).ceil();
        let pitch = plane.pitch / self.pixels;
        let width = ((right - left) / pitch).ceil() as u32 + 1;
        let height = ((bottom - top) / pitch).ceil().max(1.0) as u32 + 1;
        let scale = 1.0 / pitch;
        let onto = Transform::from_row(scale, 0.0, 0.0, scale, -left * scale, -top * scale);
        let Some(mut pen) = Pen::new(width, height, onto) else {
            return;
        };
        draw(&mut pen, left, right);
        if plane.brush > 0.0 {
            noise::brush(&mut pen.pixmap, plane.brush, self.pixels, self.rng.next());
        }
        let PlaneLayout {
            depth,
            drift,
            sway,
            heave,
            ..
        } = plane;
        let placing = LayerPlacement {
            pitch,
            left,
            top,
            depth,
            drift,
            sway,
            heave,
        };
        self.elements
            .push(SceneElement::Plane(Layer::new(pen.pixmap, placing)));
    }

    /// Paints a plane texel by texel: `paint(x, y)` gives colour and opacity.
    pub(crate) fn add_field(&mut self, plane: PlaneLayout, paint: impl Fn(f32, f32) -> (Rgb, f32)) {
        let pitch = plane.pitch / self.pixels;
        self.add_plane(plane, |pen, left, _| {
            let width = pen.pixmap.width() as usize;
            let top = pen.top();
            for (row, line) in pen
                .pixmap
                .data_mut()
                .chunks_exact_mut(width * 4)
                .enumerate()
            {
                let y = top + (row as f32 + 0.5) * pitch;
                for (column, texel) in line.chunks_exact_mut(4).enumerate() {
                    let (colour, alpha) = paint(left + (column as f32 + 0.5) * pitch, y);
                    // Below half of an 8-bit step. Texels that stay clear cost nothing when the
                    // plane is laid.
                    if alpha <= 0.002 {
                        continue;
                    }
                    let alpha = alpha.min(1.0) * 255.0;
                    let [r, g, b] = [colour.r, colour.g, colour.b]
                        .map(|value| (value.clamp(0.0, 1.0) * alpha + 0.5) as u8);
                    texel.copy_from_slice(&[r, g, b, (alpha + 0.5) as u8]);
                }
            }
        });
    }

    /// Lays a smooth field over the whole frame.
    pub(crate) fn add_wash(
        &mut self,
        depth: f32,
        meeting: WashBlend,
        pulse: f32,
        colour: impl Fn(f32, f32) -> Rgb,
    ) {
        if self.bare {
            return;
        }
        let margin = self.margin(depth);
        let field = WashArea {
            left: -margin,
            top: -margin,
            right: self.width + margin,
            bottom: self.height + margin,
            pitch: (self.unit / 90.0).max(2.0),
            depth,
        };
        let wash = Wash::new(field, meeting, colour).pulsing(pulse);
        self.elements.push(SceneElement::Wash(wash));
    }

    pub(crate) fn add_actor(&mut self, actor: Actor) {
        self.elements.push(SceneElement::Actor(Box::new(actor)));
    }

    pub(crate) fn add_particles(&mut self, particles: Particles) {
        self.elements.push(SceneElement::Particles(particles));
    }

    /// A ridge line from `left` to `right`: `height(x)` above `base`, every `step` pixels.
    pub(crate) fn profile(
        left: f32,
        right: f32,
        step: f32,
        floor: f32,
        height: impl Fn(f32) -> f32,
    ) -> Vec<(f32, f32)> {
        let count = ((right - left) / step).ceil() as usize + 1;
        let mut points: Vec<(f32, f32)> = (0..=count)
            .map(|index| {
                let x = left + index as f32 * step;
                (x, height(x))
            })
            .collect();
        points.push((right + step, floor));
        points.push((left, floor));
        points
    }
}
