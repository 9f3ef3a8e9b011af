//! Decodes untrusted reference files to pixels and samples. The content alone decides the type;
//! sizes are checked before decoding pixels; constants here limit memory and time. This crate
//! fetches, writes and stores nothing.

#![forbid(unsafe_code)]

mod animated;
mod colour;
mod container;
mod edit_list;
mod error;
mod file;
mod header;
mod image;
mod jpeg;
mod kinds;
mod matroska;
mod opus;
mod packet_budget;
mod pixels;
mod png;
mod resample;
mod signatures;
mod sound;
mod stereo;
mod upload;
mod wav;
mod webp_codes;

pub use error::{DecodeCause, DecodeError, FileRefusal};
pub use image::{image, image_of, image_size};
pub use kinds::is_reference;
pub use pixels::DecodedImage;
pub use png::PROFILE_IGNORED_CHUNK;
pub use resample::stereo_of;
pub use signatures::media_type;
pub use sound::{DecodedSound, sound};
pub use stereo::SAMPLE_RATE;
pub use upload::{JudgedFile, UploadRefusal, judge_upload};
