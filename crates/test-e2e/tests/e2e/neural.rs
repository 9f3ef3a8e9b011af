//! Open weights behind the same two endpoints, on the real binary and the server of stable-diffusion.cpp: what a
//! client sees of a model that takes minutes, and that cannot be stopped but by ending its process.
//! Needs weights and the server: see `./neural`. Without them nothing is tested here, and that is said.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use kinora_test_e2e::{Client, Hold, Host, Server, Setup, Video, media, studio, until};
use serde_json::{Value, json};

use crate::support::{Download, assert_plays, reaching_from};

/// The folder of weights that `random_weights` wrote.
const WEIGHTS: &str = "KINORA_NEURAL_WEIGHTS";
/// The program `sd-server`.
const SERVER: &str = "KINORA_SD_SERVER";
/// A step may take minutes on a small machine.
const PATIENCE: Duration = Duration::from_hours(1);

/// A service whose `kinora-a1` is the model of the weights, in as few steps as there can be.
fn neural() -> Option<Server> {
    Some(setup()?.start())
}

fn setup() -> Option<Setup> {
    let (folder, program) = (std::env::var(WEIGHTS), std::env::var(SERVER));
    let (Ok(folder), Ok(program)) = (folder, program) else {
        println!("{WEIGHTS} and {SERVER} are not set: nothing was tested");
        return None;
    };
    let folder = PathBuf::from(folder);
    let text = std::fs::read_to_string(folder.join("settings.toml")).unwrap();
    let absolute = |line: &str| {
        let Some((key, path)) = line.split_once(" = \"") else {
            return line.to_owned();
        };
        if path.contains('.') {
            format!("{key} = \"{}/{path}", folder.display())
        } else {
            line.to_owned()
        }
    };
    let model: Vec<String> = text.lines().map(absolute).collect();
    let mut config = format!(
        "[[engines]]\n\
         name = \"open-weights\"\n\
         kind = \"sdcpp\"\n\
         server = \"{program}\"\n\
         [engines.host]\n\
         silence_seconds = 3600\n\
         [engines.model]\n\
         {}\n\
         steps = 1\n\
         guidance = 1.0\n\
         fps = 1\n",
        model.join("\n")
    );
    // The one family that takes videos.
    let mut cards = vec!["kinora-a1"];
    if text.contains("wan-vace") {
        config += "draft_steps = 1\n";
        cards.push("kinora-b1");
    }
    for card in cards {
        config += &format!(
            "[[models]]\n\
             card = \"{card}\"\n\
             id = \"{card}\"\n\
             engine = \"open-weights\"\n\
             resolutions = [\"480p\"]\n\
             seconds_max = 4\n"
        );
    }
    let setup = reaching_from(Setup::default().painted().config(&config));
    Some(setup.set("KINORA_WORKER_SLOTS", 1))
}

fn small() -> Value {
    json!({"model": "kinora-a1", "prompt": "A fox in the snow", "seconds": 2,
           "resolution": "480p", "aspect_ratio": "1:1", "seed": 7})
}

/// Polls until the task has ended, or is `wanted`, and tells how far it was on the way.
fn follow(client: &Client, id: &str, wanted: impl Fn(&Video) -> bool) -> (Video, Vec<u64>) {
    let (begun, mut seen) = (Instant::now(), Vec::new());
    loop {
        let video = client.video(id);
        if seen.last() != Some(&video.progress()) {
            seen.push(video.progress());
        }
        if video.is_finished() || wanted(&video) {
            return (video, seen);
        }
        assert!(begun.elapsed() < PATIENCE, "{video:#?}");
        std::thread::sleep(Duration::from_millis(500));
    }
}

#[test]
fn a_prompt_becomes_a_video_of_the_size_and_length_that_was_asked_for() {
    // Where every step is done, and no frame is there.
    let hold = Hold::at("host.frame", 1);
    let Some(setup) = setup() else { return };
    let server = hold.over(setup).start();
    let client = server.client();
    let card = client.get("/v1/models/kinora-a1").ok();
    assert_eq!(card["capabilities"]["seconds_max"], 4);
    let loud = card["capabilities"]["audio_output"].as_bool().unwrap();
    let mut body = small();
    if loud {
        body["generate_audio"] = json!(true);
    } else {
        let mut refused = small();
        refused["generate_audio"] = json!(true);
        let refused = client.submit_json(&refused);
        refused.refused_for(400, "unsupported_parameter", Some("generate_audio"));
    }

    let begun = Instant::now();
    let id = client.submit(&body).id().to_owned();
    let (video, before) = follow(&client, &id, |_| hold.is_holding());
    assert_eq!(video.status(), "in_progress", "{video:#?}");
    hold.release();
    let (video, after) = follow(&client, &id, |_| false);
    assert_eq!(video.status(), "completed", "{video:#?}");
    let seen = [before, after].concat();
    println!(
        "made in {:?}, by way of {seen:?}, sound: {loud}",
        begun.elapsed()
    );
    assert!(
        video
            .text("engine")
            .starts_with("open-weights/stable-diffusion.cpp")
    );
    assert!(seen.is_sorted() && seen.len() > 3, "{seen:?}");
    let file = Download::of(&client, &video.content());
    let probe = media::probe(&file.path());
    assert_eq!(probe.video["width"], 480);
    assert_eq!(probe.video["height"], 480);
    assert_eq!(probe.video["nb_read_frames"], "2");
    assert_eq!(probe.audio.is_some(), loud);
}

/// Whether the model of the weights can do it.
fn can(client: &Client, capability: &str) -> bool {
    let card = client.get("/v1/models/kinora-a1").ok();
    let can = card["capabilities"][capability].as_bool().unwrap();
    if !can {
        println!("no {capability} with these weights: nothing was tested");
    }
    can
}

/// Waits for the task's video, and looks into it.
fn completed(client: &Client, body: &Value) -> Video {
    let begun = Instant::now();
    let (video, _) = follow(client, client.submit(body).id(), |_| false);
    assert_eq!(video.status(), "completed", "{video:#?}");
    println!("made in {:?}: {body}", begun.elapsed());
    assert_eq!(video["size"], "480x480");
    assert_plays(client, &video);
    video
}

#[test]
fn a_first_frame_is_fetched_and_taken() {
    let Some(server) = neural() else { return };
    let client = server.client();
    if !can(&client, "first_frame") {
        return;
    }
    let host = Host::start();
    let picture = studio::picture("a.png", (300, 300), "teal");
    let mut body = small();
    body["first_frame"] = json!(host.serve("a.png", picture));
    assert_eq!(completed(&client, &body)["frames"], 2);
}

#[test]
fn a_final_comes_of_its_draft_s_video_and_an_edit_of_its_source_s() {
    let Some(server) = neural() else { return };
    let client = server.client();
    if !can(&client, "draft") {
        return;
    }
    let mut body = small();
    body["draft"] = json!(true);
    let draft = completed(&client, &body);
    assert_eq!(draft["draft"], true);
    let whole = json!({"model": "kinora-a1", "draft_task_id": draft.id()});
    let whole = completed(&client, &whole);
    assert_eq!(whole["draft_task_id"], draft["id"]);
    assert_eq!(
        (&whole["seed"], &whole["frames"]),
        (&draft["seed"], &draft["frames"])
    );
    let edit = json!({"model": "kinora-b1", "prompt": "The same at night", "seed": 3,
                      "edit_task_id": whole.id(), "edit_strength": 0.5});
    let edited = completed(&client, &edit);
    assert_eq!(edited["edit_task_id"], whole["id"]);
    assert_eq!(edited["frames"], whole["frames"]);
}

#[test]
fn a_cancel_in_the_middle_of_a_step_ends_the_server_and_not_the_service() {
    let Some(server) = neural() else { return };
    let client = server.client();
    let id = client.submit(&small()).id().to_owned();
    until("the engine's process", || {
        server.children().first().copied()
    });
    let (video, _) = follow(&client, &id, |video| video.progress() > 0);
    assert_eq!(video.status(), "in_progress");
    let engine = server.children()[0];
    let programs = || std::fs::read_to_string(format!("/proc/{engine}/task/{engine}/children"));
    let begun = Instant::now();
    let cancelled = client.post(&format!("/v1/videos/{id}/cancel")).video();
    assert_eq!(cancelled["error"]["code"], "cancelled");
    // Its own process may live on; the next task starts another server.
    until("the server to be ended", || {
        let left = programs().unwrap_or_default();
        left.trim().is_empty().then_some(())
    });
    println!("ended after {:?}", begun.elapsed());
    assert_eq!(server.anonymous().get("/readyz").status, 200);
}

#[test]
fn a_kill_in_the_middle_costs_an_attempt_and_the_next_begins_with_new_weights() {
    let Some(server) = neural() else { return };
    let client = server.client();
    let id = client.submit(&small()).id().to_owned();
    follow(&client, &id, |video| video.progress() > 0);
    let engine = server.children()[0];
    server.kill_child(engine);
    let another = until("another process", || {
        server.children().into_iter().find(|child| *child != engine)
    });
    assert_ne!(another, engine);
    server.wait_for_log(&["run crashed; task requeued"]);
    client.post(&format!("/v1/videos/{id}/cancel")).video();
}
