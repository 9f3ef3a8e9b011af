//! The storyboard engine: an animatic from the caller's pictures or painted from the words of
//! the prompt, with captions and sound. It is deterministic by seed and runs on any CPU.
//! It is not a neural network and never pretends to be one: a slate says so in every frame that
//! is not the caller's own.

mod actor;
mod art;
mod camera;
mod canvas;
mod caption;
mod check;
mod colour;
mod cover;
mod edit;
mod film;
mod layer;
mod length;
mod lexicon;
mod morph;
mod motion;
mod noise;
mod palette;
mod particles;
mod patches;
mod pen;
mod photo;
mod reel;
mod render;
mod restyle;
mod rng;
mod scene;
mod scenes;
mod script;
mod sentences;
mod sound;
mod stage;
mod view;
mod wash;
mod water;

use std::num::NonZeroUsize;

use kinora_contract::VideoSpec;

use kinora_engine::{
    Clip, Control, Description, Engine, EngineError, Features, Job, Materials, Planner, Sink,
};

/// Frames per second of every clip but an edit, which keeps its source's.
const FPS: u32 = 24;

/// How a [`Storyboard`] works; nothing here changes what a clip looks or sounds like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Threads that paint frames of one clip; `None` takes one per core.
    pub threads: Option<NonZeroUsize>,
}

/// The engine that makes an animatic from a prompt and what else is given.
///
/// With `seconds: "auto"` it chooses the length by counting. The prompt falls into beats:
/// listed shots ("Shot 1: …"), else sentences and turns ("then", "cut to"), eight at most. A
/// beat lasts as long as its words take to read: one second and another for every 17
/// characters (7 of Chinese, Japanese or Korean), but 2 to 5 seconds. Every reference image
/// is given at least 1.5 seconds. The larger sum, rounded up to whole seconds and held within
/// 2 to 15, is the length; the same prompt and number of images always give the same.
#[derive(Debug)]
pub struct Storyboard {
    description: Description,
    options: Options,
}

impl Storyboard {
    /// An engine that works as `options` say. Cheap: nothing is loaded before the first clip.
    pub fn new(options: Options) -> Self {
        let features = Features {
            text_to_video: true,
            first_frame: true,
            last_frame: true,
            reference_images_max: 9,
            reference_audios_max: 3,
            audio_output: true,
            auto_duration: true,
            negative_prompt: true,
            draft: true,
            edit: true,
        };
        Self {
            description: Description {
                name: "storyboard".to_owned(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
                features,
                final_from_video: false,
            },
            options,
        }
    }
}

impl Default for Storyboard {
    fn default() -> Self {
        Self::new(Options::default())
    }
}

impl Planner for Storyboard {
    fn describe(&self) -> &Description {
        &self.description
    }

    fn plan(&self, spec: &VideoSpec, materials: &Materials) -> Result<Clip, EngineError> {
        check::clip(spec, materials, &self.description.features)
    }
}

impl Engine for Storyboard {
    fn generate(
        &self,
        job: &Job<'_>,
        sink: &mut dyn Sink,
        control: &Control,
    ) -> Result<(), EngineError> {
        render::clip(job, &self.options, sink, control)
    }
}
