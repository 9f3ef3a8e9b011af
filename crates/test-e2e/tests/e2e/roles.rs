//! The roles of processes where one database serves one process: an API without a worker, and the list of workers.

use std::process::Command;

use kinora_contract::built_in_cards;
use kinora_test_e2e::{Client, DataFolder, Server, Setup, kinora, run};
use serde_json::Value;

use crate::support::{quick, slow};

const WARNING: &str = "x-kinora-warning";

/// Stops a process in order; returns its log.
fn stop(server: Server) -> String {
    server.terminate();
    let (status, log) = server.wait();
    assert!(status.success(), "{status}:\n{log}");
    log
}

fn command(data: &DataFolder, words: &[&str]) -> Command {
    let mut command = kinora();
    command.args(words).arg("--data").arg(data.path());
    command
}

fn workers(data: &DataFolder) -> Vec<Value> {
    let listed = run(command(data, &["workers", "--json"])).ok();
    let listed: Value = serde_json::from_str(&listed).unwrap();
    listed.as_array().unwrap().clone()
}

fn available(client: &Client) -> Vec<bool> {
    let models = client.get("/v1/models").ok();
    let models = models["data"].as_array().unwrap();
    models
        .iter()
        .map(|model| model["available"].as_bool().unwrap())
        .collect()
}

#[test]
fn an_api_without_a_worker_says_that_nobody_serves_and_a_worker_completes_its_tasks() {
    let data = DataFolder::default();
    let server = Setup::on(&data).without_worker().start();
    server.wait_for_log(&["WARN", "none can share a SQLite database"]);
    let client = server.client();
    assert_eq!(available(&client), [false, false]);
    let one = client.get("/v1/models/kinora-b1").ok();
    assert_eq!(one["available"], false);
    let reply = client.submit_json(&quick("kinora-b1"));
    let warning = reply.header(WARNING).unwrap();
    assert!(warning.contains("no worker serves this model"), "{warning}");
    let video = reply.video();
    assert_eq!(video.status(), "queued");
    assert_eq!(client.get("/readyz").status, 200);
    assert_eq!(client.video(video.id()).status(), "queued");
    assert!(workers(&data).is_empty());
    let table = run(command(&data, &["workers"])).ok();
    assert!(table.contains("no live workers"), "{table}");
    stop(server);

    let server = Setup::on(&data).start();
    let client = server.client();
    assert_eq!(available(&client), [true, true]);
    let reply = client.submit_json(&quick("kinora-a1"));
    assert_eq!(reply.header(WARNING), None);
    client.wait_completed(reply.video().id());
    client.wait_completed(video.id());
    let listed = workers(&data);
    assert_eq!(listed.len(), 1, "{listed:?}");
    let worker = &listed[0];
    assert_eq!(worker["state"], "serving");
    assert_eq!(worker["pid"], server.process_id());
    assert_eq!(
        (&worker["slots"], &worker["running"]),
        (&2.into(), &0.into())
    );
    let served = worker["models"].as_array().unwrap();
    let served: Vec<&str> = served
        .iter()
        .map(|one| one["model"].as_str().unwrap())
        .collect();
    let models: Vec<String> = built_in_cards().into_iter().map(|card| card.id).collect();
    assert_eq!(served, models);
    let table = run(command(&data, &["workers"])).ok();
    for part in ["RUNNING", "0/2", "serving", "cpu", "storyboard/"] {
        assert!(table.contains(part), "{part}: {table}");
    }
    let log = stop(server);
    let left = workers(&data);
    assert!(left.is_empty(), "it has withdrawn itself: {left:?}\n{log}");
}

#[test]
fn tasks_of_a_worker_are_counted_and_a_killed_process_is_forgotten() {
    let server = Server::start();
    let data = server.data().clone();
    let client = server.client();
    let video = client.submit(&slow());
    client.wait_working(video.id());
    assert_eq!(workers(&data)[0]["running"], 1);
    let killed = workers(&data)[0]["id"].clone();
    server.kill();
    let server = Setup::on(&data).start();
    let listed = workers(&data);
    assert_eq!(listed.len(), 1, "{listed:?}");
    assert_ne!(listed[0]["id"], killed);
    server
        .client()
        .post(&format!("/v1/videos/{}/cancel", video.id()))
        .video();
    stop(server);
}

#[test]
fn a_worker_is_refused_on_a_database_for_one_process() {
    let data = DataFolder::default();
    let refused = run(command(&data, &["worker"]));
    assert!(!refused.status.success(), "{refused:#?}");
    for part in [
        "one process at a time",
        "store.url",
        "PostgreSQL",
        "kinora serve",
    ] {
        assert!(refused.stderr.contains(part), "{part}: {refused:#?}");
    }
    assert!(!data.path().exists(), "a refused worker makes nothing");
    let listed = run(command(&data, &["workers"]));
    assert!(!listed.status.success());
    assert!(listed.stderr.contains("There is no store"), "{listed:#?}");
}
