//! Cancel and delete, in every state: what is said, what stops, and what is gone.

use std::time::{Duration, Instant};

use kinora_test_e2e::{Client, RESULT_FILES, Reply, Server, stores_fail, until};
use serde_json::json;

use crate::support::{busy, quick, shared};

/// How soon a single slot must be free again; a slow task would hold it for much longer.
const FREE_SOON: Duration = Duration::from_secs(10);

fn path(id: &str) -> String {
    format!("/v1/videos/{id}")
}

fn cancel(client: &Client, id: &str) -> Reply {
    client.post(&format!("{}/cancel", path(id)))
}

fn assert_not_cancellable(reply: &Reply) {
    reply.refused_for(409, "not_cancellable", None);
    assert_eq!(reply.header("x-should-retry"), Some("false"));
}

/// Waits until this many tasks are said to start before `id`: a place may be a second old.
fn wait_for_place(client: &Client, id: &str, place: u64) {
    until("its place in the queue", || {
        (client.video(id)["queue_position"] == place).then_some(())
    });
}

/// Asserts that the one slot is free soon, and that nothing of `id` is left on disk.
fn assert_work_stops(server: &Server, id: &str) {
    let begun = Instant::now();
    let next = server.client().submit(&quick("kinora-b1"));
    until("work on the next task", || {
        let status = server.client().video(next.id()).status().to_owned();
        (status != "queued").then_some(())
    });
    assert!(
        begun.elapsed() < FREE_SOON,
        "the slot was held for {:?}",
        begun.elapsed()
    );
    until("the end of its files", || {
        server.data().files(id).is_empty().then_some(())
    });
    server.client().wait_completed(next.id());
}

#[test]
fn a_queued_task_can_be_cancelled() {
    let (server, _blocker) = busy();
    let client = server.newcomer();
    let (first, second) = (
        client.submit(&quick("kinora-a1")),
        client.submit(&quick("kinora-a1")),
    );
    wait_for_place(&client, second.id(), 1);
    let cancelled = cancel(&client, first.id()).video();
    assert_eq!(cancelled["error"]["code"], "cancelled");
    assert_eq!(cancelled.get("started_at"), None);
    assert_eq!(client.video(first.id()), cancelled);
    wait_for_place(&client, second.id(), 0);
    assert_not_cancellable(&cancel(&client, first.id()));

    let content = client.get(&cancelled.content());
    content.refused_for(409, "video_failed", None);
    assert_eq!(content.header("x-should-retry"), Some("false"));
}

#[test]
fn a_running_task_can_be_cancelled_and_its_work_stops() {
    let (server, blocker) = busy();
    let client = server.client();
    let cancelled = cancel(&client, blocker.id()).video();
    assert_eq!(
        (cancelled.status(), &cancelled["error"]["code"]),
        ("failed", &json!("cancelled"))
    );
    assert_work_stops(&server, blocker.id());
    assert_eq!(client.video(blocker.id())["error"], cancelled["error"]);
    assert_not_cancellable(&cancel(&client, blocker.id()));
}

#[test]
fn a_completed_task_cannot_be_cancelled() {
    let client = shared().newcomer();
    let video = client.submit(&quick("kinora-b1"));
    let done = client.wait_completed(video.id());
    assert_not_cancellable(&cancel(&client, video.id()));
    assert_eq!(
        client.video(video.id())["completed_at"],
        done["completed_at"]
    );
    assert_eq!(client.get(&done.content()).status, 200);
}

#[test]
fn content_of_an_unfinished_task_says_when_to_come_again() {
    let (server, blocker) = busy();
    let queued = server.client().submit(&quick("kinora-a1"));
    // The thumbnail of what is being made is a preview.
    let of_made = &["video", "spritesheet", "first_frame", "last_frame"][..];
    let of_queued = &["video", "thumbnail", "spritesheet", "last_frame"];
    for (video, variants) in [(blocker, of_made), (queued, of_queued)] {
        for variant in variants {
            let target = format!("{}?variant={variant}", video.content());
            let reply = server.client().get(&target);
            reply.refused_for(409, "video_not_ready", None);
            let seconds = reply.number("retry-after").unwrap();
            assert!((1..=120).contains(&seconds), "{seconds}");
            assert_eq!(reply.header("x-should-retry"), None);
        }
    }
}

/// Deletes a task and asserts that nobody finds it any more.
fn delete(client: &Client, id: &str) {
    let answer = client.delete(&path(id)).ok();
    assert_eq!(
        answer,
        json!({"id": id, "object": "video.deleted", "deleted": true})
    );
    client.get(&path(id)).refused(404, "video_not_found");
    client
        .get(&format!("{}/content", path(id)))
        .refused(404, "video_not_found");
    client.delete(&path(id)).refused(404, "video_not_found");
    cancel(client, id).refused(404, "video_not_found");
    let (_, left) = client.get("/v1/videos?limit=100").list();
    assert!(left.iter().all(|video| video.id() != id));
}

#[test]
fn a_queued_task_can_be_deleted() {
    let (server, blocker) = busy();
    let client = server.newcomer();
    let (first, second) = (
        client.submit(&quick("kinora-b1")),
        client.submit(&quick("kinora-b1")),
    );
    delete(&client, first.id());
    wait_for_place(&client, second.id(), 0);
    delete(&server.client(), blocker.id());
    client.wait_completed(second.id());
    assert!(
        server.data().files(first.id()).is_empty(),
        "it was made all the same"
    );
}

#[test]
fn a_running_task_can_be_deleted_and_its_work_stops() {
    let (server, blocker) = busy();
    delete(&server.client(), blocker.id());
    assert_work_stops(&server, blocker.id());
}

#[test]
fn a_completed_task_is_deleted_with_its_files() {
    let client = shared().newcomer();
    let video = client.submit(&quick("kinora-a1"));
    let done = client.wait_completed(video.id());
    assert_eq!(shared().data().files(video.id()).len(), RESULT_FILES);
    delete(&client, video.id());
    if stores_fail() {
        // What a store did not remove at once is removed later.
        until("the files to be removed", || {
            shared().data().files(video.id()).is_empty().then_some(())
        });
    }
    let left = shared().data().files(video.id());
    assert!(left.is_empty(), "left when the answer came: {left:?}");
    shared()
        .anonymous()
        .get(done.text("result_url"))
        .refused(404, "video_not_found");
}
