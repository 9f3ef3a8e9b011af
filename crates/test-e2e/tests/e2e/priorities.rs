//! Priorities: which of a project's waiting tasks go first, by every way to ask for one, and after a crash.

use kinora_test_e2e::{Client, DataFolder, Form, until};
use serde_json::{Value, json};

use crate::commands::done;
use crate::support::{busy_on, narrow_on, square};
use crate::support::{cancel, started};

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
