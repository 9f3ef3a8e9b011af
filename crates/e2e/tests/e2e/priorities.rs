//! Priorities: which of a project's waiting tasks go first, by every way to ask for one, and after a crash.

use kinora_e2e::{Client, DataFolder, Form, until};
use serde_json::{Value, json};

use crate::commands::done;
use crate::fairness::{cancel, started};
use crate::support::{busy, busy_on, narrow_on, quick, square};

fn with_priority(priority: &str) -> Value {
    let mut body = square("kinora-b1");
    body["priority"] = json!(priority);
    body
}

/// Waits until the positions of these tasks are 0, 1 and so on: they may be a second old.
fn wait_for_line(client: &Client, line: [&str; 4]) {
    let wanted = [0, 1, 2, 3].map(|place| json!(place));
    until("the positions", || {
        let places = line.map(|id| client.video(id)["queue_position"].clone());
        (places == wanted).then_some(())
    });
}

#[test]
fn urgent_tasks_of_a_project_go_first_also_after_a_crash() {
    let (data, folder) = (DataFolder::default(), tempfile::tempdir().unwrap());
    let (server, blocker) = busy_on(narrow_on(&data));
    let client = server.client();
    let low = client.submit(&with_priority("low"));
    let normal = client.submit(&square("kinora-b1"));
    let parts = [
        ("model", "kinora-b1"),
        ("prompt", "A boat"),
        ("seconds", "2"),
        ("priority", "high"),
    ];
    let form = client.submit_form(&Form::of(parts)).video();
    let command = [
        "generate",
        "A boat",
        "--model",
        "kinora-a1",
        "--size",
        "480x480",
        "--seconds",
        "2",
    ];
    let command = [&command[..], &["--priority", "high", "--no-wait"]].concat();
    let high = done(&client, folder.path(), &command).ok();
    let line = [form.id(), high.trim(), normal.id(), low.id()];
    wait_for_line(&client, line);
    let shown = line.map(|id| client.video(id)["priority"].clone());
    assert_eq!(
        shown,
        [json!("high"), json!("high"), Value::Null, json!("low")]
    );
    assert!(client.video(normal.id()).get("priority").is_none());
    server.kill();

    let server = narrow_on(&data).start();
    let client = server.client();
    cancel(&client, blocker.id());
    for id in line {
        client.wait_completed(id);
    }
    let mut order = started(&server.log());
    order.retain(|id| id != blocker.id());
    assert_eq!(order, line);
}

#[test]
fn a_project_of_urgent_tasks_has_no_more_turns_than_another() {
    let (server, blocker) = busy();
    let [urgent, other] = [server.newcomer(), server.newcomer()];
    let mut line = Vec::new();
    for _ in 0..3 {
        line.push((other.submit(&square("kinora-b1")), &other));
        line.push((urgent.submit(&with_priority("high")), &urgent));
    }
    cancel(&server.client(), blocker.id());
    for (video, client) in &line {
        client.wait_completed(video.id());
    }
    let line: Vec<_> = line.iter().map(|(video, _)| video.id()).collect();
    assert_eq!(started(&server.log())[1..], line);
}

#[test]
fn a_priority_is_part_of_the_request_and_of_a_final_and_an_edit_its_own() {
    let (server, _) = busy();
    let client = server.client();
    let keyed = |priority: &str| {
        let submit = client.request("POST", "/v1/videos");
        let submit = submit.json(&with_priority(priority));
        submit.header("idempotency-key", "one").send()
    };
    let first = keyed("high").video();
    assert_eq!(keyed("high").video().id(), first.id());
    keyed("low").refused(422, "idempotency_key_reused");
    client
        .submit_json(&with_priority("urgent"))
        .refused(400, "invalid_value");

    let mut draft = quick("kinora-a1");
    (draft["draft"], draft["priority"]) = (json!(true), json!("high"));
    let server = kinora_e2e::Server::start();
    let client = server.client();
    let draft = client.wait_completed(client.submit(&draft).id());
    let last = |priority: Value| {
        client.submit(
            &json!({"model": "kinora-a1", "draft_task_id": draft.id(), "priority": priority}),
        )
    };
    assert_eq!(last(json!("low"))["priority"], "low");
    assert!(last(Value::Null).get("priority").is_none());
    let edit = json!({"prompt": "Snow", "video": {"id": draft.id()}, "priority": "high"});
    let edit = client.request("POST", "/v1/videos/edits").json(&edit);
    assert_eq!(edit.send().video()["priority"], "high");
}
