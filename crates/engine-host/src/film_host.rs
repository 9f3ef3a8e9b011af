//! The process that reads a film: confines itself, executes one order on its only thread, and
//! exits. It notices that the service is gone when it writes the next message; the limit on CPU
//! time ends a decoder that hangs.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use kinora_contract::{Clock, Stopwatch};
use kinora_media::{FilmFormat, Films, InProcess, MediaError};

use crate::film_message::{FilmFailure, FilmOrder, FilmTold, InfoHead};
use crate::wire::{Bounds, Message, invalid_data};
use crate::{family, sandbox};

/// Time between keep-alive messages.
const PULSE: Duration = Duration::from_millis(100);

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
    FilmTold::Confined(sandbox::lock_in(&confinement)).write(&mut to)?;
    let ended = match read_order(&mut from)? {
        FilmOrder::Examine(path, asked) => examine(&path, &asked.into(), &mut to, clock),
        FilmOrder::Look(path) => look(&path, &mut to),
        FilmOrder::Play(path) => play(&path, &mut to),
        FilmOrder::Confine(_) => return Err(invalid_data("a second confinement")),
    };
    match ended {
        Ok(()) => FilmTold::Done.write(&mut to),
        Err(Ended::Unheard(error)) => Err(error),
        Err(Ended::Film(error)) => FilmTold::Failed(FilmFailure::from(error)).write(&mut to),
    }
}

fn read_order(from: &mut impl Read) -> io::Result<FilmOrder> {
    let order = FilmOrder::read(from, &Bounds::trusted())?;
    order.ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))
}

/// Why an order failed.
enum Ended {
    Film(MediaError),
    /// The service no longer reads our messages.
    Unheard(io::Error),
}

impl From<MediaError> for Ended {
    fn from(error: MediaError) -> Self {
        Self::Film(error)
    }
}

fn tell(told: FilmTold, to: &mut impl Write) -> Result<(), Ended> {
    told.write(to).map_err(Ended::Unheard)
}

fn examine(
    path: &Path,
    asked: &FilmFormat,
    to: &mut impl Write,
    clock: &Arc<dyn Clock>,
) -> Result<(), Ended> {
    let (mut told, mut unheard) = (Stopwatch::start(clock), None);
    let mut go_on = || {
        // `examine` calls this for each decoded frame. The service takes silence for a hang, so
        // the process must prove its life, but not at the rate of the frames.
        if told.elapsed() >= PULSE {
            told.restart();
            unheard = FilmTold::Alive.write(to).err();
        }
        unheard.is_none()
    };
    let examined = InProcess.examine(path, asked, &mut go_on);
    if let Some(error) = unheard {
        return Err(Ended::Unheard(error));
    }
    let recording = examined?;
    tell(FilmTold::Info(InfoHead::from(&recording.info)), to)?;
    tell(FilmTold::Poster(recording.poster_webp), to)?;
    tell(FilmTold::Spritesheet(recording.spritesheet_jpeg), to)
}

fn look(path: &Path, to: &mut impl Write) -> Result<(), Ended> {
    let info = InProcess.look(path)?;
    tell(FilmTold::Info(InfoHead::from(&info)), to)
}

fn play(path: &Path, to: &mut impl Write) -> Result<(), Ended> {
    let info = InProcess.look(path)?;
    let mut film = InProcess.play(path, &info)?;
    while let Some(rgb) = film.next_frame()? {
        tell(FilmTold::Frame(rgb), to)?;
    }
    Ok(())
}
