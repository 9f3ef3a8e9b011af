//! Orderly stops, and who may have a data folder: the first signal finishes what runs, the
//! second gives it back, and two services never share a folder.

use std::time::{Duration, Instant};

use kinora_test_e2e::{DataFolder, Server, Setup, run};
use serde_json::json;

use crate::support::{assert_plays, narrow, quick, shared, slow, steadily, steady};

#[test]
fn a_stop_finishes_what_runs_and_keeps_what_waits() {
    let server = steadily(narrow()).start();
    let data = server.data().clone();
    let client = server.client();
    let running = client.submit(&steady());
    let waiting = [
        client.submit(&quick("kinora-b1")),
        client.submit(&quick("kinora-a1")),
    ];
    client.wait_working(running.id());
    server.terminate();
    let (status, log) = server.wait();
    assert!(status.success(), "{status}:\n{log}");
    assert!(log.contains("\"stopped\""), "{log}");

    let server = Setup::on(&data).start();
    let client = server.client();
    let done = client.video(running.id());
    assert_eq!(
        done.status(),
        "completed",
        "it was not finished before the stop"
    );
    assert_plays(&client, &done);
    for video in waiting {
        assert_plays(&client, &client.wait_completed(video.id()));
    }
}

#[test]
fn a_second_signal_stops_at_once_and_loses_nothing() {
    let server = narrow().start();
    let data = server.data().clone();
    let client = server.client();
    let mut long = slow();
    long["resolution"] = json!("480p");
    let (running, waiting) = (client.submit(&long), client.submit(&quick("kinora-b1")));
    client.wait_working(running.id());
    server.terminate();
    server.wait_for_log(&["a second signal stops at once"]);
    let asked = Instant::now();
    server.terminate();
    let (status, log) = server.wait();
    assert!(status.success(), "{status}:\n{log}");
    assert!(
        asked.elapsed() < Duration::from_secs(8),
        "it took {:?}",
        asked.elapsed()
    );

    let server = Setup::on(&data).start();
    let client = server.client();
    assert_ne!(
        client.video(running.id()).status(),
        "completed",
        "it was finished all the same"
    );
    for video in [running, waiting] {
        assert_plays(&client, &client.wait_completed(video.id()));
    }
}

#[test]
fn a_result_address_opens_after_a_restart() {
    let server = Server::start();
    let data = server.data().clone();
    let video = server.client().submit(&quick("kinora-b1"));
    let done = server.client().wait_completed(video.id());
    let base_url = server.base_url();
    server.kill();
    let server = Setup::on(&data).start();
    let target = done.text("result_url").strip_prefix(&base_url).unwrap();
    assert_eq!(server.anonymous().get(target).status, 200);
    let base_url = server.base_url();
    let now = server.client().video(video.id());
    assert!(now.text("result_url").starts_with(&base_url), "{now:#?}");
}

#[test]
fn an_idle_service_stops_quickly() {
    let server = Server::start();
    server.client().get("/v1/models").ok();
    let asked = Instant::now();
    server.terminate();
    let (status, _) = server.wait();
    assert!(
        status.success() && asked.elapsed() < Duration::from_secs(8),
        "{:?}",
        asked.elapsed()
    );
}

#[test]
fn a_second_service_on_one_folder_is_refused() {
    let data = shared().data();
    let done = run(Setup::on(data).command());
    assert!(!done.status.success());
    assert!(done.stderr.contains("in use"), "{}", done.stderr);
    assert!(!done.stderr.contains("panicked"), "{}", done.stderr);
    shared().client().get("/v1/models").ok();
}

#[test]
fn a_taken_address_is_refused_by_name() {
    let address = shared().address().to_string();
    let mut command = kinora_test_e2e::kinora();
    command.args(["serve", "--listen", &address, "--data"]);
    command.arg(DataFolder::default().path());
    let done = run(command);
    assert!(
        !done.status.success() && done.stderr.contains(&address),
        "{done:#?}"
    );
}
