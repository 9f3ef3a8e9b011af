//! How often in a row the serving process has died, and writes that fail: what the embedded store knows of
//! itself.
#![allow(clippy::disallowed_methods, reason = "tests measure in real time")]
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "these are tests"
)]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use kinora_contract::{ManualClock, TaskPhase, TaskState};
use kinora_store::conformance::Site;
use kinora_store::conformance::bench::{Bench, keys};
use kinora_store::conformance::fixtures::{
    LEASE_MS, NOW, RETENTION_MS, id, sweep_at, task, with_images,
};
use kinora_store::{ChoreKind, OpenOptions, SqliteOptions, SweepRequest, open, open_source};
use rusqlite::Connection;

async fn open_at_now(url: &str, sqlite: SqliteOptions) -> Site {
    let clock = Arc::new(ManualClock::at(NOW));
    let options = OpenOptions {
        sqlite,
        ..OpenOptions::new(clock.clone())
    };
    Site::of(open(url, &options).await.unwrap(), clock)
}

/// A store whose process can die.
struct Mortal {
    folder: tempfile::TempDir,
    lives: u32,
    stores: Option<Site>,
}

impl Mortal {
    async fn born() -> Self {
        let mut mortal = Self {
            folder: tempfile::tempdir().unwrap(),
            lives: 0,
            stores: None,
        };
        mortal.open().await;
        mortal
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join(format!("{}.db", self.lives))
    }

    async fn open(&mut self) {
        let options = SqliteOptions {
            busy_timeout_ms: 20,
            ..SqliteOptions::default()
        };
        let url = format!("sqlite:{}", self.path().display());
        self.stores = Some(open_at_now(&url, options).await);
    }

    fn stores(&self) -> &Site {
        self.stores.as_ref().unwrap()
    }

    /// Opens what lies on the disk now.
    async fn die(&mut self) {
        let log = |path: &Path| path.with_extension("db-wal");
        let (from, before) = (self.path(), self.stores.take());
        self.lives += 1;
        std::fs::copy(&from, self.path()).unwrap();
        std::fs::copy(log(&from), log(&self.path())).unwrap();
        drop(before);
        self.open().await;
    }

    async fn stop_and_start(&mut self) {
        self.stores = None;
        self.open().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deaths_in_a_row_are_counted_until_a_stop_or_a_minute() {
    let mut store = Mortal::born().await;
    assert_eq!(store.stores().work.unclean_starts(), Some(0));
    let die = async |store: &mut Mortal, deaths| {
        store.die().await;
        assert_eq!(store.stores().work.unclean_starts(), Some(deaths));
    };
    die(&mut store, 1).await;
    die(&mut store, 2).await;
    store.stop_and_start().await;
    assert_eq!(store.stores().work.unclean_starts(), Some(0));

    die(&mut store, 1).await;
    store.stores().submit(1, "one").await;
    let claim = store.stores().claim_one().await;
    store.stores().complete(&claim).await.unwrap();
    // Short tasks end between two deaths of a crash loop.
    die(&mut store, 2).await;
    store.stores().work.confirm_start().await.unwrap();
    die(&mut store, 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_of_a_dead_process_go_back_at_once_and_keep_their_attempts() {
    let mut store = Mortal::born().await;
    store.stores().submit(1, "one").await;
    store.stores().submit(2, "one").await;
    let old = store.stores().claim_one().await;
    for attempt in 2..=3 {
        store.stop_and_start().await;
        let stores = store.stores();
        assert!(stores.check(&old.lease).await.is_err());
        let claim = stores.claim_one().await;
        assert_eq!((claim.task.id, claim.task.attempt), (id(1), attempt));
    }
    // A task that kills its process each time ends, too.
    store.stop_and_start().await;
    let stores = store.stores();
    assert_eq!(stores.task("one", 1).await.state, TaskState::Running);
    assert_eq!(stores.claim_one().await.task.id, id(2));
    let swept = stores.sweep(NOW).await;
    assert_eq!((swept.lost, swept.requeued), (1, 0));
    assert_eq!(stores.task("one", 1).await.state.phase(), TaskPhase::Failed);
}

/// Each in turn, alone; the others as if nothing had happened.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_that_ran_together_at_every_death_are_not_lost_together() {
    let mut store = Mortal::born().await;
    for number in 1..=4 {
        store.stores().submit(number, "one").await;
    }
    for _ in 1..=2 {
        assert_eq!(store.stores().claim(4).await.len(), 4);
        store.die().await;
    }
    assert_eq!(store.stores().claim(4).await.len(), 1);
    store.die().await;
    // Its last attempt is over, whichever process notes it.
    let next = store.stores().claim(4).await;
    assert_eq!(next.len(), 1);
    assert_eq!(next[0].task.id, id(2));
    let swept = store.stores().sweep(NOW).await;
    assert_eq!((swept.lost, swept.requeued), (1, 0));
    let state = &store.stores().task("one", 1).await.state;
    assert_eq!(state.phase(), TaskPhase::Failed);
    store.stores().complete(&next[0]).await.unwrap();
    for number in 3..=4 {
        let claims = store.stores().claim(4).await;
        assert_eq!((claims.len(), claims[0].task.id), (1, id(number)));
        store.stores().complete(&claims[0]).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_whose_writes_failed_finds_out_by_itself_that_they_work_again() {
    let store = Mortal::born().await;
    assert!(store.stores().tasks.is_writable());
    let other = Connection::open(store.path()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert!(store.stores().tasks.insert(task(1, "one")).await.is_err());
    assert!(!store.stores().tasks.is_writable());
    other.execute_batch("ROLLBACK").unwrap();
    store.stores().clock.advance(1_000);
    let begun = Instant::now();
    while !store.stores().tasks.is_writable() {
        assert!(begun.elapsed() < Duration::from_secs(60));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // Nothing came of it.
    assert!(
        store
            .stores()
            .tasks
            .get("one", id(1))
            .await
            .unwrap()
            .is_none()
    );
    let state = &store.stores().submit(1, "one").await.state;
    assert_eq!(*state, TaskState::Waiting);
}

/// What changes memory only, such as the lease of a fetch, is no sign of recovery.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_store_is_not_writable_until_something_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("store.db").display());
    let options = SqliteOptions {
        pages_max: Some(60),
        ..SqliteOptions::default()
    };
    let stores = open_at_now(&url, options).await;
    let tasks = &stores.tasks;
    tasks.insert(with_images(0, "one", 1)).await.unwrap();
    let mut number = 1;
    while tasks.insert(task(number, "one")).await.is_ok() {
        number += 1;
        assert!(number < 10_000, "the bound on pages holds");
    }
    assert!(!tasks.is_writable());
    assert_eq!(stores.take(1).await.len(), 1);
    assert!(!tasks.is_writable());
    for number in 0..number / 2 {
        tasks.delete("one", id(number)).await.unwrap();
    }
    assert!(tasks.is_writable());
}

/// The process that leased them is dead; a pause ends as well.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn chores_of_a_dead_process_are_due_at_once() {
    let mut store = Mortal::born().await;
    store.stores().submit(1, "one").await;
    let lease = store.stores().claim_one().await.lease;
    store.stores().cancel("one", 1, RETENTION_MS).await;
    let mut chores = store.stores().take_chores(ChoreKind::RemoveFile).await;
    let paused = vec![chores.remove(0).again(3_600_000)];
    store.stores().chores.complete_chores(paused).await.unwrap();
    for again in [false, true] {
        assert_eq!(store.stores().files_due().await, [""; 0]);
        match again {
            false => store.die().await,
            true => store.stop_and_start().await,
        }
        let due = store.stores().take_chores(ChoreKind::RemoveFile).await;
        assert_eq!(keys(&due), lease.file_keys());
    }
}

/// What ran when a backup was made goes on where it was made, or has ended since: nobody has died.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_ran_when_a_backup_was_made_runs_again_after_its_restore() {
    let folder = tempfile::tempdir().unwrap();
    let url = |name: &str| format!("sqlite:{}", folder.path().join(name).display());
    let options = SqliteOptions {
        attempts_max: 1,
        ..SqliteOptions::default()
    };
    let stores = open_at_now(&url("store.db"), options.clone()).await;
    stores.submit(1, "one").await;
    stores.claim_one().await;
    let source = open_source(&url("store.db")).unwrap();
    source.snapshot(&folder.path().join("copy.db")).unwrap();
    let copy = open_at_now(&url("copy.db"), options).await;
    assert_eq!(copy.work.unclean_starts(), Some(0));
    let sweep = SweepRequest {
        attempts_max: 1,
        ..sweep_at(NOW + LEASE_MS)
    };
    assert_eq!(copy.sweep_by(sweep).await.lost, 0);
    let task = copy.task("one", 1).await;
    assert_eq!((task.state.phase(), task.attempt), (TaskPhase::Waiting, 0));
}
