//! Checks a film made elsewhere for what players rely on beyond decoding: the tables of every
//! track, its times and lengths, and the part to show. Refuses contradictory statements.

use crate::MediaError;
use crate::boxes::{Fields, child, optional_child};
use crate::format::FRAMES_MAX;
use crate::movie::{Movie, Track};

/// Uncompressed sound has one sample per frame of 1/48,000 s.
const SAMPLES_MAX: u32 = 16 << 20;
/// Tolerance for stated lengths.
const SECONDS_OFF_MAX: f64 = 1.0;
/// Pixels need not be square, but real ones are never longer than this.
const PIXEL_RATIO_MAX: f64 = 4.0;

/// Checks every track of a film with readable tracks.
///
/// # Errors
/// [`MediaError::Malformed`] for the first fault.
pub(crate) fn check(movie: &Movie) -> Result<(), MediaError> {
    let header = Header::read(child(&movie.moov, b"mvhd")?)?;
    if header.timescale == 0 {
        return Err(MediaError::Malformed("it has no time scale"));
    }
    for track in movie.tracks() {
        check_track(&track?, header.timescale)?;
    }
    Ok(())
}

fn check_track(track: &Track<'_>, movie_timescale: u32) -> Result<(), MediaError> {
    // Reading the table has checked sizes, and that every chunk is within the media data.
    let table = track.table()?;
    let is_picture = &track.handler == b"vide";
    if table.samples() > if is_picture { FRAMES_MAX } else { SAMPLES_MAX } {
        return Err(MediaError::Malformed("a track has too many samples"));
    }
    table.check_times()?;
    table.check_sync_samples()?;
    let seconds = table.ticks() as f64 / f64::from(track.timescale);
    let stated = Header::read(child(child(track.trak, b"mdia")?, b"mdhd")?)?;
    if let Some(duration) = stated.duration {
        let stated = duration as f64 / f64::from(track.timescale);
        if (stated - seconds).abs() > SECONDS_OFF_MAX {
            return Err(MediaError::Malformed(
                "a track's stated length does not match its samples",
            ));
        }
    }
    if is_picture {
        check_shown_size(track)?;
    }
    check_edits(track, seconds, movie_timescale)
}

/// The stated display size must be close to the size in pixels (`tkhd`, 8.3.2).
fn check_shown_size(track: &Track<'_>) -> Result<(), MediaError> {
    let tkhd = child(track.trak, b"tkhd")?;
    let mut fields = Fields::new(tkhd);
    let version = fields.u32()? >> 24;
    // Times, identifier and duration, then layer, volume and matrix.
    fields.skip(if version == 1 { 32 } else { 20 })?.skip(52)?;
    let shown = [fields.u32()?, fields.u32()?].map(|side| f64::from(side) / 65_536.0);
    let entry = track.picture_entry()?;
    let coded = [f64::from(entry.width), f64::from(entry.height)];
    for (shown, coded) in shown.into_iter().zip(coded) {
        if !(coded / PIXEL_RATIO_MAX..=coded * PIXEL_RATIO_MAX).contains(&shown) {
            return Err(MediaError::Malformed(
                "its display size does not match its pictures",
            ));
        }
    }
    Ok(())
}

/// An edit list (`elst`, 8.6.6) may start late and skip parts, but must show existing media,
/// forwards at normal speed.
fn check_edits(track: &Track<'_>, seconds: f64, movie_timescale: u32) -> Result<(), MediaError> {
    const WRONG: MediaError = MediaError::Malformed("its edit list refers to missing media");
    let Some(edits) = optional_child(track.trak, b"edts")? else {
        return Ok(());
    };
    let Some(elst) = optional_child(edits, b"elst")? else {
        return Ok(());
    };
    let mut fields = Fields::new(elst);
    let is_wide = fields.u32()? >> 24 == 1;
    let (entries, mut shown) = (fields.u32()?, 0.0);
    for _ in 0..entries {
        let (duration, from) = if is_wide {
            (fields.u64()?, fields.u64()?.cast_signed())
        } else {
            (fields.u32()?.into(), fields.u32()?.cast_signed().into())
        };
        let rate = fields.u32()?;
        if from == -1 {
            // An empty edit.
            continue;
        }
        let from = from as f64 / f64::from(track.timescale);
        if rate != 0x0001_0000 || from < 0.0 || from > seconds {
            return Err(WRONG);
        }
        shown += duration as f64 / f64::from(movie_timescale);
    }
    if shown > seconds + SECONDS_OFF_MAX {
        return Err(WRONG);
    }
    Ok(())
}

/// The fields common to `mvhd` and `mdhd` (8.2.2, 8.4.2).
struct Header {
    timescale: u32,
    /// `None` if unknown.
    duration: Option<u64>,
}

impl Header {
    fn read(body: &[u8]) -> Result<Self, MediaError> {
        let mut fields = Fields::new(body);
        let is_wide = fields.u32()? >> 24 == 1;
        let timescale = fields.skip(if is_wide { 16 } else { 8 })?.u32()?;
        let duration = if is_wide {
            Some(fields.u64()?).filter(|duration| *duration != u64::MAX)
        } else {
            let duration = fields.u32()?;
            (duration != u32::MAX).then_some(duration.into())
        };
        Ok(Self {
            timescale,
            duration,
        })
    }
}
