//! References by address: which hosts may be asked, when, and how often; and what a client learns of
//! material that cannot be used.

use std::path::Path;

use kinora_test_e2e::{Client, Host, Setup, Video, is_once, stores_fail, studio, until};
use serde_json::{Value, json};

use crate::support::{busy, fetching, narrow, quick, reaching_from, shared, slow};

fn with_first_frame(url: &str) -> Value {
    let mut body = quick("kinora-b1");
    body["first_frame"] = json!(url);
    body
}

fn wait_failed(client: &Client, body: &Value) -> Video {
    let video = client.submit(body);
    client.wait_for(video.id(), "failed")
}

/// Files that are kept for tasks beside their results.
fn kept_references(data: &Path) -> usize {
    fn walk(folder: &Path) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(folder) else {
            return Vec::new();
        };
        let paths = entries.map(|entry| entry.unwrap().path());
        paths
            .flat_map(|path| match path.is_dir() {
                true => walk(&path),
                false => vec![path.display().to_string()],
            })
            .collect()
    }
    let files = walk(&data.join("results/objects"));
    files
        .iter()
        .filter(|path| path.contains("/references/"))
        .count()
}

#[test]
fn what_is_no_usable_reference_fails_the_task_with_its_code() {
    let host = Host::start();
    let client = fetching().newcomer();
    let wide = studio::picture("wide.png", (1200, 300), "red");
    let cases = [
        ("gone.png", None, "reference_unreachable"),
        (
            "text.png",
            Some(b"<html>not a picture</html>".to_vec()),
            "unsupported_image",
        ),
        ("empty.png", Some(Vec::new()), "unsupported_image"),
        (
            "small.png",
            Some(studio::picture("s.png", (255, 300), "red")),
            "image_too_small",
        ),
        (
            "large.png",
            Some(studio::picture("l.png", (6002, 3000), "red")),
            "image_too_large",
        ),
        ("wide.png", Some(wide), "invalid_aspect_ratio"),
        (
            "heavy.png",
            Some(vec![0x89; 30_000_001]),
            "reference_too_large",
        ),
    ];
    for (name, bytes, code) in cases {
        let url = bytes.map_or_else(|| host.url(name), |bytes| host.serve(name, bytes));
        let failed = wait_failed(&client, &with_first_frame(&url));
        assert_eq!(failed["error"]["code"], code, "{name}: {failed:#?}");
        assert_eq!(failed["error"]["param"], "first_frame", "{name}");
        let reason = failed.text("fail_reason");
        assert!(reason.starts_with("first_frame: the "), "{reason}");
        assert!(!reason.contains("127.0.0.1"), "{reason}");
    }
}

#[test]
fn a_failed_task_says_which_reference_failed_and_how_far_it_came() {
    let host = Host::start();
    let client = fetching().newcomer();
    let good = host.serve("good.png", studio::picture("good.png", (300, 300), "red"));
    let text = host.serve("text.png", b"<html>not a picture</html>".to_vec());
    let page =
        "the server sent an HTML page: is hot-linking not allowed, or does the file need a login?";
    for (bad, says) in [
        (host.url("gone.png"), "the server answered 404."),
        (text, page),
    ] {
        let mut body = quick("kinora-a1");
        body["reference_images"] = json!([good, bad]);
        let failed = wait_failed(&client, &body);
        assert_eq!(failed["error"]["param"], "reference_images[1]");
        let message = format!("reference_images[1]: {says}");
        assert_eq!(failed["error"]["message"], message);
        assert_eq!(failed.text("fail_reason"), message);
    }
}

#[test]
fn a_host_that_fails_for_a_moment_costs_no_task_and_one_that_is_down_is_named() {
    let host = Host::start();
    let client = fetching().newcomer();
    let picture = studio::picture("a.png", (300, 300), "red");
    let mut body = quick("kinora-b1");
    body["first_frame"] = json!(host.serve_after(2, "flaky.png", picture.clone()));
    body["last_frame"] = json!(host.serve("good.png", picture.clone()));
    let flaky = client.submit(&body);
    let down = client.submit(&with_first_frame(&host.serve_after(
        usize::MAX,
        "down.png",
        picture,
    )));
    let gone = wait_failed(&client, &with_first_frame(&host.url("gone.png")));
    let message = "first_frame: the server answered 404.";
    assert_eq!(gone["error"]["message"], message);
    client.wait_completed(flaky.id());
    let failed = client.wait_for(down.id(), "failed");
    let message = "first_frame: the server answered 503 in each of 4 tries.";
    assert_eq!(failed["error"]["message"], message);
    assert_eq!(failed["error"]["code"], "reference_unreachable");
    assert!(failed.get("started_at").is_none(), "{failed:#?}");
    if !stores_fail() {
        let asked = ["flaky.png", "good.png", "down.png", "gone.png"];
        assert_eq!(asked.map(|name| host.asked_for(name)), [3, 1, 4, 1]);
    }
}

#[test]
fn sounds_that_cannot_be_used_fail_the_task_with_their_code() {
    let host = Host::start();
    let client = fetching().newcomer();
    let image = host.serve("red.png", studio::picture("red.png", (300, 300), "red"));
    let long = |name: &str| host.serve(name, studio::tone(name, 440, 10.0));
    let cases = [
        (
            vec![host.serve("a.wav", b"RIFF but no more".to_vec())],
            "unsupported_audio",
        ),
        (
            vec![host.serve("short.wav", studio::tone("s.wav", 440, 0.9))],
            "audio_too_short",
        ),
        (
            vec![host.serve("long.flac", studio::tone("l.flac", 440, 15.5))],
            "audio_too_long",
        ),
        (vec![long("one.ogg"), long("two.mp3")], "audio_too_long"),
    ];
    for (urls, code) in cases {
        let mut body = quick("kinora-a1");
        body["reference_images"] = json!([image]);
        body["reference_audios"] = json!(urls);
        let failed = wait_failed(&client, &body);
        assert_eq!(failed["error"]["code"], code, "{urls:?}: {failed:#?}");
        let together = urls.len() > 1;
        let param = if together {
            "reference_audios"
        } else {
            "reference_audios[0]"
        };
        assert_eq!(failed["error"]["param"], param, "{failed:#?}");
    }
}

#[test]
fn p09_addresses_inside_are_not_asked_where_nothing_is_allowed() {
    let host = Host::start();
    let inside = host.serve("a.png", studio::picture("a.png", (300, 300), "red"));
    let port = inside
        .rsplit(':')
        .next()
        .unwrap()
        .split('/')
        .next()
        .unwrap();
    let client = shared().newcomer();
    let urls = [
        inside.clone(),
        format!("http://localhost:{port}/a.png"),
        format!("http://2130706433:{port}/a.png"),
        format!("http://0177.0.0.1:{port}/a.png"),
        format!("http://[::ffff:127.0.0.1]:{port}/a.png"),
        "http://169.254.169.254/latest/meta-data".to_owned(),
    ];
    for url in urls {
        let failed = wait_failed(&client, &with_first_frame(&url));
        let code = &failed["error"]["code"];
        assert_eq!(code, "reference_forbidden_address", "{url}: {failed:#?}");
        let alike = "first_frame: the URL leads to an address that is not allowed.";
        assert_eq!(failed.text("fail_reason"), alike, "{url}");
    }
    assert_eq!(host.asked_for("a.png"), 0);
}

#[test]
fn p09_a_denied_network_is_not_asked_although_it_is_allowed() {
    let server = reaching_from(Setup::default())
        .set("KINORA_REFERENCES_DENY_NETWORKS", "127.0.0.2/32")
        .start();
    let client = server.client();
    let [allowed, denied] = ["127.0.0.1", "127.0.0.2"].map(Host::start_at);
    let picture = studio::picture("a.png", (300, 300), "red");
    let urls = [&allowed, &denied].map(|host| host.serve("a.png", picture.clone()));
    let video = client.submit(&with_first_frame(&urls[0]));
    client.wait_completed(video.id());
    let failed = wait_failed(&client, &with_first_frame(&urls[1]));
    assert_eq!(failed["error"]["code"], "reference_forbidden_address");
    assert_eq!(denied.asked_for("a.png"), 0);
}

#[test]
fn a_port_that_is_never_asked_is_refused_at_once() {
    for port in [0, 22, 25, 1023] {
        let body = with_first_frame(&format!("http://example.com:{port}/a.png"));
        let reply = shared()
            .newcomer()
            .request("POST", "/v1/videos")
            .json(&body)
            .send();
        reply.refused_for(400, "invalid_url", Some("first_frame"));
    }
}

#[test]
fn a_reference_is_fetched_before_its_turn_and_only_once() {
    let host = Host::start();
    let server = reaching_from(narrow()).start();
    let client = server.client();
    let blocker = client.submit(&slow());
    client.wait_working(blocker.id());
    let picture = studio::landscape("once.png", (854, 480));
    let video = client.submit(&with_first_frame(&host.serve("once.png", picture)));
    until("the reference to be kept", || {
        (kept_references(&server.data().path()) == 1).then_some(())
    });
    assert_eq!(client.video(video.id()).status(), "queued");
    // A signed address runs out: the host is gone before the task's turn, and so is the process.
    assert!(is_once(host.asked_for("once.png")));
    host.close();
    let data = server.data().clone();
    server.kill();
    let server = Setup::on(&data).start();
    let client = server.client();
    client.delete(&format!("/v1/videos/{}", blocker.id())).ok();
    client.wait_completed(video.id());
    until("the reference to be removed", || {
        (kept_references(&data.path()) == 0).then_some(())
    });
}

#[test]
fn a_waiting_task_whose_reference_cannot_be_had_fails_at_once() {
    let (server, blocker) = busy();
    let client = server.newcomer();
    let failed = wait_failed(&client, &with_first_frame("http://10.0.0.1/a.png"));
    assert_eq!(failed["error"]["code"], "reference_forbidden_address");
    assert!(failed.get("started_at").is_none(), "{failed:#?}");
    assert_eq!(server.client().video(blocker.id()).status(), "in_progress");
}

#[test]
fn p13_bombs_end_cleanly_within_300_mb() {
    let server = reaching_from(Setup::default()).start();
    let client = server.client();
    // As many as there are slots, so that what they need is not taken for growth.
    let plain = [(); 2].map(|()| client.submit(&quick("kinora-b1")));
    for video in plain {
        client.wait_completed(video.id());
    }
    let before = server.memory_peak_mib();

    let host = Host::start();
    let flat = |name: &str, side: u32| studio::flat(name, (side, side));
    let mut cut = flat("cut.png", 4000);
    cut.truncate(cut.len() / 2);
    let bombs = [
        ("bomb.png", flat("bomb.png", 16_000), "failed"),
        ("large.png", flat("large.png", 6000), "completed"),
        ("large.jpg", flat("large.jpg", 6000), "completed"),
        ("large.webp", flat("large.webp", 6000), "completed"),
        ("large.gif", flat("large.gif", 6000), "completed"),
        ("cut.png", cut, "failed"),
    ];
    let submitted = bombs.map(|(name, bytes, end)| {
        let video = client.submit(&with_first_frame(&host.serve(name, bytes)));
        (name, video, end)
    });
    for (name, video, end) in submitted {
        let ended = until(name, || {
            let video = client.video(video.id());
            video.is_finished().then_some(video)
        });
        assert_eq!(ended.status(), end, "{name}: {ended:#?}");
    }
    let growth = server.memory_peak_mib() - before;
    println!("{growth} MiB more than the {before} of a plain clip");
    assert!(
        growth < 300,
        "{growth} MiB more than the {before} of a plain clip"
    );
}
