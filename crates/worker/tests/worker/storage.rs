//! Blob stores and task stores that are away for a while, or for good.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kinora_blobs::faulty::{BlobMethod, Fault, Rates};
use kinora_contract::{TaskId, TaskPhase};
use kinora_store::faulty::StoreMethod::{CompleteChores, Finish, Release};
use kinora_worker::{AnyEngine, EngineLineup, ServedEngine};

use crate::bench::{Bench, MODEL, RETENTION_MS, Running, until};
use crate::engines::{Act, Puppet};

/// Whether the task waits again after so many tries to give it back, and none of its attempts counted.
async fn is_back(bench: &Bench, id: TaskId, releases_min: u64) -> bool {
    let task = bench.task(id).await;
    let is_waiting = task.state.phase() == TaskPhase::Waiting && task.attempt == 0;
    is_waiting && bench.releases() >= releases_min
}

#[tokio::test(flavor = "multi_thread")]
async fn a_short_outage_of_the_blob_store_costs_no_task() {
    let bench = Bench::new();
    for method in [BlobMethod::PutBytes, BlobMethod::PutFile] {
        bench.blob_plan.fail_next(method, 1, Fault::Before);
    }
    let running = Running::start(bench.worker(&Arc::new(Puppet::new(Act::Good))));
    let id = bench.submit().await;
    let artifact = bench.completes(id).await;
    assert_eq!(bench.task(id).await.attempt, 1);
    running.drained().await;
    bench.holds_only(&[artifact]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn p11_a_blob_store_that_stays_full_costs_no_task_and_no_attempt_and_keeps_no_part() {
    let bench = Bench::new();
    bench
        .blob_plan
        .set_of(BlobMethod::PutFile, Some(Rates::AWAY));
    let mut worker = bench.worker(&Arc::new(Puppet::new(Act::Good)));
    // An attempt that counted would be the last one.
    worker.settings.attempts_max = 1;
    let running = Running::start(worker);
    let id = bench.submit().await;
    until("the task is given back", async || {
        is_back(&bench, id, 1).await
    })
    .await;
    // The stills had been stored.
    let no_part = async || bench.keys().await.is_empty();
    until("no part is kept", no_part).await;
    // Another claim is tried after a pause, and ends alike.
    let again = async || bench.releases() >= 2;
    until("the task is given back again", again).await;
    bench.blob_plan.set_of(BlobMethod::PutFile, None);
    let artifact = bench.completes(id).await;
    assert_eq!(bench.task(id).await.attempt, 1);
    running.drained().await;
    bench.holds_only(&[artifact]).await;
}

/// The store is full as well: that the task goes back is written as soon as it can be.
#[tokio::test(flavor = "multi_thread")]
async fn p11_a_task_is_given_back_once_the_store_takes_it() {
    let bench = Bench::new();
    bench
        .blob_plan
        .set_of(BlobMethod::PutFile, Some(Rates::AWAY));
    bench.store_plan.fail_next(Release, 2, Fault::Before);
    let running = Running::start(bench.worker(&Arc::new(Puppet::new(Act::Good))));
    let id = bench.submit().await;
    until("the task is given back", async || {
        is_back(&bench, id, 3).await
    })
    .await;
    bench.blob_plan.set_of(BlobMethod::PutFile, None);
    let artifact = bench.completes(id).await;
    running.drained().await;
    bench.holds_only(&[artifact]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_does_not_wait_for_the_retries_of_a_full_blob_store() {
    let bench = Bench::new();
    bench
        .blob_plan
        .set_of(BlobMethod::PutFile, Some(Rates::AWAY));
    let running = Running::start(bench.worker(&Arc::new(Puppet::new(Act::Good))));
    let id = bench.submit().await;
    let begun = async || bench.files_begun() == 1;
    until("the video was refused", begun).await;
    bench.cancel(id).await;
    running.drained().await;
    assert_eq!(bench.files_begun(), 1);
    bench.holds_only(&[]).await;
}

/// Somebody removed it, and a file stands in its place.
#[tokio::test(flavor = "multi_thread")]
async fn p11_a_scratch_folder_that_is_gone_costs_no_task() {
    let bench = Bench::new();
    let scratch = bench.scratch.path();
    std::fs::remove_dir(scratch).unwrap();
    std::fs::write(scratch, "no folder").unwrap();
    let running = Running::start(bench.worker(&Arc::new(Puppet::new(Act::Good))));
    let id = bench.submit().await;
    until("the task is given back", async || {
        is_back(&bench, id, 1).await
    })
    .await;
    std::fs::remove_file(scratch).unwrap();
    // Nobody else makes the folder again.
    let artifact = bench.completes(id).await;
    assert_eq!(bench.task(id).await.attempt, 1);
    running.drained().await;
    bench.holds_only(&[artifact]).await;
}

/// The file is stored, but its writer never gets the answer: once, and every time.
#[tokio::test(flavor = "multi_thread")]
async fn p04_a_put_whose_answer_is_lost_costs_no_run() {
    // As often as a put is tried.
    for lost in [1, 4] {
        for method in [BlobMethod::PutFile, BlobMethod::PutBytes] {
            let bench = Bench::new();
            let engine = Arc::new(Puppet::new(Act::Good));
            let running = Running::start(bench.worker(&engine));
            bench.blob_plan.fail_next(method, lost, Fault::After);
            let id = bench.submit().await;
            let artifact = bench.completes(id).await;
            assert!(bench.blob_plan.calls(method) >= lost, "{method:?}");
            assert_eq!((bench.task(id).await.attempt, bench.releases()), (1, 0));
            running.drained().await;
            bench.holds_only(&[artifact]).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_blob_store_is_not_taken_for_an_engine_that_stands_still() {
    let bench = Bench::new();
    let progress_timeout = Duration::from_secs(1);
    let engine = Arc::new(Puppet::new(Act::Good));
    let mut worker = bench.worker(&engine);
    let served = ServedEngine {
        seats: None,
        engine: AnyEngine::Frames(engine),
        progress_timeout,
        device: None,
        preset: None,
    };
    worker.lineup = EngineLineup::new([(MODEL.to_owned(), served)]);
    bench.held.hold(true);
    let running = Running::start(worker);
    let id = bench.submit().await;
    let begun = async || bench.files_begun() == 1;
    until("the video is being put", begun).await;
    let since = Instant::now();
    until("an engine would be given up", async || {
        since.elapsed() > 2 * progress_timeout
    })
    .await;
    assert_eq!(bench.phase(id).await, TaskPhase::Running);
    bench.held.hold(false);
    let artifact = bench.completes(id).await;
    running.drained().await;
    bench.holds_only(&[artifact]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outcome_that_the_store_refuses_for_a_while_is_written_in_the_end() {
    let bench = Bench::new();
    bench.store_plan.fail_next(Finish, 3, Fault::Before);
    let running = Running::start(bench.worker(&Arc::new(Puppet::new(Act::Good))));
    let id = bench.submit().await;
    let artifact = bench.completes(id).await;
    assert_eq!(bench.task(id).await.attempt, 1);
    assert_eq!(bench.finishes(), 4);
    running.drained().await;
    bench.holds_only(&[artifact]).await;
}

/// The second try learns that the lease is gone, which is no reason to remove the result.
#[tokio::test(flavor = "multi_thread")]
async fn p04_a_finish_that_was_written_although_it_was_reported_as_failed_keeps_its_files() {
    let bench = Bench::new();
    bench.store_plan.fail_next(Finish, 1, Fault::After);
    let running = Running::start(bench.worker(&Arc::new(Puppet::new(Act::Good))));
    let id = bench.submit().await;
    let artifact = bench.completes(id).await;
    running.drained().await;
    assert_eq!(bench.finishes(), 2);
    bench.holds_only(&[artifact]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_could_not_be_removed_go_after_a_restart() {
    let bench = Bench::new();
    let engine = Arc::new(Puppet::new(Act::Good));
    let first = Running::start(bench.worker(&engine));
    let id = bench.submit().await;
    bench.completes(id).await;
    bench
        .blob_plan
        .set_of(BlobMethod::Delete, Some(Rates::AWAY));
    bench.clock.advance(RETENTION_MS + 1);
    // Five files; and once more after a pause.
    let tries = || bench.blob_plan.calls(BlobMethod::Delete);
    until("each file was tried", async || tries() >= 5).await;
    let settled = || bench.store_plan.calls(CompleteChores);
    until("and put back", async || settled() >= 1).await;
    // The call may still be under way, and the pause begins with its end.
    let tried_again = async || {
        bench.clock.advance(1_000);
        tries() >= 10
    };
    until("each file was tried twice", tried_again).await;
    first.drained().await;
    assert_eq!(bench.phase(id).await, TaskPhase::Expired);
    assert_eq!(bench.keys().await.len(), 5);

    bench.blob_plan.set_of(BlobMethod::Delete, None);
    bench.clock.advance(60_000);
    let second = Running::start(bench.worker(&engine));
    until("no file is left", async || bench.keys().await.is_empty()).await;
    second.drained().await;
}
