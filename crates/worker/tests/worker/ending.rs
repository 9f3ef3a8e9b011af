//! What the owner of a task does to it while it runs: cancel and delete, at every moment.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kinora_contract::{FailureCode, TaskPhase, TaskState};
use kinora_store::CancelOutcome;
use kinora_store::faulty::StoreMethod;

use crate::bench::{Bench, Running, until};
use crate::engines::{Act, Puppet};

/// How soon an engine must know that its work is not wanted.
const TOLD_WITHIN: Duration = Duration::from_secs(2);

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_task_fails_at_once_and_its_engine_is_told_within_two_seconds() {
    let bench = Bench::new();
    let engine = Arc::new(Puppet::at_first(Act::Obedient));
    let running = Running::start(bench.worker(&engine));
    let (id, next) = (bench.submit().await, bench.submit().await);
    until("the engine works", async || engine.at_work() == 1).await;
    let asked = Instant::now();
    let answer = bench.cancel(id).await;
    assert!(matches!(answer, CancelOutcome::Cancelled(_)), "{answer:?}");
    let cancelled = TaskState::Failed(FailureCode::Cancelled.into());
    assert_eq!(bench.task(id).await.state, cancelled);
    until("the engine was told", async || engine.told().is_some()).await;
    let told = engine.told().expect("just seen");
    assert!(told.duration_since(asked) < TOLD_WITHIN);
    let next = bench.completes(next).await;
    running.drained().await;
    bench.holds_only(&[next]).await;
    assert_eq!(bench.task(id).await.state, cancelled);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_deleted_while_it_runs_leaves_no_file() {
    let bench = Bench::new();
    let engine = Arc::new(Puppet::at_first(Act::Obedient));
    let running = Running::start(bench.worker(&engine));
    let (id, next) = (bench.submit().await, bench.submit().await);
    until("the engine works", async || engine.at_work() == 1).await;
    let asked = Instant::now();
    bench.delete(id).await;
    assert!(bench.find(id).await.is_none());
    until("the engine was told", async || engine.told().is_some()).await;
    let told = engine.told().expect("just seen");
    assert!(told.duration_since(asked) < TOLD_WITHIN);
    let next = bench.completes(next).await;
    running.drained().await;
    bench.holds_only(&[next]).await;
    assert!(bench.find(id).await.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_that_ignores_a_cancel_keeps_its_slot_and_its_clip_goes() {
    let bench = Bench::new();
    let engine = Arc::new(Puppet::new(Act::Held));
    let running = Running::start(bench.worker(&engine));
    let (id, next) = (bench.submit().await, bench.submit().await);
    until("the engine works", async || engine.at_work() == 1).await;
    bench.cancel(id).await;
    // Sweeps pass the time in which a slot that was freed too early would be taken.
    let sweeps = || bench.store_plan.calls(StoreMethod::Sweep);
    let enough = sweeps() + 20;
    until("the worker goes on", async || sweeps() >= enough).await;
    assert_eq!(engine.started(), 1);
    engine.release();
    // The one slot is free again only when the engine's thread has ended.
    let next = bench.completes(next).await;
    assert_eq!(engine.at_work_max(), 1);
    running.drained().await;
    bench.holds_only(&[next]).await;
    let (code, _) = bench.fails(id).await;
    assert_eq!(code, FailureCode::Cancelled.as_str());
}

/// The put goes on although its run was told to stop, as on a thread that blocks.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_whose_put_was_under_way_at_the_cancel_goes_again() {
    let bench = Bench::new();
    let running = Running::start(bench.worker(&Arc::new(Puppet::new(Act::Good))));
    bench.held.hold(true);
    let id = bench.submit().await;
    let begun = async || bench.files_begun() == 1;
    until("the video is being put", begun).await;
    bench.cancel(id).await;
    running.shutdown.drain();
    assert!(running.is_working());
    bench.held.hold(false);
    let ended = async || bench.held.ended() == 1;
    until("the put has ended", ended).await;
    running.returns().await;
    bench.holds_only(&[]).await;
}

/// In turns: as the engine ends, as the first file stands, as the video is put, as the outcome
/// is written.
#[tokio::test(flavor = "multi_thread")]
async fn p02_a_cancel_that_races_the_finish_gives_one_terminal_state_and_files_only_with_it() {
    const ROUNDS: usize = 60;
    let bench = Bench::new();
    let engine = Arc::new(Puppet::new(Act::Held));
    let running = Running::start(bench.worker(&engine));
    let mut answers = Vec::new();
    for round in 0..ROUNDS {
        let id = bench.submit().await;
        until("the engine works", async || engine.started() == round + 1).await;
        let begun = bench.files_begun();
        let finishes = bench.finishes();
        bench.held.hold(round % 4 == 2);
        engine.release_one();
        match round % 4 {
            0 => {}
            1 => {
                until("a file stands", async || {
                    has_file(&bench, &id.to_string()).await
                })
                .await;
            }
            2 => {
                let put = async || bench.files_begun() > begun;
                until("the video is being put", put).await;
                bench.held.hold(false);
            }
            _ => {
                let tried = async || bench.finishes() > finishes;
                until("the outcome is being written", tried).await;
            }
        }
        let completed = match bench.cancel(id).await {
            CancelOutcome::Cancelled(_) => false,
            CancelOutcome::AlreadyFinished(_) => true,
            CancelOutcome::NotFound => panic!("the task is there"),
        };
        answers.push((id, completed));
    }
    running.drained().await;
    let mut artifacts = Vec::new();
    for (id, completed) in answers {
        let task = bench.task(id).await;
        match &task.state {
            TaskState::Completed(artifact) if completed => artifacts.push((**artifact).clone()),
            TaskState::Failed(failure) if !completed => {
                assert_eq!(failure.code, FailureCode::Cancelled.as_str());
            }
            other => panic!("answered completed: {completed}, but it is {other:?}"),
        }
    }
    bench.holds_only(&artifacts).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delete_that_races_the_finish_leaves_no_file() {
    const ROUNDS: usize = 20;
    let bench = Bench::new();
    let engine = Arc::new(Puppet::new(Act::Held));
    let running = Running::start(bench.worker(&engine));
    for round in 0..ROUNDS {
        let id = bench.submit().await;
        until("the engine works", async || engine.started() == round + 1).await;
        assert_eq!(bench.phase(id).await, TaskPhase::Running);
        engine.release_one();
        if round % 2 == 1 {
            until("a file stands", async || {
                has_file(&bench, &id.to_string()).await
            })
            .await;
        }
        bench.delete(id).await;
    }
    running.drained().await;
    bench.holds_only(&[]).await;
}

async fn has_file(bench: &Bench, id: &str) -> bool {
    bench.keys().await.iter().any(|key| key.contains(id))
}
