//! `Idempotency-Key`: the same request with the same key is the same task.

use std::sync::Barrier;

use kinora_test_e2e::{Client, Form, Reply, stores_fail};
use serde_json::{Value, json};

use crate::support::{quick, shared, slow};

const HEADER: &str = "idempotency-key";

fn submit(client: &Client, key: &str, body: &Value) -> Reply {
    let request = client.request("POST", "/v1/videos").header(HEADER, key);
    request.json(body).send()
}

/// Asserts that `reply` is the first under its key, unless the client has repeated the request by itself.
fn assert_first(reply: &Reply) {
    if !stores_fail() {
        assert_eq!(reply.header("idempotent-replayed"), None);
    }
}

/// Asserts that `reply` repeats the task `id`, or begins one of its own.
fn assert_replays(reply: &Reply, id: &str) {
    assert_eq!(reply.video().id(), id, "{}", reply.shown());
    assert_eq!(reply.header("idempotent-replayed"), Some("true"));
}

#[test]
fn p06_the_same_request_again_is_the_same_task() {
    let client = shared().newcomer();
    let first = submit(&client, "order-17", &quick("kinora-b1"));
    assert_first(&first);
    let id = first.video().id().to_owned();
    assert_replays(&submit(&client, "order-17", &quick("kinora-b1")), &id);
    client.wait_completed(&id);
    let replayed = submit(&client, "order-17", &quick("kinora-b1"));
    assert_replays(&replayed, &id);
    assert_eq!(replayed.video().status(), "completed");
    assert_eq!(client.get("/v1/videos").list().1.len(), 1);

    let other_key = submit(&client, "order-18", &quick("kinora-b1")).video();
    assert_ne!(other_key.id(), id);
    let stranger = shared().newcomer();
    let same_key = submit(&stranger, "order-17", &quick("kinora-b1"));
    assert_first(&same_key);
    assert_ne!(same_key.video().id(), id);
}

#[test]
fn the_key_with_another_request_is_422() {
    let client = shared().newcomer();
    let id = submit(&client, "k", &quick("kinora-b1"))
        .video()
        .id()
        .to_owned();
    for (field, value) in [
        ("prompt", json!("Another")),
        ("seed", json!(8)),
        ("metadata", json!({"a": "b"})),
    ] {
        let mut other = quick("kinora-b1");
        other[field] = value;
        let reply = submit(&client, "k", &other);
        reply.refused_for(422, "idempotency_key_reused", Some("Idempotency-Key"));
    }
    assert_replays(&submit(&client, "k", &quick("kinora-b1")), &id);
    assert_eq!(client.get("/v1/videos").list().1.len(), 1);
}

#[test]
fn p06_json_and_form_twins_are_the_same_request() {
    let client = shared().newcomer();
    let mut body = quick("kinora-a1");
    body["generate_audio"] = json!(false);
    body["metadata"] = json!({"a": "1"});
    let id = submit(&client, "k", &body).video().id().to_owned();
    let form = Form::of([
        ("seed", "7"),
        ("resolution", "480p"),
        ("seconds", "2"),
        ("generate_audio", "false"),
        ("metadata[a]", "1"),
        ("prompt", "A paper boat crosses a pond"),
        ("model", "kinora-a1"),
    ]);
    let request = client.request("POST", "/v1/videos").header(HEADER, "k");
    assert_replays(&request.form(&form).send(), &id);
    let spaced = format!(" {} \n", serde_json::to_string_pretty(&body).unwrap());
    let request = client.request("POST", "/v1/videos").header(HEADER, "k");
    assert_replays(&request.body("application/json", spaced).send(), &id);
}

#[test]
fn a_refused_request_is_not_remembered() {
    let client = shared().newcomer();
    submit(&client, "k", &json!({"model": "kinora-b1"})).refused(400, "missing_required_parameter");
    let reply = submit(&client, "k", &quick("kinora-b1"));
    assert_first(&reply);
    reply.video();
}

#[test]
fn a_deleted_task_frees_its_key() {
    let client = shared().newcomer();
    let id = submit(&client, "k", &quick("kinora-b1"))
        .video()
        .id()
        .to_owned();
    client.delete(&format!("/v1/videos/{id}")).ok();
    let reply = submit(&client, "k", &quick("kinora-b1"));
    assert_first(&reply);
    assert_ne!(reply.video().id(), id);
}

#[test]
fn a_cancelled_task_keeps_its_key() {
    let client = shared().newcomer();
    let id = submit(&client, "k", &slow()).video().id().to_owned();
    client.post(&format!("/v1/videos/{id}/cancel")).ok();
    let repeat = submit(&client, "k", &slow());
    assert_replays(&repeat, &id);
    assert_eq!(repeat.video()["error"]["code"], "cancelled");
}

/// What a repeat starts from may be gone by then: it is answered all the same, and a first request
/// for the same is not.
#[test]
fn p06_a_repeat_is_answered_after_its_draft_or_source_is_deleted() {
    let client = shared().newcomer();
    let mut draft = quick("kinora-a1");
    draft["draft"] = json!(true);
    let draft = client.submit(&draft).id().to_owned();
    let source = client.submit(&quick("kinora-b1")).id().to_owned();
    for id in [&draft, &source] {
        client.wait_completed(id);
    }
    let last = json!({"model": "kinora-a1", "draft_task_id": draft});
    let edit = json!({"model": "kinora-b1", "edit_task_id": source, "prompt": "The same in snow"});
    let remix = json!({"prompt": "The same in rain"});
    let remixes = format!("/v1/videos/{source}/remix");
    let send = |key: &str| {
        let calls = [
            ("1", "/v1/videos", &last),
            ("2", "/v1/videos", &edit),
            ("3", &remixes, &remix),
        ];
        calls.map(|(number, path, body)| {
            let request = client.request("POST", path);
            request
                .header(HEADER, format!("{key}-{number}"))
                .json(body)
                .send()
        })
    };
    let made = send("k").map(|reply| reply.video().id().to_owned());
    for id in &made {
        client.wait_completed(id);
    }
    for id in [&draft, &source] {
        client.delete(&format!("/v1/videos/{id}")).ok();
    }
    for (reply, id) in send("k").iter().zip(&made) {
        assert_replays(reply, id);
    }
    let [last, edit, remix] = send("another");
    last.refused(400, "draft_not_usable");
    edit.refused(400, "edit_source_not_usable");
    remix.refused(404, "video_not_found");
}

#[test]
fn p06_sixty_four_twins_at_once_are_one_task() {
    const TWINS: usize = 64;
    let client = shared().newcomer();
    let start = Barrier::new(TWINS);
    let twin = || {
        let client = client.forgetful();
        start.wait();
        let reply = submit(&client, "twins", &quick("kinora-b1"));
        let replayed = reply.header("idempotent-replayed").is_some();
        (reply.video().id().to_owned(), replayed)
    };
    let answers: Vec<(String, bool)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..TWINS).map(|_| scope.spawn(twin)).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    assert!(
        answers.iter().all(|(id, _)| *id == answers[0].0),
        "{answers:?}"
    );
    let firsts = answers.iter().filter(|(_, replayed)| !replayed).count();
    // The first answer of all may be one that was lost.
    assert!(firsts == 1 || firsts == 0 && stores_fail(), "{answers:?}");
    assert_eq!(client.get("/v1/videos").list().1.len(), 1);
}

#[test]
fn a_header_that_is_no_key_is_refused() {
    let client = shared().newcomer();
    let send = |values: &[&[u8]]| {
        let request = client.request("POST", "/v1/videos");
        let request = values
            .iter()
            .fold(request, |request, one| request.header(HEADER, one));
        request.json(&quick("kinora-b1")).send()
    };
    let long = [b'k'; 256];
    for values in [
        &[&b""[..]][..],
        &[b"two words"],
        &[b"caf\xc3\xa9"],
        &[&long],
        &[b"one", b"two"],
        &[b"one", b"one"],
    ] {
        send(values).refused_for(400, "invalid_value", Some("Idempotency-Key"));
    }
    assert!(client.get("/v1/videos").list().1.is_empty());
    send(&[&long[1..]]).video();
}
