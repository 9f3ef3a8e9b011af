//! Engines whose process ends: another attempt may spare the task, each counts, and the last one's
//! end is the task's. What the owner said meanwhile stands.

use std::sync::Arc;

use kinora_contract::{FailureCode, Status, TaskId, TaskPhase};
use kinora_store::CancelOutcome;
use kinora_store::faulty::{Rates, StoreMethod};

use crate::bench::{Bench, Running, until};
use crate::engines::{Act, CRASHED, PRIVATE, Puppet};

const ATTEMPTS_MAX: u32 = 3;

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_costs_an_attempt_and_the_last_one_fails_with_its_code() {
    let bench = Bench::new();
    let engine = Arc::new(Puppet::new(Act::Crashes));
    let mut worker = bench.worker(&engine);
    worker.settings.attempts_max = ATTEMPTS_MAX;
    let running = Running::start(worker);
    let id = bench.submit().await;
    for attempt in 1..=ATTEMPTS_MAX {
        until("the engine works", async || {
            engine.started() == attempt as usize
        })
        .await;
        assert_eq!(bench.task(id).await.attempt, attempt);
        engine.release_one();
    }
    let (code, message) = bench.fails(id).await;
    assert_eq!(code, CRASHED.as_str());
    assert_eq!(message, CRASHED.sentence());
    assert!(!message.contains(PRIVATE));
    assert_eq!(bench.task(id).await.attempt, ATTEMPTS_MAX);
    running.drained().await;
    assert_eq!(engine.started(), ATTEMPTS_MAX as usize);
    bench.holds_only(&[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_whose_first_attempt_crashed_is_completed_by_the_second() {
    let bench = Bench::new();
    let engine = Arc::new(Puppet::at_first(Act::Crashes));
    engine.release();
    let running = Running::start(bench.worker(&engine));
    let id = bench.submit().await;
    let artifact = bench.completes(id).await;
    assert_eq!(bench.task(id).await.attempt, 2);
    running.drained().await;
    bench.holds_only(&[artifact]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_that_nobody_saw_before_the_crash_stands() {
    let bench = Bench::new();
    let engine = Arc::new(Puppet::at_first(Act::Crashes));
    let running = Running::start(bench.worker(&engine));
    let id = bench.submit().await;
    until("the engine works", async || engine.at_work() == 1).await;
    // No heartbeat hears of the cancel: the crash is what ends the run.
    for method in [StoreMethod::FindLost, StoreMethod::Renew] {
        bench.store_plan.set_of(method, Some(Rates::AWAY));
    }
    bench.heartbeats_go_round().await;
    cancel(&bench, id).await;
    engine.release_one();
    until("the task was given back", async || {
        bench.store_plan.calls(StoreMethod::Release) == 1
    })
    .await;
    for method in [StoreMethod::FindLost, StoreMethod::Renew] {
        bench.store_plan.set_of(method, None);
    }
    is_left_alone(&bench, &engine, running, id).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_between_a_crash_and_the_next_attempt_stands() {
    let bench = Bench::new();
    let engine = Arc::new(Puppet::at_first(Act::Crashes));
    let running = Running::start(bench.worker(&engine));
    let id = bench.submit().await;
    until("the engine works", async || engine.at_work() == 1).await;
    bench
        .store_plan
        .set_of(StoreMethod::Claim, Some(Rates::AWAY));
    engine.release_one();
    let task = bench.reaches(id, TaskPhase::Waiting).await;
    assert_eq!(task.attempt, 1);
    assert_eq!(task.status(), Some(Status::InProgress), "it was begun");
    cancel(&bench, id).await;
    bench.store_plan.set_of(StoreMethod::Claim, None);
    is_left_alone(&bench, &engine, running, id).await;
}

async fn cancel(bench: &Bench, id: TaskId) {
    let answer = bench.cancel(id).await;
    assert!(matches!(answer, CancelOutcome::Cancelled(_)), "{answer:?}");
}

/// The worker goes on with the next task; this one stays cancelled after its one attempt.
async fn is_left_alone(bench: &Bench, engine: &Arc<Puppet>, running: Running, id: TaskId) {
    let next = bench.submit().await;
    let next = bench.completes(next).await;
    running.drained().await;
    let (code, _) = bench.fails(id).await;
    assert_eq!(code, FailureCode::Cancelled.as_str());
    assert_eq!(bench.task(id).await.attempt, 1);
    assert_eq!(engine.started(), 2);
    bench.holds_only(&[next]).await;
}
