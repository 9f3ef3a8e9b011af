//! What the two processes tell each other, as bytes: one byte for the kind, the body's length as
//! `u32` in little endian, the body. Both ends are the same executable, so there is no version.

use std::io::{self, Read, Write};

use kinora_contract::{FailureCode, Size, VideoSpec};
use kinora_engine::{Clip, EngineError, Picture};
use serde::{Deserialize, Serialize};

/// A decoded image has 64 MiB at most; a frame of the largest size far less.
const BODY_BYTES_MAX: u32 = 256 << 20;

/// What the service tells an engine's process.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Order {
    /// The engine's settings, in a form that is between it and its opener. The first order of all.
    Open(Vec<u8>),
    /// A job. As many [`Order::Material`] follow as it names.
    Job(Box<JobHead>),
    /// A picture's or a sound's bytes.
    Material(Vec<u8>),
    /// The source's frame that was asked for.
    Frame(Vec<u8>),
    /// There is no further frame.
    NoFrame,
    /// The source cannot be read.
    Unreadable,
    /// The job that was ordered last is not wanted any more.
    Cancel,
}

/// What an engine's process tells the service.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Told {
    /// The engine is open.
    Opened,
    /// The engine gave signs of life; so much of the job is done, 0.0 to 1.0.
    Progress(f64),
    /// What the clip looks like so far.
    Preview(Picture),
    /// The next frame.
    Frame(Vec<u8>),
    /// The next stretch of sound.
    Audio(Vec<u8>),
    /// The source is to be played from its beginning, under this number.
    Play(u32),
    /// The next frame of a playing source is wanted.
    Next(u32),
    /// A playing source is not wanted any more.
    Close(u32),
    /// The engine could not be opened, or the job has ended.
    Ended(Ending),
}

/// Everything of a job but its bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct JobHead {
    pub(crate) spec: VideoSpec,
    pub(crate) clip: ClipHead,
    pub(crate) first_frame: Option<Size>,
    pub(crate) last_frame: Option<Size>,
    pub(crate) images: Vec<Size>,
    pub(crate) audios: u32,
    pub(crate) source: Option<SourceHead>,
}

/// [`Clip`], to be written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ClipHead {
    size: Size,
    fps: u32,
    frames: u32,
    audio: bool,
}

/// A source without its frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SourceHead {
    pub(crate) size: Size,
    pub(crate) fps: u32,
    pub(crate) frames: u32,
}

/// How a job, or the opening of an engine, ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Ending {
    Done,
    Cancelled,
    Unsupported(String),
    OutOfMemory(String),
    Failed(String),
    /// By the code of the contract, and the private cause.
    Told(String, String),
}

impl From<Clip> for ClipHead {
    fn from(clip: Clip) -> Self {
        Self {
            size: clip.size,
            fps: clip.fps,
            frames: clip.frames,
            audio: clip.audio,
        }
    }
}

impl From<ClipHead> for Clip {
    fn from(head: ClipHead) -> Self {
        Self {
            size: head.size,
            fps: head.fps,
            frames: head.frames,
            audio: head.audio,
        }
    }
}

impl Ending {
    /// What the service is told of `ended`.
    pub(crate) fn of(ended: Result<(), EngineError>) -> Self {
        match ended {
            Ok(()) => Self::Done,
            Err(EngineError::Cancelled) => Self::Cancelled,
            Err(EngineError::Unsupported(cause)) => Self::Unsupported(cause),
            Err(EngineError::OutOfMemory(cause)) => Self::OutOfMemory(cause),
            Err(EngineError::Failed(cause)) => Self::Failed(cause),
            Err(EngineError::Told { code, cause } | EngineError::Crashed { code, cause }) => {
                Self::Told(code.as_str().to_owned(), cause)
            }
            Err(error @ EngineError::Sink(_)) => Self::Failed(error.to_string()),
        }
    }

    /// The other way round.
    pub(crate) fn into_result(self) -> Result<(), EngineError> {
        Err(match self {
            Self::Done => return Ok(()),
            Self::Cancelled => EngineError::Cancelled,
            Self::Unsupported(cause) => EngineError::Unsupported(cause),
            Self::OutOfMemory(cause) => EngineError::OutOfMemory(cause),
            Self::Failed(cause) => EngineError::Failed(cause),
            Self::Told(code, cause) => match FailureCode::from_code(&code) {
                Some(code) => EngineError::Told { code, cause },
                None => EngineError::Failed(cause),
            },
        })
    }
}

/// A message of either direction.
pub(crate) trait Message: Sized {
    /// Its kind and body.
    fn pack(self) -> io::Result<(u8, Vec<u8>)>;

    /// The message of this kind with this body.
    fn unpack(kind: u8, body: Vec<u8>) -> io::Result<Self>;

    /// Writes it.
    fn write(self, to: &mut impl Write) -> io::Result<()> {
        let (kind, body) = self.pack()?;
        let length = u32::try_from(body.len()).ok();
        let length = length.filter(|length| *length <= BODY_BYTES_MAX);
        let length = length.ok_or_else(|| nonsense("a message that is too long"))?;
        let [a, b, c, d] = length.to_le_bytes();
        to.write_all(&[kind, a, b, c, d])?;
        to.write_all(&body)?;
        to.flush()
    }

    /// Reads the next one; `None` at the orderly end.
    fn read(from: &mut impl Read) -> io::Result<Option<Self>> {
        let mut head = Vec::new();
        let [kind, a, b, c, d] = match from.by_ref().take(5).read_to_end(&mut head)? {
            0 => return Ok(None),
            _ => <[u8; 5]>::try_from(head).map_err(|_| nonsense("half a message"))?,
        };
        let length = u32::from_le_bytes([a, b, c, d]);
        if length > BODY_BYTES_MAX {
            return Err(nonsense("a message that is too long"));
        }
        // Grown as it comes: a length alone reserves nothing.
        let mut body = Vec::new();
        from.by_ref().take(length.into()).read_to_end(&mut body)?;
        if body.len() != length as usize {
            return Err(nonsense("half a message"));
        }
        Self::unpack(kind, body).map(Some)
    }
}

impl Message for Order {
    fn pack(self) -> io::Result<(u8, Vec<u8>)> {
        Ok(match self {
            Self::Open(settings) => (b'o', settings),
            Self::Job(head) => (b'j', serde_json::to_vec(&head)?),
            Self::Material(bytes) => (b'm', bytes),
            Self::Frame(rgb) => (b'f', rgb),
            Self::NoFrame => (b'n', Vec::new()),
            Self::Unreadable => (b'u', Vec::new()),
            Self::Cancel => (b'c', Vec::new()),
        })
    }

    fn unpack(kind: u8, body: Vec<u8>) -> io::Result<Self> {
        Ok(match kind {
            b'o' => Self::Open(body),
            b'j' => Self::Job(serde_json::from_slice(&body)?),
            b'm' => Self::Material(body),
            b'f' => Self::Frame(body),
            b'n' => Self::NoFrame,
            b'u' => Self::Unreadable,
            b'c' => Self::Cancel,
            _ => return Err(nonsense("an unknown order")),
        })
    }
}

impl Message for Told {
    fn pack(self) -> io::Result<(u8, Vec<u8>)> {
        Ok(match self {
            Self::Opened => (b'o', Vec::new()),
            Self::Progress(fraction) => (b'p', fraction.to_le_bytes().to_vec()),
            Self::Preview(picture) => (b'v', preview(&picture)),
            Self::Frame(rgb) => (b'f', rgb),
            Self::Audio(pcm) => (b'a', pcm),
            Self::Play(number) => (b's', number.to_le_bytes().to_vec()),
            Self::Next(number) => (b'n', number.to_le_bytes().to_vec()),
            Self::Close(number) => (b'c', number.to_le_bytes().to_vec()),
            Self::Ended(ending) => (b'e', serde_json::to_vec(&ending)?),
        })
    }

    fn unpack(kind: u8, body: Vec<u8>) -> io::Result<Self> {
        let number = |body: Vec<u8>| exactly(body).map(u32::from_le_bytes);
        Ok(match kind {
            b'o' => Self::Opened,
            b'p' => Self::Progress(exactly(body).map(f64::from_le_bytes)?),
            b'v' => Self::Preview(picture(&body)?),
            b'f' => Self::Frame(body),
            b'a' => Self::Audio(body),
            b's' => Self::Play(number(body)?),
            b'n' => Self::Next(number(body)?),
            b'c' => Self::Close(number(body)?),
            b'e' => Self::Ended(serde_json::from_slice(&body)?),
            _ => return Err(nonsense("an unknown message")),
        })
    }
}

/// Width and height as `u32` in little endian, then `[height][width][3] u8`.
fn preview(picture: &Picture) -> Vec<u8> {
    let (width, height) = (picture.size.width, picture.size.height);
    [
        &width.to_le_bytes(),
        &height.to_le_bytes(),
        &picture.rgb[..],
    ]
    .concat()
}

fn picture(body: &[u8]) -> io::Result<Picture> {
    let torn = || nonsense("a picture of another size");
    let (width, rest) = body.split_first_chunk().ok_or_else(torn)?;
    let (height, rgb) = rest.split_first_chunk().ok_or_else(torn)?;
    let size = Size::new(u32::from_le_bytes(*width), u32::from_le_bytes(*height));
    if size.pixels().checked_mul(3) != Some(rgb.len() as u64) {
        return Err(torn());
    }
    Ok(Picture {
        size,
        rgb: rgb.to_vec(),
    })
}

fn exactly<const N: usize>(body: Vec<u8>) -> io::Result<[u8; N]> {
    <[u8; N]>::try_from(body).map_err(|_| nonsense("a number of another length"))
}

fn nonsense(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn round<M: Message>(message: M) -> M {
        let mut bytes = Vec::new();
        message.write(&mut bytes).unwrap();
        let mut left = &bytes[..];
        let read = M::read(&mut left).unwrap().unwrap();
        assert!(left.is_empty());
        read
    }

    proptest! {
        #[test]
        fn every_message_is_read_as_it_was_written(
            bytes in prop::collection::vec(any::<u8>(), 0..64),
            number: u32,
            fraction in 0.0..1.0,
            text in ".{0,20}",
        ) {
            for order in [
                Order::Open(bytes.clone()),
                Order::Material(bytes.clone()),
                Order::Frame(bytes.clone()),
                Order::NoFrame,
                Order::Unreadable,
                Order::Cancel,
            ] {
                prop_assert_eq!(round(order.clone()), order);
            }
            for told in [
                Told::Opened,
                Told::Progress(fraction),
                Told::Preview(Picture {
                    size: Size::new(1, (bytes.len() / 3) as u32),
                    rgb: bytes[..bytes.len() / 3 * 3].to_vec(),
                }),
                Told::Frame(bytes.clone()),
                Told::Audio(bytes.clone()),
                Told::Play(number),
                Told::Next(number),
                Told::Close(number),
                Told::Ended(Ending::Done),
                Told::Ended(Ending::Failed(text.clone())),
                Told::Ended(Ending::Told(FailureCode::StorageFailed.as_str().to_owned(), text)),
            ] {
                prop_assert_eq!(round(told.clone()), told);
            }
        }

        #[test]
        fn no_bytes_make_a_reader_panic_or_wait_for_what_is_not_there(
            bytes in prop::collection::vec(any::<u8>(), 0..64),
        ) {
            let mut left = &bytes[..];
            while let Ok(Some(_)) = Told::read(&mut left) {}
            let mut left = &bytes[..];
            while let Ok(Some(_)) = Order::read(&mut left) {}
        }
    }

    #[test]
    fn a_length_that_nothing_has_is_refused_before_it_is_read() {
        let mut head = &[b'f', 0xff, 0xff, 0xff, 0xff, 1, 2, 3][..];
        assert!(Told::read(&mut head).is_err());
        let mut half = &[b'f', 9, 0, 0, 0, 1, 2, 3][..];
        assert!(Told::read(&mut half).is_err());
        let mut end = &[][..];
        assert!(Told::read(&mut end).unwrap().is_none());
    }
}
