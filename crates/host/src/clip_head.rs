//! The clip of a job as messages carry it, and the bytes that its frames and sound take.

use kinora_contract::Size;
use kinora_engine::{CHANNELS, Clip, SAMPLE_RATE_HZ};
use serde::{Deserialize, Serialize};

/// [`Clip`] in serialisable form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ClipHead {
    pub(crate) size: Size,
    pub(crate) fps: u32,
    pub(crate) frames: u32,
    pub(crate) audio: bool,
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

impl ClipHead {
    /// Bytes of one frame; `None` if no message can hold it.
    pub(crate) fn frame_bytes(self) -> Option<u32> {
        let bytes = self.size.pixels().checked_mul(3)?;
        u32::try_from(bytes).ok()
    }

    /// Bytes of a picture with sides `more` pixels longer.
    pub(crate) fn larger_frame_bytes(self, more: u32) -> Option<u32> {
        let width = self.size.width.checked_add(more)?;
        let size = Size::new(width, self.size.height.checked_add(more)?);
        Self { size, ..self }.frame_bytes()
    }

    /// Bytes of all its sound plus one second: engines end the sound with their last note.
    pub(crate) fn sound_bytes(self) -> Option<u32> {
        if !self.audio {
            return Some(0);
        }
        let seconds = u64::from(self.frames.div_ceil(self.fps.max(1))) + 1;
        let second = u64::from(SAMPLE_RATE_HZ) * u64::from(CHANNELS) * 4;
        u32::try_from(seconds.checked_mul(second)?).ok()
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
