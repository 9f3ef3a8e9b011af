//! Reference files, hostile until proven otherwise, to pixels and samples. Content alone decides
//! the type; sizes are judged before any pixel exists; memory and time are bounded by constants
//! here. It fetches nothing, writes nothing and keeps nothing.

#![forbid(unsafe_code)]

mod animated;
mod container;
mod downmix;
mod edit_list;
mod error;
mod file;
mod image;
mod jpeg;
mod media_type;
mod opus;
mod orientation;
mod pixels;
mod png;
mod resample;
mod sound;
mod webp_codes;

pub use error::{Cause, DecodeError};
pub use image::{Image, image, image_size};
pub use media_type::media_type;
pub use sound::{SAMPLE_RATE, Sound, sound};
