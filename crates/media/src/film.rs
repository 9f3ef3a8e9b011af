//! Films made elsewhere: examines whether one is valid and matches the request, and plays it, in
//! this process or, behind [`FilmOpener`], in a less trusted one. The file stays unchanged; nothing is
//! re-encoded. Memory is constant; examining decodes each frame once.

use std::fmt;
use std::fs::File;
use std::path::Path;

use crate::boxes::{BoxFields, child, optional_child};
use crate::defragment::defragment;
use crate::format::{ClipFormat, FRAMES_MAX};
use crate::movie::{MovieIndex, MovieTrack};
use crate::provenance::{Provenance, label};
use crate::stills::StillCollector;
use crate::{FormatMismatch, MediaError, ProbeInfo, Recording, VideoReader};

/// Sides may differ by less than this: models make sides that are multiples of 16 or 32 pixels.
const SIDE_GRID: u32 = 32;
/// Lengths may differ by less than this: models make frames in multiples of four or eight plus one,
/// which at 8 to 16 frames per second amounts to at most a second.
const SECONDS_GRID: f64 = 1.0;
/// Maximum length of a film that is kept whatever was requested.
const KEPT_SECONDS_MAX: f64 = 3_600.0;
/// Grey level of the stills for a film that cannot be decoded here.
const GREY_LEVEL: u8 = 0x30;

/// Policy for a film whose pictures cannot be decoded here.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum UndecodablePolicy {
    /// Refuse it, because it may not play anywhere.
    #[default]
    Refuse,
    /// Accept it undecoded, with plain stills and without its frames, if its index is valid.
    Keep,
}

/// Policy for a film whose size, length or sound is not the requested one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MismatchPolicy {
    /// Refuse it.
    #[default]
    Refuse,
    /// Accept it, because it has been paid for. [`FilmFormat::mismatches`] lists the differences.
    Keep,
}

/// The requested properties of a film.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilmFormat {
    /// Picture width in pixels; the film matches if it differs by less than 32.
    pub width: u32,
    /// Picture height in pixels, with the same tolerance.
    pub height: u32,
    /// Length in seconds; the film matches if it differs by less than a second. `None` if the request left it
    /// open.
    pub seconds: Option<u32>,
    /// Maximum length of a film in seconds, with the same tolerance.
    pub seconds_max: u32,
    /// Whether sound is expected; `None` if unknown.
    pub audio: Option<bool>,
    /// Whether its pictures must be decodable here: progressive, 8 bit, 4:2:0.
    pub undecodable: UndecodablePolicy,
    /// Whether it must have the requested size, length and sound.
    pub mismatched: MismatchPolicy,
}

impl FilmFormat {
    /// How a film with this index differs from the request, beyond the tolerances.
    pub fn mismatches(&self, info: &ProbeInfo) -> Vec<FormatMismatch> {
        let mut found = Vec::new();
        if info.width.abs_diff(self.width) >= SIDE_GRID
            || info.height.abs_diff(self.height) >= SIDE_GRID
        {
            found.push(FormatMismatch::Size {
                width: self.width,
                height: self.height,
                actual_width: info.width,
                actual_height: info.height,
            });
        }
        let actual = info.duration_seconds;
        let expected = f64::from(self.seconds.unwrap_or(self.seconds_max));
        let is_long_enough = self.seconds.is_none() || actual > expected - SECONDS_GRID;
        // NaN fails both.
        if !(is_long_enough && actual < expected + SECONDS_GRID) {
            found.push(FormatMismatch::Duration { expected, actual });
        }
        if let Some(expected) = self.audio.filter(|expected| *expected != info.has_audio) {
            found.push(FormatMismatch::Audio {
                expected,
                actual: info.has_audio,
            });
        }
        found
    }
}

/// Examines the film at `path`: an MP4 with one H.264 track, and sound if expected. Checks the
/// tables of every track and decodes every frame; the stills come from these frames. Calls `go_on`
/// for every frame, and stops if it returns false.
///
/// [`MediaError::Malformed`] and [`MediaError::InvalidFormat`] for an unusable film,
/// [`MediaError::NotAsAsked`] for one that does not match unless it is kept, [`MediaError::Decode`] for undecodable pictures unless they are
/// accepted, [`MediaError::Stopped`], and read errors.
pub fn examine(
    path: &Path,
    asked: &FilmFormat,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<Recording, MediaError> {
    let movie = MovieIndex::read(&mut File::open(path)?)?;
    check_tracks(&movie)?;
    check_tables(&movie)?;
    let info = ProbeInfo::from_movie(&movie)?;
    check_request(&info, asked)?;
    let format = clip_format(&info);
    format.validate()?;
    // An operator may accept films whose codec features this decoder lacks (interlaced pictures,
    // 10 bits). Their index has been checked either way; only the stills are missing then.
    let (stills, is_decoded) = match decode_stills(path, &format, go_on) {
        Err(MediaError::Decode(_) | MediaError::Malformed(_))
            if asked.undecodable == UndecodablePolicy::Keep =>
        {
            (plain_stills(&format, go_on)?, false)
        }
        stills => (stills?, true),
    };
    let (poster_webp, spritesheet_jpeg) = (stills.poster_webp()?, stills.spritesheet_jpeg()?);
    // A client would go on from a plain frame as if the film ended with it.
    let frames = stills.into_frame_jpegs();
    let [first_frame_jpeg, last_frame_jpeg] = frames.map(|jpeg| jpeg.filter(|_| is_decoded));
    Ok(Recording {
        info,
        poster_webp,
        spritesheet_jpeg,
        first_frame_jpeg,
        last_frame_jpeg,
    })
}

/// Refuses films with several picture or sound tracks: players differ in which one they show.
fn check_tracks(movie: &MovieIndex) -> Result<(), MediaError> {
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

fn check_request(info: &ProbeInfo, asked: &FilmFormat) -> Result<(), MediaError> {
    let found = asked.mismatches(info);
    match (asked.mismatched, found.first()) {
        (MismatchPolicy::Refuse, Some(mismatch)) => Err((*mismatch).into()),
        (MismatchPolicy::Refuse, None) => Ok(()),
        // Whatever was requested. NaN fails both.
        (MismatchPolicy::Keep, _) => {
            if info.duration_seconds > 0.0 && info.duration_seconds <= KEPT_SECONDS_MAX {
                Ok(())
            } else {
                Err(MediaError::InvalidFormat("a film lasts at most an hour"))
            }
        }
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

fn decode_stills(
    path: &Path,
    format: &ClipFormat,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<StillCollector, MediaError> {
    let mut stills = StillCollector::new(format);
    let mut reader = VideoReader::open(path)?;
    let mut index = 0;
    while let Some(rgb) = reader.next_frame()? {
        look(&mut stills, index, &rgb, go_on)?;
        index += 1;
    }
    Ok(stills)
}

fn plain_stills(
    format: &ClipFormat,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<StillCollector, MediaError> {
    let mut stills = StillCollector::new(format);
    let rgb = vec![GREY_LEVEL; format.frame_bytes()];
    for index in 0..format.frames {
        look(&mut stills, index, &rgb, go_on)?;
    }
    Ok(stills)
}

fn look(
    stills: &mut StillCollector,
    index: u32,
    rgb: &[u8],
    go_on: &mut dyn FnMut() -> bool,
) -> Result<(), MediaError> {
    if !go_on() {
        return Err(MediaError::Stopped);
    }
    stills.sample(index, rgb)
}

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
fn check_tables(movie: &MovieIndex) -> Result<(), MediaError> {
    let header = DurationHeader::read(child(&movie.moov, b"mvhd")?)?;
    if header.timescale == 0 {
        return Err(MediaError::Malformed("it has no time scale"));
    }
    for track in movie.tracks() {
        check_track(&track?, header.timescale)?;
    }
    Ok(())
}

fn check_track(track: &MovieTrack<'_>, movie_timescale: u32) -> Result<(), MediaError> {
    // Reading the table has checked sizes, and that every chunk is within the media data.
    let table = track.table()?;
    let is_picture = &track.handler == b"vide";
    // Before `check_times`, which expands the run-length coded tables: a few bytes may declare
    // four billion samples.
    if table.samples() > if is_picture { FRAMES_MAX } else { SAMPLES_MAX } {
        return Err(MediaError::Malformed("a track has too many samples"));
    }
    table.check_times()?;
    table.check_sync_samples()?;
    let seconds = table.ticks() as f64 / f64::from(track.timescale);
    let stated = DurationHeader::read(child(child(track.trak, b"mdia")?, b"mdhd")?)?;
    if let Some(duration) = stated.duration {
        let stated = duration as f64 / f64::from(track.timescale);
        // Players show the stated length and seek by it.
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
fn check_shown_size(track: &MovieTrack<'_>) -> Result<(), MediaError> {
    let tkhd = child(track.trak, b"tkhd")?;
    let mut fields = BoxFields::new(tkhd);
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
fn check_edits(
    track: &MovieTrack<'_>,
    seconds: f64,
    movie_timescale: u32,
) -> Result<(), MediaError> {
    const WRONG: MediaError = MediaError::Malformed("its edit list refers to missing media");
    let Some(edits) = optional_child(track.trak, b"edts")? else {
        return Ok(());
    };
    let Some(elst) = optional_child(edits, b"elst")? else {
        return Ok(());
    };
    let mut fields = BoxFields::new(elst);
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
        // 16.16 fixed point: 0x0001_0000 is normal speed. Slow motion, freezes and reversed
        // parts would make the film longer than its samples.
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
struct DurationHeader {
    timescale: u32,
    /// `None` if unknown.
    duration: Option<u64>,
}

impl DurationHeader {
    fn read(body: &[u8]) -> Result<Self, MediaError> {
        let mut fields = BoxFields::new(body);
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

/// Opens films. Shared by all threads of a process.
pub trait FilmOpener: Send + Sync + fmt::Debug {
    /// Rewrites the film at `path` with one index if it is fragmented, like [`defragment`](crate::defragment()); returns
    /// whether it was. Decodes nothing.
    ///
    /// # Errors
    /// As [`defragment`](crate::defragment()).
    fn defragment(&self, path: &Path) -> Result<bool, MediaError> {
        defragment(path)
    }

    /// Examines the film at `path`, as [`examine`](crate::examine()) does.
    ///
    /// # Errors
    /// As [`examine`](crate::examine()), and [`MediaError::Lost`].
    fn examine(
        &self,
        path: &Path,
        asked: &FilmFormat,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Recording, MediaError>;

    /// Labels the film at `path`, which [`Self::examine`] has accepted, and its stills, like
    /// [`label`](crate::label()). Decodes nothing.
    ///
    /// # Errors
    /// As [`label`](crate::label()).
    fn label(
        &self,
        path: &Path,
        recording: &mut Recording,
        provenance: &Provenance,
    ) -> Result<bool, MediaError> {
        label(path, recording, provenance)
    }

    /// Reads the index of the film at `path`, and checks it against its H.264 parameter sets.
    ///
    /// # Errors
    /// As [`VideoReader::open`], and [`MediaError::Lost`].
    fn look(&self, path: &Path) -> Result<ProbeInfo, MediaError>;

    /// Plays the film at `path` from the beginning; `info` comes from [`Self::look`].
    ///
    /// # Errors
    /// As [`VideoReader::open`], and [`MediaError::Lost`].
    fn play(&self, path: &Path, info: &ProbeInfo) -> Result<Box<dyn PlayedFilm>, MediaError>;
}

/// A film being played.
pub trait PlayedFilm: Send {
    /// `rgb [height][width][3] u8` of the next frame in presentation order, or `None` after the last.
    ///
    /// # Errors
    /// As [`VideoReader::next_frame`], and [`MediaError::Lost`].
    fn next_frame(&mut self) -> Result<Option<Vec<u8>>, MediaError>;
}

/// Opens films in the current process.
#[derive(Clone, Copy, Debug, Default)]
pub struct InProcessFilms;

impl FilmOpener for InProcessFilms {
    fn examine(
        &self,
        path: &Path,
        asked: &FilmFormat,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Recording, MediaError> {
        examine(path, asked, go_on)
    }

    fn look(&self, path: &Path) -> Result<ProbeInfo, MediaError> {
        Ok(*VideoReader::open(path)?.info())
    }

    fn play(&self, path: &Path, _: &ProbeInfo) -> Result<Box<dyn PlayedFilm>, MediaError> {
        Ok(Box::new(VideoReader::open(path)?))
    }
}

impl PlayedFilm for VideoReader {
    fn next_frame(&mut self) -> Result<Option<Vec<u8>>, MediaError> {
        Self::next_frame(self)
    }
}
