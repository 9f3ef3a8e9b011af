//! `callback_url`: every request for a video takes it, a repeated request tells nobody twice, and the Rust client and
//! the command line send it.

use kinora_client::{Edit, NewVideo};
use kinora_test_e2e::{Client, DataFolder, Finished, Receiver, Reply, webhooks};
use serde_json::{Value, json};

use crate::commands::{done, refused};
use crate::support::{quick, square};
use crate::webhooks::{add, log, serve};

fn send(client: &Client, target: &str, key: &str, body: &Value) -> Reply {
    let request = client.request("POST", target);
    request.header("idempotency-key", key).json(body).send()
}

/// A completed draft and a completed video of a model that edits.
fn sources(client: &Client) -> [String; 2] {
    let mut draft = quick("kinora-a1");
    draft["draft"] = json!(true);
    let made = [draft, square("kinora-b1")].map(|body| client.submit(&body).id().to_owned());
    made.iter().for_each(|id| drop(client.wait_completed(id)));
    made
}

/// Every way to ask for a video, by a name: where, and what.
fn ways([draft, video]: &[String; 2]) -> Vec<(&'static str, String, Value)> {
    let edits = "/v1/videos/edits".to_owned();
    let night = "The same at night";
    let edit = json!({"model": "kinora-b1", "prompt": night, "edit_task_id": video});
    let last = json!({"model": "kinora-a1", "draft_task_id": draft});
    vec![
        ("submit", "/v1/videos".to_owned(), square("kinora-b1")),
        ("final", "/v1/videos".to_owned(), last),
        ("edit", "/v1/videos".to_owned(), edit),
        (
            "edits",
            edits,
            json!({"prompt": night, "video": {"id": video}}),
        ),
        (
            "remix",
            format!("/v1/videos/{video}/remix"),
            json!({"prompt": night}),
        ),
    ]
}

#[test]
fn every_request_for_a_video_takes_a_callback_and_a_replay_tells_nobody_twice() {
    let (data, receiver) = (DataFolder::default(), Receiver::start());
    let server = serve(&data).start();
    let client = server.client();
    let sources = sources(&client);
    let (id, _) = add(&data, &[]);
    let with_callback = |body: &Value, name: &str| {
        let mut body = body.clone();
        body["callback_url"] = json!(receiver.url(name));
        body
    };
    let ways = ways(&sources);
    let mut made = Vec::new();
    for (name, target, body) in &ways {
        let body = with_callback(body, name);
        let first = send(&client, target, name, &body);
        assert_eq!(first.header("idempotent-replayed"), None, "{name}");
        let task = first.video().id().to_owned();
        let again = send(&client, target, name, &body);
        assert_eq!(again.header("idempotent-replayed"), Some("true"), "{name}");
        assert_eq!(again.video().id(), task, "{name}");
        let elsewhere = send(&client, target, name, &with_callback(&body, "elsewhere"));
        elsewhere.refused_for(422, "idempotency_key_reused", Some("Idempotency-Key"));
        made.push((format!("POST /{name}"), task));
    }
    made.iter()
        .for_each(|(_, task)| drop(client.wait_completed(task)));
    let posted = receiver.wait_for(ways.len());
    let told = posted.iter().map(|one| {
        let task = one.event()["data"]["id"].as_str().unwrap().to_owned();
        (one.line.clone(), task)
    });
    let mut told: Vec<_> = told.collect();
    told.sort();
    made.sort();
    assert_eq!(told, made);
    assert_eq!(
        log(&data, &id).len(),
        ways.len(),
        "one delivery for each task"
    );

    // What was accepted stays accepted, whatever becomes of the secret.
    webhooks(&data, &["remove", &id]).ok();
    for (name, target, body) in &ways {
        let body = with_callback(body, name);
        let again = send(&client, target, name, &body);
        assert_eq!(again.header("idempotent-replayed"), Some("true"), "{name}");
        let fresh = send(&client, target, &format!("{name}-again"), &body);
        fresh.refused_for(400, "unsupported_parameter", Some("callback_url"));
    }
}

#[test]
fn the_rust_client_and_the_commands_name_a_callback() {
    let (data, receiver) = (DataFolder::default(), Receiver::start());
    let server = serve(&data).start();
    let client = server.client();
    let [draft, video] = sources(&client);
    add(&data, &[]);
    let typed = kinora_client::Client::new(client.base_url(), client.key()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let boat = NewVideo::new("kinora-b1", "A paper boat")
            .size("480x480")
            .seconds(2);
        let boat = boat.callback_url(receiver.url("client"));
        typed.submit(&boat).await.unwrap();
        let last = NewVideo::final_of("kinora-a1", &draft);
        typed
            .submit(&last.callback_url(receiver.url("client_final")))
            .await
            .unwrap();
        let edit = Edit::new(&video, "In snow").callback_url(receiver.url("client_edit"));
        typed.edit(&edit).await.unwrap();
    });
    let folder = tempfile::tempdir().unwrap();
    let command = |words: &[&str], url: &str| -> Finished {
        let flags = ["--callback-url", url];
        done(&client, folder.path(), &[words, &flags[..]].concat())
    };
    let boat = [
        "generate",
        "A boat",
        "--size",
        "480x480",
        "--seconds",
        "2",
        "--no-wait",
    ];
    command(&boat, &receiver.url("generate")).ok();
    command(&["final", &draft, "--no-wait"], &receiver.url("final")).ok();
    command(
        &["edit", &video, "At night", "--no-wait"],
        &receiver.url("edit"),
    )
    .ok();
    let names = [
        "client",
        "client_edit",
        "client_final",
        "edit",
        "final",
        "generate",
    ];
    let mut lines: Vec<String> = receiver
        .wait_for(names.len())
        .into_iter()
        .map(|one| one.line)
        .collect();
    lines.sort();
    assert_eq!(lines, names.map(|name| format!("POST /{name}")));
    assert!(refused(&command(&boat, "shop.example.com"), 2).contains("http://"));
    let local = command(&["generate", "A boat", "--local"], "https://example.com/");
    assert!(
        refused(&local, 2).contains("--local"),
        "nobody could have a secret for it"
    );
}
