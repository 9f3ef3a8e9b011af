//! Reads the edit list of an MP4's sound track (ISO/IEC 14496-12, section 8.6.6) for the encoder's
//! priming at the start and its padding at the end. Everything else in it is ignored, as is an edit
//! list that skips more than priming would.

use std::ops::Range;

use crate::stereo::frames;

/// Maximum start that counts as priming.
const PRIMING_SECONDS_MAX: f64 = 0.5;

/// The only edit of a track, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SoundEdit {
    /// The start of the sound within the decoded samples.
    pub start_seconds: f64,
    /// The length of the sound, if stated.
    pub seconds: Option<f64>,
}

/// The range of decoded frames that belongs to the sound, consumed packet by packet.
pub(crate) struct FrameWindow {
    /// Frames left to skip.
    skip: usize,
    /// Frames left to keep.
    keep: usize,
}

impl Default for FrameWindow {
    fn default() -> Self {
        Self {
            skip: 0,
            keep: usize::MAX,
        }
    }
}

impl FrameWindow {
    /// The frames that `edit` keeps of a sound with `rate` samples per second.
    pub(crate) fn from_edit(edit: Option<SoundEdit>, rate: u32) -> Self {
        edit.map_or_else(Self::default, |edit| Self {
            skip: frames(edit.start_seconds, rate),
            keep: edit
                .seconds
                .map_or(usize::MAX, |seconds| frames(seconds, rate)),
        })
    }

    /// Returns the part to keep of the next `frames` frames.
    pub(crate) fn advance(&mut self, frames: usize) -> Range<usize> {
        // Both counters run down across packets of any size.
        let start = self.skip.min(frames);
        let kept = self.keep.min(frames - start);
        self.skip -= start;
        self.keep -= kept;
        start..start + kept
    }

    /// Whether all remaining frames are dropped.
    pub(crate) fn is_over(&self) -> bool {
        self.keep == 0
    }
}

/// The edit of the first sound track in `file`.
pub(crate) fn edit(file: &[u8]) -> Option<SoundEdit> {
    let movie = child(file, b"moov")?;
    let movie_scale = scale(child(movie, b"mvhd")?)?;
    let track = boxes(movie)
        .filter(|(kind, _)| kind == b"trak")
        .map(|(_, track)| track)
        .find(|track| is_sound(track).unwrap_or(false))?;
    let media_scale = scale(child(child(track, b"mdia")?, b"mdhd")?)?;
    let (duration, media_time) = only_edit(child(child(track, b"edts")?, b"elst")?)?;
    let start_seconds = media_time as f64 / f64::from(media_scale);
    let seconds = duration as f64 / f64::from(movie_scale);
    (start_seconds <= PRIMING_SECONDS_MAX).then_some(SoundEdit {
        start_seconds,
        seconds: (seconds > 0.0).then_some(seconds),
    })
}

fn is_sound(track: &[u8]) -> Option<bool> {
    let handler = child(child(track, b"mdia")?, b"hdlr")?;
    Some(handler.get(8..12)? == b"soun")
}

/// Units per second of an `mvhd` or `mdhd`.
fn scale(header: &[u8]) -> Option<u32> {
    let at = if *header.first()? == 1 { 20 } else { 12 };
    number(header, at, 4)
        .and_then(|units| u32::try_from(units).ok())
        .filter(|&units| units > 0)
}

/// Duration and media time of the only entry with media. An empty edit before it is a delay, which
/// does not matter for sound alone.
fn only_edit(list: &[u8]) -> Option<(u64, u64)> {
    let wide = *list.first()? == 1;
    let (step, field) = if wide { (20, 8) } else { (12, 4) };
    let nothing = if wide { u64::MAX } else { u64::from(u32::MAX) };
    // Real lists have at most a delay and one edit: a few entries show whether there is a second edit.
    let count = usize::try_from(number(list, 4, 4)?).ok()?.min(3);
    let mut found = None;
    for index in 0..count {
        let at = 8 + index * step;
        let media_time = number(list, at + field, field)?;
        if media_time == nothing {
            continue;
        }
        if found.is_some() {
            return None;
        }
        found = Some((number(list, at, field)?, media_time));
    }
    found
}

fn number(bytes: &[u8], at: usize, width: usize) -> Option<u64> {
    let digits = bytes.get(at..at + width)?;
    Some(
        digits
            .iter()
            .fold(0, |sum, &byte| (sum << 8) | u64::from(byte)),
    )
}

/// The body of the first box `kind` in `parent`.
fn child<'a>(parent: &'a [u8], kind: &[u8; 4]) -> Option<&'a [u8]> {
    boxes(parent)
        .find(|(one, _)| one == kind)
        .map(|(_, body)| body)
}

/// The boxes in `bytes`, each with its body, up to the first malformed one.
fn boxes(mut bytes: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    std::iter::from_fn(move || {
        let kind = bytes.get(4..8)?;
        let (head, size) = match number(bytes, 0, 4)? {
            0 => (8, bytes.len()),
            1 => (16, usize::try_from(number(bytes, 8, 8)?).ok()?),
            size => (8, usize::try_from(size).ok()?),
        };
        let body = bytes.get(head..size)?;
        bytes = &bytes[size..];
        Some((kind, body))
    })
}
