//! The pulse of a frame: its magnification and light, in step with a sound.

/// How much a full swell magnifies.
const ZOOM: f32 = 0.035;

/// How much darker the picture is without any swell.
const DIM: f32 = 0.14;

/// Effect of a swell on one frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Pulse {
    /// Magnification, 1.0 or more.
    pub(crate) zoom: f32,
    /// Share of the light, at most 1.0.
    pub(crate) light: f32,
}

impl Pulse {
    /// No motion of its own.
    pub(crate) const CALM: Self = Self {
        zoom: 1.0,
        light: 1.0,
    };

    /// That of a swell from 0.0 to 1.0.
    pub(crate) fn of(swell: f32) -> Self {
        Self {
            zoom: 1.0 + ZOOM * swell,
            light: 1.0 - DIM * (1.0 - swell),
        }
    }
}
