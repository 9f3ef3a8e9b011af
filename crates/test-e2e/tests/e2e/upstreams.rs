//! Kinora in front of another Kinora: what is asked of the one is made by the other, once, whatever
//! dies meanwhile.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;

use kinora_test_e2e::media::{top_boxes, without_provenance, xmp};
use kinora_test_e2e::{DataFolder, Hold, Host, Server, Setup, Video, kinora, run, studio, until};
use serde_json::{Value, json};

use crate::support::{Download, assert_plays, narrow, narrow_on, quick, reaching_from, slow};

const ENGINE: &str = concat!("studio/", env!("CARGO_PKG_VERSION"));

/// Settings under which both models are served by `upstream`.
fn settings(upstream: &Server) -> String {
    let key = upstream.data().path().join("key-for-front");
    std::fs::write(&key, upstream.data().key().unwrap()).unwrap();
    let served = |model: &str, name: &str, sound: bool| {
        format!(
            "[[engines]]\n\
             name = \"{name}\"\n\
             kind = \"remote\"\n\
             dialect = \"kinora\"\n\
             base_urls = [\"{}/v1\"]\n\
             key_file = \"{}\"\n\
             model = \"{model}\"\n\
             sound = {sound}\n\
             poll_milliseconds = 100\n\
             poll_milliseconds_max = 300\n\
             [[models]]\n\
             card = \"{model}\"\n\
             id = \"{model}\"\n\
             engine = \"{name}\"\n",
            upstream.base_url(),
            key.display()
        )
    };
    served("kinora-a1", "studio", true) + &served("kinora-b1", "silent-studio", false)
}

/// A service on `data` that has `upstream` make its videos.
fn front(data: &DataFolder, upstream: &Server) -> Setup {
    reaching_from(Setup::on(data)).config(&settings(upstream))
}

fn tasks_of(upstream: &Server) -> Vec<Video> {
    upstream.client().get("/v1/videos?limit=100").list().1
}

/// The only task that `upstream` has ever had.
fn only_task_of(upstream: &Server) -> Video {
    let mut tasks = tasks_of(upstream);
    assert_eq!(tasks.len(), 1, "{tasks:#?}");
    tasks.remove(0)
}

/// A film whose label no longer is one.
fn without_label(film: &[u8]) -> Vec<u8> {
    let mut film = film.to_vec();
    let kind = without_provenance(&film).len() + 4;
    assert_eq!(film[kind..kind + 4], *b"uuid");
    film[kind..kind + 4].copy_from_slice(b"free");
    film
}

/// Waits until the only task of `upstream` is cancelled.
fn wait_cancelled(upstream: &Server) {
    until("the upstream's task to be cancelled", || {
        (only_task_of(upstream)["error"]["code"] == "cancelled").then_some(())
    });
}

/// An upstream that is held with its first task in hand, so that it is caught at work on any machine.
fn held(upstream: Setup) -> (Hold, Server) {
    let hold = Hold::at("worker.claimed", 1);
    let server = hold.over(upstream).start();
    (hold, server)
}

/// Submits a task to `front`, and waits until its upstream has it in hand.
fn submitted(front: &Server, hold: &Hold) -> String {
    let id = front.client().submit(&quick("kinora-a1")).id().to_owned();
    hold.wait();
    id
}

#[test]
fn a_video_is_the_one_that_the_upstream_made() {
    let upstream = reaching_from(Setup::default()).start();
    let front = front(&DataFolder::default(), &upstream).start();
    let client = front.client();
    let host = Host::start();
    let [teal, red] = ["teal", "red"].map(|colour| {
        let name = format!("{colour}.png");
        host.serve(&name, studio::picture(&name, (320, 256), colour))
    });
    let tone = host.serve("tone.wav", studio::tone("tone.wav", 440, 2.5));
    let with = |model: &str, more: Value| {
        let mut body = quick(model);
        let (Value::Object(body), Value::Object(more)) = (&mut body, more) else {
            panic!("no objects");
        };
        body.extend(more);
        json!(body)
    };
    let a = |more: Value| with("kinora-a1", more);
    let every = [
        (a(json!({})), true),
        (
            a(json!({"first_frame": teal, "negative_prompt": "rain", "generate_audio": false})),
            false,
        ),
        (a(json!({"first_frame": teal, "last_frame": red})), true),
        (
            a(json!({"reference_images": [red, teal], "reference_audios": [tone]})),
            true,
        ),
        (with("kinora-b1", json!({"seconds": "auto"})), false),
    ];
    for (body, has_audio) in every {
        let video = client.wait_completed(client.submit(&body).id());
        assert!(video.text("engine").ends_with(ENGINE), "{video:#?}");
        assert_eq!(video["has_audio"], has_audio);
        assert_plays(&client, &video);
        let theirs = tasks_of(&upstream).remove(0);
        for same in ["prompt", "seconds", "size", "seed", "frames", "fps"] {
            assert_eq!(video[same], theirs[same], "{same}");
        }
        let ours = Download::of(&client, &video.content());
        let made = Download::of(&upstream.client(), &theirs.content());
        let (made, own) = (&*made.bytes, &ours.bytes[made.bytes.len()..]);
        let is_only_relabelled = ours.bytes[..made.len()] == *without_label(made);
        assert!(is_only_relabelled, "the film was changed");
        assert_eq!(top_boxes(own), ["uuid"]);
        let told = xmp(&ours.path());
        assert_eq!(told["XMP-dc:Identifier"], video.id());
        assert_eq!(told["XMP-kinora:Engine"], video["engine"]);
        let trained = "http://cv.iptc.org/newscodes/digitalsourcetype/trainedAlgorithmicMedia";
        assert_eq!(told["XMP-iptcExt:DigitalSourceType"], trained);
    }
    // Each film was read in a process of its own; how these are confined is said once.
    front.assert_logged(&["\"name\":\"film\"", "child processes are"], 1);
}

#[test]
fn what_the_upstream_cannot_be_told_is_refused_at_the_door() {
    let upstream = Server::start();
    let front = front(&DataFolder::default(), &upstream).start();
    let mut draft = quick("kinora-a1");
    draft["draft"] = json!(true);
    let refused = front.client().submit_json(&draft);
    refused.refused_for(400, "unsupported_parameter", Some("draft"));
    assert!(tasks_of(&upstream).is_empty());
}

#[test]
fn a_cancel_is_passed_on() {
    let upstream = narrow().start();
    let front = front(&DataFolder::default(), &upstream).start();
    let client = front.client();
    let id = client.submit(&slow()).id().to_owned();
    client.wait_working(&id);
    client.post(&format!("/v1/videos/{id}/cancel")).video();
    wait_cancelled(&upstream);
}

#[test]
fn a_cancel_before_the_next_attempt_is_passed_on_by_whoever_sweeps() {
    let upstream = narrow().start();
    let data = DataFolder::default();
    let first = front(&data, &upstream).start();
    let id = first.client().submit(&slow()).id().to_owned();
    first.client().wait_working(&id);
    first.kill();
    // The next attempt has not come to the upstream yet.
    let hold = Hold::at("worker.claimed", 1);
    let second = hold.over(front(&data, &upstream)).start();
    hold.wait();
    let client = second.client();
    client.post(&format!("/v1/videos/{id}/cancel")).video();
    hold.release();
    wait_cancelled(&upstream);
    second.wait_for_log(&["upstream job cancelled", &id]);
}

#[test]
fn a_front_that_is_killed_follows_its_task_and_has_it_made_once() {
    let (hold, upstream) = held(narrow());
    let data = DataFolder::default();
    let first = front(&data, &upstream).start();
    let id = submitted(&first, &hold);
    first.kill();
    assert!(!only_task_of(&upstream).is_finished());
    let second = front(&data, &upstream).start();
    hold.release();
    let client = second.client();
    assert_plays(&client, &client.wait_completed(&id));
    assert_eq!(only_task_of(&upstream).status(), "completed");
}

#[test]
fn a_front_that_is_stopped_leaves_the_upstream_at_work_and_follows_it() {
    let (hold, upstream) = held(narrow());
    let data = DataFolder::default();
    let first = front(&data, &upstream).start();
    let id = submitted(&first, &hold);
    first.terminate();
    first.wait_for_log(&["a second signal stops at once"]);
    first.terminate();
    first.wait();
    assert!(!only_task_of(&upstream).is_finished());
    let second = front(&data, &upstream).start();
    hold.release();
    second.client().wait_completed(&id);
    assert_eq!(only_task_of(&upstream).status(), "completed");
}

#[test]
fn an_upstream_that_is_killed_and_comes_back_is_waited_for() {
    let folder = DataFolder::default();
    let (hold, upstream) = held(narrow_on(&folder));
    let front = front(&DataFolder::default(), &upstream).start();
    let client = front.client();
    let id = submitted(&front, &hold);
    let address = upstream.address();
    upstream.kill();
    front.wait_for_log(&["upstream call failed; retrying"]);
    let upstream = narrow_on(&folder).at(address).start();
    assert_plays(&client, &client.wait_completed(&id));
    assert_eq!(only_task_of(&upstream).status(), "completed");
}

#[test]
fn an_upstream_that_is_full_is_asked_again_until_all_is_made() {
    const TASKS: usize = 6;
    let upstream = narrow().set("KINORA_QUEUE_WAITING_MAX", 1).start();
    let setup = front(&DataFolder::default(), &upstream).set("KINORA_WORKER_SLOTS", TASKS);
    let front = setup.start();
    let client = front.client();
    let submitted: Vec<Video> = (0..TASKS)
        .map(|_| client.submit(&quick("kinora-a1")))
        .collect();
    for task in &submitted {
        client.wait_completed(task.id());
    }
    front.wait_for_log(&["submit failed"]);
    assert_eq!(tasks_of(&upstream).len(), TASKS);
}

#[test]
fn the_doctor_asks_every_upstream() {
    let upstream = Server::start();
    let data = DataFolder::default();
    let config = data.path().with_extension("toml");
    std::fs::write(&config, settings(&upstream)).unwrap();
    let doctor = || {
        let mut command = kinora();
        command.args(["doctor", "--config"]).arg(&config);
        command.arg("--data").arg(data.path());
        run(command)
    };
    let well = doctor();
    assert!(well.stdout.contains("/v1 answers"), "{well:#?}");
    // The key lies there.
    let _folder = upstream.data().clone();
    upstream.kill();
    let ill = doctor();
    assert!(ill.stdout.contains("does not serve us"), "{ill:#?}");
    assert!(!ill.status.success());
}

/// Answers each request as a server does whose videos are all made at once: this film.
fn serve_film(listener: &TcpListener, film: &[u8]) {
    for stream in listener.incoming() {
        let mut stream = stream.unwrap();
        let mut request = BufReader::new(stream.try_clone().unwrap());
        let mut first = String::new();
        let _ = request.read_line(&mut first);
        let (mut line, mut length) = (String::new(), 0);
        while request.read_line(&mut line).is_ok_and(|bytes| bytes > 2) {
            if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            line.clear();
        }
        let _ = request.read_exact(&mut vec![0; length]);
        let job = br#"{"id": "made", "object": "video", "status": "completed", "progress": 100}"#;
        let (kind, body) = match first.contains("/content") {
            true => ("video/mp4", film),
            false => ("application/json", &job[..]),
        };
        let length = body.len();
        let head = format!(
            "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n\r\n"
        );
        let _ = stream.write_all(&[head.as_bytes(), body].concat());
    }
}

/// A service whose videos come from a server that makes this film of every request.
fn front_of_film(film: Vec<u8>) -> Setup {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || serve_film(&listener, &film));
    reaching_from(Setup::default()).config(&format!(
        "[[engines]]\n\
         name = \"films\"\n\
         kind = \"remote\"\n\
         dialect = \"openai\"\n\
         base_urls = [\"http://{address}/v1\"]\n\
         model = \"films\"\n\
         poll_milliseconds = 100\n\
         poll_milliseconds_max = 300\n\
         [[models]]\n\
         id = \"films\"\n\
         engine = \"films\"\n\
         sizes = [\"480x480\"]\n\
         seconds = [2]\n"
    ))
}

const TEST_FILM: &str = "testsrc2=s=480x480:r=24:d=2";

#[test]
fn a_fragmented_film_is_published_with_one_index() {
    let flags = "+frag_keyframe+empty_moov+default_base_moof";
    let film = studio::film("film.mp4", TEST_FILM, &["-g", "12", "-movflags", flags]);
    let server = front_of_film(film).start();
    let client = server.client();
    let body =
        json!({"model": "films", "prompt": "A test picture", "size": "480x480", "seconds": 2});
    let made = client.wait_completed(client.submit(&body).id());
    assert_eq!((&made["frames"], &made["fps"]), (&json!(48), &json!(24.0)));
    assert_plays(&client, &made);
    let film = Download::of(&client, &made.content());
    assert_eq!(
        top_boxes(&film.bytes),
        ["ftyp", "moov", "mdat", "uuid"],
        "players start it at once"
    );
    server.assert_logged(&["fragmented film rewritten with one index"], 1);
}

#[test]
fn the_log_says_what_makes_a_film_useless() {
    let no_runs = |film: Vec<u8>| {
        let mut film = film;
        for at in 0..film.len() - 4 {
            if &film[at..at + 4] == b"trun" {
                film[at..at + 4].copy_from_slice(b"free");
            }
        }
        film
    };
    let fragmented = ["-movflags", "+frag_keyframe+empty_moov"];
    for (film, reason) in [
        (
            no_runs(studio::film("film.mp4", TEST_FILM, &fragmented)),
            "its fragments have no samples",
        ),
        (
            studio::film("film.mp4", TEST_FILM, &["-c:v", "mpeg4"]),
            "the picture track is MPEG-4 part 2",
        ),
        (br#"{"error": "gone"}"#.to_vec(), "it is JSON"),
        (
            studio::tone("sound.mp4", 440, 2.0),
            "it has no picture track",
        ),
    ] {
        let server = front_of_film(film).start();
        let client = server.client();
        let body =
            json!({"model": "films", "prompt": "A test picture", "size": "480x480", "seconds": 2});
        let failed = client.wait_for(client.submit(&body).id(), "failed");
        assert_eq!(failed["error"]["code"], "generation_failed");
        server.wait_for_log(&[reason]);
    }
}
