//! What a store does when its files are not as it left them: it is refused, or it says so, and never
//! serves something else in silence.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "these are tests"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kinora_contract::{ManualClock, Task, TaskId};
use kinora_store::conformance::Site;
use kinora_store::conformance::bench::Bench;
use kinora_store::conformance::fixtures::{NOW, RETENTION_MS, id, task};
use kinora_store::{LostChanges, OpenError, OpenOptions, SqliteOptions, StoreError, inspect, open};
use proptest::prelude::*;
use rusqlite::Connection;
use rusqlite::types::Value;

/// A folder with a store in it.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// What a power cut or a kill would leave of another, whose store is open.
    fn copy_of(other: &Self) -> Self {
        let copy = Self::new();
        for name in ["kinora.db", "kinora.db-wal", "kinora.mark"] {
            if other.file(name).exists() {
                fs::copy(other.file(name), copy.file(name)).unwrap();
            }
        }
        copy
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn url(&self) -> String {
        format!("sqlite:{}", self.file("kinora.db").display())
    }

    async fn try_open(&self, sqlite: &SqliteOptions) -> Result<Site, OpenError> {
        let clock = Arc::new(ManualClock::at(NOW));
        let options = OpenOptions {
            sqlite: sqlite.clone(),
            ..OpenOptions::new(clock.clone())
        };
        Ok(Site::of(open(&self.url(), &options).await?, clock))
    }

    async fn open(&self) -> Site {
        self.try_open(&SqliteOptions::default()).await.unwrap()
    }

    async fn loss(&self) -> LostChanges {
        match self.try_open(&SqliteOptions::default()).await {
            Err(OpenError::Lost(loss)) => loss,
            other => panic!("not refused: {other:?}"),
        }
    }
}

const ACCEPTING: SqliteOptions = SqliteOptions {
    attempts_max: 3,
    finished_cached_bytes_max: 64 << 20,
    busy_timeout_ms: 5_000,
    pages_max: None,
    token_stride: 1_000,
    accepts_loss: true,
    on_the_spot: false,
};

fn flip(path: &Path, bit: u64) {
    let mut bytes = fs::read(path).unwrap();
    let at = usize::try_from(bit / 8).unwrap() % bytes.len();
    bytes[at] ^= 1 << (bit % 8);
    fs::write(path, bytes).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p17_a_torn_or_flipped_log_is_refused_until_the_loss_is_accepted() {
    let folder = Folder::new();
    let stores = folder.open().await;
    stores.submit(100, "one").await;
    // While somebody reads, the log is not carried over into the database.
    let reader = Connection::open(folder.file("kinora.db")).unwrap();
    reader
        .execute_batch("BEGIN; SELECT count(*) FROM tasks")
        .unwrap();
    for number in 0..100 {
        stores.submit(number, "one").await;
    }
    let log_bytes = fs::metadata(folder.file("kinora.db-wal")).unwrap().len();
    type Damage = fn(&Path, u64);
    let damages: [(&str, Damage); 3] = [
        ("one bit flipped", |log, bytes| flip(log, bytes * 8 / 3)),
        ("cut to half", |log, bytes| {
            let file = fs::File::options().write(true).open(log).unwrap();
            file.set_len(bytes / 2).unwrap();
        }),
        ("removed", |log, _| fs::remove_file(log).unwrap()),
    ];
    for (what, damage) in damages {
        let copy = Folder::copy_of(&folder);
        damage(&copy.file("kinora.db-wal"), log_bytes);
        let before = fs::read(copy.file("kinora.db")).unwrap();
        let loss = copy.loss().await;
        assert!((1..=101).contains(&loss.changes), "{what}: {loss:?}");
        assert!(!loss.foreign && loss.noted_ms > NOW, "{what}: {loss:?}");
        // The refusal has changed nothing: what could still be saved is there.
        assert_eq!(fs::read(copy.file("kinora.db")).unwrap(), before, "{what}");
        assert_eq!(copy.loss().await, loss, "{what}");
        drop(copy.try_open(&ACCEPTING).await.unwrap());
        drop(copy.open().await);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p17_what_is_whole_is_opened_with_and_without_its_mark() {
    let folder = Folder::new();
    let stores = folder.open().await;
    stores.submit(1, "one").await;
    let whole = Folder::copy_of(&folder);
    // An older mark is what a power cut leaves, and none what a copy may.
    let older = fs::read(whole.file("kinora.mark")).unwrap();
    stores.submit(2, "one").await;
    let later = Folder::copy_of(&folder);
    fs::write(later.file("kinora.mark"), older).unwrap();
    let unmarked = Folder::copy_of(&folder);
    fs::remove_file(unmarked.file("kinora.mark")).unwrap();
    drop(stores);
    for (copy, count) in [(whole, 1), (later, 2), (unmarked, 2), (folder, 2)] {
        for _ in 0..2 {
            let stores = copy.open().await;
            assert_eq!(stores.tasks.usage("one").await.unwrap().tasks, count);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p17_another_database_beside_the_mark_is_refused() {
    let (folder, other) = (Folder::new(), Folder::new());
    for each in [&folder, &other] {
        each.open().await.submit(1, "one").await;
    }
    for name in ["kinora.db", "kinora.db-wal"] {
        let _ = fs::remove_file(folder.file(name));
        if other.file(name).exists() {
            fs::copy(other.file(name), folder.file(name)).unwrap();
        }
    }
    assert!(folder.loss().await.foreign);
    drop(folder.try_open(&ACCEPTING).await.unwrap());
    drop(folder.open().await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p03_copies_of_a_store_never_give_out_the_same_tokens() {
    let folder = Folder::new();
    let stores = folder.open().await;
    stores.submit(1, "one").await;
    stores.submit(2, "one").await;
    let first = stores.claim_one().await.lease.token;
    let copy = Folder::copy_of(&folder);
    drop(stores);
    let mut tokens = vec![first];
    for (folder, token_stride) in [(&folder, 7), (&copy, 1_000)] {
        let options = SqliteOptions {
            token_stride,
            ..SqliteOptions::default()
        };
        for _ in 0..2 {
            let stores = folder.try_open(&options).await.unwrap();
            let token = stores.claim_one().await.lease.token;
            assert!(token > first + token_stride, "{tokens:?} {token}");
            assert!(!tokens.contains(&token), "{tokens:?} {token}");
            tokens.push(token);
        }
    }
}

/// One task in each state: waiting (1), waiting after a run (2), completed (3), failed (4).
async fn fill(stores: &Site) {
    for number in 1..=3 {
        stores.submit(number, "one").await;
    }
    let claims = stores.claim(3).await;
    let done = claims.iter().find(|claim| claim.task.id == id(2)).unwrap();
    stores.complete(done).await.unwrap();
    stores.cancel("one", 3, RETENTION_MS).await;
    stores.submit(4, "one").await;
}

async fn get(stores: &Site, id: TaskId) -> Result<Option<Arc<Task>>, StoreError> {
    stores.tasks.get("one", id).await
}

/// Columns that hold what was acknowledged.
const COLUMNS: &str = "project phase attempt created_at_ms started_at_ms finished_at_ms expires_at_ms \
     artifact failure spec metadata lease_token progress engine priority";

/// The value with one bit of it flipped; numbers and texts stay what they are.
fn flipped(value: Value, bit: usize) -> Option<Value> {
    match value {
        Value::Integer(number) => Some(Value::Integer(number ^ (1 << (bit % 63)))),
        Value::Text(text) => {
            let mut bytes = text.into_bytes();
            let at = (bit / 8) % bytes.len().max(1);
            *bytes.get_mut(at)? ^= 1 << (bit % 7);
            String::from_utf8(bytes).ok().map(Value::Text)
        }
        _ => None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn p17_a_flipped_bit_of_a_row_is_told(
        number in 1_u64..=4,
        column in 0_usize..15,
        bit in 0_usize..20_000,
    ) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        runtime.block_on(async {
            let folder = Folder::new();
            let stores = folder.open().await;
            fill(&stores).await;
            drop(stores);
            let row = id(number).to_string();
            let conn = Connection::open(folder.file("kinora.db")).unwrap();
            conn.pragma_update(None, "ignore_check_constraints", true).unwrap();
            let (column, before) = (COLUMNS.split_whitespace().nth(column).unwrap(), folder.open().await);
            let was = get(&before, id(number)).await.unwrap();
            drop(before);
            let query = format!("SELECT {column} FROM tasks WHERE id = ?1");
            let value: Value = conn.query_row(&query, [&row], |row| row.get(0)).unwrap();
            if let Some(value) = flipped(value, bit) {
                let update = format!("UPDATE tasks SET {column} = ?1 WHERE id = ?2");
                conn.execute(&update, rusqlite::params![value, row]).unwrap();
            }
            drop(conn);
            match folder.try_open(&SqliteOptions::default()).await {
                Err(OpenError::Damaged(_)) => {}
                Err(other) => panic!("{column}: {other:?}"),
                Ok(stores) => match get(&stores, id(number)).await {
                    Err(StoreError::Corrupt(_)) => {}
                    found => assert_eq!(found.unwrap(), was, "{column} bit {bit}"),
                },
            }
        });
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p17_an_inspection_tells_the_rows_that_cannot_be_read() {
    let folder = Folder::new();
    let stores = folder.open().await;
    for number in 1..=12 {
        stores.submit(number, "one").await;
    }
    drop(stores);
    let conn = Connection::open(folder.file("kinora.db")).unwrap();
    let spoil = "UPDATE tasks SET spec = replace(spec, 'boat', 'goat') WHERE id = ?1";
    for number in [1, 2, 3, 4, 7, 12] {
        assert_eq!(conn.execute(spoil, [id(number).to_string()]).unwrap(), 1);
    }
    drop(conn);
    let inspection = inspect(&folder.url()).unwrap().unwrap();
    let (mut good, mut bad) = (0, 0);
    let mut each = |task: Result<&Task, &StoreError>| match task {
        Ok(_) => good += 1,
        Err(_) => bad += 1,
    };
    inspection.tasks(&mut each).unwrap();
    assert_eq!((good, bad), (6, 6));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p17_a_damaged_page_is_refused_and_an_inspection_tells_it() {
    let folder = Folder::new();
    let stores = folder.open().await;
    for number in 0..200 {
        stores.submit(number, "one").await;
    }
    let looked = inspect(&folder.url()).unwrap().unwrap();
    assert_eq!(looked.check().unwrap(), [""; 0]);
    assert_eq!(
        (looked.count().unwrap(), looked.loss().unwrap()),
        (200, None)
    );
    drop((stores, looked));
    // All of it into the database itself.
    let conn = Connection::open(folder.file("kinora.db")).unwrap();
    let carry = "PRAGMA wal_checkpoint(TRUNCATE)";
    conn.query_row(carry, [], |_| Ok(())).unwrap();
    let root = "SELECT rootpage FROM sqlite_schema WHERE name = 'tasks'";
    let page: i64 = conn.query_row(root, [], |row| row.get(0)).unwrap();
    drop(conn);
    let mut bytes = fs::read(folder.file("kinora.db")).unwrap();
    let at = usize::try_from(page - 1).unwrap() * 4096;
    bytes[at..at + 4096].fill(0);
    fs::write(folder.file("kinora.db"), bytes).unwrap();
    let refused = folder.try_open(&SqliteOptions::default()).await;
    assert!(matches!(refused, Err(OpenError::Damaged(_))), "{refused:?}");
    let looked = inspect(&folder.url()).unwrap().unwrap();
    assert_ne!(looked.check().unwrap(), [""; 0]);
    drop(looked);
    fs::write(folder.file("kinora.db"), vec![b'x'; 4096]).unwrap();
    let _ = fs::remove_file(folder.file("kinora.db-wal"));
    let refused = folder.try_open(&SqliteOptions::default()).await;
    assert!(matches!(refused, Err(OpenError::Damaged(_))), "{refused:?}");
    assert!(inspect(&folder.url()).is_err());
}

#[test]
fn an_inspection_makes_nothing() {
    let folder = Folder::new();
    assert!(inspect(&folder.url()).unwrap().is_none());
    assert_eq!(fs::read_dir(folder.0.path()).unwrap().count(), 0);
}

/// The counter is behind a lease: tokens must not be given out twice all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p03_a_damaged_token_counter_is_raised() {
    let folder = Folder::new();
    let stores = folder.open().await;
    stores.tasks.insert(task(1, "one")).await.unwrap();
    let first = stores.claim_one().await.lease.token;
    drop(stores);
    let conn = Connection::open(folder.file("kinora.db")).unwrap();
    let sink = "UPDATE counters SET value = 0 WHERE name = 'token'";
    conn.execute(sink, []).unwrap();
    drop(conn);
    assert!(folder.open().await.claim_one().await.lease.token > first);
}
