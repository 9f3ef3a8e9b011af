//! What only a client who talks to one API after another can see: each shows the work of all.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use kinora_test_e2e::{Client, until};

use super::Cluster;
use crate::support::preview;
use crate::support::{narrow_on, slow};

#[test]
fn a_preview_and_a_place_in_the_queue_are_shown_by_an_api_that_did_not_take_the_task() {
    let cluster = Cluster::new();
    let apis = [cluster.api(), cluster.api()];
    let client = apis[0].client();
    let other = client.at(&apis[1].base_url());
    // Nobody serves yet, so that all places are known.
    let ids = [(); 3].map(|()| client.submit(&slow()).id().to_owned());
    let places = || {
        let videos = ids.each_ref().map(|id| other.video(id));
        videos.map(|video| video["queue_position"].as_u64())
    };
    until("the places of all", || {
        (places() == [Some(0), Some(1), Some(2)]).then_some(())
    });
    let worker = narrow_on(&cluster.machine()).as_worker();
    let _worker = cluster.process(worker).start();
    other.wait_working(&ids[0]);
    until("the others to move up", || {
        (places() == [None, Some(0), Some(1)]).then_some(())
    });
    let first = preview(&other, &ids[0], &[]);
    assert_eq!(first.status, 200, "{}", first.shown());
    assert_eq!(first.header("content-type"), Some("image/webp"));
    // It changes there, too.
    let second = preview(&other, &ids[0], &first.body);
    assert_eq!(second.status, 200, "{}", second.shown());
}

/// The ids of the list from `after` on, oldest first.
fn listed_after(client: &Client, after: Option<&String>) -> Vec<String> {
    let after = after.map(|id| format!("&after={id}")).unwrap_or_default();
    let page = client
        .get(&format!("/v1/videos?limit=100&order=asc{after}"))
        .ok();
    let tasks = page["data"].as_array().unwrap().iter();
    tasks
        .map(|task| task["id"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn who_follows_the_list_misses_no_task_that_any_api_accepts() {
    let cluster = Cluster::new();
    let apis = [cluster.api(), cluster.api()];
    let client = apis[0].client();
    let clients = [client.clone(), client.at(&apis[1].base_url())];
    let is_done = AtomicBool::new(false);
    let (mut accepted, mut seen) = thread::scope(|scope| {
        let follower = scope.spawn(|| {
            let mut seen: Vec<String> = Vec::new();
            loop {
                let is_last = is_done.load(Ordering::Acquire);
                let more = listed_after(&client, seen.last());
                if more.is_empty() && is_last {
                    return seen;
                }
                seen.extend(more);
            }
        });
        let submitters = [0, 1, 0, 1].map(|at: usize| {
            let client = &clients[at];
            scope.spawn(move || -> Vec<String> {
                let submit = |_| client.submit(&slow()).id().to_owned();
                (0..60).map(submit).collect()
            })
        });
        let accepted = submitters.map(|one| one.join().unwrap()).concat();
        is_done.store(true, Ordering::Release);
        (accepted, follower.join().unwrap())
    });
    accepted.sort();
    assert!(seen.is_sorted(), "the list is in order");
    seen.dedup();
    assert_eq!(seen, accepted);
}
