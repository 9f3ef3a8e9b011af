//! Why a reference was refused: a stable public code, a public sentence with the figures, and a
//! private cause. A cause never enters the public sentence.

use std::error::Error;
use std::io;

use kinora_contract::limits::{
    REFERENCE_AUDIO_SECONDS_MAX, REFERENCE_AUDIO_SECONDS_MIN, REFERENCE_IMAGE_RATIO_MAX,
    REFERENCE_IMAGE_RATIO_MIN, REFERENCE_IMAGE_SIDE_MAX, REFERENCE_IMAGE_SIDE_MIN,
};
use kinora_contract::{Failure, FailureCode};

/// What a decoder had against a file: for the log, never for a client.
pub type Cause = Box<dyn Error + Send + Sync>;

/// Why a file is not usable as a reference.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// Not an image that is read here, damaged, or too costly to read.
    #[error("unsupported image")]
    UnsupportedImage(#[source] Cause),
    /// A side is too short.
    #[error("an image of {width} x {height} pixels is too small")]
    ImageTooSmall {
        /// Pixels, upright.
        width: u32,
        /// Pixels, upright.
        height: u32,
    },
    /// A side is too long.
    #[error("an image of {width} x {height} pixels is too large")]
    ImageTooLarge {
        /// Pixels, upright.
        width: u32,
        /// Pixels, upright.
        height: u32,
    },
    /// Too wide or too tall.
    #[error("an image of {width} x {height} pixels is too wide or too tall")]
    InvalidAspectRatio {
        /// Pixels, upright.
        width: u32,
        /// Pixels, upright.
        height: u32,
    },
    /// Not sound that is read here, or damaged.
    #[error("unsupported audio")]
    UnsupportedAudio(#[source] Cause),
    /// Less sound than the shortest that is allowed.
    #[error("{seconds:.3} s of sound are too short")]
    AudioTooShort {
        /// Decoded length.
        seconds: f64,
    },
    /// More sound than the longest that is allowed; how much is not known, as reading stopped.
    #[error("the sound is too long")]
    AudioTooLong,
    /// More bytes than a file of its kind may have.
    #[error("the file is over {bytes_max} bytes")]
    FileTooLarge {
        /// The bound.
        bytes_max: u64,
    },
    /// The file could not be read from this machine's disk.
    #[error("the file could not be read")]
    Io(#[from] io::Error),
}

impl DecodeError {
    /// The failure of a task whose reference this is: its code and public sentence.
    pub fn failure(&self) -> Failure {
        let (code, message) = match self {
            Self::UnsupportedImage(_) => return FailureCode::UnsupportedImage.into(),
            Self::UnsupportedAudio(_) => return FailureCode::UnsupportedAudio.into(),
            Self::Io(_) => {
                let message = "A reference could not be read back from the storage.".to_owned();
                (FailureCode::StorageFailed, message)
            }
            Self::ImageTooSmall { width, height } => (
                FailureCode::ImageTooSmall,
                format!(
                    "A reference image has {width} x {height} pixels; each side must have at \
                     least {REFERENCE_IMAGE_SIDE_MIN}."
                ),
            ),
            Self::ImageTooLarge { width, height } => (
                FailureCode::ImageTooLarge,
                format!(
                    "A reference image has {width} x {height} pixels; each side may have at \
                     most {REFERENCE_IMAGE_SIDE_MAX}."
                ),
            ),
            Self::InvalidAspectRatio { width, height } => (
                FailureCode::InvalidAspectRatio,
                format!(
                    "A reference image has {width} x {height} pixels; width divided by height \
                     must be {REFERENCE_IMAGE_RATIO_MIN} to {REFERENCE_IMAGE_RATIO_MAX}."
                ),
            ),
            Self::AudioTooShort { seconds } => (
                FailureCode::AudioTooShort,
                format!(
                    "A reference audio lasts {seconds:.3} s; it must last at least \
                     {REFERENCE_AUDIO_SECONDS_MIN} s."
                ),
            ),
            Self::AudioTooLong => (
                FailureCode::AudioTooLong,
                format!("A reference audio lasts longer than {REFERENCE_AUDIO_SECONDS_MAX} s."),
            ),
            Self::FileTooLarge { bytes_max } => (
                FailureCode::ReferenceTooLarge,
                format!("A reference is larger than {bytes_max} bytes."),
            ),
        };
        Failure {
            code: code.as_str().to_owned(),
            message,
        }
    }
}
