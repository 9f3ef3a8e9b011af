//! What a kind of engine is: one type that holds the settings of a configured engine and knows what follows
//! from them. Which kinds there are is not known here: the service keeps the registry.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kinora_contract::Clock;

use crate::{Engine, EngineError, FilmEngine, Planner};

/// A configured engine of one kind. The service reads the type from the engine's table in the configuration,
/// less the keys that every engine has (`name`, `kind` and `host`).
pub trait EngineKind: fmt::Debug + Send + Sync {
    /// Judges what the types of the settings do not. Opens nothing and reads no file. `confined`: whether
    /// the engine will run in a sandboxed process.
    ///
    /// # Errors
    /// The first setting that makes no sense.
    fn check(&self, confined: bool) -> Result<(), KindError>;

    /// What the engine delivers, and with it how it is run.
    fn output(&self) -> Output<'_>;

    /// Where the engine computes, in its own words, for operators. `None`: it chooses by itself.
    fn device(&self) -> Option<String> {
        None
    }
}

/// What engines of a kind deliver.
pub enum Output<'k> {
    /// Frames. The engine runs in the service, or in a process of its own.
    Frames(&'k dyn FrameKind),
    /// Films, which other machines make.
    Films(&'k dyn FilmKind),
}

/// A configured engine that makes frames.
pub trait FrameKind {
    /// Plans the engine's clips without the engine. `name` is the engine's configured name.
    ///
    /// # Errors
    /// When the settings make no sense.
    fn planner(&self, name: &str) -> Result<Arc<dyn Planner>, KindError>;

    /// Opens the engine in this process, and blocks until it has loaded what it needs.
    ///
    /// # Errors
    /// Why it cannot be opened.
    fn open(&self, name: &str) -> Result<Box<dyn Engine>, EngineError>;

    /// What a process that opens the engine must be able to reach.
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// Looks into the engine's files without loading them. `None`: it has no files.
    fn check_files(&self) -> Option<FilesReport> {
        None
    }

    /// Why this executable cannot open such an engine, and what to do. `None`: it can.
    fn not_built_in(&self) -> Option<&'static str> {
        None
    }
}

/// A configured engine that delivers films.
pub trait FilmKind {
    /// Connects the engine. No server is called yet.
    ///
    /// # Errors
    /// When the settings cannot be used, or a key cannot be read.
    fn engine(&self, name: &str, clock: Arc<dyn Clock>) -> Result<Arc<dyn FilmEngine>, KindError>;

    /// Longest time without any progress before a run is given up.
    fn silence_max(&self) -> Duration;

    /// Threads of the runtime that the engine may block.
    fn blocking_threads(&self) -> usize;
}

/// What the sandbox of an engine's process leaves open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Files that the engine reads.
    pub files: Vec<PathBuf>,
    /// Whether it needs a folder to write to, which is kept between its processes.
    pub scratch: bool,
}

/// What was found in an engine's files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilesReport {
    /// Whether all files are there and fit.
    pub is_good: bool,
    /// One line for each file, for an operator.
    pub text: String,
}

/// Why settings cannot be used: a sentence for an operator, without the engine's name and a full stop.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct KindError(pub String);
