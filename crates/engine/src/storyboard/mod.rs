//! The storyboard engine: an animatic painted from the words of the prompt, with a caption
//! and a soft bed of sound. It is deterministic by seed and runs on any CPU.
//! It is not a neural network and never pretends to be one: a slate says so in every frame.

mod actor;
mod art;
mod camera;
mod canvas;
mod caption;
mod colour;
mod layer;
mod lexicon;
mod noise;
mod palette;
mod particles;
mod pen;
mod render;
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

use kinora_contract::{Inputs, Seconds, VideoSpec};

use crate::{Clip, Control, Description, Engine, EngineError, Features, Job, Sink};

/// Frames per second of every clip.
const FPS: u32 = 24;

/// How a [`Storyboard`] works; nothing here changes what a clip looks or sounds like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Threads that paint frames of one clip; `None` takes one per core.
    pub threads: Option<NonZeroUsize>,
}

/// The engine that paints an animatic from a prompt.
#[derive(Debug)]
pub struct Storyboard {
    description: Description,
    options: Options,
}

impl Storyboard {
    /// An engine that works as `options` say. Cheap: nothing is loaded before the first clip.
    pub fn new(options: Options) -> Self {
        let features = Features {
            audio_output: true,
            ..Features::default()
        };
        Self {
            description: Description {
                name: "storyboard".to_owned(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
                features,
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

impl Engine for Storyboard {
    fn describe(&self) -> &Description {
        &self.description
    }

    fn plan(&self, spec: &VideoSpec) -> Result<Clip, EngineError> {
        let refuse = |what: &str| Err(EngineError::Unsupported(what.to_owned()));
        if spec.inputs != Inputs::Text {
            return refuse("reference material");
        }
        if spec.edit.is_some() {
            return refuse("editing an earlier video");
        }
        if spec.draft || spec.final_of.is_some() {
            return refuse("drafts");
        }
        let Seconds::Fixed(seconds) = spec.seconds else {
            return refuse("choosing the length");
        };
        let Some(size) = spec.render_size() else {
            return refuse("a shape that follows an image");
        };
        if seconds == 0 || size.width == 0 || size.height == 0 {
            return refuse("an empty clip");
        }
        Ok(Clip {
            size,
            fps: FPS,
            frames: seconds * FPS,
            audio: spec.generate_audio,
        })
    }

    fn generate(
        &self,
        job: &Job<'_>,
        sink: &mut dyn Sink,
        control: &Control,
    ) -> Result<(), EngineError> {
        render::clip(job, &self.options, sink, control)
    }
}
