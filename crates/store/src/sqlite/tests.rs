//! The store while its disk does not answer, seen from a runtime with one thread.
#![cfg(feature = "conformance")]

use std::sync::mpsc;
use std::time::Duration;

use super::*;
use kinora_contract::ManualClock;

use crate::conformance::Site;
use crate::conformance::bench::Bench;
use crate::conformance::fixtures::{NOW, id, task};
use crate::{IdempotencyKey, KeyStore, StoreHandles, TaskReader, TaskStore};

/// Only a failing test waits so long.
const PATIENCE: Duration = Duration::from_secs(60);
const KEY: [u8; 32] = [1; 32];

/// A store with a finished task, 1, that is on disk only, and a waiting one, 2.
async fn store() -> (tempfile::TempDir, Arc<SqliteStore>) {
    let folder = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::at(NOW));
    let mut options = OpenOptions::new(clock.clone());
    options.sqlite.finished_cached_bytes_max = 1;
    let store = SqliteStore::open(&folder.path().join("kinora.db"), &options).unwrap();
    let store = Arc::new(store);
    let stores = Site::of(StoreHandles::from_store(store.clone()), clock);
    let mut first = task(1, "one");
    first.idempotency = Some(idempotency());
    store.insert(first).await.unwrap();
    let claim = stores.claim_one().await;
    stores.complete(&claim).await.unwrap();
    stores.submit(2, "one").await;
    (folder, store)
}

fn idempotency() -> IdempotencyKey {
    IdempotencyKey {
        key: "key".to_owned(),
        fingerprint: KEY,
        bound_ms: 1_000_000,
    }
}

/// Runs `test` on one thread; a call that keeps the thread fails it.
fn on_one_thread<T: Future<Output = ()>>(test: impl FnOnce() -> T + Send + 'static) {
    let (done, ends) = mpsc::channel();
    std::thread::spawn(move || {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.enable_all().build().unwrap().block_on(test());
        done.send(()).unwrap();
    });
    let ended = ends.recv_timeout(PATIENCE);
    ended.expect("a read of the disk kept the thread that serves others");
}

/// Keeps all connections that read busy, as a disk that does not answer does, until the sender goes.
fn hang(store: &Arc<SqliteStore>) -> mpsc::Sender<()> {
    let ((release, released), (hung, hangs)) = (mpsc::channel(), mpsc::channel());
    let store = store.clone();
    std::thread::spawn(move || {
        let _busy = (store.readers.keep_busy(), store.keys.keep_busy());
        hung.send(()).unwrap();
        released.recv().unwrap_err();
    });
    hangs.recv().unwrap();
    release
}

#[test]
fn p15_reads_that_wait_for_the_disk_leave_the_runtime_to_others() {
    on_one_thread(async || {
        let (_folder, store) = store().await;
        let hung = hang(&store);
        let mut reads = Vec::new();
        for _ in 0..20 {
            let (one, any, twin) = (store.clone(), store.clone(), store.clone());
            reads.push(tokio::spawn(async move { one.get("one", id(1)).await }));
            reads.push(tokio::spawn(async move { any.task(id(1)).await }));
            reads.push(tokio::spawn(async move {
                twin.find_twin("one", &idempotency()).await
            }));
        }
        let key = store.clone();
        let key = tokio::spawn(async move { key.find_key(&KEY, NOW).await });
        // All have begun, and memory answers beside them.
        for _ in 0..100 {
            tokio::task::yield_now().await;
            assert!(store.get("one", id(2)).await.unwrap().is_some());
        }
        assert!(!reads.iter().any(tokio::task::JoinHandle::is_finished));
        assert!(!key.is_finished());
        drop(hung);
        for read in reads {
            let task = read.await.unwrap().unwrap().unwrap();
            assert_eq!(task.id, id(1));
        }
        assert!(key.await.unwrap().unwrap().is_none());
    });
}
