//! The storyboard engine: an animatic from the caller's pictures or painted from the words of
//! the prompt, with captions and sound. It is deterministic by seed and runs on any CPU.
//! It is not a neural network and does not pretend to be one: unless the operator takes it away, a mark says so in
//! every frame that is not the caller's own.
//!
//! A prompt crosses the modules in this order: `script` cuts it into shots and `lexicon` reads each, `scene` and `scenes`
//! build what the words name from the catalogue in `subject`, `art` poses the drawings, `raster` paints pixels, `caption`
//! sets the words, `sound` accompanies, and `clip` delivers frames in order. Edits go through `edit` and `revise`.

#![forbid(unsafe_code)]

mod art;
mod caption;
mod clip;
mod edit;
mod kind;
mod lexicon;
mod options;
mod portrait;
mod raster;
mod revise;
mod rng;
mod scene;
mod scenes;
mod script;
mod sound;
mod subject;
mod warnings;

pub use caption::{Watermark, not_in_watermark, watermark};
pub use kind::StoryboardKind;
pub use options::Options;
#[doc(hidden)]
pub use portrait::{Seen, drawn_words, seen};
pub use portrait::{label, nouns, portrait};

use kinora_contract::{VideoSpec, Warning};
use kinora_engine::{
    Clip, Control, Description, Engine, EngineError, Features, Job, Materials, Planner, Sink,
};

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
                is_trained: false,
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
        clip::check::clip(spec, materials, &self.description.features)
    }

    fn warnings(&self, spec: &VideoSpec, materials: &Materials) -> Vec<Warning> {
        // Warnings must not fail: a request that cannot be planned gets those that need no clip.
        let clip = self.plan(spec, materials).ok();
        let job = clip.map(|clip| Job {
            spec,
            materials,
            clip,
        });
        warnings::of(spec, job.as_ref(), &self.options)
    }
}

impl Engine for Storyboard {
    fn generate(
        &self,
        job: &Job<'_>,
        sink: &mut dyn Sink,
        control: &Control,
    ) -> Result<(), EngineError> {
        clip::render::clip(job, &self.options, sink, control)
    }
}
