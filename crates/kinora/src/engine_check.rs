//! `kinora engine check`: runs the conformance suite against any command that speaks the engine protocol, and says what
//! it breaks in words that its author can act on.

mod cases;

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use kinora_engine::conformance::{self, Broken};
use kinora_engine::{Features, Grid, Planner, Program, Promises};
use kinora_host::{HostOptions, HostedEngine, Introduction, Open};
use kinora_process::PromisedPlanner;

use crate::cli::{EngineArgs, EngineCheckArgs, EngineCommand};
use crate::engine_host::{clock, command_of};
use crate::failure::Failure;
use crate::output::print;
use cases::Case;

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
    print(&introduced(&introduction));
    let promises = promises(&introduction);
    let cases = cases::of(promises, args);
    if cases.is_empty() {
        return Err(Failure::new(
            "The engine's hello has no feature: it takes no request. See `features` in docs/engine-protocol.md.",
        ));
    }
    let mut broken = 0;
    let engine = hosted(args, &settings, Some(promises));
    for (index, case) in cases.iter().enumerate() {
        broken += u32::from(!holds(
            case,
            "what it sends",
            conformance::outline(&engine, &case.spec, &case.materials),
        ));
        // The first has everything that a job can have tried on it.
        if index == 0 {
            broken += judge_life(args, &settings, &engine, case);
        }
    }
    match broken {
        0 => {
            print("The engine keeps to the protocol.\n");
            Ok(())
        }
        1 => Err(Failure::new("1 check failed, see above")),
        many => Err(Failure::new(format!("{many} checks failed, see above"))),
    }
}

/// What an engine must do besides making a clip; the number of checks that failed.
fn judge_life(
    args: &EngineCheckArgs,
    settings: &serde_json::Value,
    engine: &HostedEngine,
    case: &Case,
) -> u32 {
    let (spec, materials) = (&case.spec, &case.materials);
    let fresh = || {
        let one = conformance::fingerprint(engine, spec, materials)?;
        let other = hosted(args, settings, Some(case.promises));
        let other = conformance::fingerprint(&other, spec, materials)?;
        conformance::hold(
            one == other,
            "another process makes the same frames of the same job",
        )
    };
    let checks = [
        ("the seed", conformance::repeats(engine, spec, materials)),
        (
            "a cancel",
            conformance::obeys_cancel(engine, spec, materials),
        ),
        (
            "after a cancel",
            conformance::leaves_no_trace(engine, spec, materials),
        ),
        (
            "a sink that fails",
            conformance::returns_sink_errors(engine, spec, materials),
        ),
        ("a fresh process", fresh()),
    ];
    let failed = checks
        .into_iter()
        .filter_map(|(what, check)| (!holds(case, what, check)).then_some(()));
    u32::try_from(failed.count()).unwrap_or(u32::MAX)
}

/// Prints the outcome of one check.
fn holds(case: &Case, what: &str, check: Result<(), Broken>) -> bool {
    let name = case.name;
    match check {
        Ok(()) => {
            print(&format!("  ok      {name}: {what}\n"));
            true
        }
        Err(broken) => {
            print(&format!(
                "  BROKEN  {name}: {what}\n          this must hold: {broken}\n"
            ));
            false
        }
    }
}

fn settings(args: &EngineCheckArgs) -> Result<serde_json::Value, Failure> {
    let Some(path) = &args.settings else {
        return Ok(serde_json::json!({}));
    };
    let unreadable = |error: String| Failure::because(path.display().to_string(), error);
    let text = fs::read(path).map_err(|error| unreadable(error.to_string()))?;
    serde_json::from_slice(&text).map_err(|error| unreadable(error.to_string()))
}

fn introduction(
    args: &EngineCheckArgs,
    settings: &serde_json::Value,
) -> Result<Introduction, Failure> {
    let engine = hosted(args, settings, None);
    engine
        .introduction()
        .map_err(|error| Failure::because("The engine does not open", error))
}

fn introduced(introduction: &Introduction) -> String {
    let grid = introduction.promises.grid;
    let or = |text: &str, other: &str| match text.is_empty() {
        true => other.to_owned(),
        false => text.to_owned(),
    };
    format!(
        "{} {} ({})\n  sizes are multiples of {}, clips have {} n + {} frames, {} frames per second\n",
        or(&introduction.name, "An engine without a name"),
        introduction.version,
        or(&introduction.sdk, "no SDK"),
        grid.size_multiple,
        grid.frame_step,
        grid.frame_offset,
        match introduction.promises.fps {
            0 => "any number of".to_owned(),
            fps => fps.to_string(),
        },
    )
}

/// All that it says it can do, at a rate of its choice or a low one.
fn promises(introduction: &Introduction) -> Promises {
    let promises = introduction.promises;
    Promises {
        fps: if promises.fps == 0 { FPS } else { promises.fps },
        ..promises
    }
}

/// The engine. Without promises, of which nothing is known yet, it takes no jobs.
fn hosted(
    args: &EngineCheckArgs,
    settings: &serde_json::Value,
    promises: Option<Promises>,
) -> HostedEngine {
    let known = promises.unwrap_or(Promises {
        features: Features::default(),
        grid: Grid::ANY,
        fps: FPS,
    });
    let program = Program {
        command: args.command.clone(),
        environment: Default::default(),
        folder: None,
        devices: args.device.iter().cloned().collect(),
        settings: settings.clone(),
        promises: known,
    };
    let planner: Arc<dyn Planner> = Arc::new(PromisedPlanner::new("checked", "1", true, known));
    let options = HostOptions {
        open: Open::new("checked", program.settings.clone()),
        promises,
        devices: program.devices.clone(),
        command: Box::new(move || command_of(&program)),
        processes: 1,
        open_limit: Duration::from_secs(args.open_seconds.into()),
        memory_bytes_max: None,
        confinement: None,
        clock: clock(),
    };
    HostedEngine::new(planner, options)
}
