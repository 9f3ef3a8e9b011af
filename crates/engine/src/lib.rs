//! What an engine is: it turns a [`VideoSpec`] into frames and sound, streamed into a [`Sink`]; or,
//! as a [`FilmEngine`], has a finished file made elsewhere. An engine knows nothing of tasks, HTTP
//! routes or storage. One that makes frames blocks its thread while it works. An [`EngineKind`] is where
//! engines come from: the settings of one, and what follows from them.

#![forbid(unsafe_code)]

#[cfg(feature = "conformance")]
pub mod conformance;
mod control;
mod error;
mod film;
mod kind;
mod materials;
mod preview;

pub use control::{Cancel, Control, Progress, Stage};
pub use error::EngineError;
pub use film::{FilmEngine, FilmJob, Keeper, ReferenceFile, ServerReport};
pub use kind::{EngineKind, FilesReport, FilmKind, FrameKind, KindError, Needs, Output};
pub use kinora_contract::Features;
use kinora_contract::{Size, VideoSpec, Warning};
pub use materials::{Footage, Materials, Picture, Playback, SCRIPT_LINKS_MAX, Sound};
pub use preview::Preview;

/// Sample rate of all sound that engines make.
pub const SAMPLE_RATE_HZ: u32 = 48_000;
/// Channels of all sound that engines make, interleaved left, right.
pub const CHANNELS: u16 = 2;

/// Who an engine is and what its clips will be: whatever can be told without doing the work, also
/// by a process that could not do it.
pub trait Planner: Send + Sync {
    /// Who this engine is and what it can take.
    fn describe(&self) -> &Description;

    /// Decides what a spec's clip will be, before any work, deterministically: also its length
    /// where the spec leaves that to the engine. The spec's shape is decided before.
    ///
    /// # Errors
    /// [`EngineError::Unsupported`] for a spec that needs what [`Planner::describe`] does not offer.
    fn plan(&self, spec: &VideoSpec, materials: &Materials) -> Result<Clip, EngineError>;

    /// What [`Engine::generate`] will not or cannot do of a spec that [`Planner::plan`] takes: told
    /// to the client with the task. Deterministic, as the plan is.
    fn warnings(&self, _spec: &VideoSpec, _materials: &Materials) -> Vec<Warning> {
        Vec::new()
    }
}

/// A generator of video. Implementations are shared by all workers of a process.
pub trait Engine: Planner {
    /// Makes the clip that [`Planner::plan`] announced: exactly `clip.frames` frames in order,
    /// sound when `clip.audio`. Blocks until done; obeys `control`'s cancel within 2 s.
    ///
    /// # Errors
    /// [`EngineError::Cancelled`] after a cancel, the sink's error as it came, else the cause.
    fn generate(
        &self,
        job: &Job<'_>,
        sink: &mut dyn Sink,
        control: &Control,
    ) -> Result<(), EngineError>;
}

/// What an engine says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// Short name, as configured: `storyboard`.
    pub name: String,
    /// Version of the engine; the same version gives the same frames.
    pub version: String,
    /// What it can take; a model card is restricted to this.
    pub features: Features,
    /// Whether it makes a draft's final from the draft's video, which is then its source; else the
    /// spec alone is enough.
    pub final_from_video: bool,
}

impl Description {
    /// The engine as clients see it, and as tasks are marked: `name/version`.
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.name, self.version)
    }
}

/// The exact outline of a clip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clip {
    /// Frame size in pixels.
    pub size: Size,
    /// Frames per second, constant.
    pub fps: u32,
    /// Number of frames.
    pub frames: u32,
    /// Whether there is sound: interleaved stereo at [`SAMPLE_RATE_HZ`].
    pub audio: bool,
}

/// One piece of work.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// What was asked for.
    pub spec: &'a VideoSpec,
    /// What it works from.
    pub materials: &'a Materials,
    /// What [`Planner::plan`] made of it.
    pub clip: Clip,
}

/// Receives a clip while it is made. Blocks when the receiver is behind.
pub trait Sink {
    /// Takes the next frame: `rgb: [height][width][3] u8`, sRGB, full range.
    ///
    /// # Errors
    /// When the frame cannot be taken; the engine must stop and return the error.
    fn frame(&mut self, rgb: &[u8]) -> Result<(), EngineError>;

    /// Takes the next stretch of sound: interleaved stereo `f32` in -1.0 to 1.0 at
    /// [`SAMPLE_RATE_HZ`], of any length; it may run ahead of or behind the frames.
    ///
    /// # Errors
    /// As [`Sink::frame`].
    fn audio(&mut self, pcm: &[f32]) -> Result<(), EngineError>;
}
