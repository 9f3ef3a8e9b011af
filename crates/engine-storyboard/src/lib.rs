//! The storyboard engine: an animatic from the caller's pictures or painted from the words of
//! the prompt, with captions and sound. It is deterministic by seed and runs on any CPU.
//! It is not a neural network and does not pretend to be one: unless the operator takes it away, a mark says so in
//! every frame that is not the caller's own.
//!
//! A prompt crosses the modules in this order: `script` cuts it into shots and `lexicon` reads each, `scene` and `places`
//! build what the words name from the catalogue in `subject`, `art` poses the drawings, `raster` paints pixels, `caption`
//! sets the words, `sound` accompanies, and `clip` delivers frames in order. Edits go through `edit` and `revise`.

#![forbid(unsafe_code)]

mod art;
mod caption;
mod clip;
mod edit;
mod engine_kind;
mod inspection;
mod lexicon;
mod options;
mod places;
mod raster;
mod revise;
mod rng;
mod scene;
mod script;
mod sound;
mod subject;
mod warnings;

pub use caption::{Watermark, not_in_watermark, watermark};
#[doc(hidden)]
pub use inspection::{DrawnFigure, drawn_words, figures_in_frame};
pub use inspection::{label, nouns, portrait};
pub use options::StoryboardKind;

use kinora_contract::{VideoSpec, Warning};
use kinora_engine::{
    ClipPlan, ClipPlanner, ClipSink, Engine, EngineDescription, EngineError, Features, FrameJob,
    JobControl, JobMaterials,
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
    description: EngineDescription,
    options: StoryboardKind,
}

impl Storyboard {
    /// An engine that works as `options` say. Cheap: nothing is loaded before the first clip.
    pub fn new(options: StoryboardKind) -> Self {
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
            description: EngineDescription {
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
        Self::new(StoryboardKind::default())
    }
}

impl ClipPlanner for Storyboard {
    fn describe(&self) -> &EngineDescription {
        &self.description
    }

    fn plan(&self, spec: &VideoSpec, materials: &JobMaterials) -> Result<ClipPlan, EngineError> {
        clip::clip_plan::plan(spec, materials, &self.description.features)
    }

    fn warnings(&self, spec: &VideoSpec, materials: &JobMaterials) -> Vec<Warning> {
        // Warnings must not fail: a request that cannot be planned gets those that need no clip.
        let clip = self.plan(spec, materials).ok();
        let job = clip.map(|clip| FrameJob {
            spec,
            materials,
            clip,
            preset: None,
        });
        warnings::collect(spec, job.as_ref(), &self.options)
    }
}

impl Engine for Storyboard {
    fn generate(
        &self,
        job: &FrameJob<'_>,
        sink: &mut dyn ClipSink,
        control: &JobControl,
    ) -> Result<(), EngineError> {
        clip::render::make_clip(job, &self.options, sink, control)
    }
}
