//! Errors between frames and a file. Messages contain numbers but never paths: a path belongs in
//! the caller's log, not in a task's error.

use std::io;

/// Why a clip could not be recorded or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MediaError {
    /// The requested format or option is not supported.
    #[error("unusable clip format: {0}")]
    InvalidFormat(&'static str),
    /// A pushed frame is not exactly `height * width * 3` bytes.
    #[error("a frame has {actual} bytes, expected {expected}")]
    FrameLength {
        /// `height * width * 3`.
        expected: usize,
        /// Bytes in the pushed slice.
        actual: usize,
    },
    /// More or fewer frames were pushed than [`crate::ClipFormat::frames`] says.
    #[error("{actual} frames pushed, but the clip has {expected}")]
    FrameCount {
        /// The count in the format.
        expected: u32,
        /// The count pushed; for too many, the first one over.
        actual: u32,
    },
    /// The pushed sound does not fit the format.
    #[error("unusable sound: {0}")]
    InvalidAudio(&'static str),
    /// The H.264 encoder failed.
    #[error("video encoding failed")]
    Video(#[source] kinora_media_h264::H264Error),
    /// The AAC or Opus encoder failed.
    #[error("audio encoding failed: {0}")]
    Audio(String),
    /// A poster, spritesheet or colour conversion failed.
    #[error("picture processing failed: {0}")]
    Picture(String),
    /// An encoder thread ended without a result.
    #[error("an encoder thread died")]
    WorkerLost,
    /// The MP4 boxes could not be built.
    #[error("building the file failed: {0}")]
    Mux(String),
    /// The probed file is not a readable MP4 with H.264 video.
    #[error("not a usable MP4: {0}")]
    Malformed(&'static str),
    /// The H.264 decoder refused a picture, or failed.
    #[error("video decoding failed: {0}")]
    Decode(String),
    /// A film made elsewhere does not match the request.
    #[error("the film does not match the request: {0}")]
    NotAsAsked(#[from] FormatMismatch),
    /// The process that reads films refused this one; the text is its own.
    #[error("{0}")]
    Refused(String),
    /// The process that reads films ended or could not be started; another attempt may succeed.
    #[error("the process that reads films was lost: {0}")]
    Lost(String),
    /// The caller no longer waits for the result.
    #[error("stopped")]
    Stopped,
    /// Reading or writing failed.
    #[error("reading or writing media failed")]
    Io(#[from] io::Error),
}

impl From<kinora_media_h264::H264Error> for MediaError {
    fn from(cause: kinora_media_h264::H264Error) -> Self {
        Self::Video(cause)
    }
}

/// How a file differs from its intended format.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FormatMismatch {
    /// The picture has another size.
    #[error("the picture is {actual_width}x{actual_height}, expected {width}x{height}")]
    Size {
        /// Expected width in pixels.
        width: u32,
        /// Expected height in pixels.
        height: u32,
        /// Width in the file.
        actual_width: u32,
        /// Height in the file.
        actual_height: u32,
    },
    /// The file has another number of frames.
    #[error("the file has {actual} frames, expected {expected}")]
    Frames {
        /// Expected count.
        expected: u32,
        /// Count in the file.
        actual: u32,
    },
    /// The frame rate differs.
    #[error("the file runs at {actual} frames per second, expected {expected}")]
    Fps {
        /// Expected frames per second.
        expected: u32,
        /// Average rate in the file.
        actual: f64,
    },
    /// The duration differs by more than half a frame.
    #[error("the file lasts {actual} s, expected {expected} s")]
    Duration {
        /// Expected seconds.
        expected: f64,
        /// Seconds in the file.
        actual: f64,
    },
    /// A sound track is missing or unexpected.
    #[error("sound in the file: {actual}, expected: {expected}")]
    Audio {
        /// Whether sound was expected.
        expected: bool,
        /// Whether the file has it.
        actual: bool,
    },
    /// The file has no bytes.
    #[error("the file is empty")]
    Empty,
}
