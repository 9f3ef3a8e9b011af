//! Server-sent events across restarts and stops, and what readers that do not read cost the process. The rest is in
//! `tests/http/events.rs`.

use std::collections::BTreeSet;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, TcpStream};
use std::thread;

use kinora_test_e2e::{Client, Event, Hold, Server, Setup, keys, raw};
use serde_json::{Value, json};

use crate::support::{narrow, quick, square};

const ALL: &str = "/v1/videos/events";
/// Where the hostile client is; the polite one is at 127.0.0.1.
const HOSTILE: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));

fn of_task(id: &str) -> String {
    format!("/v1/videos/{id}/events")
}

/// Cancels a task that has not ended.
fn cancel(client: &Client, id: &str) {
    let cancelled = client.post(&format!("/v1/videos/{id}/cancel"));
    assert_eq!(cancelled.video().status(), "failed");
}

#[test]
fn a_stream_that_is_resumed_after_a_restart_misses_nothing() {
    let server = narrow().start();
    let client = server.client();
    let done = client.submit(&square("kinora-b1")).id().to_owned();
    let mut stream = client.events(ALL, None);
    let last = stream.until_ended(&done).pop().unwrap();
    let next = client.submit(&square("kinora-b1")).id().to_owned();
    client.wait_completed(&next);
    let data = server.data().clone();
    server.kill();
    assert!(
        stream.all(|event| event.video.id() == next),
        "and then it ends"
    );

    let server = Setup::on(&data).start();
    let mut stream = server.client().events(ALL, Some(&last.id));
    let event = stream.next().unwrap();
    assert_eq!(
        (event.video.id(), event.video.status()),
        (&*next, "completed")
    );
}

#[test]
fn p16_a_stop_ends_streams_and_waits_at_once() {
    let hold = Hold::at("blobs.synced", 2);
    let server = hold.over(narrow()).start();
    let client = server.client();
    let held = client.submit(&quick("kinora-b1"));
    hold.wait();
    let mut streams = [of_task(held.id()), ALL.to_owned()].map(|path| client.events(&path, None));
    for stream in &mut streams {
        assert_eq!(stream.next().unwrap().video.id(), held.id());
    }
    thread::scope(|scope| {
        let poll = scope.spawn(|| {
            let request = client.request("GET", &format!("/v1/videos/{}", held.id()));
            request.header("prefer", "wait=60").send().video()
        });
        server.terminate();
        server.wait_for_log(&["stopping"]);
        // The task is still held: it is the stop that ends them. What it had done until then may be told late.
        for stream in &mut streams {
            assert!(stream.all(|event| event.video.status() == "in_progress"));
        }
        assert_eq!(poll.join().unwrap().status(), "in_progress");
    });
    // Who connects meanwhile gets the present state.
    let states: Vec<Event> = client.events(&of_task(held.id()), None).collect();
    assert_eq!(states.len(), 1);
    hold.release();
    let (status, log) = server.wait();
    assert!(status.success(), "{status}:\n{log}");
}

/// A task with as much text as a request may have, about 50 KB.
fn large() -> Value {
    let mut body = quick("kinora-b1");
    body["prompt"] = json!("\u{1f30a}".repeat(5_000));
    let note = "\u{1f30a}".repeat(500);
    let pairs = (0..14).map(|number| (number.to_string(), json!(note)));
    body["metadata"] = Value::Object(pairs.collect());
    body
}

/// Opens a project's stream and never reads it.
fn unread(server: &Server, key: &str) -> TcpStream {
    let mut stream = raw::connect_from(HOSTILE, server.address()).unwrap();
    let ask = format!("GET {ALL} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\n\r\n");
    stream.write_all(ask.as_bytes()).unwrap();
    stream
}

#[test]
fn p15_readers_that_do_not_read_cost_little_and_hold_nobody_up() {
    const TASKS: usize = 60;
    const KEYS: usize = 6;
    // As many as a key may have.
    const EACH: usize = 16;
    // Without a run, whose memory would be counted too.
    let server = Setup::default()
        .without_worker()
        .set("KINORA_HTTP_DRAIN_SECONDS", 600)
        .start();
    let client = server.client();
    let ids: Vec<String> = (0..TASKS)
        .map(|_| client.submit(&large()).id().to_owned())
        .collect();
    let before = server.memory_peak_mib();
    let hostile: Vec<TcpStream> = (0..KEYS)
        .flat_map(|number| {
            let name = format!("hostile {number}");
            let key = keys(server.data(), &["create", "--name", &name]).ok();
            let open = |_| unread(&server, key.trim());
            (0..EACH).map(open).collect::<Vec<_>>()
        })
        .collect();
    // A polite reader beside them gets everything.
    let mut polite = client.events(ALL, None);
    let mut seen = BTreeSet::new();
    while !ids.iter().all(|id| seen.contains(id)) {
        seen.insert(polite.next().unwrap().video.id().to_owned());
    }
    for id in &ids {
        cancel(&client, id);
        let told = polite.wait_for(|event| event.video.id() == id && event.video.is_finished());
        assert_eq!(told.video["error"]["code"], "cancelled");
    }
    let grown = server.memory_peak_mib() - before;
    // All that they have not read would be 300 MB.
    assert!(grown < 64, "{grown} MiB for {} readers", hostile.len());
    // They do not hold up the end either.
    server.terminate();
    let (status, log) = server.wait();
    assert!(status.success(), "{status}:\n{log}");
    drop(hostile);
}
