//! The interface of blob stores: its operations with their guarantees, a blob as listed, and the errors.

use std::fmt::Debug;
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

/// The bytes of a blob, in order, in chunks of at most 128 KiB. Nothing is read ahead of the
/// reader but one chunk.
pub type ByteStream = Pin<Box<dyn Stream<Item = io::Result<Bytes>> + Send>>;

/// Blobs as they are listed, in pages of at most [`PAGE_MAX`] entries.
pub type EntryStream = Pin<Box<dyn Stream<Item = Result<Vec<BlobEntry>, BlobError>> + Send>>;

/// Entries of one page of a list at most.
pub const PAGE_MAX: usize = 500;

/// Keeps finished files by key. The bytes of a key never change: a blob appears whole, once, and
/// may be deleted.
#[async_trait]
pub trait BlobStore: Send + Sync + Debug {
    /// Publishes the finished file at `from`, a file of this machine, as `file`: its key, and the length and
    /// SHA-256 that were taken while it was written. On `Ok` the bytes are durable under the key. The store may
    /// share the bytes of `from` instead of copying them: the caller may remove `from`, and never writes to it
    /// again.
    ///
    /// A put may be repeated: the same bytes under the same key are success. After
    /// [`BlobError::Unavailable`] the blob is there, whole, or it is not: the answer may have been lost. Put it
    /// again, or ask [`BlobStore::holds`].
    ///
    /// # Errors
    /// [`BlobError::Exists`] for a key that holds other bytes, which stay. [`BlobError::Unavailable`] also where
    /// `from` is not a file of that length.
    async fn put_file(&self, file: &StoredFile, from: &Path) -> Result<(), BlobError>;

    /// Publishes `bytes` under `key`, with the guarantees of [`BlobStore::put_file`].
    ///
    /// # Errors
    /// As [`BlobStore::put_file`].
    async fn put_bytes(&self, key: &str, bytes: Bytes) -> Result<StoredFile, BlobError>;

    /// Length and SHA-256 of a blob, or `None` for an unknown key. May read the whole blob.
    ///
    /// # Errors
    /// [`BlobError`] when they cannot be known.
    async fn checksum(&self, key: &str) -> Result<Option<StoredFile>, BlobError>;

    /// Whether the store has this file, by its key, length and SHA-256: resolves a put whose answer was lost.
    ///
    /// # Errors
    /// [`BlobError`] when that cannot be known.
    async fn holds(&self, file: &StoredFile) -> Result<bool, BlobError> {
        Ok(self.checksum(&file.key).await?.as_ref() == Some(file))
    }

    /// The length in bytes, or `None` for an unknown key.
    ///
    /// # Errors
    /// [`BlobError`] when it cannot be known.
    async fn head(&self, key: &str) -> Result<Option<u64>, BlobError>;

    /// The bytes in `range`, cut at the end of the blob. A stream that was begun goes on to
    /// its end although the key is deleted meanwhile.
    ///
    /// # Errors
    /// [`BlobError::NotFound`] for an unknown key.
    async fn read(&self, key: &str, range: Range<u64>) -> Result<ByteStream, BlobError>;

    /// Deletes the key. One that is absent is no error.
    ///
    /// # Errors
    /// [`BlobError`] when it may still be there.
    async fn delete(&self, key: &str) -> Result<(), BlobError>;

    /// All blobs whose keys begin with `prefix`, in pages, in no order. One pass over what is stored,
    /// which holds its place: blobs may be put and deleted meanwhile, and one that is there from its
    /// beginning to its end comes exactly once. An error is the last item.
    fn list(&self, prefix: &str) -> EntryStream;

    /// Finds out whether blobs can be put now: makes folders of the store again that are gone, then
    /// writes, syncs, names, reads back and removes a small file, which is never listed.
    ///
    /// # Errors
    /// [`BlobError`] when a put would fail.
    async fn probe(&self) -> Result<(), BlobError>;

    /// An address at which anyone can `GET` the blob, with ranges, without this service, where the store serves
    /// such. It is a secret as long as it is valid, and does not say whether the blob exists. `None`: only
    /// [`BlobStore::read`] has the bytes.
    ///
    /// # Errors
    /// [`BlobError`] when the address cannot be signed now.
    async fn direct_url(&self, key: &str, link: &DirectLink<'_>) -> Result<Option<Url>, BlobError> {
        let _ = (key, link);
        Ok(None)
    }
}

/// What a direct address grants, and the headers of its answers.
#[derive(Clone, Copy, Debug)]
pub struct DirectLink<'a> {
    /// How long it opens, in whole seconds.
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
    /// Its key.
    pub key: String,
    /// Its length.
    pub bytes: u64,
    /// When its bytes were last written: a sweep of orphans spares the young, whose task may
    /// not have been finished yet.
    pub modified_at_ms: UnixMs,
}

/// Why a blob store did not do what it was asked to.
#[derive(Debug, thiserror::Error)]
pub enum BlobError {
    /// Not a key: see [`BlobKey`](crate::BlobKey).
    #[error("not a blob key: {0:?}")]
    InvalidKey(String),
    /// Nothing under this key.
    #[error("no blob {0:?}")]
    NotFound(String),
    /// The key holds other bytes; nothing was changed.
    #[error("the blob {0:?} exists already")]
    Exists(String),
    /// The address names no implementation. Holds its scheme alone: the rest may contain a secret.
    #[error("unknown blob store {0:?}: a folder, a `file:` or an `s3:` address is expected")]
    UnknownScheme(String),
    /// The address or a setting of a store is wrong. Quotes neither, since they may contain a secret.
    #[error("{0}")]
    Misconfigured(&'static str),
    /// Full disk, missing rights, broken connection.
    #[error("the blob store is unavailable: {0}")]
    Unavailable(#[from] io::Error),
}
