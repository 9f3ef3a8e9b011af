//! The cancel of all queued tasks: of one project and perhaps one model, and never of what runs.

use kinora_test_e2e::{Client, Reply};
use serde_json::{Value, json};

use crate::support::{busy, quick, shared};

fn cancel(client: &Client, body: &Value) -> Reply {
    client
        .request("POST", "/v1/videos/cancel")
        .json(body)
        .send()
}

fn cancelled(client: &Client, body: &Value) -> u64 {
    let answer = cancel(client, body).ok();
    assert_eq!(answer["object"], "videos.cancelled");
    answer["cancelled"].as_u64().unwrap()
}

#[test]
fn queued_tasks_of_the_project_are_cancelled_by_one_call() {
    let (server, blocker) = busy();
    let (owner, other) = (server.client(), server.newcomer());
    let [first, second] = ["kinora-a1", "kinora-b1"].map(|model| owner.submit(&quick(model)));
    let foreign = other.submit(&quick("kinora-a1"));
    let of_model = json!({"status": "queued", "model": "kinora-b1"});
    assert_eq!(cancelled(&owner, &of_model), 1);
    let ended = owner.video(second.id());
    assert_eq!(ended.status(), "failed");
    assert_eq!(ended["error"]["code"], "cancelled");
    assert_eq!(owner.video(first.id()).status(), "queued");
    let all = json!({"status": "queued"});
    assert_eq!(cancelled(&owner, &all), 1);
    assert_eq!(cancelled(&owner, &all), 0);
    assert_eq!(owner.video(first.id()).status(), "failed");
    assert_eq!(owner.video(blocker.id()).status(), "in_progress");
    assert_eq!(other.video(foreign.id()).status(), "queued");
    server
        .client()
        .delete(&format!("/v1/videos/{}", blocker.id()))
        .ok();
}

#[test]
fn a_cancel_of_queued_tasks_says_what_is_wrong_with_it() {
    let client = shared().newcomer();
    for (body, code, param) in [
        (json!({}), "missing_required_parameter", "status"),
        (json!({"status": "running"}), "invalid_value", "status"),
        (json!({"status": 1}), "invalid_type", "status"),
        (
            json!({"status": "queued", "model": "none"}),
            "model_not_found",
            "model",
        ),
        (
            json!({"status": "queued", "all": true}),
            "unknown_parameter",
            "all",
        ),
    ] {
        cancel(&client, &body).refused_for(400, code, Some(param));
    }
    let bare = client.post("/v1/videos/cancel");
    bare.refused(415, "unsupported_media_type");
    let form = client.request("POST", "/v1/videos/cancel");
    let form = form.form(&kinora_test_e2e::Form::of([("status", "queued")]));
    form.send().refused(415, "unsupported_media_type");
}
