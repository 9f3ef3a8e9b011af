//! What the embedded store leaves on disk: sums that agree with the rows, nothing of what was deleted,
//! and all that it shows.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "these are tests"
)]

use std::path::Path;
use std::time::{Duration, Instant};

use kinora_store::conformance::fixtures::{Bench, EXPIRY, NOW, cancelled, id, sweep_at, task};
use kinora_store::{NewTask, OpenOptions, Stores, open};
use rusqlite::Connection;

const SECRET: &str = "a lighthouse that nobody may know of";

fn open_in(folder: &Path) -> Stores {
    let url = format!("sqlite:{}", folder.join("kinora.db").display());
    open(&url, &OpenOptions::default()).unwrap()
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

async fn submit_secrets(stores: &Stores, numbers: std::ops::Range<u64>) {
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
    let stores = open_in(folder.path());
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
    let stores = open_in(folder.path());
    submit_secrets(&stores, 0..4).await;
    for claim in stores.claim(4).await {
        stores.complete(&claim).await.unwrap();
    }
    let swept = stores.tasks.sweep(sweep_at(EXPIRY)).await.unwrap();
    assert_eq!(swept.expired, 4);
    drop(stores);
    assert_eq!(found(folder.path()), 0);
}

/// Also after transactions in which a neighbour failed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_sums_are_those_of_the_rows() {
    let folder = tempfile::tempdir().unwrap();
    let stores = open_in(folder.path());
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
            stores.tasks.insert(task(number, "one")),
            stores.tasks.insert(task(number + 1, "one")),
            async { other.execute_batch("ROLLBACK").unwrap() },
        );
        assert!(first.is_ok() && twin.is_err() && second.is_ok());
        assert_eq!(told().await, counted());
        let claim = stores.claim_one().await;
        stores
            .tasks
            .charge_references(claim.task.id, 100 * number)
            .await
            .unwrap();
        stores.complete(&claim).await.unwrap();
        assert_eq!(told().await, counted());
    }
    stores.tasks.delete("one", id(0)).await.unwrap();
    stores.tasks.sweep(sweep_at(EXPIRY)).await.unwrap();
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
    let stores = open_in(folder.path());
    let shown = async |number| {
        let view = stores.tasks.get("one", id(number)).await.unwrap();
        view.map(|view| view.task)
    };
    let other = Connection::open(folder.path().join("kinora.db")).unwrap();
    for number in 1..=3 {
        stores.submit(number, "one").await;
    }
    let running = stores.claim_one().await;
    let before = [shown(1).await, shown(2).await, shown(3).await];
    other.execute_batch(BREAK).unwrap();
    let cancel = stores.tasks.cancel("one", id(2), cancelled(), NOW, EXPIRY);
    assert!(cancel.await.is_err());
    assert!(stores.complete(&running).await.is_err());
    assert!(stores.tasks.delete("one", id(3)).await.is_err());
    assert!(stores.tasks.insert(task(4, "one")).await.is_err());
    assert_eq!([shown(1).await, shown(2).await, shown(3).await], before);
    assert_eq!(shown(4).await, None);
    // The lease that could not be ended still holds.
    stores.tasks.check(&running.lease).await.unwrap();

    other.execute_batch(MEND).unwrap();
    stores.complete(&running).await.unwrap();
    stores.submit(4, "one").await;
    let left = stores.claim(9).await;
    let left: Vec<_> = left.iter().map(|claim| claim.task.id).collect();
    assert_eq!(left, [id(2), id(3), id(4)]);
}
