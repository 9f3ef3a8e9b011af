//! The SQLite store against the conformance suite, and what is about SQLite alone: locks,
//! failing writes, other processes, damaged and newer contents.
#![allow(clippy::disallowed_methods, reason = "tests measure in real time")]
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "these are tests"
)]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use kinora_contract::{ManualClock, TaskState};
use kinora_store::conformance::bench::Bench;
use kinora_store::conformance::fixtures::{
    EXPIRY, NOW, RETENTION_MS, actor, cancelled, claiming, files as files_of, id, sweep_at, task,
};
use kinora_store::conformance::{Harness, Site};
use kinora_store::{
    IdempotencyKey, InsertOutcome, KeyScope, ListOrder, NewKey, NewTask, OpenError, OpenOptions,
    PageRequest, ReleasedAttempt, SqliteOptions, StoreError, StoreHandles, SweepRequest, open,
    open_keys,
};
use rusqlite::Connection;

/// Stores in files of a temporary folder.
struct Files {
    folder: tempfile::TempDir,
    options: SqliteOptions,
}

impl Files {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        // Small, so that the cases reach what is on disk only.
        let options = SqliteOptions {
            finished_cached_bytes_max: 1,
            ..SqliteOptions::default()
        };
        Self { folder, options }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("store.db")
    }

    fn url(&self) -> String {
        format!("sqlite:{}", self.path().display())
    }

    async fn try_open(
        &self,
        url: &str,
        clock: Arc<ManualClock>,
    ) -> Result<StoreHandles, OpenError> {
        let sqlite = self.options.clone();
        let options = OpenOptions {
            sqlite,
            ..OpenOptions::new(clock)
        };
        open(url, &options).await
    }

    async fn open(&self) -> Site {
        let clock = Arc::new(ManualClock::at(NOW));
        let stores = self.try_open(&self.url(), clock.clone()).await;
        Site::of(stores.unwrap(), clock)
    }

    fn raw(&self) -> Connection {
        Connection::open(self.path()).unwrap()
    }
}

#[async_trait]
impl Harness for Files {
    async fn stores(&self, name: &str, clock: Arc<ManualClock>) -> StoreHandles {
        let path = self.folder.path().join(name).join("data/kinora.db");
        let url = format!("sqlite:{}", path.display());
        self.try_open(&url, clock).await.unwrap()
    }

    async fn open_second(&self, first: &Site, _: &str, clock: Arc<ManualClock>) -> Site {
        Site {
            clock,
            ..first.clone()
        }
    }
}

kinora_store::conformance_suite!(Files::new());

fn unavailable<T>(result: &Result<T, StoreError>) -> bool {
    matches!(result, Err(StoreError::Unavailable(_)))
}

#[tokio::test]
async fn a_second_serving_process_is_refused_until_the_first_ends() {
    let files = Files::new();
    let first = files.open().await;
    let second = files.try_open(&files.url(), first.clock.clone()).await;
    assert!(matches!(second, Err(OpenError::InUse(_))), "{second:?}");
    drop(first);
    files.open().await;
}

#[tokio::test]
async fn only_known_addresses_are_opened_and_secrets_are_not_repeated() {
    let options = OpenOptions::new(Arc::new(ManualClock::at(NOW)));
    for url in ["mysql://user:secret@host/db", "sqlite:", "kinora.db", ""] {
        let error = open(url, &options).await.unwrap_err();
        assert!(matches!(error, OpenError::UnknownScheme(_)), "{error:?}");
        assert!(!error.to_string().contains("secret"), "{error}");
    }
}

#[tokio::test]
async fn a_newer_schema_is_refused_and_left_alone() {
    let files = Files::new();
    drop(files.open().await);
    files.raw().pragma_update(None, "user_version", 99).unwrap();
    let opened = files.try_open(&files.url(), Arc::default()).await;
    for error in [
        opened.map(drop).unwrap_err(),
        open_keys(&files.url()).map(drop).unwrap_err(),
    ] {
        assert!(
            matches!(error, OpenError::NewerSchema { found: 99, .. }),
            "{error}"
        );
    }
    let version: u32 = files
        .raw()
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .unwrap();
    assert_eq!(version, 99);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_refuses_submits_and_recovers_by_itself() {
    let mut files = Files::new();
    files.options.pages_max = Some(60);
    let stores = files.open().await;
    let mut stored = Vec::new();
    let refused = loop {
        let number = stored.len() as u64;
        match stores.tasks.insert(task(number, "one")).await {
            Ok(InsertOutcome::Inserted(_)) => stored.push(number),
            other => break other,
        }
        assert!(stored.len() < 10_000, "the bound on pages holds");
    };
    assert!(unavailable(&refused), "{refused:?}");
    let full = stored.len() as u64;
    // Reads go on; nothing is half there; neighbours of a refused submit are served.
    assert!(stores.tasks.get("one", id(full)).await.unwrap().is_none());
    assert_eq!(stores.task("one", full - 1).await.id, id(full - 1));
    let mut beside = Vec::new();
    for number in full..full + 8 {
        let tasks = stores.tasks.clone();
        beside.push(tokio::spawn(async move {
            tasks.insert(task(number, "one")).await
        }));
    }
    let cancel = stores
        .tasks
        .cancel("one", id(0), cancelled(), RETENTION_MS)
        .await;
    for insert in beside {
        let insert = insert.await.unwrap();
        assert!(unavailable(&insert), "{insert:?}");
    }
    assert_eq!(
        cancel.is_ok(),
        stores.task("one", 0).await.finished_at_ms.is_some()
    );

    for number in 0..full / 2 {
        stores.tasks.delete("one", id(number)).await.unwrap();
    }
    let again = stores.tasks.insert(task(full, "one")).await.unwrap();
    assert!(
        matches!(&again, InsertOutcome::Inserted(task) if task.id == id(full)),
        "{again:?}"
    );
    // Memory and disk agree on who waits.
    drop(stores);
    let stores = files.open().await;
    let waiting: Vec<_> = stores
        .claim(10_000)
        .await
        .into_iter()
        .map(|one| one.task.id)
        .collect();
    assert_eq!(waiting, (full / 2..=full).map(id).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_lock_held_elsewhere_refuses_changes_and_leaves_no_trace() {
    let mut files = Files::new();
    files.options.busy_timeout_ms = 20;
    let stores = files.open().await;
    stores.submit(1, "one").await;
    let other = files.raw();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert!(unavailable(&stores.tasks.insert(task(2, "one")).await));
    assert!(unavailable(&stores.work.claim(claiming(1)).await));
    assert!(unavailable(&stores.tasks.delete("one", id(1)).await));
    assert_eq!(stores.task("one", 1).await.state, TaskState::Waiting);
    other.execute_batch("ROLLBACK").unwrap();
    stores.submit(2, "one").await;
    assert_eq!(stores.position(2).await, Some(1));
    let claims = stores.claim(9).await;
    assert_eq!(
        claims.iter().map(|one| one.task.id).collect::<Vec<_>>(),
        [id(1), id(2)]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failing_neighbour_in_one_transaction_leaves_no_trace_in_the_queue() {
    let files = Files::new();
    let stores = files.open().await;
    stores.submit(1, "one").await;
    // While the writer waits for this lock, the others gather into one transaction.
    let other = files.raw();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let (first, claims, duplicate, beside, ()) = tokio::join!(
        stores.tasks.insert(task(2, "one")),
        stores.claim(1),
        stores.tasks.insert(task(1, "two")),
        stores.tasks.insert(task(3, "one")),
        async { other.execute_batch("ROLLBACK").unwrap() },
    );
    assert!(unavailable(&duplicate), "{duplicate:?}");
    assert_eq!(
        claims.iter().map(|one| one.task.id).collect::<Vec<_>>(),
        [id(1)]
    );
    first.unwrap();
    beside.unwrap();
    stores.complete(&claims[0]).await.unwrap();
    let rest: Vec<_> = stores
        .claim(9)
        .await
        .into_iter()
        .map(|one| one.task.id)
        .collect();
    assert_eq!(rest, [id(2), id(3)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_fails_halfway_is_undone_whole() {
    let files = Files::new();
    let stores = files.open().await;
    let keyed = |number, key: &str| NewTask {
        idempotency: Some(IdempotencyKey {
            key: key.to_owned(),
            fingerprint: [1; 32],
            bound_ms: 1_000,
        }),
        ..task(number, "one")
    };
    stores.tasks.insert(keyed(1, "first")).await.unwrap();
    // The task is written first, and only then its key.
    let refuse =
        "CREATE TRIGGER refuse BEFORE INSERT ON idempotency BEGIN SELECT raise(ABORT, 'no'); END";
    files.raw().execute_batch(refuse).unwrap();
    let refused = stores.tasks.insert(keyed(2, "second")).await;
    assert!(unavailable(&refused), "{refused:?}");
    assert!(stores.tasks.get("one", id(2)).await.unwrap().is_none());
    let usage = stores.tasks.usage("one").await.unwrap();
    assert_eq!(usage.tasks, 1);
    let count = "SELECT count(*) FROM tasks";
    let tasks: i64 = files.raw().query_row(count, [], |row| row.get(0)).unwrap();
    assert_eq!(tasks, 1);
    files.raw().execute_batch("DROP TRIGGER refuse").unwrap();
    stores.tasks.insert(keyed(2, "second")).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_of_a_newer_version_is_unreadable_alone() {
    let files = Files::new();
    let stores = files.open().await;
    for number in 1..=3 {
        stores.submit(number, "one").await;
    }
    let claim = stores.claim_one().await;
    stores.complete(&claim).await.unwrap();
    drop(stores);
    files
        .raw()
        .execute("UPDATE tasks SET spec_version = 99 WHERE seq < 3", [])
        .unwrap();
    let stores = files.open().await;
    for number in [1, 2] {
        let read = stores.tasks.get("one", id(number)).await;
        assert!(matches!(read, Err(StoreError::Corrupt(_))), "{read:?}");
    }
    let request = PageRequest {
        project: "one".to_owned(),
        after: None,
        limit: 9,
        order: ListOrder::Ascending,
    };
    let listed = stores.tasks.list(request).await.unwrap().tasks;
    assert_eq!(
        listed.iter().map(|task| task.id).collect::<Vec<_>>(),
        [id(3)]
    );
    let readable = stores.claim_one().await;
    let given_back = stores
        .work
        .release(&readable.lease, ReleasedAttempt::Forgiven);
    given_back.await.unwrap();
    assert_eq!(stores.remove_files().await, readable.lease.file_keys());
    // It can be deleted, and it ages, but not as a failed task would: its files are given up.
    let kept = SweepRequest {
        unreadable_ms: EXPIRY,
        ..sweep_at(EXPIRY)
    };
    assert_eq!(stores.sweep_by(kept).await.expired, 0);
    assert_eq!(stores.sweep(EXPIRY).await.expired, 1);
    let published = files_of(&format!("token-{}", claim.lease.token));
    assert_eq!(stores.files_due().await, published);
    stores.tasks.delete("one", id(2)).await.unwrap();
    assert!(stores.tasks.get("one", id(2)).await.unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_that_nobody_waits_for_goes_back() {
    let files = Files::new();
    let stores = files.open().await;
    stores.submit(1, "one").await;
    let begun = Instant::now();
    // Polled once, so that the request is on its way, and dropped.
    let claim = stores.claim(1);
    tokio::select! { biased; _ = claim => {}, () = std::future::ready(()) => {} }
    // Whether the claim came first or was given up before, a worker that waits gets the task.
    loop {
        let found = stores.claim(1).await;
        if let Some(claim) = found.first() {
            assert_eq!(claim.task.attempt, 1);
            break;
        }
        assert!(
            begun.elapsed() < Duration::from_secs(10),
            "the task never came back"
        );
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_of_another_process_are_seen_within_a_second() {
    let files = Files::new();
    let absent = open_keys(&files.url());
    assert!(matches!(absent, Err(OpenError::Missing(_))), "{absent:?}");
    let stores = files.open().await;
    let other = open_keys(&files.url()).unwrap();
    let key = NewKey {
        id: "key_1".to_owned(),
        sha256: [1; 32],
        name: "made elsewhere".to_owned(),
        project: "one".to_owned(),
        scopes: vec![KeyScope::Read],
        models: None,
        requests_per_minute: None,
        unfinished_max: None,
        budget: kinora_store::Budget::default(),
        created_at_ms: NOW,
        expires_at_ms: None,
    };
    assert!(stores.keys.find_key(&[1; 32], NOW).await.unwrap().is_none());
    other.add_key(key, &actor("one")).await.unwrap();
    assert!(stores.keys.find_key(&[1; 32], NOW).await.unwrap().is_some());

    // Both write at the same time, and neither fails.
    let writes = stores.clone();
    let submits = tokio::spawn(async move {
        for number in 0..100 {
            writes.submit(number, "one").await;
        }
    });
    let by = actor("one");
    for _ in 0..20 {
        assert!(other.revoke_key("key_1", NOW + 1, &by).await.unwrap());
        tokio::task::yield_now().await;
    }
    stores.clock.advance(1_000);
    let revoked = stores.keys.find_key(&[1; 32], NOW).await.unwrap();
    assert!(!revoked.unwrap().is_usable(NOW));
    submits.await.unwrap();
    assert_eq!(other.list_keys().await.unwrap().len(), 1);
}
