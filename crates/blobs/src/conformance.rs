//! What every blob store must do, as tests: run [`all`] against an implementation. Each case
//! gets an empty store of its own.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "these are tests"
)]

use std::future::Future;

use bytes::{Bytes, BytesMut};
use futures_util::{TryStreamExt, future};
use kinora_contract::StoredFile;

use crate::{BlobEntry, BlobError, BlobStore, PAGE_MAX};

/// SHA-256 of `abc` (FIPS 180-2, appendix B.1).
const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

/// Runs every case; `make` gives an empty store.
pub async fn all<S, F>(make: impl Fn() -> F)
where
    S: BlobStore,
    F: Future<Output = S>,
{
    what_is_put_is_read_with_its_length_and_hash(&make().await).await;
    an_existing_key_is_never_overwritten(&make().await).await;
    the_same_put_again_is_done(&make().await).await;
    of_concurrent_puts_one_wins_and_is_whole(&make().await).await;
    ranges_are_cut_at_the_end(&make().await).await;
    absent_keys_are_absent_everywhere(&make().await).await;
    malformed_keys_are_refused_everywhere(&make().await).await;
    a_reader_outlives_the_delete(&make().await).await;
    a_list_has_every_blob_of_its_prefix_once(&make().await).await;
    a_list_holds_its_place(&make().await).await;
    failed_puts_leave_nothing(&make().await).await;
    a_probe_leaves_nothing(&make().await).await;
}

/// Bytes whose value tells their place: `[length] u8`.
fn pattern(length: usize) -> Bytes {
    (0..length)
        .map(|at| u8::try_from((at * 7 + at / 251) % 256).unwrap())
        .collect()
}

async fn read(store: &impl BlobStore, key: &str, range: std::ops::Range<u64>) -> Bytes {
    let stream = store.read(key, range).await.expect("the key is readable");
    let chunks: Vec<Bytes> = stream.try_collect().await.expect("the stream ends well");
    assert!(
        chunks.iter().all(|chunk| chunk.len() <= 256 * 1024),
        "chunks are bounded"
    );
    let mut whole = BytesMut::new();
    chunks
        .iter()
        .for_each(|chunk| whole.extend_from_slice(chunk));
    whole.freeze()
}

async fn what_is_put_is_read_with_its_length_and_hash(store: &impl BlobStore) {
    let wanted = |key: &str| StoredFile {
        key: key.into(),
        bytes: 3,
        sha256: ABC.into(),
    };
    let stored = store
        .put_bytes("videos/v/1/a.mp4", Bytes::from_static(b"abc"))
        .await
        .unwrap();
    assert_eq!(stored, wanted("videos/v/1/a.mp4"));

    let from = store.staging_dir().join("finished");
    std::fs::write(&from, b"abc").unwrap();
    assert_eq!(
        store.put_file("videos/v/1/b.mp4", &from).await.unwrap(),
        wanted("videos/v/1/b.mp4")
    );
    assert!(!from.exists(), "the staged file is gone");

    for key in ["videos/v/1/a.mp4", "videos/v/1/b.mp4"] {
        assert_eq!(store.head(key).await.unwrap(), Some(3));
        assert_eq!(read(store, key, 0..3).await, "abc");
    }
    assert_eq!(
        store.put_bytes("empty", Bytes::new()).await.unwrap().bytes,
        0
    );
    assert_eq!(store.head("empty").await.unwrap(), Some(0));
    assert_eq!(read(store, "empty", 0..10).await, "");
}

async fn an_existing_key_is_never_overwritten(store: &impl BlobStore) {
    store
        .put_bytes("a/b", Bytes::from_static(b"first"))
        .await
        .unwrap();
    let from = store.staging_dir().join("second");
    std::fs::write(&from, b"second").unwrap();
    for _ in 0..2 {
        let again = store.put_file("a/b", &from).await;
        assert!(matches!(again, Err(BlobError::Exists(_))), "{again:?}");
        assert!(from.exists(), "a refused file is left to its owner");
    }
    let again = store.put_bytes("a/b", Bytes::from_static(b"third")).await;
    assert!(matches!(again, Err(BlobError::Exists(_))), "{again:?}");
    assert_eq!(read(store, "a/b", 0..99).await, "first");
}

async fn the_same_put_again_is_done(store: &impl BlobStore) {
    let bytes = pattern(300_000);
    let first = store.put_bytes("a/b", bytes.clone()).await.unwrap();
    let from = store.staging_dir().join("again");
    std::fs::write(&from, &bytes).unwrap();
    assert_eq!(store.put_file("a/b", &from).await.unwrap(), first);
    assert!(!from.exists(), "the staged file is gone");
    assert_eq!(store.put_bytes("a/b", bytes.clone()).await.unwrap(), first);
    // Of the same length, and not the same.
    let mut other = bytes.to_vec();
    other[299_999] ^= 1;
    let other = store.put_bytes("a/b", other.into()).await;
    assert!(matches!(other, Err(BlobError::Exists(_))), "{other:?}");
    assert!(read(store, "a/b", 0..u64::MAX).await == bytes);
}

async fn of_concurrent_puts_one_wins_and_is_whole(store: &impl BlobStore) {
    let bodies: Vec<Bytes> = (0..16_u8).map(|n| Bytes::from(vec![n; 50_000])).collect();
    let puts = bodies
        .iter()
        .map(|body| store.put_bytes("race/one", body.clone()));
    let done = future::join_all(puts).await;
    let winners: Vec<usize> = (0..16).filter(|at| done[*at].is_ok()).collect();
    assert_eq!(winners.len(), 1, "{done:?}");
    assert_eq!(
        read(store, "race/one", 0..u64::MAX).await,
        bodies[winners[0]]
    );

    // Deletes remove empty folders; puts beside them must not mind.
    let keys: Vec<String> = (0..32).map(|n| format!("busy/folder/{n}")).collect();
    let churn = keys.iter().map(|key| async move {
        for _ in 0..8 {
            store
                .put_bytes(key, Bytes::from_static(b"x"))
                .await
                .expect("a put beside deletes");
            store.delete(key).await.expect("a delete beside puts");
        }
    });
    future::join_all(churn).await;
    assert_eq!(listed(store, "busy").await, [""; 0]);
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
        let from = store.staging_dir().join("kept");
        std::fs::write(&from, b"x").unwrap();
        let refused = [
            store.put_file(key, &from).await.map(|_| ()),
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

/// The keys under a prefix, sorted. Pages have their bound, and no key comes twice.
async fn listed(store: &impl BlobStore, prefix: &str) -> Vec<String> {
    let pages: Vec<_> = store.list(prefix).try_collect().await.unwrap();
    let bounded = |page: &Vec<BlobEntry>| (1..=PAGE_MAX).contains(&page.len());
    assert!(pages.iter().all(bounded), "{prefix:?}: pages are bounded");
    let mut keys: Vec<String> = pages.into_iter().flatten().map(|one| one.key).collect();
    keys.sort_unstable();
    assert!(keys.is_sorted_by(|a, b| a < b), "{prefix:?}: {keys:?}");
    keys
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

/// What is deleted and put behind a list's back neither ends it nor makes it miss others.
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
        // As the look for orphans does.
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

async fn failed_puts_leave_nothing(store: &impl BlobStore) {
    let missing = store.staging_dir().join("missing");
    assert!(store.put_file("x/y", &missing).await.is_err());
    assert!(
        store.put_file("x/y", store.staging_dir()).await.is_err(),
        "a folder is no file"
    );
    assert_eq!(store.head("x/y").await.unwrap(), None);
    assert_eq!(listed(store, "").await, [""; 0]);
}

async fn a_probe_leaves_nothing(store: &impl BlobStore) {
    let body = Bytes::from_static(b"x");
    store.put_bytes("kept", body.clone()).await.unwrap();
    // Beside puts and beside each other.
    let probes = future::join_all((0..4).map(|_| store.probe()));
    let puts = (0..4).map(|number| store.put_bytes(["a", "b", "c", "d"][number], body.clone()));
    let (probed, put) = future::join(probes, future::join_all(puts)).await;
    assert!(probed.iter().all(Result::is_ok), "{probed:?}");
    assert!(put.iter().all(Result::is_ok), "{put:?}");
    let mut keys = listed(store, "").await;
    keys.sort_unstable();
    assert_eq!(keys, ["a", "b", "c", "d", "kept"]);
    let staged = std::fs::read_dir(store.staging_dir()).unwrap();
    assert_eq!(staged.count(), 0);
}
