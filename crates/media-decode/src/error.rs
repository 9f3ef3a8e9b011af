//! Why a reference was refused: a stable public code, a public sentence with the figures or with what
//! the file is, and a private cause, which never appears in the sentence.

use std::error::Error;
use std::io;

use kinora_contract::limits::{
    REFERENCE_AUDIO_SECONDS_MAX, REFERENCE_AUDIO_SECONDS_MIN, REFERENCE_IMAGE_RATIO_MAX,
    REFERENCE_IMAGE_RATIO_MIN, REFERENCE_IMAGE_SIDE_MAX, REFERENCE_IMAGE_SIDE_MIN,
};
use kinora_contract::{Failure, FailureCode};

use crate::kinds::{self, ReferenceKind};

/// A decoder's error; for the log, never for a client.
pub type DecodeCause = Box<dyn Error + Send + Sync>;

/// Why a file cannot be decoded: the sentence for the client, and the cause for the log.
#[derive(Debug, thiserror::Error)]
#[error("{says}")]
pub struct FileRefusal {
    says: String,
    #[source]
    cause: DecodeCause,
}

impl FileRefusal {
    /// The refusal of an image that begins with `head`.
    pub(crate) fn for_image(head: &[u8], cause: DecodeCause) -> Self {
        Self::new(head, ReferenceKind::Image, cause)
    }

    /// The refusal of a sound that begins with `head`.
    pub(crate) fn for_sound(head: &[u8], cause: DecodeCause) -> Self {
        Self::new(head, ReferenceKind::Sound, cause)
    }

    fn new(head: &[u8], wanted: ReferenceKind, cause: DecodeCause) -> Self {
        // A download that was cut is the commonest fault, and the only one that the client can
        // repair without another file.
        let says = if kinds::is_supported(head, wanted) && ends_early(&*cause) {
            "the end of the file is missing.".to_owned()
        } else {
            kinds::describe(head, wanted)
        };
        Self { says, cause }
    }
}

/// Whether a decoder wanted more bytes than the file has.
fn ends_early(cause: &(dyn Error + 'static)) -> bool {
    let mut cause = Some(cause);
    // The decoders wrap the end of the file in errors of their own, at different depths.
    while let Some(one) = cause {
        let io: Option<&io::Error> = match one.downcast_ref() {
            // It does not name its source.
            Some(png::DecodingError::IoError(error)) => Some(error),
            _ => one.downcast_ref(),
        };
        if matches!(one.downcast_ref(), Some(FileDefect::EndsEarly))
            || io.is_some_and(|error| error.kind() == io::ErrorKind::UnexpectedEof)
        {
            return true;
        }
        cause = one.source();
    }
    false
}

/// Why a file cannot be used as a reference.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// Not a supported image, damaged, or too expensive to read.
    #[error("unsupported image")]
    UnsupportedImage(#[source] FileRefusal),
    /// The shorter side is too short.
    #[error("an image of {width} x {height} pixels is too small")]
    ImageTooSmall {
        /// Pixels, upright.
        width: u32,
        /// Pixels, upright.
        height: u32,
    },
    /// The longer side is too long.
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
    /// Not a supported sound file, or damaged.
    #[error("unsupported audio")]
    UnsupportedAudio(#[source] FileRefusal),
    /// The sound is shorter than allowed.
    #[error("{seconds:.3} s of sound are too short")]
    AudioTooShort {
        /// Decoded length.
        seconds: f64,
    },
    /// The sound is longer than allowed. Its length is unknown, since decoding stopped.
    #[error("the sound is too long")]
    AudioTooLong,
    /// The file exceeds the size limit of its kind.
    #[error("the file is over {bytes_max} bytes")]
    FileTooLarge {
        /// The limit.
        bytes_max: u64,
    },
    /// The file could not be read from the local disk, or the system has no memory for its pixels.
    #[error("the file could not be read")]
    Io(#[from] io::Error),
}

impl DecodeError {
    /// The failure of a task with this reference: code and public sentence. The sentence begins in
    /// lower case because the name of the reference precedes it.
    pub fn failure(&self) -> Failure {
        match self {
            Self::UnsupportedImage(refusal) => {
                Failure::new(FailureCode::UnsupportedImage, &*refusal.says)
            }
            Self::UnsupportedAudio(refusal) => {
                Failure::new(FailureCode::UnsupportedAudio, &*refusal.says)
            }
            Self::Io(_) => Failure::new(
                FailureCode::StorageFailed,
                "the file could not be read back from the storage.",
            ),
            Self::ImageTooSmall { width, height } => Failure::new(
                FailureCode::ImageTooSmall,
                format!(
                    "the image is {width}x{height} pixels; the shortest side must be at least \
                     {REFERENCE_IMAGE_SIDE_MIN}."
                ),
            ),
            Self::ImageTooLarge { width, height } => Failure::new(
                FailureCode::ImageTooLarge,
                format!(
                    "the image is {width}x{height} pixels; the longest side must be at most \
                     {REFERENCE_IMAGE_SIDE_MAX}."
                ),
            ),
            Self::InvalidAspectRatio { width, height } => Failure::new(
                FailureCode::InvalidAspectRatio,
                format!(
                    "the image is {width}x{height} pixels; width divided by height must be \
                     {REFERENCE_IMAGE_RATIO_MIN} to {REFERENCE_IMAGE_RATIO_MAX}."
                ),
            ),
            Self::AudioTooShort { seconds } => Failure::new(
                FailureCode::AudioTooShort,
                format!(
                    "the sound lasts {seconds:.3} s; it must last at least \
                     {REFERENCE_AUDIO_SECONDS_MIN} s."
                ),
            ),
            Self::AudioTooLong => Failure::new(
                FailureCode::AudioTooLong,
                format!("the sound lasts longer than {REFERENCE_AUDIO_SECONDS_MAX} s."),
            ),
            Self::FileTooLarge { bytes_max } => Failure::new(
                FailureCode::ReferenceTooLarge,
                format!("the file is larger than {bytes_max} bytes."),
            ),
        }
    }
}

/// A defect with its own public sentence.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FileDefect {
    #[error("the file ends early")]
    EndsEarly,
    #[error("no sound")]
    NoSound,
}
