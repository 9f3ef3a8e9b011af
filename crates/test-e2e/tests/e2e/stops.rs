//! P16: from the signal until the last task is done or given back, the service answers all but
//! submits; then it ends by itself. Alone, under the official SDK, and behind a front with two services.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use kinora_test_e2e::{
    Client, DataFolder, Hold, Reply, Server, Setup, Video, raw, run, until, workspace,
};
use serde_json::json;

use crate::support::{Download, assert_plays, narrow, quick, slow, steadily, steady};

/// A narrow service that drains and lingers longer than a busy machine takes; a second signal ends it.
fn unhurried() -> Setup {
    narrow()
        .set("KINORA_WORKER_DRAIN_SECONDS", 600)
        .set("KINORA_HTTP_LINGER_SECONDS", 600)
}

/// Asks for a stop, and returns when it has begun.
fn stop(server: &Server) {
    server.terminate();
    server.wait_for_log(&["stopping"]);
}

fn refused_for_the_stop(reply: &Reply) {
    reply.refused(503, "shutting_down");
    let seconds = reply.number("retry-after").unwrap();
    assert!((1..=120).contains(&seconds), "{seconds}");
}

/// A narrow service with a finished task and one that is held at its first file: the seventh, after the
/// mark of the store and five files.
fn with_a_held_run() -> (Server, Hold, Video, Video) {
    let hold = Hold::at("blobs.synced", 7);
    let server = hold.over(narrow()).start();
    let client = server.client();
    let finished = client.submit(&quick("kinora-a1"));
    let finished = client.wait_completed(finished.id());
    let held = client.submit(&quick("kinora-b1"));
    hold.wait();
    (server, hold, finished, held)
}

#[test]
fn p16_a_stop_answers_all_but_submits_until_the_last_task_is_done() {
    let (server, hold, finished, held) = with_a_held_run();
    let (client, anonymous, data) = (server.client(), server.anonymous(), server.data().clone());
    let waiting = [(); 2].map(|()| client.submit(&quick("kinora-b1")));
    let keyed = || {
        let request = client
            .request("POST", "/v1/videos")
            .json(&quick("kinora-b1"));
        request.header("idempotency-key", "before").send()
    };
    let before = keyed().video();
    let mut idle = raw::connect(server.address());
    let ask = b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n";
    idle.write_all(ask).unwrap();
    assert_eq!(raw::answer(&mut idle).header("connection"), None);
    stop(&server);

    refused_for_the_stop(&anonymous.get("/readyz"));
    assert_eq!(anonymous.get("/healthz").ok()["status"], "ok");
    assert_eq!(client.video(held.id()).status(), "in_progress");
    assert_eq!(client.get("/v1/videos").list().1.len(), 5);
    for target in [finished.content(), finished.text("result_url").to_owned()] {
        let reply = client.get(&target);
        assert_eq!(
            (reply.status, reply.header("connection")),
            (200, Some("close"))
        );
    }
    refused_for_the_stop(&client.submit_json(&quick("kinora-a1")));
    let edit = json!({"prompt": "At night"});
    let remix = format!("/v1/videos/{}/remix", finished.id());
    refused_for_the_stop(&client.request("POST", &remix).json(&edit).send());
    assert_eq!(keyed().video().id(), before.id(), "a repeat is no submit");

    // A connection from before the stop is served, told goodbye and closed.
    idle.write_all(ask).unwrap();
    let mut answer = String::new();
    idle.read_to_string(&mut answer).unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 200") && answer.contains("connection: close"),
        "{answer}"
    );

    let cancel = format!("/v1/videos/{}/cancel", waiting[0].id());
    assert_eq!(client.post(&cancel).video().status(), "failed");
    client
        .delete(&format!("/v1/videos/{}", waiting[1].id()))
        .ok();
    hold.release();
    let (status, log) = server.wait();
    assert!(
        status.success() && log.contains("\"stopped\""),
        "{status}:\n{log}"
    );

    let server = Setup::on(&data).start();
    let client = server.client();
    let done = client.video(held.id());
    assert_eq!(
        done.status(),
        "completed",
        "it was not finished before the end"
    );
    for video in [done, client.wait_completed(before.id())] {
        assert_plays(&client, &video);
    }
}

#[test]
fn p16_a_cancel_during_a_stop_reaches_the_run_and_ends_the_stop() {
    let server = narrow().start();
    let client = server.client();
    let running = client.submit(&slow());
    client.wait_working(running.id());
    stop(&server);
    let cancelled = client.post(&format!("/v1/videos/{}/cancel", running.id()));
    assert_eq!(cancelled.video()["error"]["code"], "cancelled");
    let (status, log) = server.wait();
    assert!(status.success(), "{status}:\n{log}");
    assert!(
        log.contains("Withdrawn"),
        "the run never heard of it:\n{log}"
    );
}

/// Polls and downloads as clients do; any error of a connection fails the test.
#[test]
fn p16_pollers_see_no_error_while_tasks_run_and_hear_of_the_end() {
    let server = steadily(unhurried()).set("KINORA_WORKER_SLOTS", 2).start();
    let client = server.client();
    let videos = [(); 2].map(|()| client.submit(&steady()));
    for video in &videos {
        client.wait_working(video.id());
    }
    thread::scope(|scope| {
        let poll = |video: &Video| {
            let client = server.client().forgetful();
            let done = client.wait_completed(video.id());
            assert_eq!(Download::of(&client, &done.content()).bytes[4..8], *b"ftyp");
        };
        for video in &videos {
            for _ in 0..3 {
                scope.spawn(move || poll(video));
            }
        }
        stop(&server);
    });
    server.terminate();
    let (status, log) = server.wait();
    assert!(status.success(), "{status}:\n{log}");
    assert!(!log.contains("connections were cut"), "{log}");
}

#[test]
fn p16_the_openai_sdk_works_over_a_stop_without_a_retry() {
    let python = workspace().join(".venv/bin/python");
    assert!(
        python.exists(),
        "{} is missing: ./test installs it",
        python.display()
    );
    let server = unhurried().start();
    let mut command = Command::new(python);
    command
        .arg("-u")
        .arg(workspace().join("crates/test-e2e/python/stop.py"))
        .env("KINORA_BASE_URL", format!("{}/v1", server.base_url()))
        .env("KINORA_API_KEY", server.client().key())
        .env("KINORA_PROCESS", server.process_id().to_string());
    let done = run(command);
    assert!(done.status.success(), "{}\n{}", done.stdout, done.stderr);
    assert!(done.stdout.ends_with("all passed\n"), "{}", done.stdout);
    server.terminate();
    let (status, log) = server.wait();
    assert!(status.success(), "{status}:\n{log}");
}

/// Clients of tasks elsewhere come to it, and a front asks it whether it is ready.
#[test]
fn p16_an_api_without_a_worker_answers_for_a_while_as_well() {
    let server = Setup::default()
        .set("KINORA_HTTP_LINGER_SECONDS", 600)
        .without_worker()
        .start();
    let client = server.client();
    let video = client.submit(&quick("kinora-b1"));
    stop(&server);
    assert_eq!(client.video(video.id()).status(), "queued");
    assert_eq!(server.anonymous().get("/readyz").status, 503);
    client
        .submit_json(&quick("kinora-b1"))
        .refused(503, "shutting_down");
    server.terminate();
    let (status, log) = server.wait();
    assert!(status.success(), "{status}:\n{log}");
}

/// A front that sends each connection to the first of `services` that says it is ready.
fn front(services: [SocketAddr; 2], ended: &AtomicBool, listener: &TcpListener) {
    let is_ready = |address: &SocketAddr| {
        let request = b"GET /readyz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
        raw::try_exchange(*address, request).is_some_and(|reply| reply.status == 200)
    };
    thread::scope(|scope| {
        for client in listener.incoming() {
            if ended.load(Ordering::Relaxed) {
                return;
            }
            let client = client.unwrap();
            scope.spawn(move || {
                let service = until("a service that is ready", || {
                    services.iter().find(|one| is_ready(one))
                });
                let service = TcpStream::connect(service).unwrap();
                thread::scope(|scope| {
                    scope.spawn(|| pass(&client, &service));
                    pass(&service, &client);
                });
            });
        }
    });
}

/// Passes bytes on until there are no more.
fn pass(mut from: &TcpStream, mut to: &TcpStream) {
    let _ = std::io::copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Write);
}

#[test]
fn p16_behind_a_front_that_asks_who_is_ready_a_stop_costs_no_submit() {
    let hold = Hold::at("blobs.synced", 1);
    let server = Server::start();
    let data = server.data().clone();
    server.terminate();
    server.wait();
    let second = Setup::on(&DataFolder::copy_of(&data)).start();
    let first = hold.over(Setup::on(&data)).start();
    let held = first.client().submit(&quick("kinora-b1"));
    hold.wait();

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (ended, address) = (AtomicBool::new(false), listener.local_addr().unwrap());
    let services = [first.address(), second.address()];
    let client = second.client().forgetful().at(&format!("http://{address}"));
    let accepted = thread::scope(|scope| {
        scope.spawn(|| front(services, &ended, &listener));
        let mut accepted = submit_through(&client, 3);
        stop(&first);
        accepted.extend(submit_through(&client, 3));
        ended.store(true, Ordering::Relaxed);
        drop(client);
        TcpStream::connect(address).unwrap();
        accepted
    });
    hold.release();
    let (status, log) = first.wait();
    assert!(status.success(), "{status}:\n{log}");

    let first = Setup::on(&data).start();
    first.client().wait_completed(held.id());
    let (old, new) = accepted.split_at(3);
    for (service, ids) in [(&first, old), (&second, new)] {
        for id in ids {
            service.client().wait_completed(id);
        }
    }
}

/// Submits `count` tasks, and asks again on another connection when a service says that it stops.
fn submit_through(client: &Client, count: usize) -> Vec<String> {
    let submit = || {
        let reply = client.submit_json(&quick("kinora-b1"));
        if reply.status == 503 {
            refused_for_the_stop(&reply);
            assert_eq!(reply.header("connection"), Some("close"));
            return None;
        }
        Some(reply.video().id().to_owned())
    };
    (0..count)
        .map(|_| until("a service that takes a task", submit))
        .collect()
}

/// A disk that takes for ever, as far as a stop is concerned: the held thread is never let go.
fn assert_ends_although_held(hold: &Hold) {
    let server = hold
        .over(narrow())
        .set("KINORA_WORKER_DRAIN_SECONDS", 1)
        .set("KINORA_HTTP_DRAIN_SECONDS", 1)
        .start();
    let address = server.address();
    thread::scope(|scope| {
        // It may be answered or not: what counts is that nobody waits for it for ever.
        let body = serde_json::to_vec(&quick("kinora-b1")).unwrap();
        let head = format!(
            "POST /v1/videos HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n",
            server.client().key(),
            body.len()
        );
        scope.spawn(move || raw::try_exchange(address, &[head.as_bytes(), &body].concat()));
        hold.wait();
        server.terminate();
        let (status, log) = server.wait();
        assert!(status.success(), "{status}:\n{log}");
        assert!(log.contains("not returned to the queue in time"), "{log}");
        assert!(hold.is_holding(), "it was let go");
    });
}

#[test]
fn p16_a_result_that_takes_for_ever_to_sync_does_not_hold_up_the_end() {
    // The first is the store's mark.
    assert_ends_although_held(&Hold::at("blobs.synced", 2));
}

#[test]
fn p16_a_commit_that_takes_for_ever_does_not_hold_up_the_end() {
    // The signing key, the worker's announcement and the first key; from then on all that changes anything waits.
    assert_ends_although_held(&Hold::at("store.before_commit", 4));
}

#[test]
fn p16_a_hangup_without_tls_ends_nothing() {
    let server = Server::start();
    let client = server.client();
    let video = client.submit(&quick("kinora-b1"));
    for _ in 0..2 {
        server.hang_up();
    }
    server.wait_for_log(&["SIGHUP ignored"]);
    client.wait_completed(video.id());
    server.terminate();
    let (status, log) = server.wait();
    assert!(status.success(), "{status}:\n{log}");
    assert!(log.contains("\"stopped\""), "{log}");
}
