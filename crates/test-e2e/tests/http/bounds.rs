//! Bounds of the queue, and settings that are refused instead of ignored.

use kinora_test_e2e::{Server, keys};
use serde_json::Value;

use crate::support::{narrow, quick, shared, slow};

/// A busy narrow service with some settings; its first project has one task, which runs.
fn busy_with(variable: &str, value: u32) -> Server {
    let server = narrow().set(variable, value).start();
    let blocker = server.client().submit(&slow());
    server.client().wait_working(blocker.id());
    server
}

fn assert_full(server: &Server) {
    let reply = server.client().submit_json(&quick("kinora-b1"));
    reply.refused_for(429, "queue_full", None);
}

#[test]
fn p12_a_project_has_no_more_unfinished_tasks_than_it_may() {
    let server = busy_with("KINORA_QUEUE_PROJECT_UNFINISHED_MAX", 2);
    let second = server.client().submit(&quick("kinora-b1"));
    assert_full(&server);
    server.newcomer().submit(&quick("kinora-b1"));
    server
        .client()
        .post(&format!("/v1/videos/{}/cancel", second.id()))
        .video();
    let third = server.client().submit(&quick("kinora-b1"));
    assert_full(&server);
    server
        .client()
        .delete(&format!("/v1/videos/{}", third.id()))
        .ok();
    server.client().submit(&quick("kinora-b1"));
}

#[test]
fn p12_the_queue_holds_no_more_waiting_tasks_than_it_may() {
    let server = busy_with("KINORA_QUEUE_WAITING_MAX", 2);
    let send = |key: &str| {
        let client = server.newcomer();
        let request = client
            .request("POST", "/v1/videos")
            .header("idempotency-key", key);
        request.json(&quick("kinora-b1")).send()
    };
    send("a").video();
    send("b").video();
    send("c").refused_for(429, "queue_full", None);
    assert_full(&server);
}

#[test]
fn p12_what_was_accepted_is_repeated_even_when_the_queue_is_full() {
    let server = busy_with("KINORA_QUEUE_PROJECT_UNFINISHED_MAX", 2);
    let send = |key: &str| {
        let client = server.client();
        let request = client
            .request("POST", "/v1/videos")
            .header("idempotency-key", key);
        request.json(&quick("kinora-b1")).send()
    };
    let id = send("mine").video().id().to_owned();
    send("other").refused(429, "queue_full");
    assert_eq!(send("mine").video().id(), id);
}

#[test]
fn a_key_can_have_a_bound_of_its_own() {
    let server = busy_with("KINORA_QUEUE_PROJECT_UNFINISHED_MAX", 100);
    let own = [
        "create",
        "--name",
        "n",
        "--project",
        "small",
        "--unfinished-max",
        "1",
    ];
    let client = server.client_with(keys(server.data(), &own).ok().trim());
    client.submit(&quick("kinora-b1"));
    client
        .submit_json(&quick("kinora-b1"))
        .refused(429, "queue_full");
}

#[test]
fn a_key_that_may_have_no_tasks_is_not_told_to_wait() {
    let key = ["create", "--name", "n", "--unfinished-max", "0"];
    let client = shared().client_with(keys(shared().data(), &key).ok().trim());
    let refused = client.submit_json(&quick("kinora-b1"));
    refused.refused_for(403, "submits_not_allowed", None);
    assert_eq!(refused.header("retry-after"), None);
    client.get("/v1/videos").list();
}

#[test]
fn a_file_s_settings_hold() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kinora.toml");
    let models = "[[models]]\ncard = \"kinora-b1\"\nid = \"house-video\"\n\
                  aliases = [\"sora-2\"]\nengine = \"storyboard\"\n";
    std::fs::write(&path, models).unwrap();
    let server = crate::setup().set("KINORA_CONFIG", path.display()).start();
    let client = server.client();
    let models = client.get("/v1/models").ok();
    let ids: Vec<&Value> = models["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["id"])
        .collect();
    assert_eq!(ids, ["house-video"]);
    assert_eq!(client.get("/v1/models/sora-2").ok()["id"], "house-video");
    client
        .submit_json(&quick("kinora-b1"))
        .refused_for(400, "model_not_found", Some("model"));
    let video = client.submit(&quick("sora-2"));
    assert_eq!(video.text("model"), "house-video");
    client.wait_completed(video.id());
}
