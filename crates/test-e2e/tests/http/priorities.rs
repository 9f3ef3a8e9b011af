//! Priorities: which of a project's waiting tasks go first, by every way to ask for one, and after a crash.

use serde_json::{Value, json};

use crate::support::{busy, quick, square};
use crate::support::{cancel, started};

fn with_priority(priority: &str) -> Value {
    let mut body = square("kinora-b1");
    body["priority"] = json!(priority);
    body
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
    let server = crate::setup().start();
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
