//! Reads films in separate processes, one per film: reads an index, examines a film made elsewhere,
//! or plays the source of an edit. The process has access only to the film, and is killed when it
//! is silent or uses too much memory.

use std::fmt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kinora_contract::{Clock, Stopwatch};
use kinora_media::{
    FilmFormat, FilmOpener, MediaError, MismatchPolicy, PlayedFilm, ProbeInfo, Recording,
};

use crate::film_message::{FilmFormatHead, FilmOrder, FilmResponse, ProbeInfoHead};
use crate::process::{ChildProcess, Received};
use crate::sandbox::{self, Confinement, SandboxRole};
use crate::wire::MessageBounds;

/// Poll interval of waiting callers.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Time between checks of the process's memory.
const MEMORY_CHECK_INTERVAL: Duration = Duration::from_millis(250);
/// Maximum resident memory of a process: pictures of level 5.2 need a quarter of it.
const MEMORY_BYTES_MAX: u64 = 1 << 30;
/// Maximum size of a played picture: level 5.2, in bytes of RGB.
const FRAME_BYTES_MAX: u64 = 36_864 * 256 * 3;
/// Attempts at work that is cheap to repeat.
const INDEX_ATTEMPTS_MAX: u32 = 2;

type FilmProcess = ChildProcess<FilmOrder, FilmResponse>;

/// Options for reading films.
pub struct FilmOptions {
    /// Makes the command of a process that calls [`crate::serve_film`].
    pub command: Box<dyn Fn() -> Command + Send + Sync>,
    /// Maximum silence of a process before it is killed.
    pub silence_max: Duration,
    /// Maximum time for examining a film.
    pub examine_max: Duration,
    /// Measures both limits.
    pub clock: Arc<dyn Clock>,
}

impl fmt::Debug for FilmOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FilmOptions")
            .field("silence_max", &self.silence_max)
            .field("examine_max", &self.examine_max)
            .finish_non_exhaustive()
    }
}

/// Reads films in separate processes.
#[derive(Debug)]
pub struct HostedFilms {
    options: FilmOptions,
    /// Whether the confinement was already logged.
    is_confinement_told: Arc<AtomicBool>,
}

impl HostedFilms {
    /// Starts no process before the first film.
    pub fn new(options: FilmOptions) -> Self {
        Self {
            options,
            is_confinement_told: Arc::default(),
        }
    }

    /// Starts a process that executes `order` on the film at `path`, with frames of `frame_bytes`.
    fn start(
        &self,
        path: &Path,
        order: FilmOrder,
        frame_bytes: u32,
    ) -> Result<FilmSession, MediaError> {
        let confinement = Confinement {
            read: vec![path.to_owned()],
            ..Confinement::of(SandboxRole::Decoder)
        };
        let bounds = MessageBounds::default();
        bounds.set_frame(frame_bytes);
        let command = (self.options.command)();
        // An error of the system here is its own fault, not the film's.
        let process = FilmProcess::start("film", command, Some(&confinement), bounds)?;
        process.send(FilmOrder::Confine(confinement));
        process.send(order);
        Ok(FilmSession {
            process: Some(process),
            silence_max: self.options.silence_max,
            last_message: Stopwatch::start(&self.options.clock),
            memory_checked: Stopwatch::start(&self.options.clock),
            is_confinement_told: self.is_confinement_told.clone(),
        })
    }

    fn try_read_index(&self, path: &Path) -> Result<ProbeInfo, MediaError> {
        let mut reading = self.start(path, FilmOrder::Look(path.to_owned()), 0)?;
        loop {
            match reading.receive()? {
                None => {}
                Some(FilmResponse::Info(told)) => return check_info(told),
                Some(_) => return Err(invalid_message()),
            }
        }
    }
}

impl FilmOpener for HostedFilms {
    fn examine(
        &self,
        path: &Path,
        asked: &FilmFormat,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Recording, MediaError> {
        let order = FilmOrder::Examine(path.to_owned(), FilmFormatHead::from(asked));
        let mut reading = self.start(path, order, frame_jpeg_bytes_max(asked))?;
        let begun = Stopwatch::start(&self.options.clock);
        let (mut info, mut poster, mut spritesheet) = (None, None, None);
        let (mut first_frame_jpeg, mut last_frame_jpeg) = (None, None);
        loop {
            if begun.elapsed() > self.options.examine_max {
                return Err(MediaError::Refused(
                    "examining it takes too long".to_owned(),
                ));
            }
            let told = reading.receive()?;
            // Checked for keep-alives too, which arrive ten times a second.
            if !go_on() {
                return Err(MediaError::Stopped);
            }
            match told {
                None => {}
                Some(FilmResponse::Info(told)) => info = Some(check_info(told)?),
                Some(FilmResponse::Poster(webp)) if is_webp(&webp) => poster = Some(webp),
                Some(FilmResponse::Spritesheet(jpeg)) if is_jpeg(&jpeg) => spritesheet = Some(jpeg),
                Some(FilmResponse::FirstFrame(jpeg)) if is_jpeg(&jpeg) => {
                    first_frame_jpeg = Some(jpeg);
                }
                Some(FilmResponse::LastFrame(jpeg)) if is_jpeg(&jpeg) => {
                    last_frame_jpeg = Some(jpeg);
                }
                Some(FilmResponse::Done) => break,
                Some(_) => return Err(invalid_message()),
            }
        }
        Ok(Recording {
            info: info.ok_or_else(invalid_message)?,
            poster_webp: poster.ok_or_else(invalid_message)?,
            spritesheet_jpeg: spritesheet.ok_or_else(invalid_message)?,
            first_frame_jpeg,
            last_frame_jpeg,
        })
    }

    fn look(&self, path: &Path) -> Result<ProbeInfo, MediaError> {
        let mut tries = 1;
        loop {
            match self.try_read_index(path) {
                // Only a lost process is worth another try, and only here: reading an index
                // takes milliseconds, examining or playing a film minutes.
                Err(MediaError::Lost(_)) if tries < INDEX_ATTEMPTS_MAX => tries += 1,
                looked => return looked,
            }
        }
    }

    fn play(&self, path: &Path, info: &ProbeInfo) -> Result<Box<dyn PlayedFilm>, MediaError> {
        let frame_bytes = frame_bytes(info).ok_or_else(invalid_message)?;
        let order = FilmOrder::Play(path.to_owned());
        Ok(Box::new(PlayingFilm {
            reading: self.start(path, order, frame_bytes)?,
            frame_bytes: frame_bytes as usize,
            left: info.frames,
        }))
    }
}

/// A process executing its order.
struct FilmSession {
    /// `None` once it has ended and its output is read.
    process: Option<FilmProcess>,
    silence_max: Duration,
    last_message: Stopwatch,
    memory_checked: Stopwatch,
    is_confinement_told: Arc<AtomicBool>,
}

impl FilmSession {
    /// The next message; `None` for a keep-alive or a short silence.
    fn receive(&mut self) -> Result<Option<FilmResponse>, MediaError> {
        let Some(process) = &self.process else {
            return lost("it has ended".to_owned());
        };
        if self.memory_checked.elapsed() >= MEMORY_CHECK_INTERVAL {
            self.memory_checked.restart();
            let held = process.resident_bytes();
            if held.is_some_and(|held| held > MEMORY_BYTES_MAX) {
                return Err(MediaError::Refused(
                    "reading it takes too much memory".to_owned(),
                ));
            }
        }
        match process.receive(POLL_INTERVAL) {
            Received::Silence if self.last_message.elapsed() > self.silence_max => {
                lost("it stopped responding".to_owned())
            }
            Received::Silence => Ok(None),
            Received::Closed => {
                let ended = self.process.take().map(ChildProcess::post_mortem);
                lost(ended.map_or_else(String::new, |error| error.to_string()))
            }
            Received::Message(told) => {
                self.last_message.restart();
                match told {
                    FilmResponse::Confined(lacking) => {
                        if !self.is_confinement_told.swap(true, Ordering::Relaxed) {
                            sandbox::log("film", &lacking);
                        }
                        Ok(None)
                    }
                    FilmResponse::Alive => Ok(None),
                    FilmResponse::Failed(failure) => Err(failure.into()),
                    told => Ok(Some(told)),
                }
            }
        }
    }
}

fn lost<T>(cause: String) -> Result<T, MediaError> {
    Err(MediaError::Lost(cause))
}

/// A film whose frames come from its process, a few read ahead.
struct PlayingFilm {
    reading: FilmSession,
    frame_bytes: usize,
    left: u32,
}

impl PlayedFilm for PlayingFilm {
    fn next_frame(&mut self) -> Result<Option<Vec<u8>>, MediaError> {
        // Frames wait while nobody asks for them: the process is not silent.
        self.reading.last_message.restart();
        loop {
            match self.reading.receive()? {
                None => {}
                Some(FilmResponse::Frame(rgb))
                    if rgb.len() == self.frame_bytes && self.left > 0 =>
                {
                    self.left -= 1;
                    return Ok(Some(rgb));
                }
                Some(FilmResponse::Done) if self.left == 0 => return Ok(None),
                Some(_) => return Err(invalid_message()),
            }
        }
    }
}

/// Checks that the reported film is plausible.
fn check_info(told: ProbeInfoHead) -> Result<ProbeInfo, MediaError> {
    let info = ProbeInfo::from(told);
    let is_sane = info.duration_seconds > 0.0 && info.fps > 0.0 && frame_bytes(&info).is_some();
    is_sane.then_some(info).ok_or_else(invalid_message)
}

/// The size of a frame in bytes; `None` if it is impossible.
fn frame_bytes(info: &ProbeInfo) -> Option<u32> {
    let pixels = u64::from(info.width).checked_mul(info.height.into())?;
    let bytes = pixels.checked_mul(3)?;
    // The report comes from a process that a hostile film may have taken over: this bound is
    // what the service allocates for a frame.
    let is_sane = bytes > 0 && bytes <= FRAME_BYTES_MAX;
    is_sane.then(|| u32::try_from(bytes).ok()).flatten()
}

/// Maximum size of a frame as JPEG, in bytes.
fn frame_jpeg_bytes_max(asked: &FilmFormat) -> u32 {
    if asked.mismatched == MismatchPolicy::Keep {
        return FRAME_BYTES_MAX as u32;
    }
    // A film may be up to 31 pixels wider and higher than requested. Noise takes 2.4 bytes a pixel
    // as JPEG.
    let sides = [asked.width, asked.height].map(|side| side.saturating_add(32));
    sides[0].saturating_mul(sides[1]).saturating_mul(6)
}

fn is_webp(bytes: &[u8]) -> bool {
    bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP")
}

fn is_jpeg(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0xff, 0xd8, 0xff])
}

fn invalid_message() -> MediaError {
    MediaError::Refused("the process that reads it sent an invalid message".to_owned())
}
