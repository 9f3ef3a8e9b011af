//! The files of the cases, and how they inspect a store.

use std::ops::Range;

use bytes::{Bytes, BytesMut};
use futures_util::TryStreamExt;

use crate::{BlobEntry, BlobStore, PAGE_MAX};

/// Bytes whose value tells their place: `[length] u8`.
pub(super) fn pattern(length: usize) -> Bytes {
    (0..length)
        .map(|at| u8::try_from((at * 7 + at / 251) % 256).unwrap())
        .collect()
}

pub(super) async fn read(store: &impl BlobStore, key: &str, range: Range<u64>) -> Bytes {
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
pub(super) async fn listed(store: &impl BlobStore, prefix: &str) -> Vec<String> {
    let pages: Vec<_> = store.list(prefix).try_collect().await.unwrap();
    let bounded = |page: &Vec<BlobEntry>| (1..=PAGE_MAX).contains(&page.len());
    assert!(pages.iter().all(bounded), "{prefix:?}: pages are bounded");
    let mut keys: Vec<String> = pages.into_iter().flatten().map(|one| one.key).collect();
    keys.sort_unstable();
    assert!(keys.is_sorted_by(|a, b| a < b), "{prefix:?}: {keys:?}");
    keys
}
