//! How messages between the service and its child processes become bytes: one byte for the kind, the
//! body's length as `u32` in little endian, the body. Both ends are the same executable, so there is no
//! version. A child is not trusted: how long a body of which kind may be follows from the work at hand.

use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::message::ClipHead;

/// The longest body from the service: a decoded image has 64 MiB at most.
pub(crate) const TRUSTED_BYTES_MAX: u32 = 256 << 20;
/// The longest body from a child that carries neither pictures nor sound.
pub(crate) const SMALL_BYTES_MAX: u32 = 64 << 10;
/// Models draw on a grid: a preview may be so much wider and higher than the clip.
const PREVIEW_SIDE_MORE: u32 = 64;
/// Width and height before a preview's pixels.
const PREVIEW_HEAD_BYTES: u32 = 8;

/// The longest bodies that a child may send, by what it was asked to do. Nothing by default.
#[derive(Debug, Default)]
pub(crate) struct Bounds {
    frame: AtomicU32,
    sound: AtomicU32,
    preview: AtomicU32,
}

impl Bounds {
    /// The clip that the child makes from now on.
    pub(crate) fn set_clip(&self, clip: ClipHead) {
        let preview = clip.larger_frame_bytes(PREVIEW_SIDE_MORE);
        let preview = preview.and_then(|bytes| bytes.checked_add(PREVIEW_HEAD_BYTES));
        self.set_frame(clip.frame_bytes().unwrap_or(0));
        set(&self.sound, clip.sound_bytes().unwrap_or(0));
        set(&self.preview, preview.unwrap_or(0));
    }

    /// The bytes of the frames that the child gives from now on.
    pub(crate) fn set_frame(&self, bytes: u32) {
        set(&self.frame, bytes);
    }

    pub(crate) fn frame(&self) -> u32 {
        self.frame.load(Ordering::Acquire)
    }

    pub(crate) fn sound(&self) -> u32 {
        self.sound.load(Ordering::Acquire)
    }

    pub(crate) fn preview(&self) -> u32 {
        self.preview.load(Ordering::Acquire)
    }

    /// Those of a sender that is trusted.
    pub(crate) fn trusted() -> Self {
        let most = || AtomicU32::new(TRUSTED_BYTES_MAX);
        Self {
            frame: most(),
            sound: most(),
            preview: most(),
        }
    }
}

fn set(bound: &AtomicU32, bytes: u32) {
    bound.store(bytes.min(TRUSTED_BYTES_MAX), Ordering::Release);
}

/// A message of either direction.
pub(crate) trait Message: Sized + Send + 'static {
    /// The longest body of this kind.
    fn body_bytes_max(kind: u8, bounds: &Bounds) -> u32;

    /// Its kind and body.
    fn pack(self) -> io::Result<(u8, Vec<u8>)>;

    /// The message of this kind with this body.
    fn unpack(kind: u8, body: Vec<u8>) -> io::Result<Self>;

    /// Writes it.
    fn write(self, to: &mut impl Write) -> io::Result<()> {
        let (kind, body) = self.pack()?;
        let length = u32::try_from(body.len()).ok();
        let length = length.filter(|length| *length <= TRUSTED_BYTES_MAX);
        let length = length.ok_or_else(|| nonsense("a message that is too long"))?;
        let [a, b, c, d] = length.to_le_bytes();
        to.write_all(&[kind, a, b, c, d])?;
        to.write_all(&body)?;
        to.flush()
    }

    /// Reads the next one; `None` at the orderly end.
    fn read(from: &mut impl Read, bounds: &Bounds) -> io::Result<Option<Self>> {
        let mut head = Vec::new();
        let [kind, a, b, c, d] = match from.by_ref().take(5).read_to_end(&mut head)? {
            0 => return Ok(None),
            _ => <[u8; 5]>::try_from(head).map_err(|_| nonsense("half a message"))?,
        };
        let length = u32::from_le_bytes([a, b, c, d]);
        if length > Self::body_bytes_max(kind, bounds) {
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

/// A body of exactly so many bytes.
pub(crate) fn exactly<const N: usize>(body: Vec<u8>) -> io::Result<[u8; N]> {
    <[u8; N]>::try_from(body).map_err(|_| nonsense("a number of another length"))
}

pub(crate) fn nonsense(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}
