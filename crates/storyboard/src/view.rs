//! The camera at one instant, and what it does to a plane at some depth.

/// Where the camera is. Lengths in stage pixels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View {
    /// How far a plane of depth 1.0 is moved, right and down.
    pub(crate) pan: (f32, f32),
    /// Magnification of a plane of depth 1.0, 1.0 or more.
    pub(crate) zoom: f32,
    /// The point that zooming keeps in place.
    pub(crate) centre: (f32, f32),
    /// Frame pixels per stage pixel.
    pub(crate) pixels: f32,
    /// Time since the start of the shot.
    pub(crate) time_s: f32,
}

/// From stage to frame: `x * scale + right`, `y * scale + down`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Map {
    pub(crate) scale: f32,
    pub(crate) right: f32,
    pub(crate) down: f32,
}

impl View {
    /// The map of a plane at `depth`: 0.0 infinitely far, 1.0 the subject, more is nearer.
    pub(crate) fn map(&self, depth: f32) -> Map {
        let scale = 1.0 + (self.zoom - 1.0) * (0.3 + 0.7 * depth);
        Map {
            scale: scale * self.pixels,
            right: (self.centre.0 * (1.0 - scale) + self.pan.0 * depth) * self.pixels,
            down: (self.centre.1 * (1.0 - scale) + self.pan.1 * depth) * self.pixels,
        }
    }
}

impl Map {
    pub(crate) fn x(&self, x: f32) -> f32 {
        x * self.scale + self.right
    }

    pub(crate) fn y(&self, y: f32) -> f32 {
        y * self.scale + self.down
    }
}
