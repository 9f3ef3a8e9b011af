//! Reads a file's boxes back, to report what it really contains. Refuses anything but an MP4 with
//! H.264 video, and trusts no stated size.

use std::fs::File;
use std::path::Path;

use crate::MediaError;
use crate::movie::Movie;

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
    ProbeInfo::of(&Movie::read(&mut File::open(path)?)?)
}

impl ProbeInfo {
    pub(crate) fn of(movie: &Movie) -> Result<Self, MediaError> {
        let mut has_audio = false;
        for track in movie.tracks() {
            let track = track?;
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
