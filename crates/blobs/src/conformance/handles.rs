//! Two handles of one store that look like one: each call goes to the handle that the last one did
//! not use. One process must see what another has done.

use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use kinora_contract::StoredFile;

use crate::{BlobError, BlobStore, ByteStream, EntryStream};

#[derive(Debug)]
pub(super) struct Alternating<S> {
    handles: [S; 2],
    calls: AtomicUsize,
}

impl<S> Alternating<S> {
    pub(super) fn between(handles: [S; 2]) -> Self {
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
impl<S: BlobStore> BlobStore for Alternating<S> {
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
