//! Both ends of child processes: how the service starts this executable as `kinora engine-host` or
//! `kinora film-host`, what such a process may access, and which engine it opens.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use kinora_contract::Clock;
use kinora_engine::{
    Engine as Opened, EngineCapabilities, EngineError, EngineOutput, EngineProgram, FrameKind,
};
use kinora_engine_host::{
    Confinement, FilmOptions, HostOptions, HostedEngine, HostedFilms, OpenRequest, SandboxRole,
    adopt_orphans, confine_command, make_scratch, restrict_environment, serve_film,
};
use serde::Deserialize;
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::CommandHostArgs;
use crate::config::{Config, EngineSettings, HostSettings};
use crate::failure::Failure;
use crate::kinds;
use crate::logging::{self, LogFormat};
use crate::output::print_message;
use crate::system::SystemClock;

/// A frame takes a fraction of a second, even on a busy machine.
const FILM_SILENCE_MAX: Duration = Duration::from_mins(1);
/// The largest film takes about ten seconds.
const FILM_EXAMINE_MAX: Duration = Duration::from_mins(10);

/// Runs as an engine process.
pub(crate) fn run() -> Result<(), Failure> {
    logging::start_direct(LogFormat::Json, "info")?;
    ignore_stop_signals()
        .and_then(|()| kinora_engine_host::serve(open_engine))
        .map_err(|error| Failure::because("The engine process failed", error))
}

/// Runs as a process that reads one film.
pub(crate) fn run_film() -> Result<(), Failure> {
    ignore_stop_signals()
        .and_then(|()| serve_film(&clock()))
        .map_err(|error| Failure::because("The film process failed", error))
}

/// A stop by a service manager, or the end of a terminal, signals every process at once, but a
/// running task must finish. So this process ignores such signals, and exits when the service
/// closes its input.
fn ignore_stop_signals() -> io::Result<()> {
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

fn open_engine(told: OpenRequest) -> Result<Box<dyn Opened>, EngineError> {
    let kind = kinds::find(told.kind.as_deref().unwrap_or_default()).map_err(settings_error)?;
    let table = toml::Table::deserialize(told.settings);
    let table = table.map_err(|error| settings_error(error.to_string()))?;
    let settings = kind.read(table);
    let settings = settings.map_err(|error| settings_error(error.to_string()))?;
    match settings.output() {
        EngineOutput::Frames(frames) => frames.open(&told.name),
        EngineOutput::Films(_) => Err(settings_error("this kind has no processes".to_owned())),
    }
}

fn settings_error(error: String) -> EngineError {
    EngineError::Failed(format!("the engine's settings: {error}"))
}

/// The clock that times children.
pub(crate) fn clock() -> Arc<dyn Clock> {
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
    engine: &EngineSettings,
    frames: &dyn FrameKind,
    host: HostSettings,
    config: &Config,
) -> Result<HostedEngine, Failure> {
    if let Some(why) = frames.unavailable() {
        return Err(Failure::because(&engine.name, why));
    }
    let planner = frames.planner(&engine.name);
    let planner = planner.map_err(|error| engine.kind_failure(&error))?;
    let needs = frames.needs();
    let confinement = Confinement {
        read: [needs.files, needs.programs].concat(),
        list: needs.listed,
        scratch: needs.scratch.then(|| scratch(&config.data, &engine.name)),
        ..Confinement::of(if needs.starts_programs {
            SandboxRole::Server
        } else {
            SandboxRole::Engine
        })
    };
    let settings = serde_json::to_value(&engine.definition.table).map_err(|error| {
        Failure::because("Cannot pass the settings to the engine process", error)
    })?;
    // This executable, which reads the engine's settings as the service did.
    let mut options = HostOptions {
        command: Box::new(|| {
            let mut command = this_executable("engine-host");
            // Without a sandbox, too, secrets stay with the service.
            restrict_environment(&mut command);
            command
        }),
        open: OpenRequest {
            kind: Some(engine.definition.kind.name.to_owned()),
            ..OpenRequest::new(&engine.name, settings)
        },
        promises: None,
        devices: Vec::new(),
        processes: host.processes as usize,
        open_limit: host.open_limit(),
        run_limit: host.run_limit(),
        memory_bytes_max: host.memory_bytes_max(),
        confinement: host.sandbox.then_some(confinement),
        clock: clock(),
    };
    if let Some(program) = frames.program() {
        run_program(&mut options, engine, program, config);
    }
    Ok(HostedEngine::new(planner, options))
}

/// Makes `options` run an operator's command.
fn run_program(
    options: &mut HostOptions,
    engine: &EngineSettings,
    program: EngineProgram,
    config: &Config,
) {
    let mut models = config.models.iter();
    let presets = models.any(|model| model.engine == engine.name && model.preset().is_some());
    let confinement = program.confined.as_ref().map(|files| Confinement {
        read: files.readable.clone(),
        write: files.writable.clone(),
        scratch: Some(scratch(&config.data, &engine.name)),
        ..Confinement::of(SandboxRole::Command)
    });
    options.open = OpenRequest::new(&engine.name, program.settings.clone());
    options.promises = Some(EngineCapabilities {
        presets,
        ..program.promises
    });
    options.devices.clone_from(&program.devices);
    options.command = Box::new(move || program_command(&program, confinement.as_ref()));
}

/// Builds an operator's command, with an allow list of the service's environment. It starts as this executable, which prepares
/// itself and then becomes the command.
pub(crate) fn operator_command(command: &[String], confinement: Option<&Confinement>) -> Command {
    let mut prepared = this_executable("command-host");
    // As an argument, and not in a file: it needs no place to be stored, and the child cannot find
    // another one.
    let confinement_json = serde_json::json!(confinement).to_string();
    prepared.arg(confinement_json).args(command);
    restrict_environment(&mut prepared);
    prepared
}

/// The command of an engine, in its folder and with its own variables.
pub(crate) fn program_command(
    program: &EngineProgram,
    confinement: Option<&Confinement>,
) -> Command {
    let mut command = operator_command(&program.command, confinement);
    if let Some(scratch) = confinement.and_then(|confinement| confinement.scratch.as_ref()) {
        command.env("HOME", scratch).env("TMPDIR", scratch);
    }
    // After the restriction, which would remove them: these variables are the operator's, and may
    // replace any of the allow list, HOME and TMPDIR included.
    command.envs(&program.environment);
    if let Some(folder) = &program.folder {
        command.current_dir(folder);
    }
    command
}

/// Replaces this process by the operator's command, confined if its settings ask for that. The command
/// is the parent of all processes that it leaves behind.
pub(crate) fn run_command(args: &CommandHostArgs) -> Result<(), Failure> {
    let confinement: Option<Confinement> = serde_json::from_str(&args.confinement)
        .map_err(|error| Failure::because("The confinement is no such JSON", error))?;
    // Being a subreaper outlasts `exec`: processes that the command leaves behind become children
    // of this process and not of init, so the service finds and ends them with it.
    adopt_orphans();
    if let Some(confinement) = confinement {
        confine(&confinement)?;
    }
    let (name, arguments) = args.command.split_first().unzip();
    let mut command = Command::new(name.map(OsString::as_os_str).unwrap_or_default());
    command.args(arguments.unwrap_or_default());
    // Returns only where it fails.
    let error = std::os::unix::process::CommandExt::exec(&mut command);
    Err(Failure::because("The command could not be started", error))
}

fn confine(confinement: &Confinement) -> Result<(), Failure> {
    if let Some(scratch) = &confinement.scratch {
        make_scratch(scratch).map_err(|error| {
            Failure::because("The command's own folder could not be created", error)
        })?;
    }
    let lacking = confine_command(confinement).map_err(|why| {
        Failure::because(
            "This system cannot confine a command (`confine = true`)",
            why,
        )
    })?;
    if !lacking.is_empty() {
        print_message(&format!(
            "the command is only partly confined: {}",
            lacking.join("; ")
        ));
    }
    Ok(())
}

/// The folder, named after the engine, for code that its libraries compile.
fn scratch(data: &Path, name: &str) -> PathBuf {
    // The name is the operator's text and becomes a folder: neither a slash nor a dot may lead out
    // of `scratch`.
    let plain = name.replace(
        |one: char| !(one.is_ascii_alphanumeric() || matches!(one, '-' | '_')),
        "_",
    );
    data.join("scratch").join(plain)
}

/// A command that runs this executable, as it was when this process started, even if its file has
/// been replaced since.
fn this_executable(subcommand: &str) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.arg(subcommand);
    command
}

#[cfg(test)]
mod tests {
    use kinora_engine_host::ProcessKind;

    use super::*;

    #[test]
    fn a_command_starts_in_its_working_folder_with_its_environment() {
        let table = "command = [\"sh\", \"-c\", \"pwd\"]\n\
                     working_folder = \"/srv/own\"\n\
                     environment = { COLOUR = \"red\" }\n\
                     describe = { fps = 16, features = {} }";
        let kind: ProcessKind = toml::from_str(table).unwrap();
        let command = program_command(&kind.program().unwrap(), None);
        assert_eq!(command.get_current_dir(), Some(Path::new("/srv/own")));
        let colour = command.get_envs().find(|(name, _)| *name == "COLOUR");
        assert_eq!(colour.unwrap().1.unwrap(), "red");
        let arguments: Vec<_> = command.get_args().collect();
        assert_eq!(arguments, ["command-host", "null", "sh", "-c", "pwd"]);
    }
}
