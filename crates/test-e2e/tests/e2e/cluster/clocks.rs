//! Machines whose clocks are an hour apart: leases follow the database's clock, so that none is lost or taken early.

use kinora_test_e2e::{Client, Setup, Video, WallClock, until};

use tempfile::TempDir;

use super::{Cluster, Server, all_logged, tasks_of};
use crate::clocks::{HOUR_S, TOLERANCE_S};
use crate::support::{slow, square};

/// A long clip takes three leases.
const FRAME_MS: u32 = 45;

/// A process whose results are in a folder that the others have, too: S3 itself refuses a clock that is so wrong.
pub(super) fn sharing(cluster: &Cluster, results: &TempDir, setup: Setup) -> Setup {
    let setup = cluster.process(setup);
    setup.set(
        "KINORA_RESULTS_URL",
        format!("file:{}", results.path().display()),
    )
}

fn worker(cluster: &Cluster, results: &TempDir, clock: &WallClock) -> Server {
    let setup = sharing(cluster, results, Setup::on(&cluster.machine()).as_worker());
    let setup = setup.set("KINORA_WORKER_LEASE_SECONDS", 5);
    clock.start(setup.set("LONG_CLIP_FRAME_MS", FRAME_MS))
}

fn submit(client: &Client, body: &serde_json::Value, count: usize) -> Vec<String> {
    let ids = (0..count).map(|_| client.submit(body).id().to_owned());
    ids.collect()
}

/// Times are those of the database's machine.
fn assert_timely(video: &Video) {
    for name in ["created_at", "completed_at"] {
        let off = video[name].as_i64().unwrap() - WallClock::machine_s();
        assert!(off.abs() < TOLERANCE_S, "{name} is {off} s off: {video:#?}");
    }
}

#[test]
fn p10_workers_with_clocks_an_hour_apart_keep_their_leases_and_make_every_task_once() {
    let cluster = Cluster::new();
    let results = tempfile::tempdir().unwrap();
    let api = sharing(
        &cluster,
        &results,
        Setup::on(&cluster.machine()).without_worker(),
    )
    .start();
    let client = api.client();
    let clocks = [HOUR_S / 2, -HOUR_S / 2].map(WallClock::ahead_by);
    let [ahead, behind] = clocks
        .each_ref()
        .map(|clock| worker(&cluster, &results, clock));
    // As many long ones as there are slots, and short ones that wait for them.
    let mut ids = submit(&client, &slow(), 4);
    ids.extend(submit(&client, &square("kinora-b1"), 8));
    for id in &ids {
        assert_timely(&client.wait_completed(id));
    }
    ids.sort();
    for message in ["task finished", "task started"] {
        let logged = all_logged(&[&ahead, &behind], message, ids.len());
        assert_eq!(logged, ids, "a lease was lost, and its task run again");
    }
    for worker in [&ahead, &behind] {
        assert!(tasks_of(worker, "task finished").len() > 1, "one was idle");
    }

    // The death of one is noticed by the other, by its lease and not by its clock.
    let orphan = client.submit(&slow());
    client.wait_working(orphan.id());
    let is_ahead = tasks_of(&ahead, "task started").contains(&orphan.id().to_owned());
    let (dead, other) = if is_ahead {
        (ahead, behind)
    } else {
        (behind, ahead)
    };
    dead.kill();
    let again = until("the other worker to take it", || {
        tasks_of(&other, "task started")
            .pop()
            .filter(|id| id == orphan.id())
    });
    assert_timely(&client.wait_completed(&again));
}
