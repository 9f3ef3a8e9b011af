//! One client that fills the disk: it meets its own quota, and what it has fetched is kept small.

use std::path::Path;

use kinora_test_e2e::{Client, Host, Reply, Setup, studio};
use serde_json::{Value, json};

use super::scale;
use crate::support::{quick, reaching_from};

/// Bytes of all files below a folder.
fn bytes_below(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let bytes = entries.map(|entry| {
        let entry = entry.unwrap();
        match entry.file_type().unwrap().is_dir() {
            true => bytes_below(&entry.path()),
            false => entry.metadata().unwrap().len(),
        }
    });
    bytes.sum()
}

/// Bytes of a prompt, which its task takes at least.
const FAT_BYTES: usize = 5_000;

fn fat() -> Value {
    let mut body = quick("kinora-b1");
    body["prompt"] = json!("x".repeat(FAT_BYTES));
    body
}

/// Submits and cancels until a quota of so many bytes is full. The first task, and the refusal.
fn fill(client: &Client, quota: usize) -> (String, Reply) {
    let mut kept = Vec::new();
    loop {
        let reply = client.submit_json(&fat());
        if reply.status != 200 {
            return (kept.swap_remove(0), reply);
        }
        let id = reply.video().id().to_owned();
        // Ended tasks are free of every other bound.
        client.post(&format!("/v1/videos/{id}/cancel"));
        kept.push(id);
        let most = quota / FAT_BYTES;
        assert!(kept.len() <= most, "{} tasks were taken", kept.len());
    }
}

#[test]
fn p15_a_project_that_fills_its_quota_is_refused_and_others_are_not() {
    let quota = scale(300_000, 30_000_000);
    let server = Setup::default()
        .set("KINORA_QUOTA_PROJECT_BYTES_MAX", quota)
        .start();
    let (hostile, polite) = (server.newcomer(), server.client());
    let (first, refused) = fill(&hostile, quota);
    let error = refused.refused_for(429, "storage_quota_exceeded", None);
    assert!(
        error["message"].as_str().unwrap().contains("delete"),
        "{error:#?}"
    );
    let video = polite.submit(&quick("kinora-b1"));
    polite.wait_completed(video.id());
    // What the message proposes helps at once.
    hostile.delete(&format!("/v1/videos/{first}")).ok();
    assert_eq!(hostile.submit_json(&fat()).status, 200);
}

#[test]
fn what_all_projects_store_is_bounded_and_the_refusal_names_the_operator() {
    const QUOTA: usize = 300_000;
    let server = Setup::default()
        .set("KINORA_QUOTA_BYTES_MAX", QUOTA)
        .start();
    let (one, other) = (server.newcomer(), server.newcomer());
    let (first, refused) = fill(&one, QUOTA);
    for reply in [refused, other.submit_json(&fat())] {
        let error = reply.refused_for(429, "storage_quota_exceeded", None);
        let message = error["message"].as_str().unwrap();
        assert!(message.contains("operator"), "{message}");
    }
    one.delete(&format!("/v1/videos/{first}")).ok();
    assert_eq!(other.submit_json(&fat()).status, 200);
}

#[test]
fn a_task_that_can_never_fit_is_not_told_to_wait() {
    let server = Setup::default()
        .set("KINORA_QUOTA_PROJECT_BYTES_MAX", FAT_BYTES)
        .start();
    let client = server.client();
    client.submit(&quick("kinora-b1"));
    let refused = client.submit_json(&fat());
    refused.refused_for(403, "submits_not_allowed", None);
    assert_eq!(refused.header("retry-after"), None);
}

#[test]
fn p15_a_project_keeps_no_more_tasks_than_it_may() {
    let server = Setup::default()
        .set("KINORA_QUOTA_PROJECT_TASKS_MAX", 2)
        .start();
    let (hostile, polite) = (server.newcomer(), server.client());
    let ids = [(); 2].map(|()| hostile.submit(&quick("kinora-b1")).id().to_owned());
    for id in &ids {
        hostile.wait_completed(id);
    }
    let reply = hostile.submit_json(&quick("kinora-b1"));
    reply.refused_for(429, "storage_quota_exceeded", None);
    polite.submit(&quick("kinora-b1"));
    hostile.delete(&format!("/v1/videos/{}", ids[0])).ok();
    hostile.submit(&quick("kinora-b1"));
}

/// A small picture with megabytes of nothing behind it was kept whole, for a week.
#[test]
fn p15_junk_behind_a_picture_is_not_kept() {
    let server = reaching_from(Setup::default()).start();
    let host = Host::start();
    let mut picture = studio::picture("junk.png", (256, 256), "red");
    picture.resize(scale(4_000_000, 29_800_000), 0);
    let url = host.serve("junk.png", picture);
    let client = server.client();
    let mut draft = quick("kinora-a1");
    draft["draft"] = json!(true);
    draft["reference_images"] = json!(vec![url; 9]);
    for _ in 0..scale(1, 3) {
        let video = client.submit(&draft);
        client.wait_completed(video.id());
        let kept = server
            .data()
            .path()
            .join("results/objects/references")
            .join(video.id());
        assert_eq!(std::fs::read_dir(&kept).unwrap().count(), 9);
        let bytes = bytes_below(&kept);
        assert!(bytes < 9 * 100_000, "{bytes} bytes are kept");
    }
}
