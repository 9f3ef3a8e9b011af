//! Child processes, at both ends: how the service starts this executable again as `kinora engine-host`
//! or `kinora film-host`, what such a process may touch, and which engine it opens.

use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use kinora_contract::Clock;
use kinora_engine::{Engine, EngineError, Planner};
use kinora_host::{
    Confinement, FilmOptions, HostOptions, HostedEngine, HostedFilms, Role, serve_film,
};
use kinora_storyboard::Storyboard;
use serde::{Deserialize, Serialize};
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::LogFormat;
use crate::config;
use crate::failure::Failure;
use crate::logging;
use crate::system::SystemClock;

/// A frame takes a fraction of a second, also on a busy machine.
const FILM_SILENCE_MAX: Duration = Duration::from_mins(1);
/// The largest film takes some ten seconds.
const FILM_EXAMINE_MAX: Duration = Duration::from_mins(10);

/// What an engine's process is told.
#[derive(Debug, Serialize, Deserialize)]
enum Settings {
    Storyboard(config::Storyboard),
    Diffusion {
        name: String,
        model: Box<kinora_diffusion::Settings>,
    },
}

/// The process's end.
pub(crate) fn run() -> Result<(), Failure> {
    logging::start_direct(LogFormat::Json, "info")?;
    leave_stops_to_the_service()
        .and_then(|()| kinora_host::serve(open))
        .map_err(|error| Failure::because("The engine's process cannot be served", error))
}

/// The end of a process that reads one film.
pub(crate) fn run_film() -> Result<(), Failure> {
    leave_stops_to_the_service()
        .and_then(|()| serve_film(&clock()))
        .map_err(|error| Failure::because("The film cannot be read for the service", error))
}

/// A service manager's stop, or the end of a terminal, reaches every process at once, but a running task
/// must finish: this process ends when the service closes its input.
fn leave_stops_to_the_service() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()?;
    let _entered = runtime.enter();
    // Once asked for, they are never again what the system makes of them by itself.
    for kind in [
        SignalKind::terminate(),
        SignalKind::interrupt(),
        SignalKind::hangup(),
    ] {
        drop(signal(kind)?);
    }
    Ok(())
}

fn open(settings: &[u8]) -> Result<Box<dyn Engine>, EngineError> {
    let settings = serde_json::from_slice(settings)
        .map_err(|error| EngineError::Failed(format!("the engine's settings: {error}")))?;
    match settings {
        Settings::Storyboard(settings) => Ok(Box::new(storyboard_of(&settings))),
        Settings::Diffusion { name, model } => load(name, *model),
    }
}

#[cfg(feature = "diffusion")]
fn load(name: String, model: kinora_diffusion::Settings) -> Result<Box<dyn Engine>, EngineError> {
    let model = kinora_diffusion::Model::new(name, model)
        .map_err(|error| EngineError::Failed(error.to_string()))?;
    Ok(Box::new(kinora_diffusion::Native::load(model)?))
}

#[cfg(not(feature = "diffusion"))]
fn load(name: String, _: kinora_diffusion::Settings) -> Result<Box<dyn Engine>, EngineError> {
    Err(EngineError::Unsupported(format!("{name}: {NOT_BUILT_IN}")))
}

/// What there is to do about an executable without neural engines.
pub(crate) const NOT_BUILT_IN: &str = "this kinora was built without neural engines; build it with \
    `cargo build --release --features diffusion` (or diffusion-cuda, diffusion-vulkan, diffusion-metal)";

/// Open weights in a process of their own. Nothing is loaded yet.
pub(crate) fn diffusion(
    settings: &config::Diffusion,
    data: &Path,
) -> Result<HostedEngine, Failure> {
    if !cfg!(feature = "diffusion") {
        return Err(Failure::because(&settings.name, NOT_BUILT_IN));
    }
    let model = settings.model()?;
    let told = Settings::Diffusion {
        name: settings.name.clone(),
        model: Box::new(settings.model.clone()),
    };
    let files = settings.model.files();
    let confinement = Confinement {
        read: files.map(|(_, path)| path.to_owned()).collect(),
        scratch: Some(scratch(data, &settings.name)),
        ..Confinement::of(Role::Engine)
    };
    hosted(Arc::new(model), &told, settings.host, confinement)
}

/// The folder in which an engine of this name keeps what its libraries compile.
fn scratch(data: &Path, name: &str) -> PathBuf {
    let is_plain = |one: char| one.is_ascii_alphanumeric() || matches!(one, '-' | '_');
    let plain = name.replace(|one| !is_plain(one), "_");
    data.join("scratch").join(plain)
}

/// Measures how long children take.
fn clock() -> Arc<dyn Clock> {
    Arc::new(SystemClock)
}

/// How films are read: each in a process of its own.
pub(crate) fn films() -> HostedFilms {
    HostedFilms::new(FilmOptions {
        command: Box::new(|| this_executable("film-host")),
        silence_max: FILM_SILENCE_MAX,
        examine_max: FILM_EXAMINE_MAX,
        clock: clock(),
    })
}

/// The embedded engine in a process of its own.
pub(crate) fn storyboard(settings: &config::StoryboardProcess) -> Result<HostedEngine, Failure> {
    let engine = settings.settings();
    let planner = Arc::new(storyboard_of(&engine));
    let confinement = Confinement::of(Role::Engine);
    hosted(
        planner,
        &Settings::Storyboard(engine),
        settings.host,
        confinement,
    )
}

/// The embedded engine in this process; with 0 threads, one per core.
pub(crate) fn storyboard_of(settings: &config::Storyboard) -> Storyboard {
    Storyboard::new(kinora_storyboard::Options {
        threads: NonZeroUsize::new(settings.threads as usize),
        caption: settings.caption,
        mark: settings.mark,
        mark_text: settings.mark_text.clone(),
        system_fonts: settings.system_fonts,
    })
}

/// The service's end.
fn hosted(
    planner: Arc<dyn Planner>,
    settings: &Settings,
    host: config::Host,
    confinement: Confinement,
) -> Result<HostedEngine, Failure> {
    let settings = serde_json::to_vec(settings)
        .map_err(|error| Failure::because("The engine's settings cannot be told", error))?;
    let options = HostOptions {
        command: Box::new(|| this_executable("engine-host")),
        settings,
        processes: host.processes as usize,
        open_limit: host.open_limit(),
        memory_bytes_max: host.memory_bytes_max(),
        confinement: host.sandbox.then_some(confinement),
        clock: clock(),
    };
    Ok(HostedEngine::new(planner, options))
}

/// This executable as it was when this process started, also when its file was replaced since.
fn this_executable(subcommand: &str) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.arg(subcommand);
    command
}
