//! What a request becomes: every parameter of the library as a plain value, decided from settings,
//! spec and materials before any work. It opens nothing and calls nothing.

use kinora_contract::Size;
use kinora_engine::{Clip, Materials, Picture};

use crate::sampling::{Sampler, Scheduler};

/// The part of a rendered frame that is handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crop {
    /// Pixels that are cut off at the left.
    pub left: u32,
    /// Rows that are cut off at the top.
    pub top: u32,
    /// What is left.
    pub size: Size,
}

impl Crop {
    /// The middle of `rendered`, which is no smaller than `size`.
    pub fn middle(size: Size, rendered: Size) -> Self {
        Self {
            left: rendered.width.saturating_sub(size.width) / 2,
            top: rendered.height.saturating_sub(size.height) / 2,
            size,
        }
    }
}

/// A picture that the caller gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Given {
    /// The first frame.
    FirstFrame,
    /// The last frame.
    LastFrame,
    /// The reference image of this index.
    Image(usize),
}

impl Given {
    /// The picture itself.
    pub fn of(self, materials: &Materials) -> Option<&Picture> {
        match self {
            Self::FirstFrame => materials.first_frame.as_ref(),
            Self::LastFrame => materials.last_frame.as_ref(),
            Self::Image(index) => materials.images.get(index),
        }
    }
}

/// Which of the rendered frames are handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// The first ones.
    First(u32),
    /// So many, spread evenly from the first to the last, which therefore stays the last.
    Spread(u32),
}

impl Keep {
    /// How many are handed over.
    pub const fn count(self) -> u32 {
        match self {
            Self::First(count) | Self::Spread(count) => count,
        }
    }

    /// The index among `rendered` frames of the frame handed over as number `index`.
    pub fn source(self, index: u32, rendered: u32) -> u32 {
        match self {
            Self::First(_) => index,
            Self::Spread(count) if count < 2 => rendered.saturating_sub(1),
            Self::Spread(count) => {
                let gaps = u64::from(count - 1);
                let place = u64::from(index) * u64::from(rendered.saturating_sub(1));
                ((place + gaps / 2) / gaps) as u32
            }
        }
    }
}

/// Everything that decides a clip, as the library wants it.
#[derive(Clone, Debug, PartialEq)]
pub struct Generation {
    /// What to show, such that the library takes every word literally.
    pub prompt: String,
    /// What to avoid, likewise; empty for nothing.
    pub negative_prompt: String,
    /// The size that is rendered: that asked for, rounded up to the model's multiple.
    pub rendered: Size,
    /// What of a rendered frame is handed over.
    pub crop: Crop,
    /// How many frames are rendered: on the model's grid.
    pub frames: u32,
    /// Which of them are handed over.
    pub keep: Keep,
    /// Frames per second.
    pub fps: u32,
    /// Denoising steps, of both experts together.
    pub steps: u32,
    /// Classifier-free guidance.
    pub guidance: f32,
    /// Guidance of the expert for much noise.
    pub high_noise_guidance: f32,
    /// The noise level below which the expert for little noise takes over.
    pub moe_boundary: f32,
    /// How steps are taken; `None` leaves it to the library.
    pub sampler: Option<Sampler>,
    /// Which noise levels are gone through; `None` leaves it to the library.
    pub scheduler: Option<Scheduler>,
    /// Shift of the noise levels; `None` leaves it to the library.
    pub flow_shift: Option<f32>,
    /// Seed of all noise, never negative: the library would draw one of its own.
    pub seed: i64,
    /// The clip's first frame, or VACE's reference image.
    pub initial: Option<Given>,
    /// The clip's last frame.
    pub end: Option<Given>,
    /// How firmly given frames are held; LTX-2 alone knows less than 1.0.
    pub strength: f32,
    /// Whether the frames of [`Materials::source`] control the clip (VACE).
    pub control: bool,
    /// How firmly they do: 1.0 as in training, 0.0 not at all.
    pub control_strength: f32,
    /// Whether sound is wanted.
    pub audio: bool,
    /// Whether frames are decoded in tiles.
    pub vae_tiling: bool,
}

impl Generation {
    /// The clip that is handed over.
    pub fn clip(&self) -> Clip {
        Clip {
            size: self.crop.size,
            fps: self.fps,
            frames: self.keep.count(),
            audio: self.audio,
        }
    }

    /// The frame of a source of `source_frames` frames at `source_fps` that controls rendered
    /// frame `index`: the one shown at that time, and the last one after the end.
    pub fn control_frame(&self, index: u32, source_fps: u32, source_frames: u32) -> u32 {
        let time = u64::from(index) * u64::from(source_fps);
        let fps = u64::from(self.fps.max(1));
        let nearest = (time + fps / 2) / fps;
        nearest.min(u64::from(source_frames.saturating_sub(1))) as u32
    }
}

/// The least number of frames on the grid of `step` that has room for `frames`: `k * step + 1`.
pub(crate) fn on_grid(frames: u32, step: u32) -> u32 {
    frames
        .saturating_sub(1)
        .div_ceil(step)
        .saturating_mul(step)
        .saturating_add(1)
}

/// `size` with both sides rounded up to a multiple.
pub(crate) fn rounded_up(size: Size, multiple: u32) -> Size {
    Size::new(
        size.width.next_multiple_of(multiple),
        size.height.next_multiple_of(multiple),
    )
}
