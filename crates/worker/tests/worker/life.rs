//! What happens to a task when nothing goes wrong.

use std::sync::Arc;

use kinora_contract::limits::WARNINGS_MAX;
use kinora_contract::{TaskPhase, TaskState, Warning, WarningCode};
use kinora_store::faulty::{Fault, StoreMethod};

use crate::bench::{Bench, LEASE_MS, MODEL, NOW, RETENTION_MS, Running, until};
use crate::engines::{Act, ENGINE, Puppet};

#[tokio::test(flavor = "multi_thread")]
async fn a_task_goes_from_claim_to_a_result_that_can_be_read() {
    let bench = Bench::new();
    let running = Running::start(bench.worker(&Arc::new(Puppet::new(Act::Good))));
    let id = bench.submit().await;
    let artifact = bench.completes(id).await;
    let task = bench.task(id).await;
    assert_eq!(task.progress, 100);
    assert_eq!(task.attempt, 1);
    assert_eq!(task.engine.as_deref(), Some(ENGINE));
    assert_eq!(task.started_at_ms, Some(NOW));
    assert_eq!(task.finished_at_ms, Some(NOW));
    assert_eq!(task.expires_at_ms, Some(NOW + RETENTION_MS));
    assert_eq!((artifact.width, artifact.height), (64, 64));
    assert_eq!((artifact.frames, artifact.fps), (4, 8.0));
    assert!((artifact.duration_seconds - 0.5).abs() < 1e-9);
    assert!(artifact.has_audio);
    running.drained().await;
    bench.holds_only(&[artifact]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn progress_and_engine_show_while_a_task_runs() {
    let bench = Bench::new();
    let running = Running::start(bench.worker(&Arc::new(Puppet::new(Act::Obedient))));
    let id = bench.submit().await;
    // Half of the frames, after the preparation.
    until("progress shows", async || {
        bench.task(id).await.progress == 51
    })
    .await;
    assert_eq!(bench.phase(id).await, TaskPhase::Running);
    assert_eq!(bench.task(id).await.engine.as_deref(), Some(ENGINE));
    running.shutdown.now();
    running.returns().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn warnings_of_an_engine_come_with_the_task_although_the_store_fails_for_a_moment() {
    let bench = Bench::new();
    bench
        .store_plan
        .fail_next(StoreMethod::Renew, 1, Fault::Before);
    let engine = Puppet::new(Act::Good).warning(WARNINGS_MAX + 1);
    let running = Running::start(bench.worker(&Arc::new(engine)));
    let id = bench.submit().await;
    bench.completes(id).await;
    let warning = Warning::from(WarningCode::SeedIgnored);
    assert_eq!(bench.task(id).await.warnings, vec![warning; WARNINGS_MAX]);
    running.drained().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_engine_shows_of_a_clip_shows_while_it_runs() {
    let bench = Bench::new();
    let engine = Arc::new(Puppet::new(Act::Shows));
    let running = Running::start(bench.worker(&engine));
    let id = bench.submit().await;
    until("a preview shows", async || {
        bench.preview(id).await.is_some_and(|preview| {
            let shown = image_size(&preview);
            // Twice as wide as the longest side that is handed out.
            assert_eq!(shown, (320, 160));
            true
        })
    })
    .await;
    engine.release();
    bench.completes(id).await;
    assert_eq!(bench.preview(id).await, None, "its thumbnail is a file now");
    running.drained().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn p05_a_lease_is_renewed_although_no_preview_can_be_encoded() {
    let bench = Bench::new();
    let engine = Arc::new(Puppet::new(Act::Shows));
    let worker = bench.worker(&engine);
    let threads = worker.pools.previews.clone();
    let (free, stuck) = std::sync::mpsc::channel::<()>();
    let stuck = Arc::new(std::sync::Mutex::new(stuck));
    for _ in 0..8 {
        let (threads, stuck) = (threads.clone(), stuck.clone());
        tokio::spawn(async move { threads.run(move || stuck.lock().unwrap().recv()).await });
    }
    let running = Running::start(worker);
    let id = bench.submit().await;
    until("the engine shows its work", async || engine.started() == 1).await;
    let renewals = || bench.store_plan.calls(StoreMethod::Renew);
    for _ in 0..3 {
        let before = renewals();
        bench.clock.advance(LEASE_MS / 3);
        until("the lease is renewed", async || renewals() > before).await;
    }
    assert_eq!(bench.preview(id).await, None);
    drop(free);
    until("a preview shows", async || {
        bench.preview(id).await.is_some()
    })
    .await;
    engine.release();
    bench.completes(id).await;
    running.drained().await;
}

/// Width and height in the header of a lossy WebP (RFC 9649, 2.5): 14 bits each, after the frame tag
/// and the start code.
fn image_size(webp: &[u8]) -> (u16, u16) {
    assert_eq!((&webp[..4], &webp[8..16]), (&b"RIFF"[..], &b"WEBPVP8 "[..]));
    let side = |at: usize| u16::from_le_bytes([webp[at], webp[at + 1]]) & 0x3fff;
    (side(26), side(28))
}

#[tokio::test(flavor = "multi_thread")]
async fn as_many_tasks_run_at_a_time_as_there_are_slots_and_never_more() {
    const SLOTS: usize = 3;
    let bench = Bench::new();
    let engine = Arc::new(Puppet::new(Act::Held));
    let mut tasks = Vec::new();
    for _ in 0..3 * SLOTS {
        tasks.push(bench.submit().await);
    }
    let mut worker = bench.worker(&engine);
    worker.settings.slots = SLOTS;
    let running = Running::start(worker);
    for done in 0..=tasks.len() - SLOTS {
        until("all slots are taken", async || {
            engine.started() == done + SLOTS
        })
        .await;
        engine.release_one();
    }
    engine.release();
    let mut artifacts = Vec::new();
    for id in tasks {
        artifacts.push(bench.completes(id).await);
    }
    assert_eq!(engine.at_work_max(), SLOTS);
    running.drained().await;
    bench.holds_only(&artifacts).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_leaves_models_alone_that_it_does_not_serve() {
    let bench = Bench::new();
    let other = bench.submit_to("other").await;
    let running = Running::start(bench.worker(&Arc::new(Puppet::new(Act::Good))));
    let served = bench.submit_to(MODEL).await;
    bench.completes(served).await;
    running.drained().await;
    let task = bench.task(other).await;
    assert_eq!((task.state.phase(), task.attempt), (TaskPhase::Waiting, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_past_its_time_is_swept_with_its_files() {
    let bench = Bench::new();
    let running = Running::start(bench.worker(&Arc::new(Puppet::new(Act::Good))));
    let old = bench.submit().await;
    bench.completes(old).await;
    bench.clock.advance(RETENTION_MS - 1);
    let young = bench.submit().await;
    let artifact = bench.completes(young).await;
    assert_eq!(bench.phase(old).await, TaskPhase::Completed);
    bench.clock.advance(1);
    let task = bench.reaches(old, TaskPhase::Expired).await;
    assert_eq!(task.state, TaskState::Expired);
    bench.comes_to_hold_only(&[artifact]).await;
    assert_eq!(bench.phase(young).await, TaskPhase::Completed);
    running.drained().await;
}
