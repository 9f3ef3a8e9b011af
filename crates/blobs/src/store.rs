//! The interface of blob stores: operations with their guarantees, the syntax of keys, listed
//! blobs, and errors. An invalid key is refused before a path is built from it, so no key escapes
//! a store's folder.

use std::fmt::{self, Debug};
use std::io;
use std::ops::Range;
use std::path::Path;
use std::pin::Pin;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::Stream;
use kinora_contract::{StoredFile, UnixMs};
use url::Url;

/// The bytes of a blob, in order, in chunks of at most 128 KiB. At most one chunk is read ahead of
/// the reader.
pub type ByteStream = Pin<Box<dyn Stream<Item = io::Result<Bytes>> + Send>>;

/// Listed blobs, in pages of at most [`PAGE_MAX`] entries.
pub type EntryStream = Pin<Box<dyn Stream<Item = Result<Vec<BlobEntry>, BlobError>> + Send>>;

/// Maximum number of entries in one page of a list.
pub const PAGE_MAX: usize = 500;

/// Stores finished files by key. The bytes of a key never change: a blob appears whole and only
/// once, and may be deleted.
#[async_trait]
pub trait BlobStore: Send + Sync + Debug {
    /// Publishes the finished local file at `from` as `file`: its key, with the length and SHA-256
    /// measured while it was written. On `Ok` the bytes are durable under the key. The store may
    /// share the bytes of `from` instead of copying them: the caller may remove `from`, but must
    /// not write to it again.
    ///
    /// A put may be repeated: the same bytes under the same key succeed. After
    /// [`BlobError::Unavailable`] the blob either exists, whole, or does not: the answer may have
    /// been lost. Repeat the put, or ask [`BlobStore::holds`].
    ///
    /// # Errors
    /// [`BlobError::Exists`] for a key with other bytes, which remain. [`BlobError::Unavailable`]
    /// also if `from` is not a file of that length.
    async fn put_file(&self, file: &StoredFile, from: &Path) -> Result<(), BlobError>;

    /// Publishes `bytes` under `key`, with the guarantees of [`BlobStore::put_file`].
    ///
    /// # Errors
    /// As [`BlobStore::put_file`].
    async fn put_bytes(&self, key: &str, bytes: Bytes) -> Result<StoredFile, BlobError>;

    /// Length and SHA-256 of a blob, or `None` for an unknown key. May read the whole blob.
    ///
    /// # Errors
    /// [`BlobError`] if they cannot be determined.
    async fn checksum(&self, key: &str) -> Result<Option<StoredFile>, BlobError>;

    /// Whether the store has this file, with this key, length and SHA-256: resolves a put whose
    /// answer was lost.
    ///
    /// # Errors
    /// [`BlobError`] if that cannot be determined.
    async fn holds(&self, file: &StoredFile) -> Result<bool, BlobError> {
        Ok(self.checksum(&file.key).await?.as_ref() == Some(file))
    }

    /// The length in bytes, or `None` for an unknown key.
    ///
    /// # Errors
    /// [`BlobError`] if it cannot be determined.
    async fn head(&self, key: &str) -> Result<Option<u64>, BlobError>;

    /// The bytes in `range`, cut at the end of the blob. A stream continues to its end even if the
    /// key is deleted meanwhile.
    ///
    /// # Errors
    /// [`BlobError::NotFound`] for an unknown key.
    async fn read(&self, key: &str, range: Range<u64>) -> Result<ByteStream, BlobError>;

    /// Deletes the key. An absent key is not an error.
    ///
    /// # Errors
    /// [`BlobError`] if it may still exist.
    async fn delete(&self, key: &str) -> Result<(), BlobError>;

    /// All blobs whose keys begin with `prefix`, in pages, in no order. It is one pass that keeps
    /// its position: blobs may be put and deleted meanwhile, and one that exists from start to end
    /// appears exactly once. An error is the last item.
    fn list(&self, prefix: &str) -> EntryStream;

    /// Checks whether blobs can be put now: recreates missing folders of the store, then writes,
    /// syncs, names, reads back and removes a small file, which is never listed.
    ///
    /// # Errors
    /// [`BlobError`] if a put would fail.
    async fn probe(&self) -> Result<(), BlobError>;

    /// A URL at which anyone can `GET` the blob, with ranges, without this service, if the store
    /// supports that. It is a secret while it is valid, and does not say whether the blob exists.
    /// `None`: only [`BlobStore::read`] has the bytes.
    ///
    /// # Errors
    /// [`BlobError`] if the URL cannot be signed now.
    async fn direct_url(&self, key: &str, link: &DirectLink<'_>) -> Result<Option<Url>, BlobError> {
        let _ = (key, link);
        Ok(None)
    }
}

/// Lifetime of a direct URL, and headers of its responses.
#[derive(Clone, Copy, Debug)]
pub struct DirectLink<'a> {
    /// How long it is valid, in whole seconds.
    pub ttl: Duration,
    /// The header `Content-Type`.
    pub media_type: &'a str,
    /// The header `Content-Disposition`.
    pub disposition: &'a str,
    /// The header `Cache-Control`.
    pub cache_control: &'a str,
}

/// A blob as listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobEntry {
    /// Blob key.
    pub key: String,
    /// Length in bytes.
    pub bytes: u64,
    /// When its bytes were last written: a sweep of orphans spares recent ones, whose task may not
    /// be finished yet.
    pub modified_at_ms: UnixMs,
}

/// Why a call to a blob store failed.
#[derive(Debug, thiserror::Error)]
pub enum BlobError {
    /// Not a key: see [`BlobKey`](crate::BlobKey).
    #[error("not a blob key: {0:?}")]
    InvalidKey(String),
    /// No blob has this key.
    #[error("no blob {0:?}")]
    NotFound(String),
    /// The key has other bytes; nothing was changed.
    #[error("the blob {0:?} exists already")]
    Exists(String),
    /// No implementation has this URL scheme. Contains only the scheme: the rest may be secret.
    #[error("unknown blob store {0:?}: use a folder, or a `file:` or `s3:` URL")]
    UnknownScheme(String),
    /// The URL or a setting of a store is invalid. Quotes neither, since they may contain a secret.
    #[error("{0}")]
    Misconfigured(&'static str),
    /// Full disk, missing permissions, broken connection.
    #[error("the blob store is unavailable: {0}")]
    Unavailable(#[from] io::Error),
}

/// Maximum length of a key, in bytes.
pub const KEY_BYTES_MAX: usize = 240;

/// A valid key: segments of `a` to `z`, `0` to `9`, `_`, `-` and `.`, joined by `/`; no segment is
/// empty or begins with a dot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlobKey<'a>(&'a str);

impl<'a> BlobKey<'a> {
    /// Validates a key.
    ///
    /// # Errors
    /// [`BlobError::InvalidKey`].
    pub fn parse(key: &'a str) -> Result<Self, BlobError> {
        if key.len() <= KEY_BYTES_MAX && key.split('/').all(is_segment) {
            return Ok(Self(key));
        }
        // The text may be hostile and long; its beginning is enough to find it.
        Err(BlobError::InvalidKey(key.chars().take(80).collect()))
    }

    /// The key as text.
    pub const fn as_str(self) -> &'a str {
        self.0
    }
}

/// The characters of a segment; a leading dot is for temporary files.
fn is_segment(segment: &str) -> bool {
    !segment.is_empty()
        && !segment.starts_with('.')
        && segment
            .bytes()
            .all(|c| matches!(c, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'.'))
}

impl fmt::Display for BlobKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Component, Path};

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn near_misses_are_refused() {
        let long = "a".repeat(KEY_BYTES_MAX + 1);
        for wrong in [
            "", "/", "/a", "a/", "a//b", ".", "..", "a/..", "../a", "a/../b", ".a", "a/.b", "A",
            "a b", "a\\b", "a\0b", "a:b", "é", "a%2e", &long,
        ] {
            assert!(BlobKey::parse(wrong).is_err(), "{wrong:?}");
        }
        for right in [
            "a",
            "a.b",
            "a-b_c",
            "videos/video_01/7/video.mp4",
            &long[1..],
        ] {
            assert!(BlobKey::parse(right).is_ok(), "{right:?}");
        }
    }

    proptest! {
        #[test]
        fn an_accepted_key_never_leaves_the_folder(key in "[a./_\\-\\\\A~:\0 ]{0,12}") {
            if BlobKey::parse(&key).is_ok() {
                let normal = |part: Component<'_>| matches!(part, Component::Normal(_));
                prop_assert!(Path::new(&key).components().all(normal), "{key:?}");
                prop_assert!(!key.contains('\\') && !key.contains('\0'));
            }
        }
    }
}
