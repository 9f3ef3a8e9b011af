//! The database's clock is set while workers work and die: it costs no attempt, and delays no rescue.

use kinora_test_e2e::{Hold, Setup, until};
use kinora_testkit::postgres::Server as Postgres;
use tempfile::TempDir;

use super::clocks::sharing;
use super::{Cluster, Server, tasks_of};
use crate::clocks::{HOUR_S, TEN_YEARS_S, sweeps_pass};
use crate::support::{assert_plays, quick, slow};

/// A cluster whose database shows the time that a test sets.
fn cluster() -> Cluster {
    let cluster = Cluster::new();
    move_clock(&cluster, 0);
    cluster
}

fn move_clock(cluster: &Cluster, ahead_s: i64) {
    Postgres::shared().move_clock(&cluster.database, ahead_s);
}

fn worker(cluster: &Cluster, results: &TempDir, setup: Setup) -> Server {
    sharing(cluster, results, setup.as_worker()).start()
}

fn api(cluster: &Cluster, results: &TempDir) -> Server {
    let setup = Setup::on(&cluster.machine()).without_worker();
    sharing(cluster, results, setup).start()
}

#[test]
fn p10_steps_of_the_databases_clock_cost_a_slow_task_no_attempt() {
    let (cluster, results) = (cluster(), tempfile::tempdir().unwrap());
    let api = api(&cluster, &results);
    // It stands still while it publishes, so that its lease is renewed only every ten seconds.
    let hold = Hold::at("blobs.synced", 3);
    let worker = worker(&cluster, &results, hold.over(Setup::on(&cluster.machine())));
    let client = api.client();
    let video = client.submit(&quick("kinora-b1"));
    hold.wait();
    for ahead_s in [1, 2, 3, 4, -2].map(|hours| hours * HOUR_S) {
        move_clock(&cluster, ahead_s);
        sweeps_pass(2);
        assert_eq!(
            client.video(video.id()).status(),
            "in_progress",
            "{ahead_s}"
        );
        // A command has seen no step; the worker announces itself again soon.
        let is_listed = || cluster.command(&["workers"]).contains("serving");
        until("the worker to be listed", || is_listed().then_some(()));
    }
    move_clock(&cluster, TEN_YEARS_S);
    sweeps_pass(2);
    move_clock(&cluster, 0);
    hold.release();
    assert_plays(&client, &client.wait_completed(video.id()));
    assert_eq!(tasks_of(&worker, "task started"), [video.id()]);
}

#[test]
fn p05_the_task_of_a_dead_worker_is_rescued_although_the_databases_clock_is_set_back() {
    let (cluster, results) = (cluster(), tempfile::tempdir().unwrap());
    let short = || Setup::on(&cluster.machine()).set("KINORA_WORKER_LEASE_SECONDS", 5);
    let dead = worker(&cluster, &results, short().set("LONG_CLIP_FRAME_MS", 45));
    let api = api(&cluster, &results);
    let client = api.client();
    let video = client.submit(&slow());
    client.wait_working(video.id());
    dead.kill();
    // No process that saw it right is left.
    drop(api);
    move_clock(&cluster, -2 * HOUR_S);
    let next = worker(&cluster, &results, short());
    until("the next worker to take it", || {
        tasks_of(&next, "task started")
            .contains(&video.id().to_owned())
            .then_some(())
    });
    // Nor is the dead one listed, and the other one announces itself.
    until("one worker to be listed", || {
        let listed = cluster.command(&["workers"]);
        (listed.matches("serving").count() == 1).then_some(())
    });
}
