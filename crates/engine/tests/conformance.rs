//! The checks of engines find engines that break them: one whose cache between steps outlives a cancelled job, and those
//! that ignore a preset or keep it.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test's helpers fail the test"
)]

use std::sync::Mutex;

use kinora_contract::{
    FrameSize, ModelPreset, SPEC_VERSION, Size, VideoInputs, VideoLength, VideoSpec,
};
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
    presets: Presets,
    /// The number of a preset.
    shift: Mutex<u8>,
}

/// What an engine does with presets.
#[derive(Clone, Copy, PartialEq)]
enum Presets {
    Obeys,
    Ignores,
    /// Until the next one.
    Keeps,
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
            presets: Presets::Obeys,
            shift: Mutex::new(0),
        }
    }

    fn step(&self, latent: u8) -> u8 {
        let mut cache = self.cache.lock().unwrap();
        let latent = latent.wrapping_mul(3) ^ cache.unwrap_or(0);
        *cache = Some(latent | 1);
        latent
    }

    /// The number of the job's preset, as this engine understands it.
    fn shift(&self, preset: Option<&ModelPreset>) -> u8 {
        let given = preset.and_then(|preset| preset["shift"].as_u64());
        let mut shift = self.shift.lock().unwrap();
        match (self.presets, given) {
            (Presets::Ignores, _) | (Presets::Keeps, None) => {}
            (_, given) => *shift = given.unwrap_or(0) as u8,
        }
        *shift
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
        latent = latent.wrapping_add(self.shift(job.preset));
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

#[test]
fn an_engine_that_ignores_a_preset_or_keeps_it_is_found() {
    let (spec, none) = (spec(), JobMaterials::default());
    let preset = ModelPreset::from_iter([("shift".to_owned(), 5.into())]);
    for (presets, broken) in [
        (Presets::Obeys, None),
        (Presets::Ignores, Some("another preset gives another clip")),
        (Presets::Keeps, Some("a preset leaves nothing behind")),
    ] {
        let engine = Stepped {
            presets,
            ..Stepped::new(true)
        };
        let checked = conformance::obeys_preset(&engine, &spec, &none, &preset);
        let found = checked.err().map(|error| error.to_string());
        match (broken, &found) {
            (None, None) => {}
            (Some(broken), Some(found)) => assert!(found.contains(broken), "{found}"),
            _ => panic!("{broken:?}: {found:?}"),
        }
    }
}
