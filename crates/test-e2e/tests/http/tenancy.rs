//! Projects: another project's task cannot be told from one that does not exist; keys of one
//! project see the same tasks.

use kinora_test_e2e::{Client, Reply, keys};
use serde_json::json;

use crate::support::{quick, shared};
use kinora_test_e2e::routes::NO_TASK;

/// All of an answer that may not differ.
pub(crate) fn visible(reply: &Reply, id: &str) -> (u16, Vec<(String, String)>, String) {
    let kept = |name: &str| !matches!(name, "x-request-id" | "date");
    let headers = reply.headers.iter().filter(|(name, _)| kept(name.as_str()));
    let text = |value: &[u8]| String::from_utf8_lossy(value).replace(id, "ID");
    let headers = headers
        .map(|(name, value)| (name.to_string(), text(value.as_bytes())))
        .collect();
    (reply.status, headers, text(&reply.body))
}

#[test]
fn p07_another_project_s_task_cannot_be_told_from_none() {
    let (owner, stranger) = (shared().newcomer(), shared().newcomer());
    let running = owner.submit(&quick("kinora-b1"));
    let done = owner.submit(&quick("kinora-b1"));
    let done = owner.wait_completed(done.id());
    let gone = owner.submit(&quick("kinora-b1"));
    owner.delete(&format!("/v1/videos/{}", gone.id())).ok();
    let calls: &[(&str, &str)] = &[
        ("GET", "/v1/videos/{id}"),
        ("HEAD", "/v1/videos/{id}"),
        ("DELETE", "/v1/videos/{id}"),
        ("POST", "/v1/videos/{id}/cancel"),
        ("POST", "/v1/videos/{id}/remix"),
        ("GET", "/v1/videos/{id}/events"),
        ("GET", "/v1/videos/{id}/content"),
        ("GET", "/v1/videos/{id}/content?variant=thumbnail"),
        ("GET", "/v1/videos?after={id}"),
        ("GET", "/v1/videos?after={id}&order=asc"),
    ];
    for (method, path) in calls {
        let ask = |id: &str| {
            let reply = stranger.request(method, &path.replace("{id}", id)).send();
            visible(&reply, id)
        };
        let unknown = ask(NO_TASK);
        for id in [running.id(), done.id(), gone.id()] {
            assert_eq!(ask(id), unknown, "{method} {path}");
        }
    }
    for (model, field) in [
        ("kinora-b1", "edit_task_id"),
        ("kinora-a1", "draft_task_id"),
    ] {
        let ask = |id: &str| {
            let mut body = json!({"model": model, field: id});
            if model == "kinora-b1" {
                body["prompt"] = json!("x");
            }
            visible(&stranger.submit_json(&body), id)
        };
        assert_eq!(ask(done.id()), ask(NO_TASK), "{field}");
    }
    let edit = |id: &str| {
        let body = json!({"prompt": "x", "video": {"id": id}});
        let request = stranger.request("POST", "/v1/videos/edits");
        visible(&request.json(&body).send(), id)
    };
    assert_eq!(edit(done.id()), edit(NO_TASK));
    assert!(stranger.get("/v1/videos").list().1.is_empty());
    assert_eq!(owner.get("/v1/videos").list().1.len(), 2);
    assert_eq!(owner.wait_completed(running.id()).status(), "completed");
}

#[test]
fn p07_a_foreign_key_opens_nothing_that_a_signed_address_does_not() {
    let (owner, stranger) = (shared().newcomer(), shared().newcomer());
    let video = owner.submit(&quick("kinora-b1"));
    let video = owner.wait_completed(video.id());
    let signed = video.text("result_url");
    // Anyone with the address may open it, with a useless key or with none.
    for client in [&owner, &stranger] {
        assert_eq!(client.get(signed).status, 200);
    }
    let bare = signed.split('?').next().unwrap();
    stranger.get(bare).refused(404, "video_not_found");
    assert_eq!(owner.get(bare).status, 200);
}

#[test]
fn keys_of_one_project_share_its_tasks() {
    let of_team = |name: &str| -> Client {
        let key = keys(
            shared().data(),
            &["create", "--name", name, "--project", "team"],
        )
        .ok();
        shared().client_with(key.trim())
    };
    let (old, new) = (of_team("old-key"), of_team("new-key"));
    let video = old.submit(&quick("kinora-b1"));
    assert_eq!(new.get("/v1/videos").list().1.len(), 1);
    let done = new.wait_completed(video.id());
    assert_eq!(new.get(&done.content()).status, 200);
    new.delete(&format!("/v1/videos/{}", video.id())).ok();
    old.get(&format!("/v1/videos/{}", video.id()))
        .refused(404, "video_not_found");
}
