//! The camera at one instant, and what it does to a plane at some depth.

/// Where the camera is. Lengths in stage pixels.
#[derive(Clone, Copy, Debug)]
pub(super) struct View {
    /// How far a plane of depth 1.0 is moved, right and down.
    pub(super) pan: (f32, f32),
    /// Magnification of a plane of depth 1.0, 1.0 or more.
    pub(super) zoom: f32,
    /// The point that zooming keeps in place.
    pub(super) centre: (f32, f32),
    /// Frame pixels per stage pixel.
    pub(super) pixels: f32,
    /// Time since the start of the shot.
    pub(super) time_s: f32,
}

/// From stage to frame: `x * scale + right`, `y * scale + down`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Map {
    pub(super) scale: f32,
    pub(super) right: f32,
    pub(super) down: f32,
}

impl View {
    /// The map of a plane at `depth`: 0.0 infinitely far, 1.0 the subject, more is nearer.
    pub(super) fn map(&self, depth: f32) -> Map {
        let scale = 1.0 + (self.zoom - 1.0) * (0.3 + 0.7 * depth);
        Map {
            scale: scale * self.pixels,
            right: (self.centre.0 * (1.0 - scale) + self.pan.0 * depth) * self.pixels,
            down: (self.centre.1 * (1.0 - scale) + self.pan.1 * depth) * self.pixels,
        }
    }
}

impl Map {
    pub(super) fn x(&self, x: f32) -> f32 {
        x * self.scale + self.right
    }

    pub(super) fn y(&self, y: f32) -> f32 {
        y * self.scale + self.down
    }
}
