//! Drafts and their finals: the final is the draft at its full size, needs no address again, and
//! comes of nothing but an own, completed draft of the same model.

use kinora_test_e2e::{Client, Host, Video, is_once, keys, studio};
use serde_json::{Value, json};

use crate::capabilities::{likeness, with_a_second_a};
use crate::support::{Download, busy, fetching, quick, shared};

fn draft(more: Value) -> Value {
    let mut body = quick("kinora-a1");
    body["draft"] = json!(true);
    body["resolution"] = json!("720p");
    body.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    body
}

fn final_of(draft: &str) -> Value {
    json!({"model": "kinora-a1", "draft_task_id": draft, "metadata": {"step": "final"}})
}

fn completed(client: &Client, body: &Value) -> Video {
    let video = client.submit(body);
    client.wait_completed(video.id())
}

#[test]
fn a_final_is_its_draft_at_full_size_and_needs_no_address_again() {
    let host = Host::start();
    let client = fetching().newcomer();
    let more = json!({
        "reference_images": [host.serve("red.png", studio::picture("red.png", (640, 480), "red"))],
        "reference_audios": [host.serve("tone.wav", studio::tone("tone.wav", 700, 2.0))],
        "prompt": "A kite over a windy beach. Then it lands in the dunes.",
        "seed": 4242,
    });
    let preview = completed(&client, &draft(more));
    assert_eq!(preview["draft"], true);
    assert_eq!(preview.text("size"), "854x480");
    for name in ["red.png", "tone.wav"] {
        assert!(is_once(host.asked_for(name)), "{name}");
    }
    host.close();

    let video = completed(&client, &final_of(preview.id()));
    assert_eq!(video.text("size"), "1280x720");
    assert_eq!(video.text("draft_task_id"), preview.id());
    assert!(video.get("draft").is_none(), "{video:#?}");
    assert_eq!(video["metadata"], json!({"step": "final"}));
    for name in ["prompt", "seed", "seconds", "frames", "has_audio"] {
        assert_eq!(video[name], preview[name], "{name}");
    }
    let [small, large] = [&preview, &video].map(|video| Download::of(&client, &video.content()));
    let ssim = likeness(&small, &large);
    assert!(ssim > 0.8, "{ssim:.3}");

    // A second final comes of the same draft, and both outlive it.
    let again = client.submit(&final_of(preview.id()));
    client.wait_completed(again.id());
    client.delete(&format!("/v1/videos/{}", preview.id())).ok();
    assert_eq!(client.get(&video.content()).status, 200);
}

fn assert_unusable(client: &Client, body: &Value) {
    for reply in [
        client.submit_json(body),
        client.submit_form(&crate::capabilities::form(&json!({
            "model": body["model"], "draft_task_id": body["draft_task_id"],
        }))),
    ] {
        reply.refused_for(400, "draft_not_usable", Some("draft_task_id"));
    }
}

#[test]
fn what_is_no_own_completed_draft_is_not_usable() {
    let client = shared().newcomer();
    assert_unusable(&client, &final_of(kinora_test_e2e::routes::NO_TASK));
    let plain = completed(&client, &quick("kinora-a1"));
    assert_unusable(&client, &final_of(plain.id()));

    let preview = completed(&client, &draft(json!({})));
    assert_unusable(&shared().newcomer(), &final_of(preview.id()));
    client.delete(&format!("/v1/videos/{}", preview.id())).ok();
    assert_unusable(&client, &final_of(preview.id()));
}

#[test]
fn an_unfinished_or_cancelled_draft_is_not_usable() {
    let (server, _) = busy();
    let client = server.newcomer();
    let waiting = client.submit(&draft(json!({})));
    assert_unusable(&client, &final_of(waiting.id()));
    let cancel = format!("/v1/videos/{}/cancel", waiting.id());
    client.post(&cancel).ok();
    assert_unusable(&client, &final_of(waiting.id()));
}

#[test]
fn another_model_s_draft_is_not_usable() {
    let (_server, client) = with_a_second_a();
    let preview = completed(&client, &draft(json!({})));
    let mut body = final_of(preview.id());
    body["model"] = json!("kinora-a2");
    assert_unusable(&client, &body);
    completed(&client, &final_of(preview.id()));
}

#[test]
fn only_model_and_metadata_may_accompany_a_draft() {
    let client = shared().newcomer();
    for (name, value) in [
        ("prompt", json!("another")),
        ("seconds", json!(3)),
        ("size", json!("1280x720")),
        ("seed", json!(1)),
        ("draft", json!(true)),
        ("generate_audio", json!(false)),
    ] {
        let mut body = final_of(kinora_test_e2e::routes::NO_TASK);
        body[name] = value;
        let error = client
            .submit_json(&body)
            .refused(400, "unsupported_combination");
        assert_eq!(error["param"], name, "{error:#}");
    }
}

#[test]
fn a_key_that_may_only_read_makes_no_final() {
    let client = shared().newcomer();
    let preview = completed(&client, &draft(json!({})));
    let printed = keys(
        shared().data(),
        &["create", "--name", "reader", "--scopes", "videos:read"],
    );
    let reader = shared().client_with(printed.ok().trim());
    let reply = reader.submit_json(&final_of(preview.id()));
    reply.refused(403, "scope_missing");
}
