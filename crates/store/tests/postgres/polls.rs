//! Polls of unfinished tasks that are answered from memory: how old they may be, and that none goes back.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::{Duration, Instant};

use kinora_contract::{ManualClock, Task, TaskState};
use kinora_store::conformance::Site;
use kinora_store::conformance::bench::Bench as _;
use kinora_store::conformance::fixtures::{NOW, RETENTION_MS, cancelled, id};
use kinora_store::{
    CancelOutcome, LeaseRenewal, ListOrder, OpenOptions, PageRequest, PostgresOptions, migrate,
    open,
};
use kinora_testkit::postgres::{Server, Settings};

use crate::harness::{database, exact, is_unavailable, open_at};

/// Only a failing test takes so long.
const PATIENCE: Duration = Duration::from_secs(30);
const AGE_MS: u64 = 200;

async fn remembering(url: &str, clock: Arc<ManualClock>) -> Site {
    let options = OpenOptions {
        postgres: PostgresOptions {
            polled_ms_max: AGE_MS,
            ..exact()
        },
        ..OpenOptions::new(clock.clone())
    };
    Site::of(open(url, &options).await.unwrap(), clock)
}

/// As a process does that tells nobody.
fn set_progress(url: &str, progress: u8) {
    let set = format!("UPDATE tasks SET progress = {progress}");
    tokio::task::block_in_place(|| Server::shared().run(url, &set));
}

async fn poll(site: &Site) -> Arc<Task> {
    let found = site.tasks.poll("one", id(1)).await.unwrap();
    found.expect("the task is there")
}

fn at(progress: u8) -> LeaseRenewal {
    LeaseRenewal {
        progress,
        ..LeaseRenewal::default()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_poll_is_answered_from_memory_for_a_bounded_time() {
    let server = Server::start(Settings::default());
    let url = server.database();
    migrate(&url).await.unwrap();
    let clock = Arc::new(ManualClock::at(NOW));
    let site = remembering(&url, clock.clone()).await;
    site.submit(1, "one").await;
    assert_eq!(poll(&site).await.state, TaskState::Waiting);
    server.stop();
    clock.advance(AGE_MS - 1);
    assert_eq!(poll(&site).await.state, TaskState::Waiting);
    assert!(site.tasks.poll("two", id(1)).await.unwrap().is_none());
    // Whoever asks for more than a poll is told that nobody knows.
    assert!(is_unavailable(&site.tasks.get("one", id(1)).await));
    clock.advance(1);
    assert!(is_unavailable(&site.tasks.poll("one", id(1)).await));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_by_another_process_is_seen_after_that_time() {
    let url = database().await;
    let clock = Arc::new(ManualClock::at(NOW));
    let site = remembering(&url, clock.clone()).await;
    let asking = open_at(&url, clock.clone()).await;
    site.submit(1, "one").await;
    for progress in 1..=20 {
        poll(&site).await;
        set_progress(&url, progress);
        assert_eq!(poll(&asking).await.progress, progress);
        clock.advance(AGE_MS);
        assert_eq!(poll(&site).await.progress, progress);
    }
    let delete = "DELETE FROM tasks";
    tokio::task::block_in_place(|| Server::shared().run(&url, delete));
    clock.advance(AGE_MS);
    assert!(site.tasks.poll("one", id(1)).await.unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_this_process_does_is_polled_at_once() {
    let url = database().await;
    let site = remembering(&url, Arc::new(ManualClock::at(NOW))).await;
    site.submit(1, "one").await;
    assert_eq!(poll(&site).await.state, TaskState::Waiting);
    let claim = site.claim_one().await;
    assert_eq!(poll(&site).await.state, TaskState::Running);
    for progress in 1..=50 {
        site.renew(&claim.lease, at(progress)).await.unwrap();
        assert_eq!(poll(&site).await.progress, progress);
    }
    site.cancel("one", 1, RETENTION_MS).await;
    assert!(matches!(poll(&site).await.state, TaskState::Failed(_)));
    site.tasks.delete("one", id(1)).await.unwrap();
    assert!(site.tasks.poll("one", id(1)).await.unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_poll_goes_back_behind_another_answer_of_its_process() {
    let url = database().await;
    let clock = Arc::new(ManualClock::at(NOW));
    let (site, other) = (
        remembering(&url, clock.clone()).await,
        open_at(&url, clock).await,
    );
    site.submit(1, "one").await;
    poll(&site).await;
    set_progress(&url, 10);
    assert_eq!(site.task("one", 1).await.progress, 10);
    assert_eq!(poll(&site).await.progress, 10);

    set_progress(&url, 20);
    let page = PageRequest {
        project: "one".to_owned(),
        after: None,
        limit: 10,
        order: ListOrder::Descending,
    };
    let page = site.tasks.list(page).await.unwrap();
    assert_eq!(page.tasks[0].progress, 20);
    assert_eq!(poll(&site).await.progress, 20);

    set_progress(&url, 30);
    let glance = site.tasks.glance(&[id(1)]).await.unwrap()[0].unwrap();
    assert_eq!(glance.progress, 30);
    assert_eq!(poll(&site).await.progress, 30);

    set_progress(&url, 40);
    assert_eq!(site.tasks.unfinished("one").await.unwrap()[0].progress, 40);
    assert_eq!(poll(&site).await.progress, 40);

    let claim = other.claim_one().await;
    other.complete(&claim).await.unwrap();
    let cancel = site.tasks.cancel("one", id(1), cancelled(), RETENTION_MS);
    let answer = cancel.await.unwrap();
    assert!(
        matches!(answer, CancelOutcome::AlreadyFinished(_)),
        "{answer:?}"
    );
    assert!(matches!(poll(&site).await.state, TaskState::Completed(_)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn under_load_no_poll_of_a_process_goes_back() {
    let url = database().await;
    let clock = Arc::new(ManualClock::at(NOW));
    let (site, other) = (
        remembering(&url, clock.clone()).await,
        open_at(&url, clock.clone()).await,
    );
    site.submit(1, "one").await;
    let claim = other.claim_one().await;
    let (shown, stop) = (Arc::new(AtomicU8::new(0)), Arc::new(AtomicBool::new(false)));
    let pollers = (0..8).map(|poller| {
        let (site, shown, stop) = (site.clone(), shown.clone(), stop.clone());
        tokio::spawn(async move {
            while !stop.load(Ordering::SeqCst) {
                let before = shown.load(Ordering::SeqCst);
                let progress = match poller % 4 {
                    0 => site.task("one", 1).await.progress,
                    _ => poll(&site).await.progress,
                };
                assert!(progress >= before, "{progress} after {before}");
                shown.fetch_max(progress, Ordering::SeqCst);
                tokio::task::yield_now().await;
            }
        })
    });
    let pollers: Vec<_> = pollers.collect();
    for progress in 1..=99 {
        // By this process, and by another one.
        let by = if progress % 3 == 0 { &site } else { &other };
        by.renew(&claim.lease, at(progress)).await.unwrap();
        clock.advance(40);
    }
    other.complete(&claim).await.unwrap();
    clock.advance(AGE_MS);
    assert!(matches!(poll(&site).await.state, TaskState::Completed(_)));
    stop.store(true, Ordering::SeqCst);
    for poller in pollers {
        poller.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_process_says_what_it_has_changed() {
    let url = database().await;
    // Time stands still: only what is heard ends an entry.
    let clock = Arc::new(ManualClock::at(NOW));
    let (site, other) = (
        remembering(&url, clock.clone()).await,
        open_at(&url, clock).await,
    );
    site.submit(1, "one").await;
    assert_eq!(poll(&site).await.state, TaskState::Waiting);
    other.cancel("one", 1, RETENTION_MS).await;
    let begun = Instant::now();
    while poll(&site).await.state == TaskState::Waiting {
        assert!(begun.elapsed() < PATIENCE, "the cancel is not noticed");
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_poll_in_the_second_half_of_that_time_has_the_task_read_for_later_ones() {
    let url = database().await;
    let clock = Arc::new(ManualClock::at(NOW));
    let site = remembering(&url, clock.clone()).await;
    site.submit(1, "one").await;
    poll(&site).await;
    set_progress(&url, 10);
    clock.advance(AGE_MS / 2);
    // Time stands still from now on: only a query that nobody waits for can bring the change.
    let begun = Instant::now();
    while poll(&site).await.progress != 10 {
        assert!(begun.elapsed() < PATIENCE, "the task is not read");
        tokio::task::yield_now().await;
    }
}
