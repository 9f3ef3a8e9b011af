//! Pixels and shapes: the canvas with 15 bits per component; planes, washes, water, marks and lightning that are drawn
//! onto it; and the pen that paints planes once per shot. It reads no words.

pub(crate) mod canvas;
pub(crate) mod colour;
pub(crate) mod layer;
pub(crate) mod lightning;
pub(crate) mod noise;
pub(crate) mod particles;
pub(crate) mod pen;
pub(crate) mod resample;
pub(crate) mod wash;
pub(crate) mod water;
