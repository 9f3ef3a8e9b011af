//! A synchronous standby that is gone: the server makes every commit wait for it, however long that is, and none of
//! these is visible before it returns.

use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use kinora_contract::{Clock as _, ManualClock};
use kinora_store::conformance::Site;
use kinora_store::conformance::bench::Bench as _;
use kinora_store::conformance::fixtures::{LEASE_MS, NOW, claiming, id, task};
use kinora_store::{Idempotency, Insertion, NewTask, OpenOptions, PostgresOptions, migrate, open};
use kinora_test_postgres::{Server, Settings};
use tokio::task::block_in_place;

use crate::harness::{exact, is_unavailable};

/// Only a failing test takes so long.
const PATIENCE: Duration = Duration::from_secs(30);
/// An answer is given up after three times as long, and its outcome after three times as long again.
const STATEMENT_MS: u32 = 200;

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
            if count(server, "wait_event = 'SyncRep'") > 0 {
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

async fn start() -> (Arc<Server>, String, Site) {
    let server = Arc::new(Server::start(Settings::default()));
    let url = server.database();
    migrate(&url).await.unwrap();
    let clock = Arc::new(ManualClock::at(NOW));
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

/// After two lost attempts it would run alone, and after three it would have failed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p05_a_claim_whose_commit_outlasts_its_caller_costs_the_task_nothing() {
    let (server, url, site) = start().await;
    site.submit(1, "one").await;
    for _ in 0..3 {
        without_standby(&server, async {
            for _ in 0..3 {
                assert!(is_unavailable(&site.work.claim(claiming(1)).await));
            }
            block_in_place(|| wait_for_few_locks(&server));
            site.clock.advance(2 * LEASE_MS);
        })
        .await;
        site.sweep(site.clock.now_ms()).await;
        let state = "SELECT attempt, deaths, phase FROM tasks";
        assert_eq!(
            block_in_place(|| server.run(&url, state)),
            "0|0|waiting",
            "given back"
        );
    }
    let claim = site.claim_one().await;
    assert_eq!((claim.task.id, claim.task.attempt), (id(1), 1));
    site.complete(&claim).await.unwrap();
}

/// The client does not know whether there is a task, and its key does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p06_a_submit_whose_commit_outlasts_its_caller_is_repeated_under_its_key() {
    let (server, url, site) = start().await;
    let keyed = |number| NewTask {
        idempotency: Some(Idempotency {
            key: "key".to_owned(),
            fingerprint: [1; 32],
            bound_ms: LEASE_MS,
        }),
        ..task(number, "one")
    };
    site.submit(1, "one").await;
    without_standby(&server, async {
        assert!(is_unavailable(&site.tasks.insert(keyed(2)).await));
        assert!(!site.tasks.is_writable());
    })
    .await;
    match site.tasks.insert(keyed(3)).await.unwrap() {
        Insertion::Replayed(task) => assert_eq!(task.id, id(2)),
        other => panic!("{other:?}"),
    }
    let sums = "SELECT tasks, waiting, unfinished FROM projects";
    assert_eq!(block_in_place(|| server.run(&url, sums)), "2|2|2");
    let begun = Instant::now();
    // A replay writes nothing: the lane finds out by itself.
    while !site.tasks.is_writable() {
        assert!(begun.elapsed() < PATIENCE, "its return is not noticed");
        tokio::task::yield_now().await;
    }
}
