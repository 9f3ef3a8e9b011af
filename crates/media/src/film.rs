//! Looks into a film that somebody else made: whether it is one, whether it is what was asked for,
//! and what its stills show. The file stays as it is; nothing is encoded anew.
//! Memory stays flat whatever the film; the time is that of decoding each of its frames once.

use std::fs::File;
use std::path::Path;

use crate::format::ClipFormat;
use crate::movie::Movie;
use crate::stills::Stills;
use crate::strict;
use crate::{MediaError, Mismatch, ProbeInfo, Recording, VideoReader};

/// A side may differ by less than this: models make sides that 16 or 32 pixels divide.
const SIDE_GRID: u32 = 32;
/// A length may differ by less than this: models make frames by four or eight, and one more, which
/// at 8 to 16 frames per second comes to a second at most.
const SECONDS_GRID: f64 = 1.0;
/// What stands for the pictures of a film that cannot be decoded here.
const PLAIN: u8 = 0x30;

/// What becomes of a film whose pictures cannot be decoded here.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Undecodable {
    /// It is refused: nobody knows whether it plays.
    #[default]
    Refuse,
    /// It is taken unseen, with plain stills, if its index is sound.
    Keep,
}

/// What a film was to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilmFormat {
    /// Picture width in pixels; the film's may differ by less than 32.
    pub width: u32,
    /// Picture height in pixels; likewise.
    pub height: u32,
    /// Length; the film's may differ by less than a second. `None` where it was left open.
    pub seconds: Option<u32>,
    /// The most that a film may last, with the same tolerance.
    pub seconds_max: u32,
    /// Whether there is to be sound; `None` where nobody could say so.
    pub audio: Option<bool>,
    /// Whether its pictures must be decodable here: progressive, 8 bit, 4:2:0.
    pub undecodable: Undecodable,
}

/// Reads the film at `path`: an MP4 with one H.264 track, and sound where it is to be. The tables of
/// every track are checked, and every frame is decoded; the stills come from these frames. `go_on` is
/// called for every frame, and may end it.
///
/// # Errors
/// [`MediaError::Malformed`], [`MediaError::NotAsAsked`] and [`MediaError::InvalidFormat`] for what
/// is not such a film, [`MediaError::Decode`] for pictures that cannot be decoded and are not to be
/// kept, [`MediaError::Stopped`], and what keeps the file from being read.
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

/// A second picture track would be shown by some players and not by others.
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
        _ => Err(MediaError::Malformed(
            "it has more than one track of pictures or of sound, or none of pictures",
        )),
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
    // Not-a-number is neither.
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

/// As if it had been recorded here, so that the same bounds hold.
fn clip_format(info: &ProbeInfo) -> ClipFormat {
    ClipFormat {
        width: info.width,
        height: info.height,
        // Saturates, and is judged with the rest.
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
