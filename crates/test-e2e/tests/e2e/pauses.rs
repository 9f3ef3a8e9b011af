//! Pauses of models, by `kinora pause` beside the service and by the API of operators: nothing is begun, everything is
//! accepted, and everybody can see why.

use std::process::Command;

use kinora_test_e2e::{Client, DataFolder, Server, Setup, keys, kinora, run, until};
use serde_json::{Value, json};

use crate::metrics::{measured, scraped, value};
use crate::support::quick;

fn command(data: &DataFolder, words: &[&str]) -> Command {
    let mut command = kinora();
    command.args(words).arg("--data").arg(data.path());
    command
}

fn kinora_says(data: &DataFolder, words: &[&str]) -> String {
    run(command(data, words)).ok()
}

/// What `GET /v1/models/{id}` says of the pause.
fn pause_of(client: &Client, model: &str) -> Value {
    client.get(&format!("/v1/models/{model}")).ok()["paused"].clone()
}

/// Waits until the API knows of a pause, or of its end.
fn wait_for_pause(client: &Client, model: &str, is_paused: bool) -> Value {
    until("the API knows it", || {
        let pause = pause_of(client, model);
        (pause.is_null() != is_paused).then_some(pause)
    })
}

fn metric(server: &Server, model: &str) -> Option<f64> {
    let series = format!("kinora_model_paused{{model=\"{model}\"}}");
    value(&scraped(server), &series)
}

#[test]
fn a_paused_model_takes_tasks_and_begins_none_until_it_is_resumed() {
    let data = DataFolder::default();
    let server = measured(Setup::on(&data)).start();
    let client = server.client();
    let reason = "new weights";
    let said = kinora_says(&data, &["pause", "kinora-a1", "--reason", reason]);
    assert!(said.contains("kinora-a1 is paused"), "{said}");
    let pause = wait_for_pause(&client, "kinora-a1", true);
    assert_eq!(pause["reason"], reason);
    assert!(pause["since"].is_u64(), "{pause}");
    assert!(pause_of(&client, "kinora-b1").is_null());
    server.wait_for_log(&["paused models changed", "kinora-a1"]);
    let reply = client.submit_json(&quick("kinora-a1"));
    let warning = reply.header("x-kinora-warning").unwrap();
    assert!(warning.contains("paused"), "{warning}");
    let waiting = reply.video();
    let other = client.submit(&quick("kinora-b1"));
    client.wait_completed(other.id());
    assert_eq!(client.video(waiting.id()).status(), "queued");
    let ready = client.get("/readyz").ok();
    assert_eq!(ready, json!({"status": "ok", "paused": "some"}));
    assert_eq!(metric(&server, "kinora-a1"), Some(1.0));
    assert_eq!(metric(&server, "kinora-b1"), Some(0.0));
    let top = kinora_says(&data, &["top", "--once"]);
    assert!(top.contains("kinora-a1 (new weights)"), "{top}");

    // It outlives the process.
    server.terminate();
    assert!(server.wait().0.success());
    let server = Setup::on(&data).start();
    let client = server.client();
    let other = client.submit(&quick("kinora-b1"));
    client.wait_completed(other.id());
    assert_eq!(client.video(waiting.id()).status(), "queued");
    let said = kinora_says(&data, &["resume"]);
    assert_eq!(
        said,
        "There is no pause of all models.\nkinora-a1 is still paused (new weights).\n"
    );
    let said = kinora_says(&data, &["resume", "kinora-a1"]);
    assert_eq!(said, "kinora-a1 is resumed.\n");
    client.wait_completed(waiting.id());
    wait_for_pause(&client, "kinora-a1", false);
}

#[test]
fn a_command_on_pauses_says_what_is_wrong_with_it() {
    let data = DataFolder::default();
    let missing = run(command(&data, &["pause"]));
    assert!(!missing.status.success());
    assert!(missing.stderr.contains("no store"), "{missing:?}");
    let server = Setup::on(&data).start();
    let long = "x".repeat(201);
    for (words, part) in [
        (
            &["pause", "kinora-z9"][..],
            "the configuration has: kinora-a1, kinora-b1",
        ),
        (&["pause", "--reason", "a\nb"], "one line"),
        (&["pause", "--reason", &long], "200 characters"),
    ] {
        let refused = run(command(&data, words));
        assert!(!refused.status.success(), "{refused:?}");
        assert!(refused.stderr.contains(part), "{refused:?}");
    }
    assert!(pause_of(&server.client(), "kinora-a1").is_null());
}

/// Makes a key with these flags.
fn key(server: &Server, name: &str, flags: &[&str]) -> Client {
    let create = ["create", "--name", name, "--project", "ops"];
    let printed = keys(server.data(), &[&create, flags].concat()).ok();
    server.client_with(printed.trim())
}

#[test]
fn operators_with_the_scope_pause_and_resume_by_the_api() {
    let server = Setup::default().start();
    let (client, watcher) = (server.client(), key(&server, "w", &["--operator"]));
    let operator = key(&server, "o", &["--operator-write"]);
    let control = |client: &Client, action: &str, body: Value| {
        let request = client.request("POST", &format!("/v1/operations/{action}"));
        request.json(&body).send()
    };
    for client in [&client, &watcher] {
        for action in ["pause", "resume"] {
            control(client, action, json!({})).refused(403, "scope_missing");
        }
    }
    let shown = control(&operator, "pause", json!({"reason": "a \"test\""})).ok();
    let [all] = &shown["paused"].as_array().unwrap()[..] else {
        panic!("{shown:#}")
    };
    assert_eq!(
        (&all["model"], &all["reason"]),
        (&Value::Null, &"a \"test\"".into())
    );
    // The process that has made it knows it at once, and keeps the first beginning.
    let pause = pause_of(&client, "kinora-b1");
    assert_eq!(pause["since"], all["since"]);
    assert_eq!(client.get("/readyz").ok()["paused"], "all");
    let again = control(&operator, "pause", json!({})).ok();
    assert_eq!(again["paused"], shown["paused"]);
    let one = control(&operator, "pause", json!({"model": "kinora-b1"})).ok();
    assert_eq!(one["paused"][1]["model"], "kinora-b1");
    assert_eq!(watcher.get("/v1/operations").ok()["paused"], one["paused"]);

    let reply = client.submit_json(&quick("kinora-a1"));
    assert!(reply.header("x-kinora-warning").unwrap().contains("paused"));
    let waiting = reply.video();
    let left = control(&operator, "resume", json!({})).ok();
    assert_eq!(left["paused"].as_array().unwrap().len(), 1, "{left:#}");
    client.wait_completed(waiting.id());
    for _ in 0..2 {
        let left = control(&operator, "resume", json!({"model": "kinora-b1"})).ok();
        assert_eq!(left["paused"], json!([]));
    }
    assert_eq!(client.get("/readyz").ok(), json!({"status": "ok"}));
    for (action, body, code, param) in [
        (
            "pause",
            json!({"model": "none"}),
            "model_not_found",
            "model",
        ),
        (
            "resume",
            json!({"model": "none"}),
            "model_not_found",
            "model",
        ),
        (
            "resume",
            json!({"reason": "x"}),
            "unknown_parameter",
            "reason",
        ),
        (
            "pause",
            json!({"reason": "a\nb"}),
            "invalid_value",
            "reason",
        ),
    ] {
        control(&operator, action, body).refused_for(400, code, Some(param));
    }
}
