//! How often in a row the serving process has died, and writes that fail: what the embedded store knows of
//! itself.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "these are tests"
)]

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use kinora_contract::{Phase, State};
use kinora_store::conformance::fixtures::{
    Bench, LEASE_MS, MODELS, NOW, id, sweep_at, task, with_images,
};
use kinora_store::{FetchRequest, OpenOptions, Stores, SweepRequest, TaskStore, open, open_source};
use rusqlite::Connection;

/// A store whose process can die.
struct Mortal {
    folder: tempfile::TempDir,
    lives: u32,
    stores: Option<Stores>,
}

impl Mortal {
    fn born() -> Self {
        let mut mortal = Self {
            folder: tempfile::tempdir().unwrap(),
            lives: 0,
            stores: None,
        };
        mortal.open();
        mortal
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join(format!("{}.db", self.lives))
    }

    fn open(&mut self) {
        let options = OpenOptions {
            busy_timeout_ms: 20,
            ..OpenOptions::default()
        };
        let url = format!("sqlite:{}", self.path().display());
        self.stores = Some(open(&url, &options).unwrap());
    }

    fn stores(&self) -> &Stores {
        self.stores.as_ref().unwrap()
    }

    fn tasks(&self) -> &dyn TaskStore {
        &*self.stores().tasks
    }

    /// Opens what lies on the disk now.
    fn die(&mut self) {
        let log = |path: &Path| path.with_extension("db-wal");
        let (from, before) = (self.path(), self.stores.take());
        self.lives += 1;
        std::fs::copy(&from, self.path()).unwrap();
        std::fs::copy(log(&from), log(&self.path())).unwrap();
        drop(before);
        self.open();
    }

    fn stop_and_start(&mut self) {
        self.stores = None;
        self.open();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deaths_in_a_row_are_counted_until_a_stop_a_result_or_a_minute() {
    let mut store = Mortal::born();
    assert_eq!(store.tasks().unclean_starts(), 0);
    let die_twice = |store: &mut Mortal| {
        for deaths in 1..=2 {
            store.die();
            assert_eq!(store.tasks().unclean_starts(), deaths);
        }
    };
    die_twice(&mut store);
    store.stop_and_start();
    assert_eq!(store.tasks().unclean_starts(), 0);

    die_twice(&mut store);
    store.stores().submit(1, "one").await;
    let claim = store.stores().claim_one().await;
    store.stores().complete(&claim).await.unwrap();

    die_twice(&mut store);
    store.tasks().settle().await.unwrap();
    die_twice(&mut store);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_of_a_dead_process_go_back_at_once_and_keep_their_attempts() {
    let mut store = Mortal::born();
    store.stores().submit(1, "one").await;
    store.stores().submit(2, "one").await;
    let old = store.stores().claim_one().await;
    for attempt in 2..=3 {
        store.stop_and_start();
        let stores = store.stores();
        assert!(stores.tasks.check(&old.lease).await.is_err());
        let claim = stores.claim_one().await;
        assert_eq!((claim.task.id, claim.task.attempt), (id(1), attempt));
    }
    // A task that kills its process each time ends, too.
    store.stop_and_start();
    let stores = store.stores();
    assert_eq!(stores.view("one", 1).await.task.state, State::Running);
    assert_eq!(stores.claim_one().await.task.id, id(2));
    let swept = stores.tasks.sweep(sweep_at(NOW)).await.unwrap();
    assert_eq!((swept.lost, swept.requeued), (1, 0));
    assert_eq!(
        stores.view("one", 1).await.task.state.phase(),
        Phase::Failed
    );
}

/// Each in turn, alone; the others as if nothing had happened.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_that_ran_together_at_every_death_are_not_lost_together() {
    let mut store = Mortal::born();
    for number in 1..=4 {
        store.stores().submit(number, "one").await;
    }
    for _ in 1..=2 {
        assert_eq!(store.stores().claim(4).await.len(), 4);
        store.die();
    }
    store.tasks().settle().await.unwrap();
    assert_eq!(store.stores().claim(4).await.len(), 1);
    store.die();
    store.tasks().settle().await.unwrap();
    // Its last attempt is over, whoever works when that is noted.
    let next = store.stores().claim(4).await;
    assert_eq!(next.len(), 1);
    assert_eq!(next[0].task.id, id(2));
    let swept = store.tasks().sweep(sweep_at(NOW)).await.unwrap();
    assert_eq!((swept.lost, swept.requeued), (1, 0));
    let state = &store.stores().view("one", 1).await.task.state;
    assert_eq!(state.phase(), Phase::Failed);
    store.stores().complete(&next[0]).await.unwrap();
    for number in 3..=4 {
        let claims = store.stores().claim(4).await;
        assert_eq!((claims.len(), claims[0].task.id), (1, id(number)));
        store.stores().complete(&claims[0]).await.unwrap();
    }
}

/// Its project waits with such a task, until the process has lived for a while; others do not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_last_attempt_is_made_in_a_process_that_may_be_in_a_crash_loop() {
    let mut store = Mortal::born();
    let claimed = async |store: &Mortal| {
        let claims = store.stores().claim(4).await;
        claims.iter().map(|claim| claim.task.id).collect::<Vec<_>>()
    };
    store.stores().submit(1, "one").await;
    for _ in 1..=2 {
        assert_eq!(claimed(&store).await, [id(1)]);
        store.die();
    }
    store.stores().submit(2, "one").await;
    store.stores().submit(3, "two").await;
    assert_eq!(claimed(&store).await, [id(3)]);
    store.die();
    let other = store.stores().claim(4).await;
    assert_eq!((other.len(), other[0].task.id), (1, id(3)));
    store.tasks().settle().await.unwrap();
    // Now it waits to run alone.
    assert_eq!(claimed(&store).await, []);
    store.stores().complete(&other[0]).await.unwrap();
    assert_eq!(claimed(&store).await, [id(1)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_whose_writes_failed_finds_out_by_itself_that_they_work_again() {
    let store = Mortal::born();
    assert!(store.tasks().is_writable());
    let other = Connection::open(store.path()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert!(store.tasks().insert(task(1, "one")).await.is_err());
    assert!(!store.tasks().is_writable());
    other.execute_batch("ROLLBACK").unwrap();
    let begun = Instant::now();
    while !store.tasks().is_writable() {
        assert!(begun.elapsed() < Duration::from_secs(60));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // Nothing came of it.
    assert!(store.tasks().get("one", id(1)).await.unwrap().is_none());
    let state = &store.stores().submit(1, "one").await.task.state;
    assert_eq!(*state, State::Waiting);
}

/// What changes memory only, such as the lease of a fetch, is no sign of recovery.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_store_is_not_writable_until_something_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("store.db").display());
    let options = OpenOptions {
        pages_max: Some(60),
        ..OpenOptions::default()
    };
    let tasks = open(&url, &options).unwrap().tasks;
    tasks.insert(with_images(0, "one", 1)).await.unwrap();
    let mut number = 1;
    while tasks.insert(task(number, "one")).await.is_ok() {
        number += 1;
        assert!(number < 10_000, "the bound on pages holds");
    }
    assert!(!tasks.is_writable());
    let request = FetchRequest {
        models: MODELS.map(str::to_owned).into(),
        count: 1,
        project_max: 1,
        steady_ms: NOW,
        lease_ms: LEASE_MS,
    };
    assert_eq!(tasks.take_fetches(request).await.unwrap().len(), 1);
    assert!(!tasks.is_writable());
    for number in 0..number / 2 {
        tasks.delete("one", id(number)).await.unwrap();
    }
    assert!(tasks.is_writable());
}

/// What ran when a backup was made goes on where it was made, or has ended since: nobody has died.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_ran_when_a_backup_was_made_runs_again_after_its_restore() {
    let folder = tempfile::tempdir().unwrap();
    let url = |name: &str| format!("sqlite:{}", folder.path().join(name).display());
    let options = OpenOptions {
        attempts_max: 1,
        ..OpenOptions::default()
    };
    let stores = open(&url("store.db"), &options).unwrap();
    stores.submit(1, "one").await;
    stores.claim_one().await;
    let source = open_source(&url("store.db"), &options).unwrap();
    source.snapshot(&folder.path().join("copy.db")).unwrap();
    let copy = open(&url("copy.db"), &options).unwrap();
    assert_eq!(copy.tasks.unclean_starts(), 0);
    let sweep = SweepRequest {
        attempts_max: 1,
        ..sweep_at(NOW + LEASE_MS)
    };
    assert_eq!(copy.tasks.sweep(sweep).await.unwrap().lost, 0);
    let task = copy.view("one", 1).await.task;
    assert_eq!((task.state.phase(), task.attempt), (Phase::Waiting, 0));
}
