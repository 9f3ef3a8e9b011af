//! Decodes untrusted reference files to pixels and samples. The content alone decides the type;
//! sizes are checked before decoding pixels; constants here limit memory and time. This crate
//! fetches, writes and stores nothing.

#![forbid(unsafe_code)]

mod animated;
mod canvas;
mod container;
mod downmix;
mod edit_list;
mod error;
mod file;
mod header;
mod image;
mod jpeg;
mod media_type;
mod opus;
mod orientation;
mod pixels;
mod png;
mod resample;
mod sound;
mod stereo;
mod webp_codes;

pub use error::{Cause, DecodeError};
pub use image::{image, image_of, image_size};
pub use media_type::media_type;
pub use pixels::Image;
pub use sound::{Sound, sound};
pub use stereo::SAMPLE_RATE;
