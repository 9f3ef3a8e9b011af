//! Both ends of child processes: how the service starts this executable as `kinora engine-host` or
//! `kinora film-host`, what such a process may access, and which engine it opens.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use kinora_contract::Clock;
use kinora_engine::{Engine as Opened, EngineError, FrameKind, Output};
use kinora_host::{
    Confinement, FilmOptions, HostOptions, HostedEngine, HostedFilms, Role, serve_film,
};
use serde::{Deserialize, Serialize};
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::LogFormat;
use crate::config::{Engine, Host};
use crate::failure::Failure;
use crate::system::SystemClock;
use crate::{kinds, logging};

/// A frame takes a fraction of a second, even on a busy machine.
const FILM_SILENCE_MAX: Duration = Duration::from_mins(1);
/// The largest film takes about ten seconds.
const FILM_EXAMINE_MAX: Duration = Duration::from_mins(10);

/// Startup message for an engine process: everything needed to read its settings exactly as the
/// service did.
#[derive(Debug, Serialize, Deserialize)]
struct Told {
    kind: String,
    name: String,
    settings: toml::Table,
}

/// Runs as an engine process.
pub(crate) fn run() -> Result<(), Failure> {
    logging::start_direct(LogFormat::Json, "info")?;
    leave_stops_to_the_service()
        .and_then(|()| kinora_host::serve(open))
        .map_err(|error| Failure::because("The engine process failed", error))
}

/// Runs as a process that reads one film.
pub(crate) fn run_film() -> Result<(), Failure> {
    leave_stops_to_the_service()
        .and_then(|()| serve_film(&clock()))
        .map_err(|error| Failure::because("The film process failed", error))
}

/// A stop by a service manager, or the end of a terminal, signals every process at once, but a
/// running task must finish. So this process ignores such signals, and exits when the service
/// closes its input.
fn leave_stops_to_the_service() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()?;
    let _entered = runtime.enter();
    // Once a handler is registered, the system's default action no longer applies.
    for kind in [
        SignalKind::terminate(),
        SignalKind::interrupt(),
        SignalKind::hangup(),
    ] {
        drop(signal(kind)?);
    }
    Ok(())
}

fn open(told: &[u8]) -> Result<Box<dyn Opened>, EngineError> {
    let failed = |error: String| EngineError::Failed(format!("the engine's settings: {error}"));
    let told: Told = serde_json::from_slice(told).map_err(|error| failed(error.to_string()))?;
    let kind = kinds::named(&told.kind).map_err(failed)?;
    let settings = kind.read(told.settings);
    let settings = settings.map_err(|error| failed(error.to_string()))?;
    match settings.output() {
        Output::Frames(frames) => frames.open(&told.name),
        Output::Films(_) => Err(failed("this kind has no processes".to_owned())),
    }
}

/// The clock that times children.
fn clock() -> Arc<dyn Clock> {
    Arc::new(SystemClock)
}

/// Reads each film in a separate process.
pub(crate) fn films() -> HostedFilms {
    HostedFilms::new(FilmOptions {
        command: Box::new(|| this_executable("film-host")),
        silence_max: FILM_SILENCE_MAX,
        examine_max: FILM_EXAMINE_MAX,
        clock: clock(),
    })
}

/// An engine that makes frames in separate processes. None is started yet.
pub(crate) fn hosted(
    engine: &Engine,
    frames: &dyn FrameKind,
    host: Host,
    data: &Path,
) -> Result<HostedEngine, Failure> {
    if let Some(why) = frames.not_built_in() {
        return Err(Failure::because(&engine.name, why));
    }
    let planner = frames.planner(&engine.name);
    let planner = planner.map_err(|error| engine.refused(&error))?;
    let told = Told {
        kind: engine.told.kind.name.to_owned(),
        name: engine.name.clone(),
        settings: engine.told.table.clone(),
    };
    let settings = serde_json::to_vec(&told).map_err(|error| {
        Failure::because("Cannot pass the settings to the engine process", error)
    })?;
    let needs = frames.needs();
    let confinement = Confinement {
        read: needs.files,
        scratch: needs.scratch.then(|| scratch(data, &engine.name)),
        ..Confinement::of(Role::Engine)
    };
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

/// The folder, named after the engine, for code that its libraries compile.
fn scratch(data: &Path, name: &str) -> PathBuf {
    let is_plain = |one: char| one.is_ascii_alphanumeric() || matches!(one, '-' | '_');
    let plain = name.replace(|one| !is_plain(one), "_");
    data.join("scratch").join(plain)
}

/// This executable as it was when this process started, even if its file has been replaced since.
fn this_executable(subcommand: &str) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.arg(subcommand);
    command
}
