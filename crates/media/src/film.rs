//! Examines a film made elsewhere: whether it is a valid film, whether it matches the request, and
//! its stills. The file stays unchanged; nothing is re-encoded. Memory is constant; the time is
//! that of decoding each frame once.

use std::fs::File;
use std::path::Path;

use crate::format::ClipFormat;
use crate::movie::Movie;
use crate::stills::Stills;
use crate::strict;
use crate::{MediaError, Mismatch, ProbeInfo, Recording, VideoReader};

/// Sides may differ by less than this: models make sides that are multiples of 16 or 32 pixels.
const SIDE_GRID: u32 = 32;
/// Lengths may differ by less than this: models make frames in multiples of four or eight plus one,
/// which at 8 to 16 frames per second amounts to at most a second.
const SECONDS_GRID: f64 = 1.0;
/// Grey level of the stills for a film that cannot be decoded here.
const PLAIN: u8 = 0x30;

/// What to do with a film whose pictures cannot be decoded here.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Undecodable {
    /// Refuse it: nobody knows whether it plays.
    #[default]
    Refuse,
    /// Accept it undecoded, with plain stills, if its index is valid.
    Keep,
}

/// The requested properties of a film.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilmFormat {
    /// Picture width in pixels; the film may differ by less than 32.
    pub width: u32,
    /// Picture height in pixels, with the same tolerance.
    pub height: u32,
    /// Length in seconds; the film may differ by less than a second. `None` if the request left it
    /// open.
    pub seconds: Option<u32>,
    /// Maximum length of a film in seconds, with the same tolerance.
    pub seconds_max: u32,
    /// Whether sound is expected; `None` if unknown.
    pub audio: Option<bool>,
    /// Whether its pictures must be decodable here: progressive, 8 bit, 4:2:0.
    pub undecodable: Undecodable,
}

/// Examines the film at `path`: an MP4 with one H.264 track, and sound if expected. Checks the
/// tables of every track and decodes every frame; the stills come from these frames. Calls `go_on`
/// for every frame, and stops if it returns false.
///
/// [`MediaError::Malformed`], [`MediaError::NotAsAsked`] and [`MediaError::InvalidFormat`] for a
/// film that does not match, [`MediaError::Decode`] for undecodable pictures unless they are
/// accepted, [`MediaError::Stopped`], and read errors.
pub fn examine(
    path: &Path,
    asked: &FilmFormat,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<Recording, MediaError> {
    let movie = Movie::read(&mut File::open(path)?)?;
    check_tracks(&movie)?;
    strict::check(&movie)?;
    let info = ProbeInfo::of(&movie)?;
    check(&info, asked)?;
    let format = clip_format(&info);
    format.validate()?;
    let stills = match decoded(path, &format, go_on) {
        Err(MediaError::Decode(_) | MediaError::Malformed(_))
            if asked.undecodable == Undecodable::Keep =>
        {
            plain(&format, go_on)?
        }
        stills => stills?,
    };
    Ok(Recording {
        info,
        poster_webp: stills.poster_webp()?,
        spritesheet_jpeg: stills.spritesheet_jpeg()?,
    })
}

/// Some players would show a second picture track, and others would not.
fn check_tracks(movie: &Movie) -> Result<(), MediaError> {
    let (mut pictures, mut sounds) = (0, 0);
    for track in movie.tracks() {
        match &track?.handler {
            b"vide" => pictures += 1,
            b"soun" => sounds += 1,
            _ => {}
        }
    }
    match (pictures, sounds) {
        (1, 0 | 1) => Ok(()),
        (0, _) => Err(MediaError::Malformed("it has no picture track")),
        (1, _) => Err(MediaError::Malformed("it has more than one sound track")),
        _ => Err(MediaError::Malformed("it has more than one picture track")),
    }
}

fn check(info: &ProbeInfo, asked: &FilmFormat) -> Result<(), Mismatch> {
    let far = |actual: u32, asked: u32| actual.abs_diff(asked) >= SIDE_GRID;
    if far(info.width, asked.width) || far(info.height, asked.height) {
        return Err(Mismatch::Size {
            width: asked.width,
            height: asked.height,
            actual_width: info.width,
            actual_height: info.height,
        });
    }
    let actual = info.duration_seconds;
    let expected = f64::from(asked.seconds.unwrap_or(asked.seconds_max));
    let is_long_enough = asked.seconds.is_none() || actual > expected - SECONDS_GRID;
    // NaN fails both.
    if !(is_long_enough && actual < expected + SECONDS_GRID) {
        return Err(Mismatch::Duration { expected, actual });
    }
    match asked.audio {
        Some(expected) if info.has_audio != expected => Err(Mismatch::Audio {
            expected,
            actual: info.has_audio,
        }),
        _ => Ok(()),
    }
}

/// The format as if recorded here, so the same limits apply.
fn clip_format(info: &ProbeInfo) -> ClipFormat {
    ClipFormat {
        width: info.width,
        height: info.height,
        // Saturates; validation rejects extreme values.
        fps: info.fps.round().max(1.0) as u32,
        frames: info.frames,
        audio: None,
    }
}

fn decoded(
    path: &Path,
    format: &ClipFormat,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<Stills, MediaError> {
    let mut stills = Stills::new(format);
    let mut reader = VideoReader::open(path)?;
    let mut index = 0;
    while let Some(rgb) = reader.next_frame()? {
        look(&mut stills, index, &rgb, go_on)?;
        index += 1;
    }
    Ok(stills)
}

fn plain(format: &ClipFormat, go_on: &mut dyn FnMut() -> bool) -> Result<Stills, MediaError> {
    let mut stills = Stills::new(format);
    let rgb = vec![PLAIN; format.frame_bytes()];
    for index in 0..format.frames {
        look(&mut stills, index, &rgb, go_on)?;
    }
    Ok(stills)
}

fn look(
    stills: &mut Stills,
    index: u32,
    rgb: &[u8],
    go_on: &mut dyn FnMut() -> bool,
) -> Result<(), MediaError> {
    if !go_on() {
        return Err(MediaError::Stopped);
    }
    stills.sample(index, rgb)
}
