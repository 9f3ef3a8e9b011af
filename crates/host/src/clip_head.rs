//! The clip of a job as messages carry it, and the bytes that its frames and sound take.

use kinora_contract::Size;
use kinora_engine::{CHANNELS, Clip, SAMPLE_RATE_HZ};
use serde::{Deserialize, Serialize};

/// The size of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pixels {
    pub(crate) width: u32,
    pub(crate) height: u32,
}

impl From<Size> for Pixels {
    fn from(size: Size) -> Self {
        Self {
            width: size.width,
            height: size.height,
        }
    }
}

impl From<Pixels> for Size {
    fn from(pixels: Pixels) -> Self {
        Self::new(pixels.width, pixels.height)
    }
}

/// [`Clip`] in serialisable form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ClipHead {
    #[serde(flatten)]
    pub(crate) size: Pixels,
    pub(crate) fps: u32,
    /// `None`: the engine decides, and no longer than `frames_max`.
    pub(crate) frames: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) frames_max: Option<u32>,
    pub(crate) audio: bool,
}

impl From<Clip> for ClipHead {
    fn from(clip: Clip) -> Self {
        Self {
            size: clip.size.into(),
            fps: clip.fps,
            frames: Some(clip.frames),
            frames_max: None,
            audio: clip.audio,
        }
    }
}

impl ClipHead {
    /// The same, with a length that the engine decides.
    pub(crate) fn undecided(self) -> Self {
        Self {
            frames: None,
            frames_max: self.frames,
            ..self
        }
    }

    /// The number of frames, or the most that there can be.
    pub(crate) fn longest(self) -> u32 {
        self.frames.or(self.frames_max).unwrap_or(0)
    }

    /// Bytes of one frame; `None` if no message can hold it.
    pub(crate) fn frame_bytes(self) -> Option<u32> {
        let pixels = u64::from(self.size.width) * u64::from(self.size.height);
        u32::try_from(pixels.checked_mul(3)?).ok()
    }

    /// Bytes of a picture with sides `more` pixels longer.
    pub(crate) fn larger_frame_bytes(self, more: u32) -> Option<u32> {
        let width = self.size.width.checked_add(more)?;
        let height = self.size.height.checked_add(more)?;
        let size = Pixels { width, height };
        Self { size, ..self }.frame_bytes()
    }

    /// Bytes of all its sound plus one second: engines end the sound with their last note.
    pub(crate) fn sound_bytes(self) -> Option<u32> {
        if !self.audio {
            return Some(0);
        }
        let seconds = u64::from(self.longest().div_ceil(self.fps.max(1))) + 1;
        let second = u64::from(SAMPLE_RATE_HZ) * u64::from(CHANNELS) * 4;
        u32::try_from(seconds.checked_mul(second)?).ok()
    }
}

impl From<ClipHead> for Clip {
    fn from(head: ClipHead) -> Self {
        Self {
            size: head.size.into(),
            fps: head.fps,
            frames: head.longest(),
            audio: head.audio,
        }
    }
}
