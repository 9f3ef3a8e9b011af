//! Engines in processes of their own, at both ends: how the service starts this executable again as
//! `kinora engine-host`, and which engine that process opens.

use std::process::Command;
use std::sync::Arc;

use kinora_engine::{Engine, EngineError, Planner};
use kinora_host::{HostOptions, HostedEngine};
use serde::{Deserialize, Serialize};

use crate::cli::LogFormat;
use crate::config;
use crate::failure::Failure;
use crate::logging;

/// What an engine's process is told.
#[derive(Debug, Serialize, Deserialize)]
enum Settings {
    Storyboard { threads: u32 },
}

/// The process's end.
pub(crate) fn run() -> Result<(), Failure> {
    logging::start(LogFormat::Json, "info")?;
    kinora_host::serve(open)
        .map_err(|error| Failure::because("The engine's process cannot be served", error))
}

fn open(settings: &[u8]) -> Result<Box<dyn Engine>, EngineError> {
    let settings = serde_json::from_slice(settings)
        .map_err(|error| EngineError::Failed(format!("the engine's settings: {error}")))?;
    match settings {
        Settings::Storyboard { threads } => Ok(Box::new(storyboard_of(threads))),
    }
}

/// The embedded engine in a process of its own.
pub(crate) fn storyboard(settings: &config::StoryboardProcess) -> Result<HostedEngine, Failure> {
    let threads = settings.threads;
    let planner = Arc::new(storyboard_of(threads));
    hosted(planner, &Settings::Storyboard { threads }, settings.host)
}

fn storyboard_of(threads: u32) -> kinora_engine::storyboard::Storyboard {
    let options = kinora_engine::storyboard::Options {
        threads: std::num::NonZeroUsize::new(threads as usize),
    };
    kinora_engine::storyboard::Storyboard::new(options)
}

/// The service's end.
fn hosted(
    planner: Arc<dyn Planner>,
    settings: &Settings,
    host: config::Host,
) -> Result<HostedEngine, Failure> {
    let settings = serde_json::to_vec(settings)
        .map_err(|error| Failure::because("The engine's settings cannot be told", error))?;
    let options = HostOptions {
        command: Box::new(this_executable),
        settings,
        processes: host.processes as usize,
        open_limit: host.open_limit(),
        memory_bytes_max: host.memory_bytes_max(),
    };
    Ok(HostedEngine::new(planner, options))
}

/// This executable as it was when this process started, also when its file was replaced since.
fn this_executable() -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.arg("engine-host");
    command
}
