//! Compares a probed file with its intended format. The error names the first difference, with both
//! values.

use crate::{ClipFormat, Mismatch, ProbeInfo};

/// Rejects a file that does not match its format, naming the difference.
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

/// Whether the values are close; false for NaN.
fn within(actual: f64, expected: f64, tolerance: f64) -> bool {
    (actual - expected).abs() <= tolerance
}
