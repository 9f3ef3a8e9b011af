//! Ctrl-C: cancels what the command submitted, and leaves alone what it only watched.

use kinora_test_e2e::{Running, until};

use super::{command, plain, refused};
use crate::support::{busy, narrow, slow};

#[test]
fn ctrl_c_cancels_the_task_at_the_server() {
    let server = narrow().start();
    let client = server.client();
    let folder = tempfile::tempdir().unwrap();
    let slow = [
        "generate",
        "A ship",
        "--model",
        "kinora-a1",
        "--seconds",
        "15",
        "--resolution",
        "480p",
    ];
    let running = Running::start(command(&client, folder.path(), &slow));
    let id = until("the task", || {
        let list = client.get("/v1/videos").ok();
        Some(list["data"][0]["id"].as_str()?.to_owned())
    });
    client.wait_working(&id);
    running.interrupt();
    let ended = running.finished();
    let said = refused(&ended, 130);
    assert!(said.contains(&format!("{id} is cancelled")), "{said}");
    let task = client.video(&id);
    assert_eq!(task["error"]["code"], "cancelled");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_second_ctrl_c_leaves_at_once() {
    let (server, _) = busy();
    let client = server.newcomer();
    let folder = tempfile::tempdir().unwrap();
    let waiting = ["generate", "A boat", "--model", "kinora-a1"];
    let running = Running::start(command(&client, folder.path(), &waiting));
    until("the task", || {
        let list = client.get("/v1/videos").ok();
        list["data"][0]["id"].as_str().map(str::to_owned)
    });
    // It stands still, so that nothing but the signal can end the command.
    server.freeze();
    running.interrupt();
    running.wait_for_word("Ctrl-C again to exit immediately");
    running.interrupt();
    let ended = running.finished();
    server.thaw();
    assert!(refused(&ended, 130).contains("may"), "{ended:#?}");
}

#[test]
fn watching_ends_with_ctrl_c_and_the_task_goes_on() {
    let server = narrow().start();
    let client = server.client();
    let folder = tempfile::tempdir().unwrap();
    let video = client.submit(&slow());
    let watch = ["tasks", "watch", video.id(), "--json"];
    let running = Running::start(command(&client, folder.path(), &watch));
    client.wait_working(video.id());
    running.wait_for_output("in_progress");
    running.interrupt();
    let ended = running.finished();
    assert_eq!(ended.status.code(), Some(130), "{ended:#?}");
    assert!(plain(&ended).contains("goes on"), "{ended:#?}");
    assert_eq!(client.video(video.id()).status(), "in_progress");
}
