//! The process that reads a film: confines itself, executes one order on its only thread, and
//! exits. It notices that the service is gone when it writes the next message; the limit on CPU
//! time ends a decoder that hangs.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use kinora_contract::{Clock, Stopwatch};
use kinora_media::{FilmFormat, FilmOpener, InProcessFilms, MediaError};

use crate::film_message::{FilmFailure, FilmOrder, FilmResponse, ProbeInfoHead};
use crate::wire::{MessageBounds, WireMessage, invalid_data};
use crate::{family, sandbox};

/// Time between keep-alive messages.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_millis(100);

/// Reads one film for the service that started this process. Takes over standard input and output.
/// `clock` times the keep-alive messages.
///
/// # Errors
/// If the service sends an invalid message or is gone.
pub fn serve_film(clock: &Arc<dyn Clock>) -> io::Result<()> {
    let output = rustix::io::dup(rustix::stdio::stdout())?;
    rustix::stdio::dup2_stdout(rustix::stdio::stderr())?;
    family::prefer_oom_kill();
    let mut to = File::from(output);
    let mut from = io::stdin().lock();
    // The film is opened only after the sandbox is closed: a hostile file meets the decoder
    // inside.
    let FilmOrder::Confine(confinement) = read_order(&mut from)? else {
        return Err(invalid_data("the first order is not a confinement"));
    };
    FilmResponse::Confined(sandbox::lock_in(&confinement)).write(&mut to)?;
    let ended = match read_order(&mut from)? {
        FilmOrder::Examine(path, asked) => examine(&path, &asked.into(), &mut to, clock),
        FilmOrder::Look(path) => send_index(&path, &mut to),
        FilmOrder::Play(path) => play(&path, &mut to),
        FilmOrder::Confine(_) => return Err(invalid_data("a second confinement")),
    };
    match ended {
        Ok(()) => FilmResponse::Done.write(&mut to),
        Err(OrderError::ServiceGone(error)) => Err(error),
        Err(OrderError::Film(error)) => {
            FilmResponse::Failed(FilmFailure::from(error)).write(&mut to)
        }
    }
}

fn read_order(from: &mut impl Read) -> io::Result<FilmOrder> {
    let order = FilmOrder::read(from, &MessageBounds::trusted())?;
    order.ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))
}

/// Why an order failed.
enum OrderError {
    Film(MediaError),
    /// The service no longer reads our messages.
    ServiceGone(io::Error),
}

impl From<MediaError> for OrderError {
    fn from(error: MediaError) -> Self {
        Self::Film(error)
    }
}

fn send(told: FilmResponse, to: &mut impl Write) -> Result<(), OrderError> {
    told.write(to).map_err(OrderError::ServiceGone)
}

fn examine(
    path: &Path,
    asked: &FilmFormat,
    to: &mut impl Write,
    clock: &Arc<dyn Clock>,
) -> Result<(), OrderError> {
    let (mut told, mut unheard) = (Stopwatch::start(clock), None);
    let examined = InProcessFilms.examine(path, asked, &mut || {
        // Called for each decoded frame. The service takes silence for a hang, so the process must
        // prove its life, but not at the rate of the frames.
        if told.elapsed() >= KEEP_ALIVE_INTERVAL {
            told.restart();
            unheard = FilmResponse::Alive.write(to).err();
        }
        unheard.is_none()
    });
    if let Some(error) = unheard {
        return Err(OrderError::ServiceGone(error));
    }
    let recording = examined?;
    send(FilmResponse::Info(ProbeInfoHead::from(&recording.info)), to)?;
    send(FilmResponse::Poster(recording.poster_webp), to)?;
    send(FilmResponse::Spritesheet(recording.spritesheet_jpeg), to)?;
    let first = recording.first_frame_jpeg.map(FilmResponse::FirstFrame);
    let last = recording.last_frame_jpeg.map(FilmResponse::LastFrame);
    first
        .into_iter()
        .chain(last)
        .try_for_each(|frame| send(frame, to))
}

fn send_index(path: &Path, to: &mut impl Write) -> Result<(), OrderError> {
    let info = InProcessFilms.look(path)?;
    send(FilmResponse::Info(ProbeInfoHead::from(&info)), to)
}

fn play(path: &Path, to: &mut impl Write) -> Result<(), OrderError> {
    let info = InProcessFilms.look(path)?;
    let mut film = InProcessFilms.play(path, &info)?;
    while let Some(rgb) = film.next_frame()? {
        send(FilmResponse::Frame(rgb), to)?;
    }
    Ok(())
}
