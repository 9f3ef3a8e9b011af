//! A primary that is killed under load, and a standby that takes its place: what was acknowledged is there, once.
//! `KINORA_FAILOVERS` says how often, one after the other.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use kinora_store::conformance::Site;
use kinora_store::conformance::bench::Bench as _;
use kinora_store::conformance::fixtures::{claiming, task};
use kinora_store::{IdempotencyKey, InsertOutcome, NewTask, StoreError, migrate};
use kinora_testkit::postgres::{Server, Settings};

use crate::harness::open_now;

/// Only a failing test takes so long.
const PATIENCE: Duration = Duration::from_secs(60);
/// Tasks that are accepted before each failover.
const BETWEEN: u64 = 40;
const SUBMITTERS: u64 = 4;

/// What the clients see.
#[derive(Default)]
struct Seen {
    accepted: AtomicU64,
    stop: AtomicBool,
}

impl Seen {
    fn goes_on(&self) -> bool {
        !self.stop.load(Ordering::SeqCst)
    }

    async fn wait_for_accepted(&self, wanted: u64) {
        let begun = Instant::now();
        while self.accepted.load(Ordering::SeqCst) < wanted {
            assert!(begun.elapsed() < PATIENCE, "no task is accepted");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// Submits, and repeats under the same key what was refused. Returns the tasks of which it was told.
async fn submit(site: Site, seen: Arc<Seen>, first: u64) -> BTreeSet<String> {
    let mut told = BTreeSet::new();
    let mut number = first;
    while seen.goes_on() {
        let order = number;
        loop {
            let new = NewTask {
                idempotency: Some(IdempotencyKey {
                    key: format!("order {order}"),
                    fingerprint: [1; 32],
                    bound_ms: 86_400_000,
                }),
                ..task(number, "one")
            };
            number += SUBMITTERS;
            match site.tasks.insert(new).await {
                Ok(InsertOutcome::Inserted(task) | InsertOutcome::Replayed(task)) => {
                    told.insert(task.id.to_string());
                    seen.accepted.fetch_add(1, Ordering::SeqCst);
                    break;
                }
                Err(StoreError::Unavailable(_)) => {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                other => panic!("{other:?}"),
            }
        }
    }
    told
}

/// Claims and completes. Returns the tokens that it was given.
async fn work(site: Site, seen: Arc<Seen>) -> Vec<u64> {
    let mut tokens = Vec::new();
    while seen.goes_on() {
        for claim in site.work.claim(claiming(1)).await.unwrap_or_default() {
            tokens.push(claim.lease.token);
            let _ = site.complete(&claim).await;
        }
        tokio::task::yield_now().await;
    }
    tokens
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p01_every_acknowledged_task_outlives_a_failover_and_is_there_once() {
    let failovers = std::env::var("KINORA_FAILOVERS").map_or(1, |count| count.parse().unwrap());
    let mut primary = Server::start(Settings::default());
    let database = primary.database();
    let mut standby = primary.standby(None);
    let url = format!(
        "postgres://kinora@127.0.0.1:{},127.0.0.1:{}/{}?target_session_attrs=read-write",
        primary.port(),
        standby.port(),
        database.rsplit('/').next().unwrap(),
    );
    migrate(&url).await.unwrap();
    let site = open_now(&url).await;
    let seen = Arc::new(Seen::default());
    let submitting: Vec<_> = (0..SUBMITTERS)
        .map(|first| tokio::spawn(submit(site.clone(), seen.clone(), first)))
        .collect();
    let working = tokio::spawn(work(site.clone(), seen.clone()));
    for failover in 1..=failovers {
        let accepted = seen.accepted.load(Ordering::SeqCst);
        seen.wait_for_accepted(accepted + BETWEEN).await;
        let port = primary.port();
        primary.kill();
        standby.promote();
        primary = standby;
        let accepted = seen.accepted.load(Ordering::SeqCst);
        seen.wait_for_accepted(accepted + BETWEEN).await;
        if failover == failovers {
            break;
        }
        // The next one, where the old primary was.
        standby = primary.standby(Some(port));
    }
    seen.stop.store(true, Ordering::SeqCst);
    let mut told = BTreeSet::new();
    for one in submitting {
        told.extend(one.await.unwrap());
    }
    let tokens = working.await.unwrap();
    assert!(
        !tokens.is_empty() && tokens.is_sorted_by(|one, next| one < next),
        "{tokens:?}"
    );
    let all = primary.run(&database, "SELECT id FROM tasks");
    assert_eq!(
        all.lines().map(str::to_owned).collect::<BTreeSet<_>>(),
        told
    );
    let orders = "SELECT (SELECT count(*) FROM idempotency) = (SELECT count(*) FROM tasks), \
                  tasks = (SELECT count(*) FROM tasks), \
                  unfinished = (SELECT count(*) FROM tasks WHERE place IS NOT NULL) FROM projects";
    assert_eq!(primary.run(&database, orders), "t|t|t");
}
