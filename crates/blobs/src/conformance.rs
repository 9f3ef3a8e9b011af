//! The contract of every blob store, as tests: run [`all`] against an implementation. Each case
//! gets its own empty stores.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "these are tests"
)]

mod handles;
mod looks;
mod puts;

use std::future::Future;

use bytes::Bytes;
use futures_util::{TryStreamExt, future};

use crate::{BlobError, BlobStore, PAGE_MAX, measure_bytes};
use handles::Alternating;
use looks::{listed, pattern, read};

/// Runs each case twice: on one handle, and alternating between two handles.
macro_rules! run {
    ($make:ident, $($case:path),* $(,)?) => {
        $(
            $case(&$make().await[0]).await;
            $case(&Alternating::between($make().await)).await;
        )*
    };
}

/// Runs every case. `make` returns an empty store opened twice, as by two processes.
pub async fn all<S, F>(make: impl Fn() -> F)
where
    S: BlobStore,
    F: Future<Output = [S; 2]>,
{
    all_but_races(&make).await;
    run!(make, puts::of_concurrent_puts_one_wins_and_is_whole);
}

/// Runs every case but that of different bytes put under one key at once, for stores on servers that
/// cannot create without replacing.
pub async fn all_but_races<S, F>(make: impl Fn() -> F)
where
    S: BlobStore,
    F: Future<Output = [S; 2]>,
{
    run!(
        make,
        puts::a_put_is_read_with_its_length_and_hash,
        puts::an_existing_key_is_never_overwritten,
        puts::the_same_put_again_is_done,
        puts::a_lost_answer_is_resolved,
        puts::puts_and_deletes_in_one_folder_succeed,
        puts::concurrent_puts_of_the_same_bytes_all_succeed,
        puts::failed_puts_leave_nothing,
        ranges_are_cut_at_the_end,
        absent_keys_are_absent_everywhere,
        malformed_keys_are_refused_everywhere,
        a_reader_outlives_the_delete,
        a_list_has_every_blob_of_its_prefix_once,
        a_list_holds_its_place,
        a_probe_leaves_nothing,
    );
}

async fn ranges_are_cut_at_the_end(store: &impl BlobStore) {
    const LENGTH: u64 = 700_001;
    let whole = pattern(700_001);
    store.put_bytes("big", whole.clone()).await.unwrap();
    let ranges = [
        0..0,
        0..1,
        0..LENGTH,
        0..u64::MAX,
        131_071..131_073,
        LENGTH - 1..LENGTH,
        LENGTH - 1..LENGTH + 1,
        LENGTH..LENGTH + 1,
        LENGTH + 5..LENGTH + 9,
        400_000..400_000,
        1..LENGTH - 1,
    ];
    for range in ranges {
        let cut = |at: u64| usize::try_from(at.min(LENGTH)).unwrap();
        let wanted = whole.slice(cut(range.start)..cut(range.end));
        assert!(
            read(store, "big", range.clone()).await == wanted,
            "{range:?}"
        );
    }
}

async fn absent_keys_are_absent_everywhere(store: &impl BlobStore) {
    store
        .put_bytes("file", Bytes::from_static(b"x"))
        .await
        .unwrap();
    store
        .put_bytes("folder/file", Bytes::from_static(b"x"))
        .await
        .unwrap();
    for key in ["nothing", "no/such/thing", "file/below", "folder"] {
        assert_eq!(store.head(key).await.unwrap(), None, "{key}");
        let stream = store.read(key, 0..1).await.map(|_| ());
        assert!(
            matches!(stream, Err(BlobError::NotFound(_))),
            "{key}: {stream:?}"
        );
        store.delete(key).await.unwrap();
    }
    store.delete("file").await.unwrap();
    store.delete("file").await.unwrap();
    assert_eq!(store.head("file").await.unwrap(), None);
    assert_eq!(store.head("folder/file").await.unwrap(), Some(1));
    store
        .put_bytes("file", Bytes::from_static(b"y"))
        .await
        .expect("a deleted key is free");
}

async fn malformed_keys_are_refused_everywhere(store: &impl BlobStore) {
    for key in [
        "",
        "/etc/passwd",
        "../out",
        "a/../../out",
        "a//b",
        "A",
        "a\0",
        ".hidden",
        "a/",
    ] {
        let from = puts::file(b"x");
        let refused = [
            store.put_file(&measure_bytes(key, b"x"), from.path()).await,
            store.checksum(key).await.map(|_| ()),
            store.put_bytes(key, Bytes::new()).await.map(|_| ()),
            store.head(key).await.map(|_| ()),
            store.read(key, 0..1).await.map(|_| ()),
            store.delete(key).await,
        ];
        for result in refused {
            assert!(
                matches!(result, Err(BlobError::InvalidKey(_))),
                "{key:?}: {result:?}"
            );
        }
    }
}

async fn a_reader_outlives_the_delete(store: &impl BlobStore) {
    let whole = pattern(1_000_000);
    store.put_bytes("going", whole.clone()).await.unwrap();
    let mut stream = store.read("going", 0..u64::MAX).await.unwrap();
    let first = stream.try_next().await.unwrap().unwrap();
    store.delete("going").await.unwrap();
    assert_eq!(store.head("going").await.unwrap(), None);
    let rest: Vec<Bytes> = stream.try_collect().await.unwrap();
    assert!([first].into_iter().chain(rest).flatten().eq(whole));
}

async fn a_list_has_every_blob_of_its_prefix_once(store: &impl BlobStore) {
    let mut keys = vec![
        "a", "a-b", "a.b/c", "b/a", "b/a-1", "b/b/c", "b/b/d", "b-/x", "b_/x", "b0", "c/d/e/f",
    ];
    for key in &keys {
        store
            .put_bytes(key, Bytes::from_static(b"12345"))
            .await
            .unwrap();
    }
    keys.sort_unstable();
    for prefix in ["", "b", "b/", "b/b", "a", "c/d/e/f", "c/d/e/f/g", "zz"] {
        let wanted = keys.iter().filter(|key| key.starts_with(prefix));
        let found = listed(store, prefix).await;
        assert!(found.iter().eq(wanted), "{prefix:?}: {found:?}");
    }
    let entries = store.list("").try_concat().await.unwrap();
    assert!(entries.iter().all(|entry| entry.bytes == 5));
}

/// Deletes and puts during a listing neither end it nor make it skip other blobs.
async fn a_list_holds_its_place(store: &impl BlobStore) {
    let mut keys: Vec<String> = (0..PAGE_MAX + 100)
        .map(|n| format!("v/{:02}/{n:05}", n % 50))
        .collect();
    for key in &keys {
        store.put_bytes(key, Bytes::new()).await.unwrap();
    }
    let mut pages = store.list("v/");
    let mut found = Vec::new();
    while let Some(page) = pages.try_next().await.unwrap() {
        // As the orphan sweep does.
        for entry in page {
            store.delete(&entry.key).await.unwrap();
            found.push(entry.key);
        }
        store.put_bytes("v/late/one", Bytes::new()).await.unwrap();
        store.delete("v/late/one").await.unwrap();
    }
    found.sort_unstable();
    keys.sort_unstable();
    assert_eq!(found, keys);
    assert_eq!(listed(store, "").await, [""; 0]);
}

async fn a_probe_leaves_nothing(store: &impl BlobStore) {
    let body = Bytes::from_static(b"x");
    store.put_bytes("kept", body.clone()).await.unwrap();
    // Concurrent with puts and with other probes.
    let probes = future::join_all((0..4).map(|_| store.probe()));
    let puts = (0..4).map(|number| store.put_bytes(["a", "b", "c", "d"][number], body.clone()));
    let (probed, put) = future::join(probes, future::join_all(puts)).await;
    assert!(probed.iter().all(Result::is_ok), "{probed:?}");
    assert!(put.iter().all(Result::is_ok), "{put:?}");
    let mut keys = listed(store, "").await;
    keys.sort_unstable();
    assert_eq!(keys, ["a", "b", "c", "d", "kept"]);
}
