//! What the embedded store leaves on disk: sums that agree with the rows, nothing of what was deleted,
//! and all that it shows.
#![allow(clippy::disallowed_methods, reason = "tests measure in real time")]
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "these are tests"
)]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kinora_contract::{ManualClock, Task};
use kinora_store::conformance::Site;
use kinora_store::conformance::bench::Bench;
use kinora_store::conformance::fixtures::{
    EXPIRY, NOW, RETENTION_MS, cancelled, id, renewal, task,
};
use kinora_store::{
    NewTask, OpenOptions, SqliteOptions, StoreError, open, open_snapshot, open_source,
};
use rusqlite::Connection;

const SECRET: &str = "a lighthouse that nobody may know of";

async fn open_in(folder: &Path) -> Site {
    open_with(folder, SqliteOptions::default()).await
}

async fn open_with(folder: &Path, sqlite: SqliteOptions) -> Site {
    let url = format!("sqlite:{}", folder.join("kinora.db").display());
    let clock = Arc::new(ManualClock::at(NOW));
    let options = OpenOptions {
        sqlite,
        ..OpenOptions::new(clock.clone())
    };
    Site::of(open(&url, &options).await.unwrap(), clock)
}

/// How often the secret is found in the files of the folder.
fn found(folder: &Path) -> usize {
    let files = std::fs::read_dir(folder).unwrap();
    let texts = files.map(|file| std::fs::read(file.unwrap().path()).unwrap());
    let secret = SECRET.as_bytes();
    texts
        .map(|text| {
            text.windows(secret.len())
                .filter(|part| *part == secret)
                .count()
        })
        .sum()
}

async fn submit_secrets(stores: &Site, numbers: std::ops::Range<u64>) {
    for number in numbers {
        let mut new: NewTask = task(number, "one");
        // Short ones in their page, long ones beyond it.
        new.spec.prompt = SECRET.repeat(1 + 200 * (number as usize % 2));
        stores.tasks.insert(new).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_prompt_leaves_the_disk_while_the_store_serves_and_when_it_stops() {
    let folder = tempfile::tempdir().unwrap();
    let stores = open_in(folder.path()).await;
    submit_secrets(&stores, 0..20).await;
    assert!(found(folder.path()) >= 20);
    for number in 0..20 {
        stores.tasks.delete("one", id(number)).await.unwrap();
    }
    let begun = Instant::now();
    while found(folder.path()) > 0 {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "{}",
            found(folder.path())
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    // Right after a delete the log still has it: a stop carries it over.
    submit_secrets(&stores, 20..40).await;
    for number in 20..40 {
        stores.tasks.delete("one", id(number)).await.unwrap();
    }
    drop(stores);
    assert_eq!(found(folder.path()), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_expired_prompt_leaves_the_disk() {
    let folder = tempfile::tempdir().unwrap();
    let stores = open_in(folder.path()).await;
    submit_secrets(&stores, 0..4).await;
    for claim in stores.claim(4).await {
        stores.complete(&claim).await.unwrap();
    }
    assert_eq!(stores.sweep(EXPIRY).await.expired, 4);
    drop(stores);
    assert_eq!(found(folder.path()), 0);
}

/// What the database file alone holds, without its log.
fn tasks_alone(folder: &Path) -> Option<i64> {
    let alone = tempfile::tempdir().unwrap();
    let copy = alone.path().join("kinora.db");
    std::fs::copy(folder.join("kinora.db"), &copy).unwrap();
    let conn = Connection::open(copy).unwrap();
    let count = conn.query_row("SELECT count(*) FROM tasks", [], |row| row.get(0));
    count.ok()
}

async fn until_alone(folder: &Path, tasks: i64) {
    let begun = Instant::now();
    while tasks_alone(folder) != Some(tasks) {
        assert!(begun.elapsed() < Duration::from_secs(60));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_database_alone_is_whole_once_the_store_is_idle_and_after_a_stop() {
    let folder = tempfile::tempdir().unwrap();
    let stores = open_in(folder.path()).await;
    submit_secrets(&stores, 0..20).await;
    assert_ne!(tasks_alone(folder.path()), Some(20));
    until_alone(folder.path(), 20).await;
    submit_secrets(&stores, 20..30).await;
    drop(stores);
    assert_eq!(tasks_alone(folder.path()), Some(30));
    let log = std::fs::exists(folder.path().join("kinora.db-wal"));
    assert!(!log.unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn opening_carries_over_the_log_of_a_process_that_was_killed() {
    let folder = tempfile::tempdir().unwrap();
    let stores = open_in(folder.path()).await;
    submit_secrets(&stores, 0..20).await;
    let killed = as_killed(folder.path());
    assert_ne!(tasks_alone(killed.path()), Some(20));
    let opened = open_in(killed.path()).await;
    assert_eq!(tasks_alone(killed.path()), Some(20));
    drop(opened);
}

/// The files of a store as a killed process leaves them.
fn as_killed(folder: &Path) -> tempfile::TempDir {
    let killed = tempfile::tempdir().unwrap();
    for name in ["kinora.db", "kinora.db-wal"] {
        std::fs::copy(folder.join(name), killed.path().join(name)).unwrap();
    }
    killed
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_snapshot_is_whole_and_leaves_the_store_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let stores = open_in(folder.path()).await;
    submit_secrets(&stores, 0..20).await;
    let killed = as_killed(folder.path());
    let files = || {
        ["kinora.db", "kinora.db-wal"].map(|name| std::fs::read(killed.path().join(name)).unwrap())
    };
    let (before, copy) = (files(), folder.path().join("copy.db"));
    let url = format!("sqlite:{}", killed.path().join("kinora.db").display());
    let source = open_source(&url).unwrap();
    source.snapshot(&copy).unwrap();
    assert!(source.snapshot(&copy).is_err());
    assert!(!source.has_result(id(0)).unwrap());
    drop(source);
    assert!(files() == before);
    let snapshot = open_snapshot(&copy).unwrap();
    snapshot.check().unwrap();
    assert_eq!(snapshot.counts().unwrap().unfinished, 20);
    assert!(snapshot.identity().unwrap().is_some());
    let mut seen = 0;
    let unreadable = snapshot.for_each_task(|task| {
        seen += u64::from(!task.completed && task.results.is_empty());
        Ok::<(), StoreError>(())
    });
    assert_eq!((unreadable.unwrap(), seen), (0, 20));
}

/// On a full disk the log gives back its room, although the store is never idle.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_has_the_log_carried_over_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let options = SqliteOptions {
        pages_max: Some(200),
        ..SqliteOptions::default()
    };
    let stores = open_with(folder.path(), options).await;
    stores.tasks.insert(task(0, "one")).await.unwrap();
    let claim = stores.claim_one().await;
    let renew = async |progress| {
        let renewed = stores.renew(&claim.lease, renewal(progress)).await;
        renewed.unwrap();
    };
    renew(1).await;
    let mut number = 1;
    while stores.tasks.insert(task(number, "one")).await.is_ok() {
        number += 1;
    }
    let log_bytes = || {
        let log = std::fs::metadata(folder.path().join("kinora.db-wal"));
        log.unwrap().len()
    };
    let (mut was_filled, begun) = (false, Instant::now());
    for progress in (1..99).cycle() {
        // A change that takes no page of its own, so that the store is never idle.
        renew(progress).await;
        was_filled |= log_bytes() > 0;
        let full = stores.tasks.insert(task(number, "one")).await;
        assert!(full.is_err());
        tokio::time::sleep(Duration::from_millis(50)).await;
        if was_filled && log_bytes() == 0 {
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(60));
    }
}

/// Also after transactions in which a neighbour failed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_sums_are_those_of_the_rows() {
    let folder = tempfile::tempdir().unwrap();
    let stores = open_in(folder.path()).await;
    let counted = || {
        let conn = Connection::open(folder.path().join("kinora.db")).unwrap();
        let count = "SELECT coalesce(sum(charged_bytes), 0), count(*) FILTER (WHERE phase <> 'expired') \
                     FROM tasks WHERE project = 'one'";
        let row = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?));
        conn.query_row(count, [], row).unwrap()
    };
    let told = async || {
        let usage = stores.tasks.usage("one").await.unwrap();
        (usage.bytes.cast_signed(), usage.tasks.cast_signed())
    };
    let other = Connection::open(folder.path().join("kinora.db")).unwrap();
    for round in 0..8 {
        // While the writer waits for this lock, the others gather into one transaction.
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        let number = round * 10;
        let (first, twin, second, ()) = tokio::join!(
            stores.tasks.insert(task(number, "one")),
            stores.tasks.insert(task(number, "two")),
            stores.tasks.insert(task(number + 1, "one")),
            async { other.execute_batch("ROLLBACK").unwrap() },
        );
        assert!(first.is_ok() && twin.is_err() && second.is_ok());
        assert_eq!(told().await, counted());
        let claim = stores.claim_one().await;
        let charge = stores.work.charge_references(claim.task.id, 100 * number);
        charge.await.unwrap();
        stores.complete(&claim).await.unwrap();
        assert_eq!(told().await, counted());
    }
    stores.tasks.delete("one", id(0)).await.unwrap();
    stores.sweep(EXPIRY).await;
    assert_eq!(told().await, counted());
}

/// The change itself is fine, and what fails is the commit: as on a disk that is full by then.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p01_a_change_whose_commit_fails_is_never_shown() {
    const BREAK: &str = "CREATE TABLE absent (id INTEGER PRIMARY KEY);
        CREATE TABLE promise (id INTEGER REFERENCES absent (id) DEFERRABLE INITIALLY DEFERRED);
        CREATE TRIGGER broken_update AFTER UPDATE ON tasks BEGIN INSERT INTO promise VALUES (1); END;
        CREATE TRIGGER broken_insert AFTER INSERT ON tasks BEGIN INSERT INTO promise VALUES (1); END;
        CREATE TRIGGER broken_delete AFTER DELETE ON tasks BEGIN INSERT INTO promise VALUES (1); END;";
    const MEND: &str =
        "DROP TRIGGER broken_update; DROP TRIGGER broken_insert; DROP TRIGGER broken_delete;";
    let folder = tempfile::tempdir().unwrap();
    let stores = open_in(folder.path()).await;
    let shown =
        async |number| -> Option<Arc<Task>> { stores.tasks.get("one", id(number)).await.unwrap() };
    let other = Connection::open(folder.path().join("kinora.db")).unwrap();
    for number in 1..=3 {
        stores.submit(number, "one").await;
    }
    let running = stores.claim_one().await;
    let before = [shown(1).await, shown(2).await, shown(3).await];
    other.execute_batch(BREAK).unwrap();
    let cancel = stores.tasks.cancel("one", id(2), cancelled(), RETENTION_MS);
    assert!(cancel.await.is_err());
    assert!(stores.complete(&running).await.is_err());
    assert!(stores.tasks.delete("one", id(3)).await.is_err());
    assert!(stores.tasks.insert(task(4, "one")).await.is_err());
    assert_eq!([shown(1).await, shown(2).await, shown(3).await], before);
    assert_eq!(shown(4).await, None);
    // The lease that could not be ended still holds.
    stores.check(&running.lease).await.unwrap();

    other.execute_batch(MEND).unwrap();
    stores.complete(&running).await.unwrap();
    stores.submit(4, "one").await;
    let left = stores.claim(9).await;
    let left: Vec<_> = left.iter().map(|claim| claim.task.id).collect();
    assert_eq!(left, [id(2), id(3), id(4)]);
}
