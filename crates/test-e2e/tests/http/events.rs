//! Server-sent events: every change reaches those whom it concerns, in order, and nobody else; a broken stream goes
//! on where it broke.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpStream};

use kinora_test_e2e::{Client, Event, Server, keys, raw, until};

use crate::support::{busy, quick, shared, square};

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

/// What is always true of the events of one stream about one task.
fn assert_steps(events: &[Event]) {
    let steps: Vec<_> = events
        .iter()
        .map(|event| (event.video.status(), event.video.progress()))
        .collect();
    let mut once = steps.clone();
    once.dedup();
    assert_eq!(steps, once, "a state was repeated");
    let ids: BTreeSet<_> = events.iter().map(|event| &event.id).collect();
    assert_eq!(ids.len(), events.len(), "an id was used twice");
}

#[test]
fn a_task_s_stream_begins_with_its_state_and_ends_with_its_last() {
    let (server, blocker) = busy();
    let client = server.client();
    let id = client.submit(&quick("kinora-a1")).id().to_owned();
    let stream = client.events(&of_task(&id), None);
    // It could have ended before its stream was open, if it had not had to wait.
    cancel(&client, blocker.id());
    for (name, value) in [
        ("content-type", "text/event-stream"),
        ("cache-control", "no-store"),
        ("x-accel-buffering", "no"),
    ] {
        assert_eq!(stream.headers[name], value);
    }
    let events: Vec<Event> = stream.collect();
    assert_steps(&events);
    assert!(events.iter().all(|event| event.video.id() == id));
    let last = events.last().unwrap();
    assert_eq!(last.video.status(), "completed");
    let reply = client.get(&format!("/v1/videos/{id}"));
    assert_eq!(last.data.as_bytes(), reply.body, "as a query renders it");

    // Who connects again gets what is new.
    let again = |last: Option<&str>| client.events(&of_task(&id), last).collect::<Vec<_>>();
    assert_eq!(again(None), std::slice::from_ref(last));
    assert_eq!(again(Some("something else")), std::slice::from_ref(last));
    assert_eq!(again(Some(&events[0].id)), std::slice::from_ref(last));
    let request = client.request("GET", &of_task(&id));
    let reply = request.header("last-event-id", &last.id).send();
    assert_eq!(
        (reply.status, reply.body.len()),
        (204, 0),
        "an EventSource gives up"
    );
}

#[test]
fn a_deleted_task_s_stream_ends() {
    let (server, _blocker) = busy();
    let client = server.client();
    let id = client.submit(&quick("kinora-b1")).id().to_owned();
    let mut stream = client.events(&of_task(&id), None);
    assert_eq!(stream.next().unwrap().video.status(), "queued");
    client.delete(&format!("/v1/videos/{id}")).ok();
    assert_eq!(stream.next(), None);
    client.get(&of_task(&id)).refused(404, "video_not_found");
}

#[test]
fn p07_a_project_s_stream_tells_of_all_its_tasks_and_of_no_other() {
    let (server, blocker) = busy();
    let (owner, stranger) = (server.newcomer(), server.newcomer());
    let before = owner.submit(&square("kinora-b1"));
    let mut streams = [&owner, &stranger].map(|client| client.events(ALL, None));
    // It waits until now, since a stream does not begin with tasks that have ended.
    cancel(&server.client(), blocker.id());
    let own = [&owner, &stranger].map(|client| {
        let submitted = [(); 3].map(|()| client.submit(&square("kinora-b1")).id().to_owned());
        BTreeSet::from(submitted)
    });
    for (stream, mut unfinished) in streams.iter_mut().zip(own.clone()) {
        if own[0] == unfinished {
            unfinished.insert(before.id().to_owned());
        }
        let all = unfinished.clone();
        let mut events = Vec::new();
        while !unfinished.is_empty() {
            let event = stream.next().unwrap();
            assert!(
                all.contains(event.video.id()),
                "another project's: {event:#?}"
            );
            if event.video.is_finished() {
                assert_eq!(event.video.status(), "completed");
                assert!(unfinished.remove(event.video.id()), "ended twice");
            }
            events.push(event);
        }
        for id in &all {
            let of_it = |event: &&Event| event.video.id() == id;
            assert_steps(&events.iter().filter(of_it).cloned().collect::<Vec<_>>());
        }
    }
}

#[test]
fn a_project_s_stream_goes_on_where_it_broke() {
    let client = shared().newcomer();
    let submit = || client.submit(&square("kinora-b1")).id().to_owned();
    let mut stream = client.events(ALL, None);
    let first = submit();
    let last = stream.until_ended(&first).pop().unwrap();
    drop(stream);
    // Meanwhile one ends, and one is removed.
    let (second, gone) = (submit(), submit());
    client.wait_completed(&second);
    client.delete(&format!("/v1/videos/{gone}")).ok();

    let mut stream = client.events(ALL, Some(&last.id));
    let event = stream.next().unwrap();
    assert_eq!(
        (event.video.id(), event.video.status()),
        (&*second, "completed")
    );
    let third = submit();
    let events = stream.until_ended(&third);
    assert!(
        events.iter().all(|event| event.video.id() == third),
        "{events:#?}"
    );
    let last = events.last().unwrap();
    drop(stream);
    // Nothing has happened: the next event is of a new task.
    let mut stream = client.events(ALL, Some(&last.id));
    let fourth = submit();
    let events = stream.until_ended(&fourth);
    assert!(
        events.iter().all(|event| event.video.id() == fourth),
        "{events:#?}"
    );
    assert_steps(&events);
}

/// Opens a stream and never reads it.
fn unread(server: &Server, path: &str, key: &str) -> TcpStream {
    let mut stream = raw::connect_from(HOSTILE, server.address()).unwrap();
    let ask = format!("GET {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\n\r\n");
    stream.write_all(ask.as_bytes()).unwrap();
    stream
}

/// Few may follow the whole project, since each change of it is work for each of them.
#[test]
fn p08_a_key_has_its_bound_of_open_streams() {
    const OF_KEY: usize = 1_000;
    const OF_PROJECT: usize = 16;
    let server = crate::setup()
        .set("KINORA_WORKER_ENABLED", false)
        .set("KINORA_HTTP_CONNECTIONS_MAX", 4_000)
        .set("KINORA_HTTP_CONNECTIONS_PER_ADDRESS_MAX", 2_000)
        .start();
    let (client, other) = (server.client(), server.newcomer());
    let of_task = of_task(client.submit(&quick("kinora-b1")).id());
    let opened = |path: &str| {
        let mut stream = unread(&server, path, client.key());
        let mut head = [0; 12];
        stream.read_exact(&mut head).unwrap();
        (stream, head)
    };
    let open = |path: &str, count: usize| -> Vec<TcpStream> {
        let streams = (0..count).map(|_| {
            until("a stream", || match opened(path) {
                (stream, head) if &head == b"HTTP/1.1 200" => Some(stream),
                // The store was away for a moment.
                (_, head) if &head == b"HTTP/1.1 503" => None,
                (_, head) => panic!("{}", String::from_utf8_lossy(&head)),
            })
        });
        streams.collect()
    };
    let is_refused = |path: &str| {
        let refused = client.get(path).refused(429, "rate_limit_exceeded");
        let message = refused["message"].as_str().unwrap();
        assert!(message.contains("event streams"), "{message}");
    };
    let is_free = |path: &str| {
        until("the place to be free", || {
            let (_, head) = opened(path);
            (&head == b"HTTP/1.1 200").then_some(())
        });
    };
    let mut of_project = open(ALL, OF_PROJECT);
    is_refused(ALL);
    of_project.pop();
    is_free(ALL);
    let mut others = open(&of_task, OF_KEY - OF_PROJECT + 1);
    is_refused(&of_task);
    drop(other.events(ALL, None));
    others.pop();
    is_free(&of_task);
}

#[test]
fn a_stream_shows_life_and_ends_when_its_key_does() {
    let server = crate::setup().start();
    let create = ["create", "--name", "doomed", "--project", "doomed"];
    let printed = keys(server.data(), &create).ok();
    let client = server.client_with(printed.trim());
    let mut stream = client.events(ALL, None);
    let listed = keys(server.data(), &["list"]).ok();
    let line = listed.lines().find(|line| line.contains("doomed")).unwrap();
    let id = line
        .split_whitespace()
        .find(|word| word.starts_with("key_"));
    let printed = keys(server.data(), &["revoke", id.unwrap()]).ok();
    assert!(printed.contains("--expire-addresses"), "{printed}");
    assert_eq!(stream.next(), None, "of a key that may not read any more");
    // One whose key is good gets signs of life instead.
    let polite = server.client();
    let mut stream = polite.events(ALL, None);
    for _ in 0..2 {
        stream.sign_of_life();
    }
    let submitted = polite.submit(&quick("kinora-b1"));
    assert_eq!(stream.next().unwrap().video.id(), submitted.id());
}
