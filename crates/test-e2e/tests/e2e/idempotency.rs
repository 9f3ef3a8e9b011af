//! `Idempotency-Key` across restarts. The rest is in `tests/http/idempotency.rs`.

use kinora_test_e2e::{Client, Reply, Server, Setup};
use serde_json::Value;

use crate::support::quick;

const HEADER: &str = "idempotency-key";

fn submit(client: &Client, key: &str, body: &Value) -> Reply {
    let request = client.request("POST", "/v1/videos").header(HEADER, key);
    request.json(body).send()
}

/// Asserts that `reply` repeats the task `id`, or begins one of its own.
fn assert_replays(reply: &Reply, id: &str) {
    assert_eq!(reply.video().id(), id, "{}", reply.shown());
    assert_eq!(reply.header("idempotent-replayed"), Some("true"));
}

/// The same for the model: a service that does not serve it any more has accepted it once.
#[test]
fn p06_a_repeat_is_answered_after_its_model_is_withdrawn() {
    let server = Server::start();
    let data = server.data().clone();
    let body = quick("kinora-b1");
    let id = submit(&server.client(), "k", &body).video().id().to_owned();
    server.client().wait_completed(&id);
    server.kill();
    let left = "[[models]]\ncard = \"kinora-a1\"\nid = \"kinora-a1\"\nengine = \"storyboard\"\n";
    let config = data.path().join("kinora.toml");
    std::fs::write(&config, left).unwrap();
    let server = Setup::on(&data)
        .set("KINORA_CONFIG", config.display())
        .start();
    let client = server.client();
    assert_replays(&submit(&client, "k", &body), &id);
    submit(&client, "another", &body).refused(400, "model_not_found");
}

#[test]
fn p06_a_restart_forgets_no_key() {
    let server = Server::start();
    let data = server.data().clone();
    let id = submit(&server.client(), "k", &quick("kinora-b1"))
        .video()
        .id()
        .to_owned();
    server.kill();
    let server = Setup::on(&data).start();
    let client = server.client();
    assert_replays(&submit(&client, "k", &quick("kinora-b1")), &id);
    submit(&client, "k", &quick("kinora-a1")).refused(422, "idempotency_key_reused");
    client.wait_completed(&id);
}
