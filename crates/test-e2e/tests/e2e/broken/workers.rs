//! Workers on two machines with one device each, over PostgreSQL.

use kinora_test_e2e::{Server, Setup, until};
use serde_json::Value;

use super::{assert_all_complete, body, ended};
use crate::broken::processes::sick;
use crate::cluster::Cluster;

/// A worker with this one device; "0" is sick in this way until a file exists.
fn worker(cluster: &Cluster, device: &str, how: &str) -> (Server, std::path::PathBuf) {
    let setup = Setup::on(&cluster.machine()).as_worker();
    let (setup, mended) = sick(setup, how, &[device.to_owned()]);
    (cluster.process(setup).start(), mended)
}

/// An API that knows the model.
fn api(cluster: &Cluster) -> Server {
    let setup = Setup::on(&cluster.machine()).without_worker();
    let (setup, _) = sick(setup, "never", &["0".to_owned()]);
    cluster.process(setup).start()
}

fn place_of(cluster: &Cluster, worker: &Server) -> Value {
    let id = worker.process_id();
    let listed = cluster.workers();
    let found = listed.iter().find(|one| one["pid"] == id);
    found.unwrap()["places"][0].clone()
}

#[test]
fn p18_no_task_fails_that_the_worker_on_the_other_machine_completes() {
    for how in ["fails", "fails_late", "broken", "opening_exits"] {
        let cluster = Cluster::new();
        let (sick, mended) = worker(&cluster, "0", how);
        let (_well, _) = worker(&cluster, "1", "never");
        let api = api(&cluster);
        let client = api.client();
        until("both workers to be listed", || {
            (cluster.workers().len() == 2).then_some(())
        });
        for video in ended(&client, 12) {
            assert_eq!(video.status(), "completed", "{how}: {video:#?}");
        }
        std::fs::write(mended, "").unwrap();
        until("the sick one to be back", || {
            assert_all_complete(&client, 4);
            let place = place_of(&cluster, &sick);
            (place["state"] == "available").then_some(())
        });
    }
}

#[test]
fn a_request_that_fails_at_both_workers_fails() {
    let cluster = Cluster::new();
    let (first, _) = worker(&cluster, "0", "never");
    let (second, _) = worker(&cluster, "1", "never");
    let api = api(&cluster);
    let client = api.client();
    until("both workers to be listed", || {
        (cluster.workers().len() == 2).then_some(())
    });
    let id = client.submit(&body("fails everywhere")).id().to_owned();
    let video = until("it to end", || {
        Some(client.video(&id)).filter(kinora_test_e2e::Video::is_finished)
    });
    assert_eq!(video["error"]["code"], "generation_failed");
    until("both to have tried", || {
        let tried = |worker| place_of(&cluster, worker)["failures"].as_u64() >= Some(1);
        (tried(&first) && tried(&second)).then_some(())
    });
}
