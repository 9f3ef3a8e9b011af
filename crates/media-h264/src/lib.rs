//! A small safe wrapper around the OpenH264 encoder: one closed run of pictures per encoder,
//! constant quantiser, CABAC, High profile, BT.709 limited range.
//! It refuses rate control, frame skipping and decoding, and is the only crate with `unsafe`.

#![allow(unsafe_code, reason = "calls the C++ of OpenH264")]

mod encoder;
mod params;
mod variant;

pub use encoder::{EncodedFrame, H264Encoder, I420Planes, ParameterSets};
pub use variant::{assembly, variant};

/// Configuration of an encoder, shared by all its pictures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EncoderConfig {
    /// Picture width in pixels: even, 16 to 4096.
    pub width: u32,
    /// Picture height in pixels: even, 16 to 4096.
    pub height: u32,
    /// Frames per second, 1 to 240. Only the level depends on it.
    pub fps: u32,
    /// Constant quantiser of every picture, 0 to 51.
    pub qp: u8,
}

/// Why a picture could not be encoded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum H264Error {
    /// The configuration is outside of what H.264 level 5.2 or this wrapper allows.
    #[error("unsupported encoder configuration: {0}")]
    Unsupported(&'static str),
    /// A plane is too short for the configured size and its stride.
    #[error("a picture plane is too short or its stride too small")]
    PlaneLength,
    /// A call of the library failed, or it answered with nonsense.
    #[error("OpenH264 {call} failed with code {code}")]
    Library {
        /// The call that failed.
        call: &'static str,
        /// The library's return value; `0` when its answer was malformed.
        code: i32,
    },
}
