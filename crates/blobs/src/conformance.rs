//! The contract of every blob store, as tests: run [`all`] against an implementation. Each case
//! gets its own empty stores.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "these are tests"
)]

use std::future::Future;
use std::io::Write;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use futures_util::{TryStreamExt, future};
use kinora_contract::StoredFile;
use tempfile::NamedTempFile;

use crate::{BlobError, BlobStore, ByteStream, EntryStream, PAGE_MAX, measure_bytes};

/// Runs each case twice: on one handle, and alternating between two handles.
macro_rules! run {
    ($make:ident, $($case:path),* $(,)?) => {
        $(
            $case(&$make().await[0]).await;
            $case(&AlternatingStore::between($make().await)).await;
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
    run!(make, of_concurrent_puts_one_wins_and_is_whole);
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
        a_put_is_read_with_its_length_and_hash,
        an_existing_key_is_never_overwritten,
        the_same_put_again_is_done,
        a_lost_answer_is_resolved,
        puts_and_deletes_in_one_folder_succeed,
        concurrent_puts_of_the_same_bytes_all_succeed,
        failed_puts_leave_nothing,
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
        let [start, end] =
            [range.start, range.end].map(|at| usize::try_from(at.min(LENGTH)).unwrap());
        let wanted = whole.slice(start..end);
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
        let from = file(b"x");
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

#[derive(Debug)]
struct AlternatingStore<S> {
    handles: [S; 2],
    calls: AtomicUsize,
}

impl<S> AlternatingStore<S> {
    fn between(handles: [S; 2]) -> Self {
        Self {
            handles,
            calls: AtomicUsize::new(0),
        }
    }

    fn next(&self) -> &S {
        &self.handles[self.calls.fetch_add(1, Ordering::Relaxed) % 2]
    }
}

#[async_trait]
impl<S: BlobStore> BlobStore for AlternatingStore<S> {
    async fn put_file(&self, file: &StoredFile, from: &Path) -> Result<(), BlobError> {
        self.next().put_file(file, from).await
    }

    async fn put_bytes(&self, key: &str, bytes: Bytes) -> Result<StoredFile, BlobError> {
        self.next().put_bytes(key, bytes).await
    }

    async fn checksum(&self, key: &str) -> Result<Option<StoredFile>, BlobError> {
        self.next().checksum(key).await
    }

    async fn head(&self, key: &str) -> Result<Option<u64>, BlobError> {
        self.next().head(key).await
    }

    async fn read(&self, key: &str, range: Range<u64>) -> Result<ByteStream, BlobError> {
        self.next().read(key, range).await
    }

    async fn delete(&self, key: &str) -> Result<(), BlobError> {
        self.next().delete(key).await
    }

    fn list(&self, prefix: &str) -> EntryStream {
        self.next().list(prefix)
    }

    async fn probe(&self) -> Result<(), BlobError> {
        self.next().probe().await
    }
}

/// Bytes whose value tells their place: `[length] u8`.
fn pattern(length: usize) -> Bytes {
    (0..length)
        .map(|at| u8::try_from((at * 7 + at / 251) % 256).unwrap())
        .collect()
}

async fn read(store: &impl BlobStore, key: &str, range: Range<u64>) -> Bytes {
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

/// The keys under a prefix, sorted. Pages have their bound, and no key comes twice.
async fn listed(store: &impl BlobStore, prefix: &str) -> Vec<String> {
    let pages: Vec<_> = store.list(prefix).try_collect().await.unwrap();
    for page in &pages {
        assert!(
            (1..=PAGE_MAX).contains(&page.len()),
            "{prefix:?}: pages are bounded"
        );
    }
    let mut keys: Vec<String> = pages.into_iter().flatten().map(|one| one.key).collect();
    keys.sort_unstable();
    assert!(keys.is_sorted_by(|a, b| a < b), "{prefix:?}: {keys:?}");
    keys
}

/// SHA-256 of `abc` (FIPS 180-2, appendix B.1).
const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

/// A local file, as a worker leaves it.
fn file(bytes: &[u8]) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    file
}

async fn a_put_is_read_with_its_length_and_hash(store: &impl BlobStore) {
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
    let from = file(b"abc");
    let second = wanted("videos/v/1/b.mp4");
    store.put_file(&second, from.path()).await.unwrap();
    assert!(from.path().exists(), "the file is left to its owner");
    from.close().unwrap();

    for key in ["videos/v/1/a.mp4", "videos/v/1/b.mp4"] {
        assert_eq!(store.head(key).await.unwrap(), Some(3));
        assert_eq!(store.checksum(key).await.unwrap(), Some(wanted(key)));
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
    // One of the same length, one of another.
    for other in [&b"other"[..], b"second"] {
        let from = file(other);
        let wanted = measure_bytes("a/b", other);
        let again = store.put_file(&wanted, from.path()).await;
        assert!(matches!(again, Err(BlobError::Exists(_))), "{again:?}");
        let again = store.put_bytes("a/b", Bytes::from_static(other)).await;
        assert!(matches!(again, Err(BlobError::Exists(_))), "{again:?}");
        assert!(!store.holds(&wanted).await.unwrap());
    }
    assert_eq!(read(store, "a/b", 0..99).await, "first");
}

async fn the_same_put_again_is_done(store: &impl BlobStore) {
    let bytes = pattern(300_000);
    let first = store.put_bytes("a/b", bytes.clone()).await.unwrap();
    let from = file(&bytes);
    for _ in 0..2 {
        store.put_file(&first, from.path()).await.unwrap();
        assert_eq!(store.put_bytes("a/b", bytes.clone()).await.unwrap(), first);
    }
    let mut other = bytes.to_vec();
    other[299_999] ^= 1;
    let other = store.put_bytes("a/b", other.into()).await;
    assert!(matches!(other, Err(BlobError::Exists(_))), "{other:?}");
    assert!(read(store, "a/b", 0..u64::MAX).await == bytes);
}

/// After a put the caller knows only the file's key, length and SHA-256.
async fn a_lost_answer_is_resolved(store: &impl BlobStore) {
    let bytes = pattern(70_000);
    let wanted = measure_bytes("a/b", &bytes);
    assert!(!store.holds(&wanted).await.unwrap());
    let from = file(&bytes);
    let _lost = store.put_file(&wanted, from.path()).await;
    from.close().unwrap();
    assert!(store.holds(&wanted).await.unwrap());
    let longer = StoredFile {
        bytes: wanted.bytes + 1,
        ..wanted.clone()
    };
    assert!(!store.holds(&longer).await.unwrap());
    store.delete("a/b").await.unwrap();
    assert!(!store.holds(&wanted).await.unwrap());
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
}

/// Deletes remove empty folders; concurrent puts must cope.
async fn puts_and_deletes_in_one_folder_succeed(store: &impl BlobStore) {
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

async fn concurrent_puts_of_the_same_bytes_all_succeed(store: &impl BlobStore) {
    let bytes = pattern(50_000);
    let wanted = measure_bytes("race/same", &bytes);
    for _ in 0..4 {
        let from = file(&bytes);
        let of_files = (0..8).map(|_| store.put_file(&wanted, from.path()));
        let of_bytes = (0..8).map(|_| store.put_bytes("race/same", bytes.clone()));
        let (files, puts) =
            future::join(future::join_all(of_files), future::join_all(of_bytes)).await;
        assert!(files.iter().all(Result::is_ok), "{files:?}");
        for put in puts {
            assert_eq!(put.unwrap(), wanted);
        }
        assert!(read(store, "race/same", 0..u64::MAX).await == bytes);
        assert_eq!(listed(store, "race").await, ["race/same"]);
        store.delete("race/same").await.unwrap();
    }
}

async fn failed_puts_leave_nothing(store: &impl BlobStore) {
    let folder = tempfile::tempdir().unwrap();
    let from = file(b"bytes");
    let cut = StoredFile {
        bytes: 6,
        ..measure_bytes("x/y", b"bytes")
    };
    let wanted = measure_bytes("x/y", b"bytes");
    for (file, from, why) in [
        (&wanted, &*folder.path().join("missing"), "no file is there"),
        (&wanted, folder.path(), "a folder is no file"),
        (&cut, from.path(), "the file is shorter than it was"),
    ] {
        let put = store.put_file(file, from).await;
        assert!(
            matches!(put, Err(BlobError::Unavailable(_))),
            "{why}: {put:?}"
        );
    }
    assert_eq!(store.head("x/y").await.unwrap(), None);
    assert_eq!(listed(store, "").await, [""; 0]);
    // The key is free.
    store.put_file(&wanted, from.path()).await.unwrap();
}
