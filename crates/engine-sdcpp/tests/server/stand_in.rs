//! The whole path of a job, and every way in which a server fails it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kinora_contract::{FrameSize, ModelPreset, Size, VideoInputs, VideoSpec};
use kinora_engine::{ClipPlanner, EngineError, JobControl, JobMaterials, conformance};
use kinora_engine_sdcpp::{Family, Model, START_LIMIT, Sampler, ServerEngine, Settings, Variant};
use serde_json::json;

use crate::support::{
    children, example, film, frames, generate, make, picture, processes, spec, wait_for,
};

fn program() -> PathBuf {
    example("stand_in")
}

fn settings() -> Settings {
    let settings = json!({
        "family": "wan", "diffusion_model": "a", "vae": "b", "text_encoder": "c",
        "variant": "ti2v", "fps": 5, "steps": 2,
    });
    serde_json::from_value(settings).unwrap()
}

fn open_within(
    settings: Settings,
    mode: &str,
    limit: Duration,
) -> Result<ServerEngine, EngineError> {
    let model = Model::new("test", settings).unwrap();
    let arguments = ["--stand-in", mode].map(str::to_owned).into();
    ServerEngine::open(model, &program(), arguments, limit)
}

fn open(settings: Settings, mode: &str) -> Result<ServerEngine, EngineError> {
    open_within(settings, mode, START_LIMIT)
}

/// The error of a job in a server with this misfortune.
fn failure(mode: &str) -> (ServerEngine, EngineError) {
    let engine = open(settings(), mode).unwrap();
    let error = generate(&engine, &JobControl::default()).unwrap_err();
    (engine, error)
}

#[test]
fn a_model_in_a_server_keeps_the_promises_of_every_engine() {
    let engine = open(settings(), "").unwrap();
    let asked = VideoSpec {
        // Rendered larger, and cropped.
        frame: FrameSize::Fixed(Size::new(22, 18)),
        ..spec(&engine, VideoInputs::Text)
    };
    conformance::check(&engine, &asked, &JobMaterials::default()).unwrap();
    crate::given::first_and_last(&engine);
}

#[test]
fn sound_comes_with_the_film() {
    let loud = Settings {
        family: Family::Ltx,
        variant: None,
        audio_vae: Some("d".into()),
        ..settings()
    };
    let engine = open(loud, "").unwrap();
    let asked = spec(&engine, VideoInputs::Text);
    assert!(asked.generate_audio);
    film(&engine, &asked, &JobMaterials::default());
    conformance::outline(&engine, &asked, &JobMaterials::default()).unwrap();
}

#[test]
fn control_frames_and_references_reach_the_server() {
    let vace = Settings {
        family: Family::WanVace,
        variant: None,
        ..settings()
    };
    crate::given::source_and_reference(&open(vace, "").unwrap());
}

fn preset(text: &str) -> ModelPreset {
    serde_json::from_str(text).unwrap()
}

#[test]
fn presets_change_the_clips_of_one_server_and_leave_nothing_behind() {
    let settings = Settings {
        loras_folder: Some("/loras".into()),
        ..settings()
    };
    let engine = open(settings, "presets").unwrap();
    let started = children("presets");
    let (spec, none) = (spec(&engine, VideoInputs::Text), JobMaterials::default());
    let quick = preset(r#"{"steps": 1, "sampler": "lcm"}"#);
    let painted = preset(r#"{"loras": [{"path": "a.safetensors", "weight": 0.8}]}"#);
    for preset in [&quick, &painted] {
        conformance::obeys_preset(&engine, &spec, &none, preset).unwrap();
    }
    assert_eq!(children("presets"), started);
    assert_eq!(started.len(), 1);
}

#[test]
fn a_preset_that_the_server_cannot_obey_fails_its_jobs_and_costs_no_loading() {
    let engine = open(settings(), "presets").unwrap();
    let started = children("presets");
    for (wrong, named) in [
        (r#"{"guidance_scale": 1.0}"#, "unknown field"),
        (r#"{"sampler": "tcd"}"#, "the server has no sampler tcd"),
    ] {
        let spec = spec(&engine, VideoInputs::Text);
        let (preset, none) = (preset(wrong), JobMaterials::default());
        let made = make(&engine, &spec, &none, Some(&preset), &JobControl::default());
        let error = made.unwrap_err();
        assert!(error.to_string().contains(named), "{error}");
    }
    generate(&engine, &JobControl::default()).unwrap();
    assert_eq!(children("presets"), started);
}

#[test]
fn a_cancel_kills_the_server_and_the_next_job_starts_another() {
    let engine = Arc::new(open(settings(), "hangs").unwrap());
    assert_eq!(children("hangs").len(), 1);
    let control = JobControl::default();
    let job = {
        let (engine, control) = (engine.clone(), control.clone());
        std::thread::spawn(move || generate(&*engine, &control))
    };
    // Both steps are done: the server is at work.
    while control.progress.fraction() < 0.8 {
        std::thread::yield_now();
    }
    control.cancel.cancel();
    assert!(matches!(job.join().unwrap(), Err(EngineError::Cancelled)));
    assert!(children("hangs").is_empty());

    let control = JobControl::default();
    control.cancel.cancel_at_progress();
    let again = generate(&*engine, &control);
    assert!(matches!(again, Err(EngineError::Cancelled)));
}

#[test]
fn a_server_s_end_is_told_by_its_last_words() {
    let (engine, error) = failure("ends");
    assert!(
        matches!(&error, EngineError::Failed(why) if why.contains("GGML_ASSERT")),
        "{error}"
    );
    // The next job has a server again.
    let again = generate(&engine, &JobControl::default()).unwrap_err();
    assert!(again.to_string().contains("GGML_ASSERT"), "{again}");

    let (_, error) = failure("device-lost");
    assert!(matches!(error, EngineError::Broken(_)), "{error}");
    let (_, error) = failure("no-memory");
    assert!(matches!(error, EngineError::OutOfMemory(_)), "{error}");
    let (_, error) = failure("refuses");
    let EngineError::Failed(why) = &error else {
        panic!("{error}");
    };
    assert!(
        why.contains("400") && why.contains("invalid generation parameters"),
        "{why}"
    );
}

#[test]
fn a_film_that_was_not_asked_for_is_refused() {
    for (mode, said) in [
        ("no-film", "not an AVI"),
        ("broken-film", "ends within a chunk"),
        ("wrong-size", "not 32x32"),
        ("few-frames", "4 frames of 5"),
    ] {
        let (_, error) = failure(mode);
        assert!(matches!(error, EngineError::Failed(_)), "{mode}: {error}");
        assert!(error.to_string().contains(said), "{mode}: {error}");
    }
}

#[test]
fn a_server_that_does_not_serve_is_no_engine() {
    let refused = |settings: Settings, mode| open(settings, mode).unwrap_err();
    let error = refused(settings(), "no-weights");
    assert!(error.to_string().contains("new_sd_ctx_t failed"), "{error}");
    let error = refused(settings(), "images");
    assert!(matches!(error, EngineError::Unsupported(_)), "{error}");
    let error = refused(settings(), "port-taken");
    assert!(
        error.to_string().contains("no free port in 3 attempts"),
        "{error}"
    );
    let error = refused(settings(), "wrapped");
    assert!(error.to_string().contains("`exec` the program"), "{error}");
    // Its child too.
    wait_for("the end of all", || processes("wrapped").is_empty());
    let limit = Duration::from_millis(200);
    let error = open_within(settings(), "never-listens", limit).unwrap_err();
    assert!(error.to_string().contains("does not listen"), "{error}");

    // An option, a sampler and a program that are not there.
    let split = Settings {
        backend: Some("te=cpu".to_owned()),
        ..settings()
    };
    let error = refused(split, "");
    assert!(error.to_string().contains("no --backend"), "{error}");
    let sampled = Settings {
        sampler: Some(Sampler::Heun),
        ..settings()
    };
    let error = refused(sampled, "");
    assert!(
        error
            .to_string()
            .contains("no sampler heun; it has euler, lcm"),
        "{error}"
    );
    let model = Model::new("test", settings()).unwrap();
    let missing = ServerEngine::open(model, "/no/such/program".as_ref(), Vec::new(), START_LIMIT);
    assert!(missing.unwrap_err().to_string().contains("docs/models.md"));
}

#[test]
fn a_first_frame_is_required_where_the_weights_need_it() {
    let pictured = Settings {
        variant: Some(Variant::I2v),
        ..settings()
    };
    let engine = open(pictured, "").unwrap();
    assert!(!engine.describe().features.text_to_video);
    let materials = JobMaterials {
        first_frame: Some(picture(90)),
        ..JobMaterials::default()
    };
    film(&engine, &spec(&engine, frames(false)), &materials);
}

#[test]
fn an_older_server_is_not_given_a_last_frame_that_it_would_ignore() {
    let folder = tempfile::tempdir().unwrap();
    let old = folder.path().join("old-sd-server");
    std::os::unix::fs::symlink(program(), &old).unwrap();
    let model = Model::new("test", settings()).unwrap();
    let engine = ServerEngine::open(model, &old, Vec::new(), START_LIMIT).unwrap();
    let materials = JobMaterials {
        first_frame: Some(picture(90)),
        last_frame: Some(picture(10)),
        ..JobMaterials::default()
    };
    let (asked, control) = (spec(&engine, frames(true)), JobControl::default());
    let ended = make(&engine, &asked, &materials, None, &control);
    assert!(matches!(ended, Err(EngineError::Unsupported(_))));
    film(&engine, &spec(&engine, frames(false)), &materials);
}
