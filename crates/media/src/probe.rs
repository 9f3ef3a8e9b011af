//! Reads a file's boxes back to report what it really contains, and compares that with the
//! intended format. Refuses anything but an MP4 with H.264 video, and trusts no stated size.

use std::fs::File;
use std::path::Path;

use crate::movie::MovieIndex;
use crate::{ClipFormat, FormatMismatch, MediaError};

/// The content of a file, measured on the file itself.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ProbeInfo {
    /// Length of the picture track in seconds.
    pub duration_seconds: f64,
    /// Mean frames per second.
    pub fps: f64,
    /// Coded frames.
    pub frames: u32,
    /// Picture width in pixels.
    pub width: u32,
    /// Picture height in pixels.
    pub height: u32,
    /// Whether there is a sound track with samples.
    pub has_audio: bool,
    /// Size of the whole file in bytes.
    pub file_bytes: u64,
}

/// Probes an MP4 with one H.264 track and optional sound (ISO/IEC 14496-12 and -15). Any other or
/// malformed file is an error.
pub fn probe(path: &Path) -> Result<ProbeInfo, MediaError> {
    ProbeInfo::from_movie(&MovieIndex::read(&mut File::open(path)?)?)
}

impl ProbeInfo {
    pub(crate) fn from_movie(movie: &MovieIndex) -> Result<Self, MediaError> {
        let mut has_audio = false;
        for track in movie.tracks() {
            let track = track?;
            // Some muxers write an empty sound track for silent films.
            has_audio |= &track.handler == b"soun" && track.table()?.samples() > 0;
        }
        let picture = movie.picture_track()?;
        let (entry, table) = (picture.picture_entry()?, picture.table()?);
        if table.samples() == 0 || table.ticks() == 0 {
            return Err(MediaError::Malformed("the picture track has no samples"));
        }
        let duration_seconds = table.ticks() as f64 / f64::from(picture.timescale);
        Ok(Self {
            duration_seconds,
            fps: f64::from(table.samples()) / duration_seconds,
            frames: table.samples(),
            width: entry.width,
            height: entry.height,
            has_audio,
            file_bytes: movie.file_bytes,
        })
    }
}

/// Rejects a file that does not match its format, naming the difference.
pub fn check(info: &ProbeInfo, format: &ClipFormat) -> Result<(), FormatMismatch> {
    if info.file_bytes == 0 {
        return Err(FormatMismatch::Empty);
    }
    if (info.width, info.height) != (format.width, format.height) {
        return Err(FormatMismatch::Size {
            width: format.width,
            height: format.height,
            actual_width: info.width,
            actual_height: info.height,
        });
    }
    if info.frames != format.frames {
        return Err(FormatMismatch::Frames {
            expected: format.frames,
            actual: info.frames,
        });
    }
    let fps = f64::from(format.fps);
    if !within(info.fps, fps, fps * 1e-3) {
        return Err(FormatMismatch::Fps {
            expected: format.fps,
            actual: info.fps,
        });
    }
    let expected = f64::from(format.frames) / fps;
    // Half a frame: a duration with a frame too many or too few must not pass.
    if !within(info.duration_seconds, expected, 0.5 / fps) {
        return Err(FormatMismatch::Duration {
            expected,
            actual: info.duration_seconds,
        });
    }
    if info.has_audio != format.audio.is_some() {
        return Err(FormatMismatch::Audio {
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
