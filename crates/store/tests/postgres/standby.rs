//! A synchronous standby that is gone: the server makes every commit wait for it, however long that is, and none of
//! these is visible before it returns.

use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use kinora_contract::{Clock as _, ManualClock};
use kinora_store::conformance::Site;
use kinora_store::conformance::bench::Bench as _;
use kinora_store::conformance::fixtures::{LEASE_MS, NOW, claiming, id, sweep_at, task};
use kinora_store::{
    IdempotencyKey, InsertOutcome, NewTask, OpenOptions, PostgresOptions, migrate, open,
};
use kinora_testkit::postgres::{Server, Settings};
use tokio::task::block_in_place;

use crate::harness::{exact, is_unavailable, open_at};

/// Only a failing test takes so long.
const PATIENCE: Duration = Duration::from_secs(30);
/// An answer is given up after three times as long, and its outcome after three times as long again.
const STATEMENT_MS: u32 = 500;

/// Connections whose commits wait for a standby.
const WAITING: &str = "wait_event = 'SyncRep'";

/// From when it returns, commits wait for a standby that does not exist. The thread waits with them.
fn lose_standby(server: &Arc<Server>) -> JoinHandle<String> {
    configure(server, "SET synchronous_standby_names = 'nobody'");
    let begun = Instant::now();
    // The server obeys a moment later.
    while begun.elapsed() < PATIENCE {
        let own = server.clone();
        let write = "SELECT pg_logical_emit_message(true, 'test', '')";
        let commit = thread::spawn(move || own.run("postgres", write));
        while !commit.is_finished() {
            if count(server, WAITING) > 0 {
                return commit;
            }
        }
    }
    panic!("no commit waits");
}

fn configure(server: &Server, setting: &str) {
    server.run("postgres", &format!("ALTER SYSTEM {setting}"));
    server.run("postgres", "SELECT pg_reload_conf()");
}

/// Connections of which this holds.
fn count(server: &Server, condition: &str) -> u32 {
    let ask = format!("SELECT count(*) FROM pg_stat_activity WHERE {condition}");
    server.run("postgres", &ask).parse().unwrap()
}

/// Returns when so many commits wait for the standby.
fn wait_for_commits(server: &Server, wanted: u32) {
    let begun = Instant::now();
    while count(server, WAITING) < wanted {
        assert!(begun.elapsed() < PATIENCE, "no commit waits");
    }
}

/// Returns when one connection at most waits for a lock. Those of callers that have given up are to go in a moment.
fn wait_for_few_locks(server: &Server) {
    let begun = Instant::now();
    loop {
        let left = count(server, "wait_event_type = 'Lock'");
        if left <= 1 {
            return;
        }
        assert!(
            begun.elapsed() < PATIENCE,
            "{left} connections left waiting for a lock"
        );
    }
}

/// Does `meanwhile` while the server has no standby.
async fn without_standby(server: &Arc<Server>, meanwhile: impl Future<Output = ()>) {
    let waiting = block_in_place(|| lose_standby(server));
    meanwhile.await;
    block_in_place(|| {
        configure(server, "RESET synchronous_standby_names");
        waiting.join().unwrap();
    });
}

/// A server, the address of a store with one task, and the store as a process sees it that gives up soon.
async fn start() -> (Arc<Server>, String, Site) {
    let server = Arc::new(Server::start(Settings::default()));
    let url = server.database();
    migrate(&url).await.unwrap();
    let clock = Arc::new(ManualClock::at(NOW));
    open_at(&url, clock.clone()).await.submit(1, "one").await;
    let options = OpenOptions {
        postgres: PostgresOptions {
            statement_timeout_ms: STATEMENT_MS,
            ..exact()
        },
        ..OpenOptions::new(clock.clone())
    };
    let site = Site::of(open(&url, &options).await.unwrap(), clock);
    (server, url, site)
}

/// As soon as the store has found out what became of its last commit.
async fn sweep(site: &Site) {
    let begun = Instant::now();
    while is_unavailable(&site.chores.sweep(sweep_at(site.clock.now_ms())).await) {
        assert!(begun.elapsed() < PATIENCE, "it does not find out");
    }
}

/// After two lost attempts it would run alone, and after three it would have failed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p05_a_claim_whose_commit_outlasts_its_caller_costs_the_task_nothing() {
    let (server, url, site) = start().await;
    for _ in 0..3 {
        without_standby(&server, async {
            for _ in 0..3 {
                assert!(is_unavailable(&site.work.claim(claiming(1)).await));
            }
            block_in_place(|| wait_for_few_locks(&server));
            site.clock.advance(2 * LEASE_MS);
        })
        .await;
        sweep(&site).await;
        let state = "SELECT attempt, deaths, phase FROM tasks";
        assert_eq!(
            block_in_place(|| server.run(&url, state)),
            "0|0|waiting",
            "given back"
        );
    }
    let patient = open_at(&url, site.clock.clone()).await;
    let claim = patient.claim_one().await;
    assert_eq!((claim.task.id, claim.task.attempt), (id(1), 1));
    patient.complete(&claim).await.unwrap();
}

/// A task of which its client can only learn by its key.
fn keyed(number: u64) -> NewTask {
    NewTask {
        idempotency: Some(IdempotencyKey {
            key: "key".to_owned(),
            fingerprint: [1; 32],
            bound_ms: LEASE_MS,
        }),
        ..task(number, "one")
    }
}

/// Submits a task while there is no standby, until its commit waits for one. A machine under load may take longer than
/// the store waits for all that comes before.
async fn submit_waiting(server: &Server, site: &Site, number: u64) {
    let begun = Instant::now();
    loop {
        let refused = site.tasks.insert(keyed(number)).await;
        assert!(is_unavailable(&refused), "{refused:?}");
        // The other is that which was there when the standby was lost.
        if block_in_place(|| count(server, WAITING)) > 1 {
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "no commit is sent");
    }
}

/// What a repeated submit gets once the standby is back.
async fn assert_replayed(site: &Site, number: u64, wanted: u64) {
    let begun = Instant::now();
    loop {
        match site.tasks.insert(keyed(number)).await {
            Ok(InsertOutcome::Replayed(task)) => return assert_eq!(task.id, id(wanted)),
            refused => assert!(is_unavailable(&refused), "{refused:?}"),
        }
        assert!(begun.elapsed() < PATIENCE, "it is not found");
    }
}

/// The client does not know whether there is a task, and its key does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p06_a_submit_whose_commit_outlasts_its_caller_is_repeated_under_its_key() {
    let (server, url, site) = start().await;
    without_standby(&server, async {
        submit_waiting(&server, &site, 2).await;
        assert!(!site.tasks.is_writable());
    })
    .await;
    assert_replayed(&site, 3, 2).await;
    let sums = "SELECT tasks, waiting, unfinished FROM projects";
    assert_eq!(block_in_place(|| server.run(&url, sums)), "2|2|2");
    let begun = Instant::now();
    // A replay writes nothing: the lane finds out by itself.
    while !site.tasks.is_writable() {
        assert!(begun.elapsed() < PATIENCE, "its return is not noticed");
        tokio::task::yield_now().await;
    }
}

/// A server that starts again shows commits that still waited for the standby: were they acknowledged, they would be
/// lost with it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p01_a_commit_that_no_standby_has_is_not_acknowledged_after_a_restart() {
    let (server, url, site) = start().await;
    let patient = open_at(&url, site.clock.clone()).await;
    let lost = block_in_place(|| lose_standby(&server));
    let submit = tokio::spawn(async move { patient.tasks.insert(task(2, "one")).await });
    block_in_place(|| {
        wait_for_commits(&server, 2);
        server.stop();
        server.resume();
        assert_eq!(server.run(&url, "SELECT count(*) FROM tasks"), "2");
    });
    // Its connection broke.
    assert!(lost.join().is_err());
    // The store waits for the standby to have what it found.
    block_in_place(|| wait_for_commits(&server, 1));
    assert!(!submit.is_finished(), "acknowledged");
    block_in_place(|| configure(&server, "RESET synchronous_standby_names"));
    let inserted = submit.await.unwrap();
    assert!(
        matches!(inserted, Ok(InsertOutcome::Inserted(_))),
        "{inserted:?}"
    );
}
