//! Messages between the service and a process that reads films. Such a process reads one film,
//! once.

use std::io;
use std::path::PathBuf;

use kinora_media::{FilmFormat, MediaError, MismatchPolicy, ProbeInfo, UndecodablePolicy};
use serde::{Deserialize, Serialize};

use crate::sandbox::Confinement;
use crate::wire::{MessageBounds, SMALL_BYTES_MAX, TRUSTED_BYTES_MAX, WireMessage};

/// Maximum size of a poster or spritesheet: 1,600 by 1,600 pixels take less even uncompressed.
const STILL_BYTES_MAX: u32 = 8 << 20;

/// Messages from the service to a process that reads films.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum FilmOrder {
    /// The first order: the process confines itself to this, and reports that it did.
    Confine(Confinement),
    /// Examine the film.
    Examine(PathBuf, FilmFormatHead),
    /// Read the film's index.
    Look(PathBuf),
    /// Play the film's frames, starting with the first.
    Play(PathBuf),
}

/// Messages from a process that reads films to the service.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum FilmResponse {
    /// The process has confined itself, except for these parts.
    Confined(Vec<String>),
    /// Keep-alive.
    Alive,
    /// The content of the film's index.
    Info(ProbeInfoHead),
    /// The poster, WebP.
    Poster(Vec<u8>),
    /// The spritesheet, JPEG.
    Spritesheet(Vec<u8>),
    /// The first frame, JPEG; only of a film that can be decoded.
    FirstFrame(Vec<u8>),
    /// The last frame, likewise.
    LastFrame(Vec<u8>),
    /// The next frame.
    Frame(Vec<u8>),
    /// There is no more output.
    Done,
    /// The film cannot be read.
    Failed(FilmFailure),
}

/// [`FilmFormat`] in serialisable form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FilmFormatHead {
    width: u32,
    height: u32,
    seconds: Option<u32>,
    seconds_max: u32,
    audio: Option<bool>,
    keep_undecodable: bool,
    keep_mismatched: bool,
}

/// [`ProbeInfo`] in serialisable form.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ProbeInfoHead {
    duration_seconds: f64,
    fps: f64,
    frames: u32,
    width: u32,
    height: u32,
    has_audio: bool,
    file_bytes: u64,
}

/// Why a film cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum FilmFailure {
    /// The system failed to read the file, whatever it contains.
    System(String),
    /// An unexpected end of file or a similar error.
    Io(String),
    /// The film is at fault.
    Film(String),
}

impl From<&FilmFormat> for FilmFormatHead {
    fn from(asked: &FilmFormat) -> Self {
        Self {
            width: asked.width,
            height: asked.height,
            seconds: asked.seconds,
            seconds_max: asked.seconds_max,
            audio: asked.audio,
            keep_undecodable: asked.undecodable == UndecodablePolicy::Keep,
            keep_mismatched: asked.mismatched == MismatchPolicy::Keep,
        }
    }
}

impl From<FilmFormatHead> for FilmFormat {
    fn from(head: FilmFormatHead) -> Self {
        Self {
            width: head.width,
            height: head.height,
            seconds: head.seconds,
            seconds_max: head.seconds_max,
            audio: head.audio,
            undecodable: if head.keep_undecodable {
                UndecodablePolicy::Keep
            } else {
                UndecodablePolicy::Refuse
            },
            mismatched: if head.keep_mismatched {
                MismatchPolicy::Keep
            } else {
                MismatchPolicy::Refuse
            },
        }
    }
}

impl From<&ProbeInfo> for ProbeInfoHead {
    fn from(info: &ProbeInfo) -> Self {
        Self {
            duration_seconds: info.duration_seconds,
            fps: info.fps,
            frames: info.frames,
            width: info.width,
            height: info.height,
            has_audio: info.has_audio,
            file_bytes: info.file_bytes,
        }
    }
}

impl From<ProbeInfoHead> for ProbeInfo {
    fn from(head: ProbeInfoHead) -> Self {
        Self {
            duration_seconds: head.duration_seconds,
            fps: head.fps,
            frames: head.frames,
            width: head.width,
            height: head.height,
            has_audio: head.has_audio,
            file_bytes: head.file_bytes,
        }
    }
}

impl From<MediaError> for FilmFailure {
    fn from(error: MediaError) -> Self {
        match error {
            MediaError::Io(error) if error.raw_os_error().is_some() => {
                Self::System(error.to_string())
            }
            MediaError::Io(error) => Self::Io(error.to_string()),
            error => Self::Film(error.to_string()),
        }
    }
}

impl From<FilmFailure> for MediaError {
    fn from(failure: FilmFailure) -> Self {
        match failure {
            // Another attempt may succeed. It counts, because a child's word alone does not blame
            // this machine.
            FilmFailure::System(text) => Self::Lost(text),
            FilmFailure::Io(text) => Self::Io(io::Error::other(text)),
            FilmFailure::Film(text) => Self::Refused(text),
        }
    }
}

impl WireMessage for FilmOrder {
    fn body_bytes_max(_: u8, _: &MessageBounds) -> u32 {
        TRUSTED_BYTES_MAX
    }

    fn pack(self) -> io::Result<(u8, Vec<u8>)> {
        Ok((b'o', serde_json::to_vec(&self)?))
    }

    fn unpack(kind: u8, body: Vec<u8>) -> io::Result<Option<Self>> {
        match kind {
            b'o' => Ok(Some(serde_json::from_slice(&body)?)),
            _ => Ok(None),
        }
    }
}

impl WireMessage for FilmResponse {
    fn body_bytes_max(kind: u8, bounds: &MessageBounds) -> u32 {
        match kind {
            b'f' | b'F' | b'L' => bounds.frame(),
            b'p' | b's' => STILL_BYTES_MAX,
            _ => SMALL_BYTES_MAX,
        }
    }

    fn pack(self) -> io::Result<(u8, Vec<u8>)> {
        Ok(match self {
            Self::Confined(lacking) => (b'l', serde_json::to_vec(&lacking)?),
            Self::Alive => (b'a', Vec::new()),
            Self::Info(info) => (b'i', serde_json::to_vec(&info)?),
            Self::Poster(webp) => (b'p', webp),
            Self::Spritesheet(jpeg) => (b's', jpeg),
            Self::FirstFrame(jpeg) => (b'F', jpeg),
            Self::LastFrame(jpeg) => (b'L', jpeg),
            Self::Frame(rgb) => (b'f', rgb),
            Self::Done => (b'd', Vec::new()),
            Self::Failed(failure) => (b'e', serde_json::to_vec(&failure)?),
        })
    }

    fn unpack(kind: u8, body: Vec<u8>) -> io::Result<Option<Self>> {
        Ok(Some(match kind {
            b'l' => Self::Confined(serde_json::from_slice(&body)?),
            b'a' => Self::Alive,
            b'i' => Self::Info(serde_json::from_slice(&body)?),
            b'p' => Self::Poster(body),
            b's' => Self::Spritesheet(body),
            b'F' => Self::FirstFrame(body),
            b'L' => Self::LastFrame(body),
            b'f' => Self::Frame(body),
            b'd' => Self::Done,
            b'e' => Self::Failed(serde_json::from_slice(&body)?),
            _ => return Ok(None),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_film_at_fault_is_told_from_a_system_that_refuses_to_read_it() {
        let passed = |error: MediaError| MediaError::from(FilmFailure::from(error));
        let refused = io::Error::from_raw_os_error(rustix::io::Errno::IO.raw_os_error());
        assert!(matches!(
            passed(MediaError::Io(refused)),
            MediaError::Lost(_)
        ));
        let cut = io::Error::from(io::ErrorKind::UnexpectedEof);
        assert!(matches!(passed(MediaError::Io(cut)), MediaError::Io(_)));
        let broken = MediaError::Malformed("no index");
        assert!(matches!(passed(broken), MediaError::Refused(_)));
    }
}
