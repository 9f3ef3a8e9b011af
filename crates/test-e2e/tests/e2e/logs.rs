//! The log: a reader that hangs delays no request and no stop, and an outage is two lines, however many
//! requests meet it.

use std::thread;

use kinora_test_e2e::{Server, Setup, until};
use serde_json::{Value, json};

use crate::support::quick;

const CLIENTS: usize = 8;
const SUBMITS: usize = 2_000;

/// A service with a line for each answer, and work for nobody.
fn talkative() -> Server {
    Setup::default()
        .set("KINORA_LOG_LEVEL", "debug")
        .set("KINORA_WORKER_SLOTS", 1)
        .set("KINORA_QUEUE_PROJECT_UNFINISHED_MAX", 2 * SUBMITS)
        .start()
}

/// Has so many requests answered at once.
fn in_parallel(server: &Server, count: usize, ask: impl Fn(&kinora_test_e2e::Client) + Sync) {
    thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                let client = server.client().forgetful();
                (0..count / CLIENTS).for_each(|_| ask(&client));
            });
        }
    });
}

#[test]
fn p11_a_log_that_nobody_reads_stops_no_request_and_its_losses_are_told() {
    let server = talkative();
    server.leave_log_unread(true);
    in_parallel(&server, SUBMITS, |client| {
        client.submit(&quick("kinora-b1"));
    });
    // Long lines, more of them than may wait.
    let nowhere = format!("/v1/{}", "x".repeat(3_000));
    in_parallel(&server, 800, |client| {
        client.get(&nowhere).refused(404, "not_found");
    });
    assert_eq!(server.anonymous().get("/healthz").ok()["status"], "ok");

    server.leave_log_unread(false);
    server.wait_for_log(&["log lines dropped"]);
    let dropped = server.log().lines().find_map(|line| {
        let event: Value = serde_json::from_str(line).ok()?;
        event["dropped"].as_u64()
    });
    assert!(dropped.is_some_and(|lines| lines > 0), "{dropped:?}");
    // From here on it is whole again.
    server.anonymous().get("/v1/once-more");
    server.wait_for_log(&["answered", "/v1/once-more"]);
}

#[test]
fn p16_a_log_that_nobody_reads_does_not_hold_up_the_end() {
    let server = talkative();
    server.leave_log_unread(true);
    let nowhere = format!("/v1/{}", "x".repeat(3_000));
    // A pipe holds 64 KiB.
    in_parallel(&server, 80, |client| {
        client.get(&nowhere).refused(404, "not_found");
    });
    server.terminate();
    let (status, _) = server.wait();
    assert!(status.success(), "{status}");
}

#[test]
fn p11_the_last_lines_before_the_end_are_written() {
    let server = Server::start();
    server.client().submit(&quick("kinora-b1"));
    server.terminate();
    let (status, log) = server.wait();
    assert!(status.success(), "{status}:\n{log}");
    let last = log.lines().last().unwrap_or_default();
    assert!(last.contains("\"stopped\""), "{log}");
}

#[test]
fn p11_storage_that_refuses_writes_is_two_lines_however_many_requests_meet_it() {
    const REFUSED: usize = 50;
    let server = Server::start();
    let client = server.client();
    let known = client.submit(&quick("kinora-b1"));
    client.wait_completed(known.id());
    let database = rusqlite::Connection::open(server.data().path().join("kinora.db")).unwrap();
    // As on a disk without room: each insert fails, and a poll does not.
    database
        .execute_batch(
            "CREATE TRIGGER no_room BEFORE INSERT ON tasks BEGIN SELECT raise(ABORT, 'no room'); END",
        )
        .unwrap();
    let submit = || {
        let request = client.request("POST", "/v1/videos");
        request
            .header("Idempotency-Key", "the-same-task-each-time")
            .json(&quick("kinora-b1"))
            .send()
    };
    for _ in 0..REFUSED {
        submit().refused(503, "storage_unavailable");
        client.video(known.id());
    }
    let begun = ["writes for requests failing", "no room"];
    server.wait_for_log(&begun);
    database.execute_batch("DROP TRIGGER no_room").unwrap();
    until("the end of it in the log", || {
        submit().video();
        (server.logged(&["writes for requests recovered"]) > 0).then_some(())
    });
    let log = server.log();
    let mut events = log
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let over = events
        .find(|event| event["message"] == "writes for requests recovered")
        .unwrap();
    assert_eq!(over["failures"], json!(REFUSED));
    assert_eq!(server.logged(&begun), 1);
    assert_eq!(server.logged(&["\"ERROR\"", "kinora_api"]), 0);
}

#[test]
fn p11_a_failed_request_is_found_in_the_log_by_its_id() {
    let server = Server::start();
    let client = server.client();
    let made = client.submit(&quick("kinora-b1"));
    let content = format!("/v1/videos/{}/content", made.id());
    client.wait_completed(made.id());
    let lines_of = |id: &str| -> Vec<Value> {
        let log = server.log();
        let events = log
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok());
        events
            .filter(|event: &Value| event["request"] == id)
            .collect()
    };

    let accepted = client.submit_json(&quick("kinora-b1"));
    let id = accepted.header("x-request-id").unwrap().to_owned();
    server.wait_for_log(&["task accepted", &id]);
    let polled = client.get(&format!("/v1/videos/{}", made.id()));
    let mut files = server.data().files("video.mp4");
    files.retain(|path| path.to_string_lossy().contains(made.id()));
    std::fs::remove_file(&files[0]).unwrap();
    let refused = client.get(&content);
    refused.refused(500, "content_lost");
    let id = refused.header("x-request-id").unwrap();
    server.wait_for_log(&["result file lost", id]);
    let lines = lines_of(id);
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert_eq!(lines[0]["task"], made.id());
    // Lines come in order: a poll has none.
    assert!(lines_of(polled.header("x-request-id").unwrap()).is_empty());
}
