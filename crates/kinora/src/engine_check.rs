//! `kinora engine check`: runs the conformance suite against any command that speaks the engine protocol, and says what
//! it breaks in words that its author can act on.

mod cases;
mod protocol_check;
mod watched_engine;

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use kinora_engine::{ClipPlanner, EngineCapabilities, EngineProgram, Features, RenderGrid};
use kinora_engine_host::PromisedPlanner;
use kinora_engine_host::{EngineIntroduction, HostOptions, HostedEngine, OpenRequest};

use crate::cli::{EngineArgs, EngineCheckArgs, EngineCommand};
use crate::engine_host::{clock, program_command};
use crate::failure::Failure;
use crate::output::print;
use cases::{ClipShape, StoppedJobs};
use protocol_check::ProtocolCheck;
use watched_engine::WatchedEngine;

/// Frames per second for an engine that takes any.
const FPS: u32 = 8;

/// Runs a command about engines.
pub(crate) fn run(args: &EngineArgs) -> Result<(), Failure> {
    let EngineCommand::Check(args) = &args.command;
    check(args)
}

fn check(args: &EngineCheckArgs) -> Result<(), Failure> {
    let settings = settings(args)?;
    let introduction = introduction(args, &settings)?;
    print(&introduction_text(&introduction));
    let promises = promises(&introduction);
    let shape = ClipShape {
        size: args.size,
        seconds: args.seconds,
    };
    let cases = cases::cases_for(promises, shape);
    let Some(plainest) = cases.first() else {
        return Err(Failure::new(
            "The engine's hello has no feature: it takes no request. See `features` in docs/engine-protocol.md.",
        ));
    };
    let engine = start_engine(args, &settings, Some(promises));
    let silence_max = Duration::from_secs(args.silence_seconds.into());
    let engine = WatchedEngine::new(engine, introduction.yield_limit, silence_max);
    let mut judge = ProtocolCheck::new(&engine);
    for (index, case) in cases.iter().enumerate() {
        judge.check_clip(case);
        // The first has everything that a job can have tried on it.
        if index == 0 {
            judge.check_lifecycle(case, &mut StoppedJobs::new(case, promises, shape));
        }
    }
    // Last, since it costs a process.
    judge.check_end_of_input(plainest);
    judge.outcome()
}

fn settings(args: &EngineCheckArgs) -> Result<serde_json::Value, Failure> {
    let Some(path) = &args.settings else {
        return Ok(serde_json::json!({}));
    };
    let shown = path.display();
    let text = fs::read(path).map_err(|error| Failure::because(&shown, error))?;
    serde_json::from_slice(&text).map_err(|error| Failure::because(&shown, error))
}

fn introduction(
    args: &EngineCheckArgs,
    settings: &serde_json::Value,
) -> Result<EngineIntroduction, Failure> {
    let engine = start_engine(args, settings, None);
    engine
        .introduction()
        .map_err(|error| Failure::because("The engine does not open", error))
}

/// `text`, or `other` if it is empty.
const fn non_empty<'t>(text: &'t str, other: &'t str) -> &'t str {
    if text.is_empty() { other } else { text }
}

fn introduction_text(introduction: &EngineIntroduction) -> String {
    let grid = introduction.promises.grid;
    format!(
        "{} {} ({})\n  sizes are multiples of {}, clips have {} n + {} frames, {} frames per second\n",
        non_empty(&introduction.name, "An engine without a name"),
        introduction.version,
        non_empty(&introduction.sdk, "no SDK"),
        grid.size_multiple,
        grid.frame_step,
        grid.frame_offset,
        match introduction.promises.fps {
            0 => "any number of".to_owned(),
            fps => fps.to_string(),
        },
    )
}

/// The engine's promises, with a low frame rate if it takes any.
fn promises(introduction: &EngineIntroduction) -> EngineCapabilities {
    let promises = introduction.promises;
    EngineCapabilities {
        fps: if promises.fps == 0 { FPS } else { promises.fps },
        ..promises
    }
}

/// The engine. Without promises, of which nothing is known yet, it takes no jobs.
fn start_engine(
    args: &EngineCheckArgs,
    settings: &serde_json::Value,
    promises: Option<EngineCapabilities>,
) -> HostedEngine {
    let known = promises.unwrap_or(EngineCapabilities {
        features: Features::default(),
        grid: RenderGrid::ANY,
        fps: FPS,
    });
    let program = EngineProgram {
        command: args.command.clone(),
        environment: Default::default(),
        folder: None,
        devices: args.device.iter().cloned().collect(),
        settings: settings.clone(),
        promises: known,
        confined: None,
    };
    let planner: Arc<dyn ClipPlanner> = Arc::new(PromisedPlanner::new("checked", "1", true, known));
    let options = HostOptions {
        open: OpenRequest::new("checked", program.settings.clone()),
        promises,
        devices: program.devices.clone(),
        command: Box::new(move || program_command(&program, None)),
        processes: 1,
        open_limit: Duration::from_secs(args.open_seconds.into()),
        // Each check has a limit of its own.
        run_limit: Duration::MAX,
        memory_bytes_max: None,
        confinement: None,
        clock: clock(),
    };
    HostedEngine::new(planner, options)
}
