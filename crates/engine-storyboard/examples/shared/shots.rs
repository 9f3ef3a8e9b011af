//! Clips for the examples that look at frames: a spec from a prompt, and the chosen frames of
//! its clip. The engine stops after the last of them, so that one early frame costs little.

use kinora_contract::{FrameSize, Size, VideoInputs, VideoLength, VideoSpec};
use kinora_engine::{
    ClipPlanner, ClipSink, Engine, EngineError, FrameJob, JobControl, JobMaterials,
};
use kinora_engine_storyboard::Storyboard;

/// A clip from words alone.
pub(crate) fn spec(prompt: &str, size: Size, seconds: u32, seed: u32) -> VideoSpec {
    VideoSpec {
        version: 1,
        model: "storyboard".to_owned(),
        prompt: prompt.to_owned(),
        negative_prompt: None,
        seconds: VideoLength::Fixed(seconds),
        frame: FrameSize::Fixed(size),
        seed,
        generate_audio: false,
        inputs: VideoInputs::Text,
        draft: false,
        final_of: None,
        edit: None,
    }
}

/// Keeps the wanted frames and refuses the first one after them.
struct Chosen {
    wanted: Vec<u32>,
    at: u32,
    kept: Vec<Vec<u8>>,
}

impl ClipSink for Chosen {
    fn frame(&mut self, rgb: &[u8]) -> Result<(), EngineError> {
        if self.wanted.contains(&self.at) {
            self.kept.push(rgb.to_vec());
        }
        self.at += 1;
        if self.wanted.iter().all(|wanted| *wanted < self.at) {
            return Err(EngineError::Cancelled);
        }
        Ok(())
    }

    fn audio(&mut self, _: &[f32]) -> Result<(), EngineError> {
        Ok(())
    }
}

/// The frames of the clip at `shares` of its length, from 0.0 for the first to 1.0 for the last,
/// in order of time: each `[height][width][3] u8`.
pub(crate) fn frames(
    spec: &VideoSpec,
    materials: &JobMaterials,
    shares: &[f64],
) -> Result<Vec<Vec<u8>>, EngineError> {
    let engine = Storyboard::default();
    let clip = engine.plan(spec, materials)?;
    let last = f64::from(clip.frames - 1);
    let mut sink = Chosen {
        wanted: shares
            .iter()
            .map(|share| (share * last).round() as u32)
            .collect(),
        at: 0,
        kept: Vec::new(),
    };
    let job = FrameJob {
        spec,
        materials,
        clip,
        preset: None,
    };
    match engine.generate(&job, &mut sink, &JobControl::default()) {
        Err(EngineError::Cancelled) | Ok(()) => Ok(sink.kept),
        Err(error) => Err(error),
    }
}
