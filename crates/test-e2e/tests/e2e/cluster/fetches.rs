//! References over several processes: each is fetched once, and another process takes over from one that dies.

use kinora_test_e2e::{Client, Hold, Host, RESULT_FILES, Setup, studio, until};
use kinora_testkit::postgres::Server as Postgres;
use serde_json::json;

use super::{Cluster, Server, assert_made_once};
use crate::support::{reaching_from, square};

/// Tasks, each with two references of its own.
const TASKS: usize = 12;

/// A process that may fetch from this machine.
fn reaching(cluster: &Cluster, setup: Setup) -> Setup {
    reaching_from(cluster.process(setup))
}

fn submit(client: &Client, host: &Host, number: usize) -> String {
    let mut body = square("kinora-b1");
    for name in ["first_frame", "last_frame"] {
        body[name] = json!(host.url(&format!("{name}-{number}.png")));
    }
    client.submit(&body).id().to_owned()
}

/// A host with two pictures for each task.
fn host(tasks: usize) -> Host {
    let host = Host::start();
    let picture = studio::picture("a.png", (300, 300), "red");
    for number in 0..tasks {
        host.serve(&format!("first_frame-{number}.png"), picture.clone());
        host.serve(&format!("last_frame-{number}.png"), picture.clone());
    }
    host
}

fn asked(host: &Host, number: usize) -> [usize; 2] {
    ["first", "last"].map(|name| host.asked_for(&format!("{name}_frame-{number}.png")))
}

#[test]
fn every_reference_is_fetched_once_by_whichever_process() {
    let cluster = Cluster::new();
    let host = host(TASKS);
    let servers: [Server; 3] =
        std::array::from_fn(|_| reaching(&cluster, Setup::on(&cluster.machine())).start());
    let clients = servers.each_ref().map(Server::client);
    let ids: Vec<String> = (0..TASKS)
        .map(|number| submit(&clients[number % 3], &host, number))
        .collect();
    for (number, id) in ids.iter().enumerate() {
        clients[(number + 1) % 3].wait_completed(id);
    }
    for number in 0..TASKS {
        assert_eq!(asked(&host, number), [1, 1], "task {number}");
    }
    assert_made_once(&cluster, &servers, &ids);
}

#[test]
fn a_process_that_dies_while_it_fetches_is_replaced_and_no_stored_reference_is_fetched_again() {
    let cluster = Cluster::new();
    let host = host(1);
    let api = reaching(&cluster, Setup::on(&cluster.machine()).without_worker()).start();
    let worker = || reaching(&cluster, Setup::on(&cluster.machine()).as_worker());
    let client = api.client();
    let hold = Hold::at("worker.reference_stored", 1);
    let first = hold.over(worker()).start();
    let id = submit(&client, &host, 0);
    hold.wait();
    first.kill();
    let stored = cluster.objects().len();
    assert!((1..=2).contains(&stored), "{:?}", cluster.objects());
    let second = worker().start();
    // It may still be alive, for all that the others know.
    assert_eq!(client.video(&id).status(), "queued");
    // As when its lease has run out, which takes three minutes.
    let end = "UPDATE tasks SET fetch_until_ms = 0 WHERE fetch_token IS NOT NULL RETURNING id";
    assert_eq!(Postgres::shared().run(&cluster.database, end), id);
    client.wait_completed(&id);
    assert_eq!(asked(&host, 0).iter().sum::<usize>(), 2 + (2 - stored));
    until("the references to be removed", || {
        (cluster.objects().len() == RESULT_FILES).then_some(())
    });
    assert_made_once(&cluster, [&second], &[id]);
}

#[test]
fn a_reference_whose_host_failed_is_tried_again_by_any_process_and_the_others_are_not() {
    let cluster = Cluster::new();
    let host = host(TASKS);
    let picture = studio::picture("a.png", (300, 300), "red");
    for number in 0..TASKS {
        host.serve_after(1, &format!("first_frame-{number}.png"), picture.clone());
    }
    let servers: [Server; 2] =
        std::array::from_fn(|_| reaching(&cluster, Setup::on(&cluster.machine())).start());
    let clients = servers.each_ref().map(Server::client);
    let ids: Vec<String> = (0..TASKS)
        .map(|number| submit(&clients[number % 2], &host, number))
        .collect();
    for (number, id) in ids.iter().enumerate() {
        clients[number % 2].wait_completed(id);
        assert_eq!(asked(&host, number), [2, 1], "task {number}");
    }
    assert_made_once(&cluster, &servers, &ids);
}
