//! The checks of engines find engines that break them: one whose cache between steps outlives a cancelled job.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test's helpers fail the test"
)]

use std::sync::Mutex;

use kinora_contract::{FrameSize, SPEC_VERSION, Size, VideoInputs, VideoLength, VideoSpec};
use kinora_engine::{
    ClipPlan, ClipPlanner, ClipSink, Engine, EngineDescription, EngineError, Features, FrameJob,
    JobControl, JobMaterials, WorkStage, conformance,
};

const SIZE: Size = Size::new(8, 8);
const FPS: u32 = 8;
const STEPS: u32 = 4;

/// Computes all frames in steps before it delivers the first one, and keeps a value from each step for the next.
struct Stepped {
    description: EngineDescription,
    /// Whether a job begins without the value of the last one.
    begins_afresh: bool,
    cache: Mutex<Option<u8>>,
}

impl Stepped {
    fn new(begins_afresh: bool) -> Self {
        let features = Features {
            text_to_video: true,
            ..Features::default()
        };
        Self {
            description: EngineDescription {
                name: "stepped".to_owned(),
                version: "1".to_owned(),
                features,
                is_trained: false,
                final_from_video: false,
            },
            begins_afresh,
            cache: Mutex::new(None),
        }
    }

    fn step(&self, latent: u8) -> u8 {
        let mut cache = self.cache.lock().unwrap();
        let latent = latent.wrapping_mul(3) ^ cache.unwrap_or(0);
        *cache = Some(latent | 1);
        latent
    }

    fn forget(&self) {
        *self.cache.lock().unwrap() = None;
    }
}

impl ClipPlanner for Stepped {
    fn describe(&self) -> &EngineDescription {
        &self.description
    }

    fn plan(&self, _: &VideoSpec, _: &JobMaterials) -> Result<ClipPlan, EngineError> {
        Ok(ClipPlan {
            size: SIZE,
            fps: FPS,
            frames: FPS,
            audio: false,
        })
    }
}

impl Engine for Stepped {
    fn generate(
        &self,
        job: &FrameJob<'_>,
        sink: &mut dyn ClipSink,
        control: &JobControl,
    ) -> Result<(), EngineError> {
        if self.begins_afresh {
            self.forget();
        }
        let mut latent = job.spec.seed as u8;
        for step in 1..=STEPS {
            latent = self.step(latent);
            control.report(WorkStage::Generating, f64::from(step) / f64::from(STEPS))?;
        }
        self.forget();
        for _ in 0..job.clip.frames {
            sink.frame(&vec![latent; SIZE.pixels() as usize * 3])?;
            control.report(WorkStage::Generating, 1.0)?;
        }
        control.report(WorkStage::Finishing, 1.0)
    }
}

fn spec() -> VideoSpec {
    VideoSpec {
        version: SPEC_VERSION,
        model: "model".to_owned(),
        prompt: "A kite over a beach".to_owned(),
        negative_prompt: None,
        seconds: VideoLength::Fixed(1),
        frame: FrameSize::Fixed(SIZE),
        seed: 11,
        generate_audio: false,
        inputs: VideoInputs::Text,
        draft: false,
        final_of: None,
        edit: None,
    }
}

#[test]
fn only_a_cancel_between_steps_finds_what_a_step_leaves() {
    let (spec, none) = (spec(), JobMaterials::default());
    conformance::check(&Stepped::new(true), &spec, &none).unwrap();
    let leaving = Stepped::new(false);
    conformance::outline(&leaving, &spec, &none).unwrap();
    conformance::repeats(&leaving, &spec, &none).unwrap();
    conformance::leaves_no_trace(&leaving, &spec, &none).unwrap();
    let broken = conformance::leaves_no_trace_of_a_step(&leaving, &spec, &none);
    let broken = broken.unwrap_err().to_string();
    assert!(broken.contains("leaves no trace"), "{broken}");
    let broken = conformance::check(&leaving, &spec, &none);
    assert!(broken.is_err());
}
