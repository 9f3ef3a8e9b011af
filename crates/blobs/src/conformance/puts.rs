//! Puts: once, repeated, concurrent and failing.

use std::io::Write;

use bytes::Bytes;
use futures_util::future;
use kinora_contract::StoredFile;
use tempfile::NamedTempFile;

use super::looks::{listed, pattern, read};
use crate::{BlobError, BlobStore, measure_bytes};

/// SHA-256 of `abc` (FIPS 180-2, appendix B.1).
const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

/// A local file, as a worker leaves it.
pub(super) fn file(bytes: &[u8]) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    file
}

pub(super) async fn a_put_is_read_with_its_length_and_hash(store: &impl BlobStore) {
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

pub(super) async fn an_existing_key_is_never_overwritten(store: &impl BlobStore) {
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

pub(super) async fn the_same_put_again_is_done(store: &impl BlobStore) {
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
pub(super) async fn a_lost_answer_is_resolved(store: &impl BlobStore) {
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

pub(super) async fn of_concurrent_puts_one_wins_and_is_whole(store: &impl BlobStore) {
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
pub(super) async fn puts_and_deletes_in_one_folder_succeed(store: &impl BlobStore) {
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

pub(super) async fn concurrent_puts_of_the_same_bytes_all_succeed(store: &impl BlobStore) {
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

pub(super) async fn failed_puts_leave_nothing(store: &impl BlobStore) {
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
