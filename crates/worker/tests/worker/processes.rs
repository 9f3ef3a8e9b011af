//! An API process and a worker process that share a store, as two handles on it: the API side has no worker, and
//! the worker side no client. With hints, and without: they save waiting, and polling is the truth.

use std::sync::Arc;

use kinora_contract::{TaskId, TaskPhase};
use kinora_store::CancelOutcome;

use crate::bench::{Bench, Running, until};
use crate::engines::{Act, Puppet};

async fn position(bench: &Bench, id: TaskId) -> Option<u64> {
    let positions = bench.store.tasks.positions(&[id]).await.unwrap();
    positions[0]
}

async fn a_cancel_frees_the_slot(deaf: bool) {
    let bench = Bench::of_two_processes(deaf);
    let engine = Arc::new(Puppet::new(Act::Obedient));
    let running = Running::start(bench.worker(&engine));
    let (first, second) = (bench.submit().await, bench.submit().await);
    until("the first runs", async || engine.at_work() == 1).await;
    bench.reaches(first, TaskPhase::Running).await;
    assert_eq!(position(&bench, second).await, Some(0));
    assert!(matches!(
        bench.cancel(first).await,
        CancelOutcome::Cancelled(_)
    ));
    // The worker has one slot: the second runs only once the engine was told to stop the first.
    until("the second runs", async || engine.started() == 2).await;
    assert!(engine.told().is_some());
    bench.reaches(second, TaskPhase::Running).await;
    assert_eq!(position(&bench, second).await, None);
    bench.cancel(second).await;
    until("no engine works", async || engine.at_work() == 0).await;
    running.drained().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_in_one_process_frees_the_slot_in_another() {
    a_cancel_frees_the_slot(false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_frees_the_slot_although_no_hint_arrives() {
    a_cancel_frees_the_slot(true).await;
}

async fn a_run_is_seen(deaf: bool) {
    let bench = Bench::of_two_processes(deaf);
    let engine = Arc::new(Puppet::new(Act::Shows));
    let running = Running::start(bench.worker(&engine));
    let id = bench.submit().await;
    until("a preview shows", async || {
        bench.preview(id).await.is_some()
    })
    .await;
    let task = bench.task(id).await;
    assert_eq!(task.state.phase(), TaskPhase::Running);
    engine.release();
    let artifact = bench.completes(id).await;
    assert_eq!(bench.preview(id).await, None);
    assert_eq!(bench.task(id).await.progress, 100);
    running.drained().await;
    bench.holds_only(&[artifact]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_preview_and_the_end_of_a_run_are_seen_in_another_process() {
    a_run_is_seen(false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_submit_is_claimed_and_seen_although_no_hint_arrives() {
    a_run_is_seen(true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn progress_and_engine_are_seen_in_another_process() {
    let bench = Bench::of_two_processes(false);
    let engine = Arc::new(Puppet::new(Act::Obedient));
    let running = Running::start(bench.worker(&engine));
    let id = bench.submit().await;
    until("progress shows", async || bench.task(id).await.progress > 0).await;
    assert!(bench.task(id).await.engine.is_some());
    running.shutdown.now();
    running.returns().await;
}
