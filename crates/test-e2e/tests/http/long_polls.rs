//! Long polls: `Prefer: wait` answers at the next change, and holds nothing up.

use std::thread;
use std::time::{Duration, Instant};

use kinora_test_e2e::{Client, Reply, keys};

use crate::support::{busy, quick, shared};
use kinora_test_e2e::routes::NO_TASK;

/// Longer than any change of these tests takes, and as long as is waited at most.
const LONG: &str = "wait=60";

fn ask(client: &Client, id: &str, prefer: &str) -> Reply {
    let request = client.request("GET", &format!("/v1/videos/{id}"));
    request.header("prefer", prefer).send()
}

#[test]
fn a_long_poll_is_answered_at_each_change_until_the_end() {
    let client = shared().newcomer();
    let id = client.submit(&quick("kinora-a1")).id().to_owned();
    let begun = Instant::now();
    let mut seen = vec![client.video(&id)];
    while !seen.last().unwrap().is_finished() {
        let reply = ask(&client, &id, LONG);
        assert_eq!(reply.header("preference-applied"), Some(LONG));
        let video = reply.video();
        let before = seen.last().unwrap();
        assert_ne!(
            (video.status(), video.progress()),
            (before.status(), before.progress())
        );
        seen.push(video);
    }
    assert_eq!(seen.last().unwrap().status(), "completed");
    // An ended task does not change any more: nobody waits for it.
    assert_eq!(ask(&client, &id, LONG).video().status(), "completed");
    assert!(
        begun.elapsed() < Duration::from_secs(60),
        "{:?}",
        begun.elapsed()
    );
}

#[test]
fn a_wait_ends_with_its_key() {
    let (server, blocker) = busy();
    let create = ["create", "--name", "doomed", "--project", "doomed"];
    let client = server.client_with(keys(server.data(), &create).ok().trim());
    let waiting = client.submit(&quick("kinora-b1"));
    thread::scope(|scope| {
        let poll = scope.spawn(|| ask(&client.forgetful(), waiting.id(), LONG));
        keys(server.data(), &["revoke", "doomed"]).ok();
        // It makes no difference whether it waits by now.
        poll.join().unwrap().refused(401, "invalid_api_key");
    });
    drop(blocker);
}

#[test]
fn a_cancel_answers_those_who_wait() {
    let (server, blocker) = busy();
    let client = server.client();
    let waiting = client.submit(&quick("kinora-b1"));
    thread::scope(|scope| {
        let polls: Vec<_> = [waiting.id(), waiting.id()]
            .map(|id| scope.spawn(|| ask(&client.forgetful(), id, LONG).video()))
            .into();
        // It makes no difference whether they wait by now.
        client.post(&format!("/v1/videos/{}/cancel", waiting.id()));
        for poll in polls {
            assert_eq!(poll.join().unwrap().status(), "failed");
        }
    });
    client.delete(&format!("/v1/videos/{}", blocker.id())).ok();
}

#[test]
fn without_a_change_the_answer_comes_when_the_time_is_up() {
    let (server, _blocker) = busy();
    let client = server.client();
    let waiting = client.submit(&quick("kinora-b1"));
    let begun = Instant::now();
    let reply = ask(&client, waiting.id(), "wait=1");
    assert!(begun.elapsed() >= Duration::from_secs(1));
    assert_eq!(reply.header("preference-applied"), Some("wait=1"));
    assert_eq!(reply.video().status(), "queued");
    // Without a wait, and with one that makes no sense, it is a poll.
    for prefer in ["respond-async", "wait=soon"] {
        let reply = ask(&client, waiting.id(), prefer);
        assert_eq!(reply.header("preference-applied"), None, "{prefer}");
        assert_eq!(reply.video().status(), "queued");
    }
    ask(&client, NO_TASK, LONG).refused(404, "video_not_found");
}
