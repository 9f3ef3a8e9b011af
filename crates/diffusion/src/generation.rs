//! All parameters of the library for one request, as plain values, derived from settings, spec and
//! materials before any work. It opens no files and calls no library.

use kinora_contract::Size;
use kinora_engine::{Clip, Crop, Keep, Materials, Picture};

use crate::sampling::{Sampler, Scheduler};

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
