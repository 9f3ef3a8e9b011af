//! Engines: one turns a [`VideoSpec`] into frames and sound, streamed into a [`ClipSink`], or, as a
//! [`FilmEngine`], gets a finished file from elsewhere. An engine knows nothing of tasks, HTTP
//! routes or storage. One that makes frames blocks its thread while it works. An [`EngineKind`] has
//! the settings of an engine, and creates it.

#![forbid(unsafe_code)]

pub mod conformance;
mod control;
mod error;
mod film;
mod kind;
mod materials;
pub mod places;
mod plan;

use std::sync::Arc;

pub use kinora_contract::Features;
use kinora_contract::{ModelPreset, Size, VideoSpec, Warning};

pub use control::{CancelRequest, JobControl, JobPlace, JobProgress, PreviewSlot, WorkStage};
pub use error::EngineError;
pub use film::{FilmEngine, FilmEngineSummary, FilmJob, ReferenceFile, ServerReport, TicketStore};
pub use kind::{
    EngineCapabilities, EngineKind, EngineOutput, EngineProgram, FilesReport, FilmKind, FrameKind,
    KindError, ProgramFiles, SandboxNeeds,
};
pub use materials::{
    JobMaterials, RgbPicture, SCRIPT_LINKS_MAX, SourceVideo, StereoSound, VideoPlayback,
};
use places::Places;
pub use plan::{FrameCrop, FrameSelection, RenderGrid, frames_of_edit, refuse_unsupported};

/// Sample rate of all sound from engines.
pub const SAMPLE_RATE_HZ: u32 = 48_000;
/// Number of channels of all sound from engines, interleaved left, right.
pub const CHANNELS: u16 = 2;

/// Describes an engine and plans its clips: everything that needs no generation, so a process that
/// cannot generate can use it too.
pub trait ClipPlanner: Send + Sync {
    /// The engine's name and features.
    fn describe(&self) -> &EngineDescription;

    /// Plans the clip of a spec before any work, deterministically, including its length if the
    /// spec leaves that to the engine. The spec's size is already decided.
    ///
    /// # Errors
    /// [`EngineError::Unsupported`] for a spec that needs a feature missing in
    /// [`ClipPlanner::describe`].
    fn plan(&self, spec: &VideoSpec, materials: &JobMaterials) -> Result<ClipPlan, EngineError>;

    /// Whether the engine decides the length of this spec's clip while it works: the plan then has the longest allowed one,
    /// and [`ClipSink::decide`] comes before the first frame.
    fn decides_length(&self, _spec: &VideoSpec) -> bool {
        false
    }

    /// The parts of a plannable spec that [`Engine::generate`] cannot honour; the client sees them
    /// with the task. Deterministic, like the plan.
    fn warnings(&self, _spec: &VideoSpec, _materials: &JobMaterials) -> Vec<Warning> {
        Vec::new()
    }
}

/// A generator of video. All workers of a process share one.
pub trait Engine: ClipPlanner {
    /// Generates the clip of [`ClipPlanner::plan`]: exactly `clip.frames` frames in order, or as many as the engine
    /// [decided](ClipPlanner::decides_length), and sound if `clip.audio`. Blocks until done; obeys `control`'s cancel within 2 s.
    ///
    /// # Errors
    /// [`EngineError::Cancelled`] after a cancel, the sink's error unchanged, otherwise the cause.
    fn generate(
        &self,
        job: &FrameJob<'_>,
        sink: &mut dyn ClipSink,
        control: &JobControl,
    ) -> Result<(), EngineError>;

    /// Loads what the next clips need, so that they need not wait for it. Blocks until it is loaded, has failed, or
    /// `control` is cancelled. A failure is logged; the next clip loads it again.
    fn warm_up(&self, _control: &JobControl) {}

    /// Frees the memory that the engine keeps between clips, so that another engine can use the device; the next clip
    /// loads it again. Blocks until the memory is free. Clips in work are not affected.
    fn unload(&self) {}

    /// The places where the engine computes, if they can fail independently of the service.
    fn places(&self) -> Option<&Arc<Places>> {
        None
    }
}

/// An engine's description of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineDescription {
    /// Short name in the configuration: `storyboard`.
    pub name: String,
    /// Version of the engine; equal versions give equal frames.
    pub version: String,
    /// Its features; a model card is restricted to these.
    pub features: Features,
    /// Whether its pictures come from a trained model, and not from rules alone: files say so.
    pub is_trained: bool,
    /// Whether it makes a draft's final from the draft's video, which is then its source; otherwise
    /// the spec alone is enough.
    pub final_from_video: bool,
}

impl EngineDescription {
    /// The engine's name for clients and in tasks: `name/version`.
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.name, self.version)
    }
}

/// The exact properties of a clip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClipPlan {
    /// Frame size in pixels.
    pub size: Size,
    /// Frames per second, constant.
    pub fps: u32,
    /// Number of frames; at most so many if the engine [decides](ClipPlanner::decides_length).
    pub frames: u32,
    /// Whether there is sound: interleaved stereo at [`SAMPLE_RATE_HZ`].
    pub audio: bool,
}

/// A job for an engine.
#[derive(Clone, Copy, Debug)]
pub struct FrameJob<'a> {
    /// The requested video.
    pub spec: &'a VideoSpec,
    /// The opened references and source.
    pub materials: &'a JobMaterials,
    /// The result of [`ClipPlanner::plan`].
    pub clip: ClipPlan,
    /// The settings of the model, if it has any. They change no plan, and hold for this job alone.
    pub preset: Option<&'a ModelPreset>,
}

/// Receives a clip while it is generated. Blocks when the receiver falls behind.
pub trait ClipSink {
    /// Takes the clip's length, if the engine [decides](ClipPlanner::decides_length) it: once, before the first frame and
    /// before any sound.
    ///
    /// # Errors
    /// The length is not the engine's to decide, or is none that the plan allows.
    fn decide(&mut self, _frames: u32) -> Result<(), EngineError> {
        Err(EngineError::Failed(
            "the engine decided the length of a clip whose length is given".to_owned(),
        ))
    }

    /// Takes the next frame: `rgb: [height][width][3] u8`, sRGB, full range.
    ///
    /// # Errors
    /// If the frame cannot be taken; the engine must stop and return the error.
    fn frame(&mut self, rgb: &[u8]) -> Result<(), EngineError>;

    /// Takes the next piece of sound: interleaved stereo `f32` in -1.0 to 1.0 at
    /// [`SAMPLE_RATE_HZ`], of any length; it may run ahead of or behind the frames.
    ///
    /// # Errors
    /// As [`ClipSink::frame`].
    fn audio(&mut self, pcm: &[f32]) -> Result<(), EngineError>;
}
