//! Compares a probed file with the format it was to have.
//! Refuses to guess: the first difference is named with both values.

use crate::{ClipFormat, ProbeInfo};

/// How a file differs from the format it was to have.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Mismatch {
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
    /// A sound track is missing or superfluous.
    #[error("sound in the file: {actual}, expected: {expected}")]
    Audio {
        /// Whether sound was expected.
        expected: bool,
        /// Whether the file has it.
        actual: bool,
    },
    /// The file holds no bytes.
    #[error("the file is empty")]
    Empty,
}

/// Rejects a file that does not match its specification, saying what differs.
pub fn check(info: &ProbeInfo, format: &ClipFormat) -> Result<(), Mismatch> {
    if info.file_bytes == 0 {
        return Err(Mismatch::Empty);
    }
    if (info.width, info.height) != (format.width, format.height) {
        return Err(Mismatch::Size {
            width: format.width,
            height: format.height,
            actual_width: info.width,
            actual_height: info.height,
        });
    }
    if info.frames != format.frames {
        return Err(Mismatch::Frames {
            expected: format.frames,
            actual: info.frames,
        });
    }
    let fps = f64::from(format.fps);
    if !within(info.fps, fps, fps * 1e-3) {
        return Err(Mismatch::Fps {
            expected: format.fps,
            actual: info.fps,
        });
    }
    let expected = f64::from(format.frames) / fps;
    if !within(info.duration_seconds, expected, 0.5 / fps) {
        return Err(Mismatch::Duration {
            expected,
            actual: info.duration_seconds,
        });
    }
    if info.has_audio != format.audio.is_some() {
        return Err(Mismatch::Audio {
            expected: format.audio.is_some(),
            actual: info.has_audio,
        });
    }
    Ok(())
}

/// False for a value that is not a number.
fn within(actual: f64, expected: f64, tolerance: f64) -> bool {
    (actual - expected).abs() <= tolerance
}
