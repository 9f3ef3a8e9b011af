//! All parameters of the library for one request, as plain values, derived from settings, spec and
//! materials before any work. It opens no files and calls no library.

use kinora_contract::Size;
use kinora_engine::{Clip, Materials, Picture};

use crate::sampling::{Sampler, Scheduler};

/// The delivered part of a rendered frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crop {
    /// Pixels cut off at the left.
    pub left: u32,
    /// Rows cut off at the top.
    pub top: u32,
    /// The size of the remaining part.
    pub size: Size,
}

impl Crop {
    /// The centre of `rendered`, which is no smaller than `size`.
    pub fn middle(size: Size, rendered: Size) -> Self {
        Self {
            left: rendered.width.saturating_sub(size.width) / 2,
            top: rendered.height.saturating_sub(size.height) / 2,
            size,
        }
    }
}

/// A picture from the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Given {
    /// The first frame.
    FirstFrame,
    /// The last frame.
    LastFrame,
    /// The reference image with this index.
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

/// The rendered frames to deliver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// The first ones.
    First(u32),
    /// This many, spread evenly from the first to the last, so the last one stays the last.
    Spread(u32),
}

impl Keep {
    /// The number of delivered frames.
    pub const fn count(self) -> u32 {
        match self {
            Self::First(count) | Self::Spread(count) => count,
        }
    }

    /// The index among `rendered` frames of delivered frame number `index`.
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

/// All parameters of a clip, in the library's terms.
#[derive(Clone, Debug, PartialEq)]
pub struct Generation {
    /// The positive prompt, escaped so that the library takes every word literally.
    pub prompt: String,
    /// The negative prompt, escaped likewise; empty for none.
    pub negative_prompt: String,
    /// The rendered size: the requested one, rounded up to the model's multiple.
    pub rendered: Size,
    /// The delivered part of a rendered frame.
    pub crop: Crop,
    /// The number of rendered frames, on the model's grid.
    pub frames: u32,
    /// The delivered ones among them.
    pub keep: Keep,
    /// Frames per second.
    pub fps: u32,
    /// Denoising steps of both experts together.
    pub steps: u32,
    /// Classifier-free guidance.
    pub guidance: f32,
    /// Guidance of the high-noise expert.
    pub high_noise_guidance: f32,
    /// The noise level below which the low-noise expert takes over.
    pub moe_boundary: f32,
    /// The sampler; `None` leaves it to the library.
    pub sampler: Option<Sampler>,
    /// The scheduler; `None` leaves it to the library.
    pub scheduler: Option<Scheduler>,
    /// Shift of the noise levels; `None` leaves it to the library.
    pub flow_shift: Option<f32>,
    /// Seed of all noise, never negative: for a negative one the library would choose its own.
    pub seed: i64,
    /// The clip's first frame, or VACE's reference image.
    pub initial: Option<Given>,
    /// The clip's last frame.
    pub end: Option<Given>,
    /// How closely the given frames are followed; only LTX-2 supports less than 1.0.
    pub strength: f32,
    /// Whether the frames of [`Materials::source`] control the clip (VACE).
    pub control: bool,
    /// How closely they control it: 1.0 as in training, 0.0 not at all.
    pub control_strength: f32,
    /// Whether to generate sound.
    pub audio: bool,
    /// Whether to decode frames in tiles.
    pub vae_tiling: bool,
}

impl Generation {
    /// The delivered clip.
    pub fn clip(&self) -> Clip {
        Clip {
            size: self.crop.size,
            fps: self.fps,
            frames: self.keep.count(),
            audio: self.audio,
        }
    }

    /// The frame of a source (`source_frames` frames at `source_fps`) that controls rendered frame
    /// `index`: the one shown at that time; after the end, the last one.
    pub fn control_frame(&self, index: u32, source_fps: u32, source_frames: u32) -> u32 {
        let time = u64::from(index) * u64::from(source_fps);
        let fps = u64::from(self.fps.max(1));
        let nearest = (time + fps / 2) / fps;
        nearest.min(u64::from(source_frames.saturating_sub(1))) as u32
    }
}

/// The smallest number of frames on the grid of `step` that fits `frames`: `k * step + 1`.
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
