//! Engines in processes of their own: that they make what they make elsewhere, and that whatever
//! becomes of such a process costs an attempt of one task, and never the service.

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use kinora_contract::{FrameSize, Size, VideoInputs, VideoLength, VideoSpec};
use kinora_engine::{JobMaterials, RgbPicture, SAMPLE_RATE_HZ, StereoSound, conformance};
use kinora_engine_host::{Confinement, HostOptions, HostedEngine, OpenRequest, SandboxRole};
use kinora_engine_storyboard::Storyboard;
use kinora_test_e2e::{
    Client, DataFolder, Hold, Host, Server, Setup, Video, kinora, studio, until,
};
use serde_json::{Value, json};

use crate::support::{Download, assert_plays, quick, reaching_from, slow, steadily, steady};

/// Times that an engine's process dies at each point while it is at work, and again while it waits. `./soak kills` has more.
const DEATHS: usize = 2;

/// Serves `kinora-a1` by an engine in a process of its own, with these settings of it, and
/// `kinora-b1` as usual.
fn boxed(host: &str) -> Setup {
    boxed_on(Setup::default().painted(), host)
}

/// The same of another service.
fn boxed_on(setup: Setup, host: &str) -> Setup {
    setup.config(&format!(
        "[[engines]]\n\
         name = \"boxed\"\n\
         kind = \"storyboard\"\n\
         host = {{ {host} }}\n\
         [[models]]\n\
         card = \"kinora-a1\"\n\
         id = \"kinora-a1\"\n\
         engine = \"boxed\"\n\
         [[models]]\n\
         card = \"kinora-b1\"\n\
         id = \"kinora-b1\"\n\
         engine = \"storyboard\"\n"
    ))
}

/// The only process of the only engine that has one.
fn engine_of(server: &Server) -> u32 {
    until("an engine's process", || server.children().first().copied())
}

/// Whether it has ended, with all its threads; it may wait for somebody to ask how.
fn is_gone(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let state = stat.rsplit(')').next().unwrap_or_default().trim_start();
    // The first thread is shown as ended before the others are.
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).map_or(0, Iterator::count);
    state.is_empty() || (state.starts_with('Z') && threads <= 1)
}

fn submit_quick(client: &Client) -> Video {
    client.submit(&quick("kinora-a1"))
}

fn spec() -> VideoSpec {
    VideoSpec {
        version: kinora_contract::SPEC_VERSION,
        model: "model".to_owned(),
        prompt: "A kite over a beach".to_owned(),
        negative_prompt: None,
        seconds: VideoLength::Fixed(2),
        frame: FrameSize::Fixed(Size::new(480, 480)),
        seed: 11,
        generate_audio: true,
        inputs: VideoInputs::Text,
        draft: false,
        final_of: None,
        edit: None,
    }
}

#[test]
fn an_engine_in_a_process_keeps_to_what_every_engine_must() {
    let options = HostOptions {
        command: Box::new(|| {
            let mut command: Command = kinora();
            command.arg("engine-host");
            command
        }),
        open: OpenRequest {
            kind: Some("storyboard".to_owned()),
            ..OpenRequest::new("boxed", json!({}))
        },
        promises: None,
        devices: Vec::new(),
        processes: 1,
        open_limit: Duration::from_secs(60),
        run_limit: Duration::MAX,
        memory_bytes_max: None,
        confinement: Some(Confinement::of(SandboxRole::Engine)),
        clock: crate::support::clock(),
    };
    let engine = HostedEngine::new(Arc::new(Storyboard::default()), options);
    conformance::check(&engine, &spec(), &JobMaterials::default()).unwrap();
    let size = Size::new(64, 48);
    // Not of one colour: what differs by seed is how the camera moves over them.
    let picture = |grey: usize| RgbPicture {
        size,
        rgb: (0..64 * 48 * 3)
            .map(|at| (grey + at / 3 % 64) as u8)
            .collect(),
    };
    let materials = JobMaterials {
        images: vec![picture(20), picture(200)],
        audios: vec![StereoSound {
            pcm: vec![0.25; SAMPLE_RATE_HZ as usize],
        }],
        ..JobMaterials::default()
    };
    let spec = VideoSpec {
        inputs: VideoInputs::References {
            images: vec!["one".to_owned(), "two".to_owned()],
            audios: vec!["three".to_owned()],
        },
        ..spec()
    };
    conformance::check(&engine, &spec, &materials).unwrap();
}

#[test]
fn a_video_is_the_same_as_without_the_process_byte_for_byte() {
    let inside = reaching_from(boxed("")).start();
    let outside = reaching_from(Setup::default().painted()).start();
    let host = Host::start();
    let still = host.serve(
        "still.png",
        studio::picture("still.png", (320, 256), "teal"),
    );
    let mut framed = quick("kinora-a1");
    framed["first_frame"] = json!(still);
    for body in [quick("kinora-a1"), framed] {
        let [ours, theirs] = [&inside, &outside].map(|server| {
            let client = server.client();
            let video = client.wait_completed(client.submit(&body).id());
            let file = Download::of(&client, &video.content());
            kinora_test_e2e::media::without_provenance(&file.bytes).to_vec()
        });
        assert!(ours == theirs, "{body}");
    }
}

/// Modules whose lines are about the process, and not about one of its tasks.
const OF_NO_TASK: [&str; 9] = [
    "kinora_worker::announce",
    "kinora_worker::backoff",
    "kinora_worker::chores",
    "kinora_worker::claim",
    "kinora_worker::orphans",
    "kinora_worker::stall",
    "kinora_worker::start",
    "kinora_worker::sweep",
    "kinora_worker::trust",
];

#[test]
fn every_line_about_a_run_names_its_task_also_those_of_its_engines_process() {
    let level = "info,kinora_worker=debug,kinora_engine_host=debug,kinora_http_fetch=debug,kinora_blobs=debug";
    let server = reaching_from(boxed(""));
    let server = server.set("KINORA_LOG_LEVEL", level).start();
    let (client, host) = (server.client(), Host::start());
    let still = host.serve(
        "still.png",
        studio::picture("still.png", (320, 256), "teal"),
    );
    let mut body = quick("kinora-a1");
    body["first_frame"] = json!(still);
    // Both by one process, one after the other.
    let ids = [(); 2].map(|()| {
        let done = client.wait_completed(client.submit(&body).id());
        done.id().to_owned()
    });
    for message in ["reference fetched", "engine took a job", "task finished"] {
        server.assert_logged(&[message], 2);
    }
    for message in ["engine process started", "engine opened"] {
        server.assert_logged(&[message], 1);
    }
    let mut jobs = Vec::new();
    for line in server.log().lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        let target = event["target"].as_str().unwrap();
        let of_runs = [
            "kinora_worker",
            "kinora_engine_host",
            "kinora_http_fetch",
            "kinora_blobs",
        ];
        if !of_runs.iter().any(|one| target.starts_with(one)) || OF_NO_TASK.contains(&target) {
            continue;
        }
        let task = event["span"]["task"].as_str().unwrap_or_default();
        assert!(ids.iter().any(|id| id == task), "{line}");
        if line.contains("engine took a job") {
            jobs.push(task.to_owned());
        }
    }
    assert_eq!(jobs, ids);
}

#[test]
fn the_frames_of_an_edits_source_reach_the_process() {
    let server = Setup::default()
        .painted()
        .config(
            "[[engines]]\n\
             name = \"boxed\"\n\
             kind = \"storyboard\"\n\
             [[models]]\n\
             card = \"kinora-b1\"\n\
             id = \"kinora-b1\"\n\
             engine = \"boxed\"\n",
        )
        .start();
    let client = server.client();
    let source = client.wait_completed(client.submit(&quick("kinora-b1")).id());
    let edit = json!({"model": "kinora-b1", "prompt": "the same at night", "seed": 7,
                      "edit_task_id": source.id(), "edit_strength": 0.4});
    let edited = client.wait_completed(client.submit(&edit).id());
    assert_eq!(edited["frames"], source["frames"]);
    assert_plays(&client, &edited);
}

#[test]
fn a_process_that_dies_at_any_point_costs_an_attempt_and_one_that_waits_nothing() {
    let asked = std::env::var("KINORA_HOST_DEATHS").ok();
    let deaths = asked.map_or(DEATHS, |text| text.parse().unwrap());
    for point in kinora_system::crash::HOST_POINTS {
        let hold = Hold::at(point, 1);
        let server = hold.over(boxed("")).start();
        let client = server.client();
        for _ in 0..deaths {
            let task = submit_quick(&client);
            hold.wait();
            let held = engine_of(&server);
            server.kill_child(held);
            until("the process to be buried", || is_gone(held).then_some(()));
            // The next thread is not held: the sign is there still.
            let video = client.wait_completed(task.id());
            assert_plays(&client, &video);
            assert_eq!(server.anonymous().get("/healthz").status, 200);
            let waits = engine_of(&server);
            assert_ne!(waits, held);
            server.kill_child(waits);
            until("the process to be buried", || is_gone(waits).then_some(()));
            hold.forget();
        }
        // A process that dies before it is open costs no attempt.
        let is_open = !["host.opening", "host.opened"].contains(point);
        let told = if is_open {
            "run crashed"
        } else {
            "no place for the task"
        };
        server.assert_logged(&[told], deaths);
    }
}

#[test]
fn an_engine_that_always_dies_fails_its_tasks_by_rule_and_no_others() {
    let server = boxed("").set("CRASH_AT", "host.frame:2").start();
    let client = server.client();
    let failing = submit_quick(&client);
    let other = client.submit(&quick("kinora-b1"));
    client.wait_completed(other.id());
    let failed = client.wait_for(failing.id(), "failed");
    assert_eq!(failed["error"]["code"], "generation_failed");
    server.assert_logged(&["task started", failing.id()], 3);
}

#[test]
fn a_log_of_warnings_alone_names_the_task_as_well() {
    let server = boxed("").set("CRASH_AT", "host.frame:2");
    // The harness reads the address from the line of the start.
    let level = "warn,kinora::serve=info";
    let server = server.set("KINORA_LOG_LEVEL", level).start();
    let failing = submit_quick(&server.client());
    server.wait_for_log(&["run crashed", failing.id()]);
}

#[test]
fn a_process_that_takes_too_much_memory_is_ended() {
    let server = boxed("memory_megabytes = 8").start();
    let client = server.client();
    let failed = client.wait_for(client.submit(&slow()).id(), "failed");
    assert_eq!(failed["error"]["code"], "out_of_memory");
    assert_eq!(server.children(), Vec::<u32>::new());
    let other = client.submit(&quick("kinora-b1"));
    client.wait_completed(other.id());
}

#[test]
fn an_engine_that_hangs_is_ended_and_the_next_task_has_another() {
    let hold = Hold::at("host.frame", 3);
    let server = hold.over(boxed("silence_seconds = 5")).start();
    let client = server.client();
    let task = submit_quick(&client);
    hold.wait();
    let hung = engine_of(&server);
    let failed = client.wait_for(task.id(), "failed");
    assert_eq!(failed["error"]["code"], "generation_timeout");
    until("the process to be ended", || is_gone(hung).then_some(()));
    client.wait_completed(submit_quick(&client).id());
}

#[test]
fn a_cancel_ends_a_process_that_does_not_yield() {
    let hold = Hold::at("host.frame", 3);
    let server = hold.over(boxed("")).start();
    let client = server.client();
    let task = submit_quick(&client);
    hold.wait();
    let hung = engine_of(&server);
    client
        .post(&format!("/v1/videos/{}/cancel", task.id()))
        .video();
    until("the process to be ended", || is_gone(hung).then_some(()));
    client.wait_completed(submit_quick(&client).id());
}

#[test]
fn a_cancel_of_a_task_that_works_frees_the_engine_for_the_next() {
    let server = boxed("").set("KINORA_WORKER_SLOTS", 1).start();
    let client = server.client();
    let task = client.submit(&slow());
    client.wait_working(task.id());
    client
        .post(&format!("/v1/videos/{}/cancel", task.id()))
        .video();
    let next = client.wait_completed(submit_quick(&client).id());
    assert_plays(&client, &next);
    assert_eq!(server.children().len(), 1);
}

#[test]
fn no_process_outlives_the_service_whether_it_is_killed_or_stopped() {
    let server = boxed("").start();
    let client = server.client();
    let task = client.submit(&slow());
    client.wait_working(task.id());
    let engine = engine_of(&server);
    server.kill();
    until("the orphan to end itself", || is_gone(engine).then_some(()));

    let server = boxed("").start();
    let client = server.client();
    client.wait_completed(submit_quick(&client).id());
    let engine = engine_of(&server);
    server.terminate();
    let (status, log) = server.wait();
    assert!(status.success(), "{log}");
    until("the process to end", || is_gone(engine).then_some(()));
}

#[test]
fn a_stop_that_reaches_every_process_lets_the_running_task_finish() {
    let data = DataFolder::default();
    let server = steadily(boxed_on(Setup::on(&data), "")).start();
    let task = server.client().submit(&steady());
    server.client().wait_working(task.id());
    engine_of(&server);
    server.terminate_all();
    let (status, log) = server.wait();
    assert!(status.success(), "{log}");
    let again = boxed_on(Setup::on(&data), "").start();
    let video = again.client().video(task.id());
    assert_eq!(video.status(), "completed", "{log}");
}

#[test]
fn a_host_that_is_nonsense_is_refused_by_name() {
    let refused = |host: &str| {
        let Err(ended) = boxed(host).try_start() else {
            panic!("it started with {host}");
        };
        ended.stderr
    };
    assert!(refused("processes = 0").contains("host.processes must be at least 1"));
    assert!(refused("proceses = 1").contains("proceses"));
}
