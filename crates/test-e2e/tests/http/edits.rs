//! Edits of an earlier video on model B, in all three spellings; how far the result leaves the
//! source; and what cannot be edited.

use kinora_test_e2e::compare::Frame;
use kinora_test_e2e::{Client, Host, Reply, Video, is_once, studio};
use serde_json::{Value, json};

use crate::capabilities::form;
use crate::support::{Download, busy, fetching, quick, shared};
use kinora_test_e2e::compare::COVER;
use kinora_test_e2e::routes::NO_TASK;

fn edit(source: &str, strength: f64) -> Value {
    json!({"model": "kinora-b1", "prompt": "The same in deep snow at night", "seed": 3,
           "edit_task_id": source, "edit_strength": strength})
}

fn completed(client: &Client, body: &Value) -> Video {
    let video = client.submit(body);
    client.wait_completed(video.id())
}

fn frames(client: &Client, video: &Video) -> Vec<Frame> {
    Frame::all_of(&Download::of(client, &video.content()).path(), COVER)
}

/// Mean PSNR in dB, frame by frame, as the mean of the errors.
fn psnr_db(one: &[Frame], other: &[Frame]) -> f64 {
    assert_eq!(one.len(), other.len());
    let errors = one
        .iter()
        .zip(other)
        .map(|(a, b)| 10_f64.powf(-a.psnr_db(b) / 10.0));
    -10.0 * (errors.sum::<f64>() / one.len() as f64).log10()
}

#[test]
fn strength_leads_from_the_source_to_something_else_of_the_same_shape() {
    let client = shared().newcomer();
    let mut body = quick("kinora-a1");
    body["aspect_ratio"] = json!("1:1");
    body["seconds"] = json!(3);
    let source = completed(&client, &body);
    let original = frames(&client, &source);
    let nearness: Vec<f64> = [0.0, 0.6, 1.0]
        .into_iter()
        .map(|strength| {
            let video = completed(&client, &edit(source.id(), strength));
            for name in ["size", "seconds", "frames", "fps"] {
                assert_eq!(video[name], source[name], "{name}");
            }
            assert_eq!(video["has_audio"], false);
            assert_eq!(video.text("edit_task_id"), source.id());
            assert_eq!(video["remixed_from_video_id"], video["edit_task_id"]);
            psnr_db(&original, &frames(&client, &video))
        })
        .collect();
    assert!(nearness[0] > 35.0, "{nearness:?} dB");
    assert!(
        nearness[1] < 30.0 && nearness[2] < nearness[1],
        "{nearness:?} dB"
    );
}

#[test]
fn an_edit_of_an_edit_with_a_reference_image_works() {
    let host = Host::start();
    let client = fetching().newcomer();
    let source = completed(&client, &quick("kinora-b1"));
    let once = completed(&client, &edit(source.id(), 0.5));
    let mut body = edit(once.id(), 1.0);
    let image = studio::picture("red.png", (640, 480), "red");
    body["reference_images"] = json!([host.serve("red.png", image)]);
    let twice = completed(&client, &body);
    assert_eq!(twice.text("edit_task_id"), once.id());
    assert!(is_once(host.asked_for("red.png")));
}

/// An edit in each spelling, by JSON and by form.
fn spellings(client: &Client, source: &str) -> Vec<(&'static str, Reply)> {
    let post = |path: &str, body: &Value| {
        [
            client.request("POST", path).json(body).send(),
            client.request("POST", path).form(&form(body)).send(),
        ]
    };
    let own = post("/v1/videos", &edit(source, 0.5));
    let remix = post(
        &format!("/v1/videos/{source}/remix"),
        &json!({"prompt": "snow"}),
    );
    let edits = [
        client
            .request("POST", "/v1/videos/edits")
            .json(&json!({"prompt": "snow", "video": {"id": source}}))
            .send(),
        client
            .request("POST", "/v1/videos/edits")
            .form(&form(&json!({"prompt": "snow", "video[id]": source})))
            .send(),
    ];
    let named = |name| move |reply| (name, reply);
    own.into_iter()
        .map(named("edit_task_id"))
        .chain(edits.into_iter().map(named("video")))
        .chain(remix.into_iter().map(named("remix")))
        .collect()
}

#[test]
fn every_spelling_makes_the_same_task() {
    let client = shared().newcomer();
    let source = completed(&client, &quick("kinora-b1"));
    for (name, reply) in spellings(&client, source.id()) {
        let video = reply.video();
        assert_eq!(video.text("model"), "kinora-b1", "{name}");
        assert_eq!(video.text("edit_task_id"), source.id(), "{name}");
        client.delete(&format!("/v1/videos/{}", video.id())).ok();
    }
}

/// Asserts that `source` cannot be edited, in every spelling.
fn assert_unusable(client: &Client, source: &str, known: bool) {
    for (name, reply) in spellings(client, source) {
        if name == "remix" && !known {
            reply.refused(404, "video_not_found");
            continue;
        }
        let error = reply.refused(400, "edit_source_not_usable");
        let param = if name == "edit_task_id" {
            name
        } else {
            "video"
        };
        assert_eq!(error["param"], param, "{error:#}");
    }
}

#[test]
fn what_is_no_own_completed_video_cannot_be_edited() {
    let client = shared().newcomer();
    assert_unusable(&client, NO_TASK, false);
    let source = completed(&client, &quick("kinora-b1"));
    assert_unusable(&shared().newcomer(), source.id(), false);
    client.delete(&format!("/v1/videos/{}", source.id())).ok();
    assert_unusable(&client, source.id(), false);
}

#[test]
fn an_unfinished_video_cannot_be_edited() {
    let (server, _) = busy();
    let client = server.newcomer();
    let waiting = client.submit(&quick("kinora-b1"));
    assert_unusable(&client, waiting.id(), true);
}

#[test]
fn an_edit_whose_source_is_deleted_before_its_turn_fails_in_words() {
    let server = crate::support::narrow().start();
    let client = server.client();
    let source = completed(&client, &quick("kinora-b1"));
    let blocker = client.submit(&crate::support::slow());
    client.wait_working(blocker.id());
    let waiting = client.submit(&edit(source.id(), 0.5));
    client.delete(&format!("/v1/videos/{}", source.id())).ok();
    client.delete(&format!("/v1/videos/{}", blocker.id())).ok();
    let failed = client.wait_for(waiting.id(), "failed");
    assert_eq!(failed["error"]["code"], "generation_failed");
    assert!(
        failed.text("fail_reason").contains("deleted"),
        "{failed:#?}"
    );
}
