//! Pipelines of diffusers behind the same two endpoints: tiny ones with random weights, which `./engines-test` builds.
//! Needs a Python with torch and diffusers; without one nothing is tested here, and that is said.

use std::path::PathBuf;
use std::process::Command;

use kinora_test_e2e::{Client, Host, Server, Setup, Video, media, studio, until, workspace};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Download, assert_plays, reaching_from};

/// Names the Python.
const PYTHON: &str = "KINORA_TORCH_PYTHON";
/// Jobs that are cancelled and jobs that run, in turn.
const JOBS: usize = 20;

/// A pipeline in a folder, and the Python that runs it.
struct Tiny {
    python: PathBuf,
    folder: TempDir,
}

impl Tiny {
    /// Builds the pipeline that `tests_torch/tiny.py` calls `name`.
    fn build(name: &str) -> Option<Self> {
        let Some(python) = std::env::var_os(PYTHON).map(PathBuf::from) else {
            println!("{PYTHON} is not set: nothing was tested");
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        let made = Command::new(&python)
            .arg(workspace().join("python/tests_torch/tiny.py"))
            .arg(name)
            .arg(folder.path())
            .output()
            .unwrap();
        assert!(made.status.success(), "{made:?}");
        Some(Self { python, folder })
    }

    /// A service whose model `tiny` is the pipeline, with these settings and features.
    fn setup(&self, settings: &str, features: &str) -> Setup {
        let package = workspace().join("python/src");
        reaching_from(Setup::default().config(&format!(
            "[[engines]]\n\
             name = \"tiny\"\n\
             kind = \"process\"\n\
             command = [{:?}, \"-m\", \"kinora_engine\", \"kinora_engine.diffusers:Pipeline\"]\n\
             environment = {{ PYTHONPATH = {package:?}, HF_HUB_OFFLINE = \"1\", OMP_NUM_THREADS = \"1\" }}\n\
             settings = {{ model = {:?}, dtype = \"float32\", torch_device = \"cpu\", describe = {{ fps = 8 }}, {settings} }}\n\
             [engines.describe]\n\
             size_multiple = 32\n\
             frames = {{ step = 8, offset = 1 }}\n\
             fps = 8\n\
             features = {{ {features} }}\n\
             [[models]]\n\
             id = \"tiny\"\n\
             engine = \"tiny\"\n\
             sizes = [\"256x256\"]\n\
             seconds = [2]\n",
            self.python,
            self.folder.path(),
        )))
        .set("KINORA_WORKER_SLOTS", 1)
    }
}

/// Wan with a step cache, and so many steps that a cancel arrives in one.
fn wan() -> Option<(Tiny, Server)> {
    let tiny = Tiny::build("wan")?;
    let settings = "steps = 6, cache = { type = \"FirstBlockCacheConfig\", threshold = 0.5 }";
    let server = tiny.setup(settings, "text_to_video = true").start();
    Some((tiny, server))
}

fn body(seed: u32) -> Value {
    json!({"model": "tiny", "prompt": "Waves at dawn", "seed": seed})
}

/// Waits for the task's video, and looks into it.
fn completed(client: &Client, body: &Value) -> Video {
    let video = client.wait_completed(client.submit(body).id());
    assert_eq!(video["size"], "256x256");
    assert_plays(client, &video);
    video
}

/// The video's file without what says when it was made.
fn pixels(client: &Client, video: &Video) -> Vec<u8> {
    let file = Download::of(client, &video.content());
    media::without_provenance(&file.bytes).to_vec()
}

fn cancel(client: &Client, video: &Video) {
    client.post(&format!("/v1/videos/{}/cancel", video.id()));
    client.wait_for(video.id(), "failed");
}

/// Submits a task and waits until a step of it is done.
fn in_a_step(client: &Client, seed: u32) -> Video {
    let video = client.submit(&body(seed));
    until("a step", || {
        let seen = client.video(video.id());
        assert!(!seen.is_finished(), "{seen:#?}");
        (seen.progress() > 0).then_some(seen)
    })
}

#[test]
fn a_prompt_becomes_a_video_with_sound() {
    let Some(tiny) = Tiny::build("ltx2") else {
        return;
    };
    let settings = "steps = 2, arguments = { spatio_temporal_guidance_blocks = [1], max_sequence_length = 16 }";
    let server = tiny
        .setup(settings, "text_to_video = true, audio_output = true")
        .start();
    let client = server.client();
    let mut loud = body(3);
    loud["generate_audio"] = json!(true);
    let video = completed(&client, &loud);
    let probe = media::probe(&Download::of(&client, &video.content()).path());
    assert_eq!(probe.video["nb_read_frames"], "16");
    assert!(probe.audio.is_some());
    // Without sound it is the same engine.
    completed(&client, &body(4));
}

#[test]
fn a_first_frame_begins_the_video() {
    let Some(tiny) = Tiny::build("wan_i2v") else {
        return;
    };
    let server = tiny.setup("steps = 2", "first_frame = true").start();
    let client = server.client();
    let host = Host::start();
    let picture = studio::picture("a.png", (300, 300), "teal");
    let mut first = body(3);
    first["first_frame"] = json!(host.serve("a.png", picture));
    let teal = completed(&client, &first);
    let other = studio::picture("b.png", (300, 300), "orange");
    first["first_frame"] = json!(host.serve("b.png", other));
    let orange = completed(&client, &first);
    assert!(pixels(&client, &teal) != pixels(&client, &orange));
}

#[test]
fn a_draft_is_remade_from_its_video() {
    let Some(tiny) = Tiny::build("wan_vace") else {
        return;
    };
    let features = "text_to_video = true, draft = true, edit = true";
    let server = tiny.setup("steps = 3, draft_steps = 1", features).start();
    let client = server.client();
    let mut draft = body(3);
    draft["draft"] = json!(true);
    let draft = completed(&client, &draft);
    let whole = completed(
        &client,
        &json!({"model": "tiny", "draft_task_id": draft.id()}),
    );
    assert_eq!(whole["draft_task_id"], draft["id"]);
    let edit = json!({"model": "tiny", "prompt": "At night", "edit_task_id": whole.id(), "edit_strength": 0.5});
    completed(&client, &edit);
}

#[test]
fn cancelled_jobs_leave_no_trace_in_those_after_them() {
    let Some((_tiny, server)) = wan() else { return };
    let client = server.client();
    let fresh = completed(&client, &body(1));
    let [process] = server.children()[..] else {
        panic!("{:?}", server.children());
    };
    let fresh = pixels(&client, &fresh);
    for number in 0..JOBS / 2 {
        cancel(
            &client,
            &in_a_step(&client, 100 + u32::try_from(number).unwrap()),
        );
        let next = completed(&client, &body(1));
        assert!(pixels(&client, &next) == fresh, "after {number} cancels");
    }
    // It was one process all the time, and another makes the same.
    assert_eq!(server.children(), [process]);
    server.kill_child(process);
    let next = completed(&client, &body(1));
    assert!(pixels(&client, &next) == fresh, "in another process");
}

#[test]
fn a_kill_in_a_step_costs_an_attempt() {
    let Some((_tiny, server)) = wan() else { return };
    let client = server.client();
    let video = in_a_step(&client, 1);
    server.kill_child(server.children()[0]);
    server.wait_for_log(&["run crashed; task requeued"]);
    assert_plays(&client, &client.wait_completed(video.id()));
}
