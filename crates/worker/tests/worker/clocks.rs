//! A wall clock that is set while a worker works, and what is due at once.

use std::sync::Arc;
use std::time::Duration;

use kinora_contract::TaskPhase;
use kinora_store::faulty::StoreMethod;
use kinora_store::{ChoreKind, ChoreRequest};

use crate::bench::{Bench, DEADLINE, NOW, RETENTION_MS, Running, until};
use crate::engines::{Act, Puppet};

const HOUR_MS: u64 = 60 * 60 * 1000;
const YEAR_MS: u64 = 365 * 24 * HOUR_MS;
const SETTLE_MS: u64 = 10 * 60 * 1000;

/// Waits until sweeps that have begun after this have ended.
async fn sweeps_go_round(bench: &Bench) {
    let sweeps = || bench.store_plan.calls(StoreMethod::Sweep);
    // One may be under way.
    let enough = sweeps() + 3;
    until("the sweeps go round", async || sweeps() >= enough).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn p10_a_clock_that_jumps_costs_no_attempt() {
    for jumped in [
        NOW + 10 * HOUR_MS,
        NOW - 10 * HOUR_MS,
        NOW + 10 * YEAR_MS,
        0,
    ] {
        let bench = Bench::new();
        let engine = Arc::new(Puppet::new(Act::Held));
        let running = Running::start(bench.worker(&engine));
        let id = bench.submit().await;
        until("the engine works", async || engine.at_work() == 1).await;
        bench.clock.set(jumped);
        sweeps_go_round(&bench).await;
        engine.release();
        let artifact = bench.completes(id).await;
        assert_eq!((bench.task(id).await.attempt, engine.started()), (1, 1));
        running.drained().await;
        bench.holds_only(&[artifact]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn p10_a_clock_that_jumps_while_chores_are_leased_leaves_no_file_and_takes_none() {
    for jumped in [
        NOW + 25 * HOUR_MS,
        NOW - 10 * HOUR_MS,
        NOW + 10 * YEAR_MS,
        0,
    ] {
        let bench = Bench::new();
        let engine = Arc::new(Puppet::new(Act::Held));
        let first = Running::start(bench.worker(&engine));
        let id = bench.submit().await;
        until("the engine works", async || engine.at_work() == 1).await;
        bench.held.hold_removals(true);
        bench.cancel(id).await;
        engine.release();
        // One of the run's own, and as many of the chores as are done at a time.
        let held = async || bench.held.removals() == 5;
        until("the chores are leased", held).await;
        bench.clock.set(jumped);
        let second = Running::start(bench.worker(&engine));
        bench.held.hold_removals(false);
        let kept = bench.submit().await;
        let kept = bench.completes(kept).await;
        bench.comes_to_hold_only(std::slice::from_ref(&kept)).await;
        sweeps_go_round(&bench).await;
        first.drained().await;
        second.drained().await;
        // Not even under a lease.
        bench.clock.advance(HOUR_MS);
        let chores = bench.store.chores.lease_chores(ChoreRequest {
            kind: ChoreKind::RemoveFile,
            count: 10,
            lease_ms: HOUR_MS,
        });
        assert_eq!(chores.await.unwrap(), []);
        bench.holds_only(&[kept]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn p10_a_result_outlives_a_clock_that_is_wrong_until_both_clocks_agree() {
    let bench = Bench::new();
    let mut worker = bench.worker(&Arc::new(Puppet::new(Act::Good)));
    worker.settings.clock_settle_ms = SETTLE_MS;
    let running = Running::start(worker);
    let id = bench.submit().await;
    let artifact = bench.completes(id).await;
    sweeps_go_round(&bench).await;
    bench.clock.set(NOW + 10 * YEAR_MS);
    sweeps_go_round(&bench).await;
    bench.clock.advance(SETTLE_MS - 1);
    sweeps_go_round(&bench).await;
    assert_eq!(bench.phase(id).await, TaskPhase::Completed);
    bench.clock.set(NOW);
    sweeps_go_round(&bench).await;
    bench.holds_only(&[artifact]).await;
    // The clock that stays ends it, by both clocks.
    bench.clock.advance(RETENTION_MS);
    sweeps_go_round(&bench).await;
    bench.reaches(id, TaskPhase::Expired).await;
    running.drained().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn p10_what_a_clock_before_the_release_has_made_is_kept_for_its_time() {
    let bench = Bench::new();
    bench.clock.set(946_684_800_000);
    let mut worker = bench.worker(&Arc::new(Puppet::new(Act::Good)));
    worker.settings.clock_settle_ms = SETTLE_MS;
    let running = Running::start(worker);
    let id = bench.submit().await;
    let artifact = bench.completes(id).await;
    let today = kinora_contract::RELEASED_MS + YEAR_MS;
    bench.clock.set(today);
    sweeps_go_round(&bench).await;
    bench.clock.advance(SETTLE_MS);
    let moved =
        async || bench.task(id).await.expires_at_ms == Some(today + SETTLE_MS + RETENTION_MS);
    until("its expiry is moved", moved).await;
    sweeps_go_round(&bench).await;
    bench.holds_only(&[artifact]).await;
    bench.clock.advance(RETENTION_MS);
    bench.reaches(id, TaskPhase::Expired).await;
    running.drained().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backlog_is_caught_up_without_waiting_for_the_next_sweep() {
    const DUE: usize = 1_500;
    let bench = Bench::new();
    for _ in 0..DUE {
        let id = bench.submit().await;
        bench.cancel(id).await;
    }
    bench.clock.advance(RETENTION_MS);
    let mut worker = bench.worker(&Arc::new(Puppet::new(Act::Good)));
    worker.settings.sweep_every = Duration::from_hours(1);
    assert!(worker.settings.sweep_every > DEADLINE);
    let running = Running::start(worker);
    let usage = async || bench.usage().await.tasks;
    until("all are expired", async || usage().await == 0).await;
    running.drained().await;
}
