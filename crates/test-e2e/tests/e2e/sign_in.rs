//! The link that signs a browser in to Studio, and its one use.

use std::process::Command;

use kinora_test_e2e::{Client, DataFolder, Reply, Server, Setup, WallClock, keys, run};
use serde_json::{Value, json};

use crate::cli::bare;
use crate::support::shared;

/// Lifetime of a link in seconds.
const LIFETIME_S: i64 = 600;
/// Attempts by one client within a minute.
const ATTEMPTS: usize = 30;

/// The code of a link.
fn code(link: &str) -> &str {
    link.split_once("/#sign-in=").unwrap().1
}

/// Offers a code as a page of `origin` does.
fn offer(client: &Client, code: &str, origin: Option<&str>) -> Reply {
    let request = client.request("POST", "/studio/sign-in");
    let request = request.json(&json!({"code": code}));
    match origin {
        Some(origin) => request.header("origin", origin).send(),
        None => request.send(),
    }
}

fn offer_here(server: &Server, code: &str) -> Reply {
    offer(&server.anonymous(), code, Some(&server.base_url()))
}

#[track_caller]
fn assert_refused(reply: &Reply, said: &str) {
    let error = reply.refused(401, "invalid_api_key");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains(said), "{message}");
}

#[test]
fn p14_a_link_signs_in_once_and_only_from_its_own_page() {
    let server = Setup::default().opening().start();
    let link = server.sign_in_link();
    assert!(
        link.starts_with(&format!("{}/#", server.base_url())),
        "{link}"
    );
    let (code, anonymous) = (code(&link), server.anonymous());
    assert!(code.len() == 32 && code.bytes().all(|byte| byte.is_ascii_hexdigit()));

    let port = server.address().port();
    for origin in [
        "http://example.com",
        "null",
        &format!("http://localhost:{port}"),
    ] {
        assert_refused(&offer(&anonymous, code, Some(origin)), "another address");
    }
    assert_refused(&offer(&anonymous, code, None), "another address");
    assert_refused(&offer_here(&server, &code[1..]), "not the one");
    let request = anonymous.request("POST", "/studio/sign-in");
    let request = request.header("origin", server.base_url());
    let nothing = request.json(&json!({})).send();
    nothing.refused_for(400, "missing_required_parameter", Some("code"));
    anonymous
        .get("/studio/sign-in")
        .refused(405, "method_not_allowed");

    let reply = offer_here(&server, code);
    assert_eq!(reply.header("cache-control"), Some("no-store"));
    let key = reply.ok()["key"].as_str().unwrap().to_owned();
    let models = server.client_with(&key).get("/v1/models").ok();
    assert_eq!(models["scopes"], json!(["videos:write", "videos:read"]));
    assert_refused(&offer_here(&server, code), "used already");

    let list = keys(server.data(), &["list", "--json"]).ok();
    let list: Vec<Value> = serde_json::from_str(&list).unwrap();
    let browsers: Vec<&Value> = list
        .iter()
        .filter(|key| key["name"].as_str().unwrap().starts_with("studio 2"))
        .collect();
    assert_eq!(browsers.len(), 1, "{list:#?}");
    assert!(browsers[0]["expires_at"].is_u64() && browsers[0]["project"] == "default");
    let id = browsers[0]["id"].as_str().unwrap();
    server.assert_logged(&["browser signed in by the link", id], 1);

    let written = server.log() + &server.greeting();
    assert!(
        !written.contains(code) && !written.contains(&key),
        "{written}"
    );
    let file = server.data().path().join("open-studio.html");
    assert!(file.exists());
    server.terminate();
    server.wait();
    assert!(!file.exists(), "the file stays");
}

#[test]
fn an_old_link_signs_nobody_in() {
    let clock = WallClock::ahead_by(0);
    let server = clock.start(Setup::default().opening());
    let link = server.sign_in_link();
    clock.jump_to(LIFETIME_S + 60);
    assert_refused(&offer_here(&server, code(&link)), "expired");
    clock.jump_to(0);
    assert_refused(&offer_here(&server, code(&link)), "used already");
}

#[test]
fn a_link_of_ten_minutes_less_a_little_signs_in() {
    let clock = WallClock::ahead_by(0);
    let server = clock.start(Setup::default().opening());
    let link = server.sign_in_link();
    clock.jump_to(LIFETIME_S / 2);
    offer_here(&server, code(&link)).ok();
}

#[test]
fn who_guesses_is_told_to_wait_and_a_service_without_a_link_has_none() {
    assert_refused(&offer_here(shared(), &"0".repeat(32)), "not the one");
    let server = Setup::default().opening().start();
    server.sign_in_link();
    let replies: Vec<u16> = (0..ATTEMPTS)
        .map(|number| offer_here(&server, &format!("{number:032}")).status)
        .collect();
    assert_eq!(replies, [401; ATTEMPTS]);
    // A token comes back every two seconds.
    let refused = (0..ATTEMPTS)
        .map(|number| offer_here(&server, &format!("{number:032}")))
        .find(|reply| reply.status == 429)
        .unwrap();
    refused.refused(429, "rate_limit_exceeded");
    assert!(
        refused
            .number("retry-after")
            .is_some_and(|seconds| seconds <= 2)
    );
}

#[test]
fn a_machine_without_a_browser_says_what_to_open() {
    let setup = Setup::default().opening();
    let programs = setup.data_path().with_file_name("programs");
    for opener in std::fs::read_dir(&programs).unwrap() {
        std::fs::remove_file(opener.unwrap().path()).unwrap();
    }
    let server = setup.set("PATH", programs.display()).start();
    server.wait_for_log(&[
        "no browser opened",
        "this machine has no",
        &server.base_url(),
    ]);
    server.client().get("/v1/videos").ok();
    assert!(!server.log().contains("#sign-in="), "{}", server.log());
}

#[test]
fn without_studio_there_is_no_link() {
    let setup = Setup::default().opening();
    let server = setup.set("KINORA_STUDIO_ENABLED", "false").start();
    server.wait_for_log(&["no browser opened", "studio.enabled"]);
    let reply = offer_here(&server, &"0".repeat(32));
    reply.refused(404, "not_found");
}

/// Runs its arguments with a terminal for standard output, follows the link that they print once the service answers, and
/// prints what the terminal showed and what the link gave.
const TERMINAL: &str = r##"
import json, os, pty, re, subprocess, sys, urllib.request
ours, theirs = pty.openpty()
child = subprocess.Popen(sys.argv[1:], stdout=theirs)
os.close(theirs)
text = b""
try:
    while not re.search(rb"#sign-in=\w+\s", text):
        text += os.read(ours, 4096)
    base, code = re.search(r"(http://\S+)/#sign-in=(\w+)", text.decode()).groups()
    request = urllib.request.Request(base + "/studio/sign-in", json.dumps({"code": code}).encode(),
        {"content-type": "application/json", "origin": base})
    key = json.load(urllib.request.urlopen(request))["key"]
finally:
    child.terminate()
    child.wait()
print(json.dumps({"text": text.decode(), "key": key}))
"##;

#[test]
fn a_terminal_shows_a_link_at_every_start() {
    let data = DataFolder::default();
    let mut keys_seen = Vec::new();
    for start in 0..2 {
        let serve: Command = Setup::on(&data).command();
        let mut python = bare("python3");
        python
            .args(["-c", TERMINAL])
            .arg(serve.get_program())
            .args(serve.get_args());
        let done = run(python);
        let log = done.stderr.clone();
        let seen: Value = serde_json::from_str(&done.ok()).unwrap();
        let (text, key) = (
            seen["text"].as_str().unwrap(),
            seen["key"].as_str().unwrap(),
        );
        assert!(text.contains("works once"), "{start}: {text}");
        assert!(!text.contains("sign in with the key"), "{start}: {text}");
        assert!(!log.contains("#sign-in=") && !log.contains(key), "{log}");
        keys_seen.push(key.to_owned());
    }
    assert_ne!(keys_seen[0], keys_seen[1]);
}
