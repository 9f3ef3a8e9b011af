//! Event streams and long polls of several API processes: each tells of what any process does, and continues a stream
//! of another.

use kinora_test_e2e::{Client, Event, Setup};

use super::Cluster;
use crate::support::quick;

const ALL: &str = "/v1/videos/events";

fn has_ended(event: &Event, id: &str) -> bool {
    event.video.id() == id && event.video.is_finished()
}

#[test]
fn p07_every_process_tells_a_project_of_its_tasks_alone() {
    let cluster = Cluster::new();
    let apis = [cluster.api(), cluster.api()];
    let _worker = cluster.worker();
    let first = cluster.project(&apis[0], "events").forgetful();
    let clients: [Client; 2] = [first.clone(), first.at(&apis[1].base_url())];
    let stranger = cluster.project(&apis[1], "stranger");
    let mut foreign = stranger.events(ALL, None);
    let mut streams = clients.each_ref().map(|client| client.events(ALL, None));
    let mut last = Vec::new();
    for number in 0..4 {
        let id = clients[number % 2]
            .submit(&quick("kinora-b1"))
            .id()
            .to_owned();
        for stream in &mut streams {
            last.push(stream.wait_for(|event| has_ended(event, &id)));
        }
        let own = clients[0].events(&format!("/v1/videos/{id}/events"), None);
        let states: Vec<Event> = own.collect();
        assert_eq!(states.len(), 1, "the last state");
    }
    drop(streams);
    let missed = clients[0].submit(&quick("kinora-b1")).id().to_owned();
    clients[1].wait_completed(&missed);
    // Each goes on at the other process.
    for (client, last) in clients.iter().rev().zip(&last[last.len() - 2..]) {
        let mut stream = client.events(ALL, Some(&last.id));
        stream.wait_for(|event| has_ended(event, &missed));
    }
    let own = stranger.submit(&quick("kinora-b1"));
    assert_eq!(foreign.next().unwrap().video.id(), own.id());
}

#[test]
fn a_process_that_hears_no_notices_finds_changes_by_itself() {
    let cluster = Cluster::new();
    let setup = Setup::on(&cluster.machine()).without_worker();
    // Nobody listens there.
    let deaf = "postgres://nobody@127.0.0.1:1/none";
    let api = cluster.process(setup).set("KINORA_STORE_LISTEN_URL", deaf);
    let (api, other) = (api.start(), cluster.api());
    api.wait_for_log(&["polling only"]);
    let client = api.client().forgetful();
    let mut all = client.events(ALL, None);
    let elsewhere = client.at(&other.base_url());
    let id = elsewhere.submit(&quick("kinora-b1")).id().to_owned();
    all.wait_for(|event| event.video.id() == id);
    let mut own = client.events(&format!("/v1/videos/{id}/events"), None);
    assert_eq!(own.next().unwrap().video.status(), "queued");
    let cancel = format!("/v1/videos/{id}/cancel");
    assert_eq!(elsewhere.post(&cancel).video().status(), "failed");
    assert!(has_ended(&own.next().unwrap(), &id));
    assert_eq!(own.next(), None);
    all.wait_for(|event| has_ended(event, &id));
}
