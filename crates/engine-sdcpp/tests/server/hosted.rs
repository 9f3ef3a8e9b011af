//! The engine where it runs in the service: in a confined process of its own.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kinora_contract::{RunningClock, VideoInputs};
use kinora_engine::{EngineError, FrameKind, JobControl, JobMaterials, conformance};
use kinora_engine_host::{Confinement, HostOptions, HostedEngine, OpenRequest, SandboxRole};
use kinora_engine_sdcpp::SdcppKind;
use serde::Deserialize;
use serde_json::json;

use crate::support::{example, film, generate, processes, spec, wait_for};

/// The engine in a process that may read the stand-in's folder and write to `scratch`.
fn hosted(mode: &str, scratch: &Path) -> HostedEngine {
    let settings = json!({
        "server": example("stand_in"),
        "arguments": ["--stand-in", mode],
        "model": {
            "family": "wan", "diffusion_model": "/no/such/a", "vae": "/no/such/b",
            "text_encoder": "/no/such/c", "fps": 5, "steps": 2,
        },
    });
    let kind = SdcppKind::deserialize(&settings).unwrap();
    let needs = kind.needs();
    let begun = Instant::now();
    let options = HostOptions {
        command: Box::new(|| Command::new(example("engine_process"))),
        open: OpenRequest::new("wan", settings),
        promises: None,
        devices: Vec::new(),
        processes: 1,
        open_limit: Duration::from_secs(60),
        run_limit: Duration::MAX,
        memory_bytes_max: None,
        confinement: Some(Confinement {
            read: [needs.files, needs.programs].concat(),
            list: needs.listed,
            scratch: Some(scratch.to_owned()),
            ..Confinement::of(SandboxRole::Server)
        }),
        clock: Arc::new(RunningClock::at(0, move || begun.elapsed())),
    };
    HostedEngine::new(kind.planner("wan").unwrap(), options)
}

#[test]
fn a_server_runs_within_the_sandbox() {
    let scratch = tempfile::tempdir().unwrap();
    let engine = hosted("in-sandbox", scratch.path());
    let asked = spec(&engine, VideoInputs::Text);
    film(&engine, &asked, &JobMaterials::default());
    conformance::check(&engine, &asked, &JobMaterials::default()).unwrap();
    assert_eq!(processes("in-sandbox").len(), 1);
    drop(engine);
    wait_for("the server's end", || processes("in-sandbox").is_empty());
}

#[test]
fn a_cancel_ends_the_server_and_a_kill_of_the_process_too() {
    let scratch = tempfile::tempdir().unwrap();
    let engine = Arc::new(hosted("hosted-hangs", scratch.path()));
    let control = JobControl::default();
    control.cancel.cancel_at_progress();
    let cancelled = generate(&*engine, &control).unwrap_err();
    assert!(matches!(cancelled, EngineError::Cancelled), "{cancelled}");

    // The process ends in the middle of a job, as if it were killed.
    let control = JobControl::default();
    let job = {
        let (engine, control) = (engine.clone(), control.clone());
        std::thread::spawn(move || generate(&*engine, &control))
    };
    wait_for("work", || control.progress.fraction() > 0.5);
    let process = processes("hosted-hangs")[0].parent;
    let killed = Command::new("kill")
        .args(["-KILL", &process.to_string()])
        .status();
    assert!(killed.unwrap().success());
    let ended = job.join().unwrap().unwrap_err();
    assert!(matches!(ended, EngineError::Crashed { .. }), "{ended}");
    wait_for("the server's end", || processes("hosted-hangs").is_empty());
    drop(engine);
}
