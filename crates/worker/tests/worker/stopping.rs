//! The orderly stop, in its two steps.

use std::sync::Arc;
use std::time::Duration;

use kinora_contract::{Status, TaskId, TaskPhase};
use kinora_store::faulty::{Rates, StoreMethod};

use crate::bench::{Bench, Running, until};
use crate::engines::{Act, Puppet, is_left};

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_finishes_what_runs_and_begins_nothing() {
    let bench = Bench::new();
    let engine = Arc::new(Puppet::new(Act::Held));
    let running = Running::start(bench.worker(&engine));
    let (runs, waits) = (bench.submit().await, bench.submit().await);
    until("the engine works", async || engine.at_work() == 1).await;
    running.shutdown.drain();
    let late = bench.submit().await;
    assert!(running.is_working());
    engine.release();
    running.returns().await;
    let artifact = bench.completes(runs).await;
    assert_eq!(engine.started(), 1);
    for id in [waits, late] {
        assert_is_queued_anew(&bench, id, Status::Queued).await;
    }
    bench.holds_only(&[artifact]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_at_once_gives_back_what_runs_and_another_worker_completes_it() {
    let bench = Bench::new();
    let engine = Arc::new(Puppet::new(Act::Obedient));
    let mut worker = bench.worker(&engine);
    worker.settings.slots = 2;
    let running = Running::start(worker);
    let tasks = [bench.submit().await, bench.submit().await];
    until("both run", async || engine.at_work() == 2).await;
    running.shutdown.now();
    running.returns().await;
    for id in tasks {
        assert_is_queued_anew(&bench, id, Status::InProgress).await;
    }
    is_left(&engine).await;
    assert!(engine.told().is_some());
    bench.comes_to_hold_only(&[]).await;

    let running = Running::start(bench.worker(&Arc::new(Puppet::new(Act::Good))));
    let mut artifacts = Vec::new();
    for id in tasks {
        artifacts.push(bench.completes(id).await);
        assert_eq!(bench.task(id).await.attempt, 1);
    }
    running.drained().await;
    bench.holds_only(&artifacts).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_at_once_waits_for_no_hung_engine() {
    let bench = Bench::new();
    let engine = Arc::new(Puppet::new(Act::Held));
    let running = Running::start(bench.worker(&engine));
    let id = bench.submit().await;
    until("the engine hangs", async || engine.at_work() == 1).await;
    running.shutdown.now();
    running.returns().await;
    assert_eq!(engine.at_work(), 1);
    assert_is_queued_anew(&bench, id, Status::InProgress).await;
    engine.release();
    is_left(&engine).await;
    bench.comes_to_hold_only(&[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_at_once_takes_back_what_was_just_being_published() {
    let bench = Bench::new();
    let running = Running::start(bench.worker(&Arc::new(Puppet::new(Act::Good))));
    bench.held.hold(true);
    let id = bench.submit().await;
    let begun = async || bench.files_begun() == 1;
    until("the video is being put", begun).await;
    running.shutdown.now();
    // Given back only after nothing is being written: the next attempt may be quick.
    assert_eq!(bench.phase(id).await, TaskPhase::Running);
    bench.held.hold(false);
    running.returns().await;
    let phase = bench.phase(id).await;
    if phase == TaskPhase::Completed {
        let artifact = bench.completes(id).await;
        bench.holds_only(&[artifact]).await;
    } else {
        assert_is_queued_anew(&bench, id, Status::InProgress).await;
        bench.holds_only(&[]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn past_the_drain_limit_what_still_runs_is_given_back() {
    let bench = Bench::new();
    let engine = Arc::new(Puppet::new(Act::Obedient));
    let mut worker = bench.worker(&engine);
    worker.settings.drain_limit = Duration::from_millis(20);
    let running = Running::start(worker);
    let id = bench.submit().await;
    until("the engine works", async || engine.at_work() == 1).await;
    running.drained().await;
    assert_is_queued_anew(&bench, id, Status::InProgress).await;
    until("the engine was told", async || engine.told().is_some()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_at_once_does_not_wait_for_a_store_that_stays_away() {
    let bench = Bench::new();
    bench
        .store_plan
        .set_of(StoreMethod::Finish, Some(Rates::AWAY));
    let running = Running::start(bench.worker(&Arc::new(Puppet::new(Act::Good))));
    let id = bench.submit().await;
    let tried = async || bench.finishes() > 0;
    until("the outcome could not be written", tried).await;
    running.shutdown.now();
    running.returns().await;
    // Nobody gave it back: the next start or sweep does.
    assert_eq!(bench.phase(id).await, TaskPhase::Running);
}

async fn assert_is_queued_anew(bench: &Bench, id: TaskId, status: Status) {
    let task = bench.task(id).await;
    assert_eq!(task.state.phase(), TaskPhase::Waiting);
    assert_eq!(task.attempt, 0);
    assert_eq!(task.status(), Some(status));
}
