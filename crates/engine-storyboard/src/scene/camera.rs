//! Camera moves: one eased path per shot, which never shows more than the planes hold; and the camera at
//! one instant, which places each plane by its depth. A pulse moves it in step with a sound. It draws nothing.

use crate::lexicon::{Framing, Motion, Reading};
use crate::raster::colour::lerp;
use crate::rng::Rng;

/// Longest pan of a plane of depth 1.0 to each side, in stage units.
pub(crate) const REACH: f32 = 0.075;
/// The strongest magnification of a plane of depth 1.0.
const ZOOM_MAX: f32 = 1.16;

/// A camera move over a whole shot, in stage units (see `SceneBuilder::unit`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CameraMove {
    pan_from: (f32, f32),
    pan_to: (f32, f32),
    zoom_from: f32,
    zoom_to: f32,
}

impl CameraMove {
    /// A camera that does not move.
    pub(crate) const REST: Self = Self {
        pan_from: (0.0, 0.0),
        pan_to: (0.0, 0.0),
        zoom_from: 1.0,
        zoom_to: 1.0,
    };

    /// The move that the words ask for, or one by chance.
    pub(crate) fn choose(reading: &Reading, rng: &mut Rng) -> Self {
        let asked = reading.framing.iter().copied().find(|framing| {
            !matches!(framing, Framing::Close | Framing::Wide | Framing::Timelapse)
        });
        if asked == Some(Framing::Static) {
            return Self::REST;
        }
        // Chosen by chance if the words ask for no move. What is listed twice is drawn twice as
        // often.
        let wild = [
            Framing::PanRight,
            Framing::PanLeft,
            Framing::PushIn,
            Framing::PullOut,
            Framing::Orbit,
            Framing::PushIn,
            Framing::Aerial,
        ];
        // A number is drawn even if the words name a move (`unwrap_or` is eager): naming one leaves
        // the later random choices as they were.
        let framing = asked.unwrap_or(wild[rng.below(wild.len())]);
        let pace = if reading.has_motion(Motion::Still) {
            0.25
        } else if reading.has_motion(Motion::Fast) {
            1.0
        } else if reading.has_motion(Motion::Slow) {
            0.6
        } else {
            0.78
        };
        let far = REACH * pace;
        let side = if rng.chance(0.5) { 1.0 } else { -1.0 };
        let near = 1.0 + (ZOOM_MAX - 1.0) * pace;
        let (pan_from, pan_to, zoom_from, zoom_to) = match framing {
            Framing::PanRight => ((far, 0.0), (-far, 0.0), 1.03, 1.03),
            Framing::PanLeft => ((-far, 0.0), (far, 0.0), 1.03, 1.03),
            Framing::PullOut => ((0.2 * side * far, 0.0), (0.0, 0.0), near, 1.0),
            Framing::TiltUp => ((0.0, -far * 0.8), (0.0, far * 0.8), 1.03, 1.03),
            Framing::TiltDown => ((0.0, far * 0.8), (0.0, -far * 0.8), 1.03, 1.03),
            Framing::Orbit => ((-side * far, 0.0), (side * far, -0.15 * far), 1.04, 1.09),
            Framing::Aerial => (
                (-0.6 * side * far, -far * 0.5),
                (0.6 * side * far, far * 0.5),
                1.0,
                1.07,
            ),
            _ => ((0.0, 0.0), (0.25 * side * far, 0.0), 1.0, near),
        };
        Self {
            pan_from,
            pan_to,
            zoom_from,
            zoom_to,
        }
    }

    /// View `time_s` into a shot of `length_s`.
    pub(crate) fn view_at(
        &self,
        time_s: f32,
        length_s: f32,
        unit: f32,
        centre: (f32, f32),
    ) -> CameraView {
        let share = ease((time_s / length_s.max(0.1)).clamp(0.0, 1.0));
        CameraView {
            pan: (
                lerp(self.pan_from.0, self.pan_to.0, share) * unit,
                lerp(self.pan_from.1, self.pan_to.1, share) * unit,
            ),
            zoom: lerp(self.zoom_from, self.zoom_to, share),
            centre,
            pixels: 1.0,
            time_s,
        }
    }
}

/// Steady in the middle, soft at both ends.
pub(crate) fn ease(t: f32) -> f32 {
    // A smoothstep stops at both ends, which looks like a hesitation at every cut; two fifths of an
    // even pace keep the camera moving there.
    let smooth = t * t * (3.0 - 2.0 * t);
    smooth * 0.6 + t * 0.4
}

/// Position of the camera. Lengths in stage pixels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CameraView {
    /// Offset of a plane of depth 1.0, right and down.
    pan: (f32, f32),
    /// Magnification of a plane of depth 1.0, 1.0 or more.
    pub(crate) zoom: f32,
    /// The point that zooming keeps in place.
    centre: (f32, f32),
    /// Frame pixels per stage pixel.
    pub(crate) pixels: f32,
    /// Time since the start of the shot.
    pub(crate) time_s: f32,
}

/// Map from stage to frame: `x * scale + right`, `y * scale + down`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct StageMap {
    pub(crate) scale: f32,
    pub(crate) right: f32,
    pub(crate) down: f32,
}

impl CameraView {
    /// The map of a plane at `depth`: 0.0 infinitely far, 1.0 the subject, more is nearer.
    pub(crate) fn map(&self, depth: f32) -> StageMap {
        // Parallax: a pan moves a plane by its depth. A zoom moves even the farthest one by 0.3, or
        // the sky would stand still behind land that grows.
        let scale = 1.0 + (self.zoom - 1.0) * (0.3 + 0.7 * depth);
        StageMap {
            scale: scale * self.pixels,
            right: (self.centre.0 * (1.0 - scale) + self.pan.0 * depth) * self.pixels,
            down: (self.centre.1 * (1.0 - scale) + self.pan.1 * depth) * self.pixels,
        }
    }
}

impl StageMap {
    pub(crate) fn x(&self, x: f32) -> f32 {
        x * self.scale + self.right
    }

    pub(crate) fn y(&self, y: f32) -> f32 {
        y * self.scale + self.down
    }
}

/// Additional magnification at a full swell.
const ZOOM: f32 = 0.035;

/// Share of the light that is missing without a swell.
const DIM: f32 = 0.14;

/// Effect of a swell on one frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct FramePulse {
    /// Magnification, 1.0 or more.
    pub(crate) zoom: f32,
    /// Share of the light, at most 1.0.
    pub(crate) light: f32,
}

impl FramePulse {
    /// No motion of its own.
    pub(crate) const CALM: Self = Self {
        zoom: 1.0,
        light: 1.0,
    };

    /// The pulse of a swell from 0.0 to 1.0.
    pub(crate) fn from_swell(swell: f32) -> Self {
        Self {
            zoom: 1.0 + ZOOM * swell,
            light: 1.0 - DIM * (1.0 - swell),
        }
    }
}
