//! A kind of engine: one type with the settings of a configured engine, and everything that follows
//! from them. This crate knows no concrete kinds: the service has the registry.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kinora_contract::{Clock, ModelPreset};

use crate::{ClipPlanner, Engine, EngineError, Features, FilmEngine, RenderGrid};

/// A configured engine of one kind. The service deserialises the type from the engine's table in
/// the configuration, without the keys common to all engines (`name`, `kind` and `host`).
pub trait EngineKind: fmt::Debug + Send + Sync {
    /// Validates what the types of the settings do not. Opens nothing and reads no file. `confined`
    /// is whether the engine will run in a sandboxed process.
    ///
    /// # Errors
    /// The first invalid setting.
    fn check(&self, confined: bool) -> Result<(), KindError>;

    /// The kind of output, which determines how the engine runs.
    fn output(&self) -> EngineOutput<'_>;

    /// Checks the settings of a model of this engine, which each of its jobs carries ([`FrameJob::preset`](crate::FrameJob)).
    /// By default, an engine takes none.
    ///
    /// # Errors
    /// The first setting that the engine does not take.
    fn check_preset(&self, _preset: &ModelPreset) -> Result<(), KindError> {
        Err(KindError("it takes no settings of a model".to_owned()))
    }

    /// Device that the engine computes on, as the engine names it, for operators. `None`: it
    /// chooses itself.
    fn device(&self) -> Option<String> {
        None
    }
}

/// The output of a kind of engine.
pub enum EngineOutput<'k> {
    /// Frames. The engine runs in the service or in a separate process.
    Frames(&'k dyn FrameKind),
    /// Films, which other machines make.
    Films(&'k dyn FilmKind),
}

/// A configured engine that makes frames.
pub trait FrameKind {
    /// Plans the engine's clips without the engine. `name` is the engine's configured name.
    ///
    /// # Errors
    /// If the settings are invalid.
    fn planner(&self, name: &str) -> Result<Arc<dyn ClipPlanner>, KindError>;

    /// Opens the engine in this process; blocks until it has loaded its files.
    ///
    /// # Errors
    /// Why it cannot be opened.
    fn open(&self, name: &str) -> Result<Box<dyn Engine>, EngineError>;

    /// The command whose processes are the engine. `None`: processes of this executable open it.
    fn program(&self) -> Option<EngineProgram> {
        None
    }

    /// Access that a process needs to open the engine.
    fn needs(&self) -> SandboxNeeds {
        SandboxNeeds::default()
    }

    /// Checks the engine's files without loading them. `None`: it has no files.
    fn check_files(&self) -> Option<FilesReport> {
        None
    }

    /// Why this machine cannot open such an engine, whatever its files, and what to do. `None`: it can.
    fn unavailable(&self) -> Option<String> {
        None
    }
}

/// A configured engine that delivers films.
pub trait FilmKind {
    /// Connects the engine. No server is called yet.
    ///
    /// # Errors
    /// If the settings are unusable, or a key cannot be read.
    fn engine(&self, name: &str, clock: Arc<dyn Clock>) -> Result<Arc<dyn FilmEngine>, KindError>;

    /// Addresses of its servers, each of which works on a task at a time.
    fn servers(&self) -> &[String];

    /// Whether its servers free their memory on request, so that they can share a device with
    /// other engines.
    fn can_unload(&self) -> bool {
        false
    }

    /// Maximum time without progress before a run is stopped.
    fn silence_max(&self) -> Duration;

    /// Number of runtime threads that the engine may block.
    fn blocking_threads(&self) -> usize;
}

/// A command that speaks the engine protocol, `docs/engine-protocol.md`.
#[derive(Clone, Debug, PartialEq)]
pub struct EngineProgram {
    /// The program and its arguments; never empty.
    pub command: Vec<String>,
    /// Variables of its environment, beside those that every engine's process gets.
    pub environment: BTreeMap<String, String>,
    /// The folder in which it starts. `None`: that of the service.
    pub folder: Option<PathBuf>,
    /// Devices, with a process for each. Empty: as many processes as the host allows, which find their devices themselves.
    pub devices: Vec<String>,
    /// Settings for the engine, as JSON.
    pub settings: serde_json::Value,
    /// Capabilities by which clips are planned.
    pub promises: EngineCapabilities,
    /// Files that its processes may access. `None`: everything that the service's user may.
    pub confined: Option<ProgramFiles>,
}

/// The files that a confined command may access, beside those of the system and a folder of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProgramFiles {
    /// Files and folders to read, and programs in them to run.
    pub readable: Vec<PathBuf>,
    /// Files and folders to change.
    pub writable: Vec<PathBuf>,
}

/// Capabilities that the configuration promises for an engine whose process is not running yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineCapabilities {
    /// Requests that it can take.
    pub features: Features,
    /// Sizes and lengths that it renders.
    pub grid: RenderGrid,
    /// Frames per second of its clips; 0: any.
    pub fps: u32,
    /// Whether it obeys the settings of models ([`FrameJob::preset`](crate::FrameJob)).
    pub presets: bool,
}

/// Access that an engine's process needs from its sandbox.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SandboxNeeds {
    /// Files that the engine reads.
    pub files: Vec<PathBuf>,
    /// Whether it needs a writable folder that outlives its processes.
    pub scratch: bool,
    /// Whether it starts a program and speaks with it over the network of this machine.
    pub starts_programs: bool,
    /// Those programs and their libraries: files, and folders with all their contents.
    pub programs: Vec<PathBuf>,
    /// Folders whose names it lists, such as one where a program looks for its libraries.
    pub listed: Vec<PathBuf>,
}

/// The result of checking an engine's files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilesReport {
    /// Whether all files exist and are valid.
    pub is_good: bool,
    /// One line per file, for an operator.
    pub text: String,
}

/// Why settings are unusable: a sentence for an operator, without the engine's name and without a
/// full stop.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct KindError(pub String);
