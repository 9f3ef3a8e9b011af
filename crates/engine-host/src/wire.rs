//! Encodes messages between the service and its child processes: one byte for the kind, the body's
//! length as `u32` in little endian, the body. Messages of unknown kinds are skipped: a later version may add some.
//! Children are untrusted: the current work determines the maximum length of each kind.

use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::protocol::ClipHead;

/// Maximum size of a body from the service: a decoded image has at most 64 MiB.
pub(crate) const TRUSTED_BYTES_MAX: u32 = 256 << 20;
/// Maximum size of a body from a child without pictures or sound.
pub(crate) const SMALL_BYTES_MAX: u32 = 64 << 10;
/// Models work on a grid: a preview may exceed the clip's width and height by this much.
const PREVIEW_SIDE_MORE: u32 = 64;
/// Width and height before a preview's pixels.
const PREVIEW_HEAD_BYTES: u32 = 8;

/// Maximum sizes of bodies from a child, according to its current work. Zero by default.
#[derive(Debug, Default)]
pub(crate) struct MessageBounds {
    frame: AtomicU32,
    sound: AtomicU32,
    preview: AtomicU32,
}

impl MessageBounds {
    /// Sets the limits for the clip that the child generates next.
    pub(crate) fn set_clip(&self, clip: ClipHead) {
        let preview = clip.larger_frame_bytes(PREVIEW_SIDE_MORE);
        let preview = preview.and_then(|bytes| bytes.checked_add(PREVIEW_HEAD_BYTES));
        self.set_frame(clip.frame_bytes().unwrap_or(0));
        set(&self.sound, clip.sound_bytes().unwrap_or(0));
        set(&self.preview, preview.unwrap_or(0));
    }

    /// Sets the frame size of the film that the child plays next.
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

    /// Limits for messages of the service, which is trusted.
    pub(crate) fn trusted() -> Self {
        Self {
            frame: AtomicU32::new(TRUSTED_BYTES_MAX),
            sound: AtomicU32::new(TRUSTED_BYTES_MAX),
            preview: AtomicU32::new(TRUSTED_BYTES_MAX),
        }
    }
}

fn set(bound: &AtomicU32, bytes: u32) {
    // Release, paired with Acquire in the reader's thread: an order queued after this call is
    // never answered under older limits.
    bound.store(bytes.min(TRUSTED_BYTES_MAX), Ordering::Release);
}

/// A message in either direction.
pub(crate) trait WireMessage: Sized + Send + 'static {
    /// Maximum size of a body of this kind.
    fn body_bytes_max(kind: u8, bounds: &MessageBounds) -> u32;

    /// Encodes the message as kind and body.
    fn pack(self) -> io::Result<(u8, Vec<u8>)>;

    /// Decodes a message from kind and body; `None` for an unknown kind.
    fn unpack(kind: u8, body: Vec<u8>) -> io::Result<Option<Self>>;

    /// Writes the message.
    fn write(self, to: &mut impl Write) -> io::Result<()> {
        let (kind, body) = self.pack()?;
        let length = u32::try_from(body.len()).ok();
        let length = length.filter(|length| *length <= TRUSTED_BYTES_MAX);
        let length = length.ok_or_else(|| invalid_data("a message that is too long"))?;
        let [a, b, c, d] = length.to_le_bytes();
        to.write_all(&[kind, a, b, c, d])?;
        to.write_all(&body)?;
        to.flush()
    }

    /// Reads the next message; `None` at a clean end of the stream.
    fn read(from: &mut impl Read, bounds: &MessageBounds) -> io::Result<Option<Self>> {
        loop {
            // Unknown kinds are skipped, so the loop may read several messages for one result.
            let Some((kind, length)) = read_head(from)? else {
                return Ok(None);
            };
            if length > Self::body_bytes_max(kind, bounds) {
                return Err(invalid_data("a message that is too long"));
            }
            // Grown as bytes arrive: a length alone allocates nothing.
            let mut body = Vec::new();
            from.by_ref().take(length.into()).read_to_end(&mut body)?;
            if body.len() != length as usize {
                return Err(invalid_data("a truncated message"));
            }
            if let Some(message) = Self::unpack(kind, body)? {
                return Ok(Some(message));
            }
        }
    }
}

/// The kind of the next message and the length of its body; `None` at a clean end of the stream.
fn read_head(from: &mut impl Read) -> io::Result<Option<(u8, u32)>> {
    let mut head = Vec::new();
    if from.by_ref().take(5).read_to_end(&mut head)? == 0 {
        return Ok(None);
    }
    let head = <[u8; 5]>::try_from(head).map_err(|_| invalid_data("a truncated message"))?;
    let [kind, a, b, c, d] = head;
    Ok(Some((kind, u32::from_le_bytes([a, b, c, d]))))
}

/// Converts a body with exactly `N` bytes.
pub(crate) fn exactly<const N: usize>(body: Vec<u8>) -> io::Result<[u8; N]> {
    <[u8; N]>::try_from(body).map_err(|_| invalid_data("a number of the wrong length"))
}

pub(crate) fn invalid_data(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}
