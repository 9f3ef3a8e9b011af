//! Connections that break, commits whose answer is lost, servers that stop.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use kinora_contract::{ManualClock, State};
use kinora_store::conformance::Site;
use kinora_store::conformance::bench::Bench as _;
use kinora_store::conformance::fixtures::{NOW, id, task};
use kinora_store::{Insertion, OpenOptions, PostgresOptions, migrate, open};
use kinora_test_postgres::{Server, Settings};

use crate::harness::{database, exact, is_unavailable, open_now};

/// Only a failing test takes so long.
const PATIENCE: Duration = Duration::from_secs(30);

/// Passes connections on to the server; once `loses` is set, the next connection over which a `COMMIT` is sent is
/// cut off as soon as the server has answered it.
struct Proxy {
    port: u16,
    loses: Arc<AtomicBool>,
}

impl Proxy {
    fn before(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let loses = Arc::new(AtomicBool::new(false));
        let armed = loses.clone();
        thread::spawn(move || {
            for client in listener.incoming() {
                let (client, armed) = (client.unwrap(), armed.clone());
                let server = TcpStream::connect(("127.0.0.1", server)).unwrap();
                pass(client, server, armed);
            }
        });
        Self { port, loses }
    }
}

fn pass(client: TcpStream, server: TcpStream, armed: Arc<AtomicBool>) {
    let cuts = Arc::new(AtomicBool::new(false));
    let (mut from, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
    let cut = cuts.clone();
    thread::spawn(move || {
        let mut bytes = vec![0; 1 << 20];
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            let is_commit = bytes[..count].windows(6).any(|part| part == b"COMMIT");
            if is_commit && armed.swap(false, Ordering::SeqCst) {
                cut.store(true, Ordering::SeqCst);
            }
            if to.write_all(&bytes[..count]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
    });
    let (mut from, mut to) = (server, client);
    thread::spawn(move || {
        let mut bytes = vec![0; 1 << 20];
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            if cuts.load(Ordering::SeqCst) {
                // Until the answer to the commit has come: its tag.
                if bytes[..count].windows(6).any(|part| part == b"COMMIT") {
                    break;
                }
                continue;
            }
            if to.write_all(&bytes[..count]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
        let _ = from.shutdown(Shutdown::Both);
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_whose_answer_is_lost_is_looked_up_and_not_done_twice() {
    let url = database().await;
    let proxy = Proxy::before(Server::shared().port());
    let name = url.rsplit('/').next().unwrap();
    let site = open_now(&format!(
        "postgres://kinora@127.0.0.1:{}/{name}",
        proxy.port
    ))
    .await;
    site.submit(1, "one").await;
    for number in 2..=4 {
        proxy.loses.store(true, Ordering::SeqCst);
        let inserted = site.tasks.insert(task(number, "one")).await.unwrap();
        assert!(matches!(inserted, Insertion::Inserted(_)), "{inserted:?}");
        assert!(!proxy.loses.load(Ordering::SeqCst), "no commit was cut off");
    }
    proxy.loses.store(true, Ordering::SeqCst);
    let claim = site.claim_one().await;
    assert_eq!((claim.task.id, claim.task.attempt), (id(1), 1));
    proxy.loses.store(true, Ordering::SeqCst);
    site.complete(&claim).await.unwrap();
    let sums = "SELECT tasks, waiting, unfinished FROM projects";
    assert_eq!(Server::shared().run(&url, sums), "4|3|3");
    assert!(site.tasks.is_writable());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_is_killed_under_load_costs_no_task() {
    let url = database().await;
    let site = open_now(&url).await;
    let kill = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
                WHERE datname = current_database() AND pid <> pg_backend_pid()";
    let writers = (0..8).map(|writer| {
        let site = site.clone();
        tokio::spawn(async move {
            for number in 0..40 {
                let new = task(100 * writer + number, "one");
                let inserted = site.tasks.insert(new).await.unwrap();
                assert!(matches!(inserted, Insertion::Inserted(_)), "{inserted:?}");
            }
        })
    });
    let writers: Vec<_> = writers.collect();
    for _ in 0..3 {
        tokio::task::block_in_place(|| Server::shared().run(&url, kill));
    }
    for writer in writers {
        writer.await.unwrap();
    }
    let counted = "SELECT (SELECT count(*) FROM tasks), tasks, waiting, unfinished FROM projects";
    assert_eq!(Server::shared().run(&url, counted), "320|320|320|320");
    // The connection for reads is made anew as well.
    assert_eq!(site.task("one", 1).await.state, State::Waiting);
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
    assert!(matches!(ended.state, State::Completed(_)));
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
        State::Completed(_)
    ));
    let mut work = site.work.work_hints();
    work.mark_unchanged();
    site.submit(3, "one").await;
    kinora_store::conformance::bench::heard(&mut work, "a submit").await;
}
