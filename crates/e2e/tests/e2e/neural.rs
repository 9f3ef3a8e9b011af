//! Open weights behind the same two endpoints, on the real binary with its C++ library: what a client
//! sees of a model that takes minutes, and that cannot be stopped but by ending its process. Needs
//! weights, and a binary with the feature `diffusion`: see `./neural`. Without them nothing is tested
//! here, and that is said.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use kinora_e2e::{Client, Server, Setup, Video, media, until};
use serde_json::{Value, json};

use crate::support::Download;

/// The folder of weights that `random_weights` wrote.
const WEIGHTS: &str = "KINORA_NEURAL_WEIGHTS";
/// A step may take minutes on a small machine.
const PATIENCE: Duration = Duration::from_hours(1);

/// A service whose `kinora-a1` is the model of the weights, in as few steps as there can be.
fn neural() -> Option<Server> {
    let Some(folder) = std::env::var_os(WEIGHTS).map(PathBuf::from) else {
        println!("{WEIGHTS} is not set: nothing was tested");
        return None;
    };
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
    let setup = Setup::default().config(&format!(
        "[[engines]]\n\
         name = \"open-weights\"\n\
         kind = \"diffusion\"\n\
         [engines.host]\n\
         silence_seconds = 3600\n\
         [engines.model]\n\
         {}\n\
         steps = 1\n\
         guidance = 1.0\n\
         fps = 1\n\
         [[models]]\n\
         card = \"kinora-a1\"\n\
         id = \"kinora-a1\"\n\
         engine = \"open-weights\"\n\
         resolutions = [\"480p\"]\n\
         seconds_max = 4\n",
        model.join("\n")
    ));
    Some(setup.set("KINORA_WORKER_SLOTS", 1).start())
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
    let Some(server) = neural() else { return };
    let client = server.client();
    let card = client.get("/v1/models/kinora-a1").ok();
    assert_eq!(card["capabilities"]["audio_output"], false);
    assert_eq!(card["capabilities"]["seconds_max"], 4);
    let mut loud = small();
    loud["generate_audio"] = json!(true);
    let refused = client.submit_json(&loud);
    refused.refused_for(400, "unsupported_parameter", Some("generate_audio"));

    let begun = Instant::now();
    let (video, seen) = follow(&client, client.submit(&small()).id(), |_| false);
    assert_eq!(video.status(), "completed", "{video:#?}");
    println!("made in {:?}, by way of {seen:?}", begun.elapsed());
    assert!(
        video
            .text("engine")
            .starts_with("open-weights/stable-diffusion.cpp")
    );
    assert!(seen.is_sorted() && seen.len() > 3, "{seen:?}");
    let file = Download::of(&client, &video.content());
    media::assert_decodes(&file.path());
    let probe = media::probe(&file.path());
    assert_eq!(probe.video["width"], 480);
    assert_eq!(probe.video["height"], 480);
    assert_eq!(probe.video["nb_read_frames"], "2");
    assert!(probe.audio.is_none());
}

#[test]
fn a_cancel_in_the_middle_of_a_step_ends_the_process_and_not_the_service() {
    let Some(server) = neural() else { return };
    let client = server.client();
    let id = client.submit(&small()).id().to_owned();
    until("the engine's process", || {
        server.children().first().copied()
    });
    let (video, _) = follow(&client, &id, |video| video.progress() > 0);
    assert_eq!(video.status(), "in_progress");
    let engine = server.children()[0];
    let begun = Instant::now();
    let cancelled = client.post(&format!("/v1/videos/{id}/cancel")).video();
    assert_eq!(cancelled["error"]["code"], "cancelled");
    until("the process to be ended", || {
        (!server.children().contains(&engine)).then_some(())
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
    server.wait_for_log(&["the run broke; the task will run again"]);
    client.post(&format!("/v1/videos/{id}/cancel")).video();
}
