//! Connections that break, commits whose answer is lost, servers that stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use kinora_contract::{ManualClock, TaskState};
use kinora_store::conformance::Site;
use kinora_store::conformance::bench::Bench as _;
use kinora_store::conformance::fixtures::{NOW, id, task};
use kinora_store::{InsertOutcome, OpenOptions, PostgresOptions, migrate, open};
use kinora_testkit::postgres::{Server, Settings};

use crate::harness::{database, exact, is_unavailable, open_now};
use crate::proxy::{Loss, Proxy};

/// Only a failing test takes so long.
const PATIENCE: Duration = Duration::from_secs(30);

/// Everything that is committed while its answer gets lost in this way is stored once, and its caller is told so.
async fn assert_looked_up(loss: Loss) {
    let url = database().await;
    let proxy = Proxy::before(Server::shared().port());
    let site = open_now(&proxy.address_of(&url)).await;
    site.submit(1, "one").await;
    for number in 2..=4 {
        proxy.loses.set(loss);
        let inserted = site.tasks.insert(task(number, "one")).await.unwrap();
        assert!(
            matches!(inserted, InsertOutcome::Inserted(_)),
            "{inserted:?}"
        );
        assert!(proxy.loses.take().is_none(), "no answer was lost");
    }
    proxy.loses.set(loss);
    let claim = site.claim_one().await;
    assert_eq!((claim.task.id, claim.task.attempt), (id(1), 1));
    proxy.loses.set(loss);
    site.complete(&claim).await.unwrap();
    let sums = "SELECT tasks, waiting, unfinished FROM projects";
    assert_eq!(Server::shared().run(&url, sums), "4|3|3");
    assert!(site.tasks.is_writable());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_whose_answer_is_lost_is_looked_up_and_not_done_twice() {
    assert_looked_up(Loss::Cut).await;
}

/// As when an operator stops the server, or ends a connection: it says so in place of the answer to the commit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_in_place_of_whose_answer_the_server_ends_the_connection_is_looked_up() {
    assert_looked_up(Loss::Farewell).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_is_killed_under_load_costs_no_task() {
    let url = database().await;
    let site = open_now(&url).await;
    let kill = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
                WHERE datname = current_database() AND pid <> pg_backend_pid()";
    let accepted = Arc::new(AtomicUsize::new(0));
    let writers = (0..8).map(|writer| {
        let (site, accepted) = (site.clone(), accepted.clone());
        tokio::spawn(async move {
            let mut last = None;
            for number in 0..40 {
                let new = task(100 * writer + number, "one");
                let inserted = site.tasks.insert(new).await.unwrap();
                accepted.fetch_add(1, Ordering::Relaxed);
                assert!(
                    matches!(inserted, InsertOutcome::Inserted(_)),
                    "{inserted:?}"
                );
                last = Some(inserted);
            }
            last
        })
    });
    let writers: Vec<_> = writers.collect();
    // Each kill meets other transactions: a connection that is ended again and again is an outage.
    for round in 0..3 {
        let have_ended = || writers.iter().all(tokio::task::JoinHandle::is_finished);
        while accepted.load(Ordering::Relaxed) < 80 * round && !have_ended() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        tokio::task::block_in_place(|| Server::shared().run(&url, kill));
    }
    let mut last = None;
    for writer in writers {
        last = writer.await.unwrap();
    }
    let counted = "SELECT (SELECT count(*) FROM tasks), tasks, waiting, unfinished FROM projects";
    assert_eq!(Server::shared().run(&url, counted), "320|320|320|320");
    // The connection for reads is made anew as well.
    let Some(InsertOutcome::Inserted(last)) = last else {
        panic!("{last:?}")
    };
    assert_eq!(site.tasks.get("one", last.id).await.unwrap(), Some(last));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ended_tasks_and_keys_are_shown_for_a_while_without_a_server() {
    let server = Server::start(Settings::default());
    let url = server.database();
    migrate(&url).await.unwrap();
    let clock = Arc::new(ManualClock::at(NOW));
    let options = OpenOptions {
        postgres: PostgresOptions {
            cached_ms_max: 1_000,
            ..exact()
        },
        ..OpenOptions::new(clock.clone())
    };
    let site = Site::of(open(&url, &options).await.unwrap(), clock.clone());
    for number in 1..=2 {
        site.submit(number, "one").await;
    }
    let claim = site.claim_one().await;
    site.complete(&claim).await.unwrap();
    assert!(site.keys.find_key(&[1; 32], NOW).await.unwrap().is_none());
    server.stop();
    clock.advance(299_000);
    let ended = site.task("one", 1).await;
    assert!(matches!(ended.state, TaskState::Completed(_)));
    assert!(site.tasks.get("two", id(1)).await.unwrap().is_none());
    assert!(site.keys.find_key(&[1; 32], NOW).await.unwrap().is_none());
    // Not one that may change meanwhile, and nothing that was never read.
    assert!(is_unavailable(&site.tasks.get("one", id(2)).await));
    assert!(is_unavailable(&site.keys.find_key(&[2; 32], NOW).await));
    clock.advance(2_000);
    assert!(is_unavailable(&site.tasks.get("one", id(1)).await));
    assert!(is_unavailable(&site.keys.find_key(&[1; 32], NOW).await));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_stops_is_told_and_its_return_is_noticed() {
    let server = Server::start(Settings::default());
    let url = server.database();
    migrate(&url).await.unwrap();
    let site = open_now(&url).await;
    site.submit(1, "one").await;
    let claim = site.claim_one().await;
    server.stop();
    let begun = Instant::now();
    assert!(is_unavailable(&site.tasks.insert(task(2, "one")).await));
    assert!(is_unavailable(&site.tasks.get("one", id(1)).await));
    assert!(is_unavailable(
        &site
            .work
            .claim(kinora_store::conformance::fixtures::claiming(1))
            .await
    ));
    assert!(begun.elapsed() < PATIENCE);
    assert!(!site.tasks.is_writable());
    server.resume();
    // By itself: nobody calls.
    while !site.tasks.is_writable() {
        assert!(begun.elapsed() < 2 * PATIENCE, "its return is not noticed");
        tokio::task::yield_now().await;
    }
    site.submit(2, "one").await;
    site.complete(&claim).await.unwrap();
    assert!(matches!(
        site.task("one", 1).await.state,
        TaskState::Completed(_)
    ));
    let mut work = site.work.work_hints();
    work.mark_unchanged();
    site.submit(3, "one").await;
    kinora_store::conformance::bench::heard(&mut work, "a submit").await;
}
