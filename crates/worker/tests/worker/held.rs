//! What no plan of faults can say of a blob store: puts of files that wait until they are let go,
//! and go on although nobody waits for them; removals that wait; and files that go just before they are read.

use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use kinora_blobs::{BlobError, BlobStore, ByteStream, EntryStream};
use kinora_contract::StoredFile;
use tokio::sync::watch;

/// A blob store whose puts of files, and removals, may be held.
#[derive(Debug)]
pub(crate) struct HeldBlobs {
    inner: Arc<dyn BlobStore>,
    hold: watch::Sender<bool>,
    hold_removals: watch::Sender<bool>,
    removals: AtomicUsize,
    /// Reads whose files go just before.
    gone: AtomicUsize,
    ended: Arc<AtomicUsize>,
}

impl HeldBlobs {
    pub(crate) fn new(inner: Arc<dyn BlobStore>) -> Self {
        Self {
            inner,
            hold: watch::Sender::new(false),
            hold_removals: watch::Sender::new(false),
            removals: AtomicUsize::new(0),
            gone: AtomicUsize::new(0),
            ended: Arc::default(),
        }
    }

    /// From now on puts of files wait, or do not wait any more.
    pub(crate) fn hold(&self, hold: bool) {
        self.hold.send_replace(hold);
    }

    /// From now on removals wait, or do not wait any more.
    pub(crate) fn hold_removals(&self, hold: bool) {
        self.hold_removals.send_replace(hold);
    }

    /// The file of the next read goes just before it.
    pub(crate) fn remove_before_read(&self) {
        self.gone.store(1, Ordering::SeqCst);
    }

    /// Removals that have begun.
    pub(crate) fn removals(&self) -> usize {
        self.removals.load(Ordering::SeqCst)
    }

    /// Puts of files that have come to their end, whether anyone waited for them or not.
    pub(crate) fn ended(&self) -> usize {
        self.ended.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl BlobStore for HeldBlobs {
    /// Like a put that blocks a thread: one that was begun goes on although nobody waits.
    async fn put_file(&self, file: &StoredFile, from: &Path) -> Result<(), BlobError> {
        let (inner, ended) = (self.inner.clone(), self.ended.clone());
        let (file, from) = (file.clone(), from.to_owned());
        let mut hold = self.hold.subscribe();
        let put = tokio::spawn(async move {
            let free = hold.wait_for(|hold| !hold).await.is_ok();
            assert!(free, "the test ended while a put was held");
            let stored = inner.put_file(&file, &from).await;
            ended.fetch_add(1, Ordering::SeqCst);
            stored
        });
        put.await.map_err(io::Error::other)?
    }

    async fn put_bytes(&self, key: &str, bytes: Bytes) -> Result<StoredFile, BlobError> {
        self.inner.put_bytes(key, bytes).await
    }

    async fn checksum(&self, key: &str) -> Result<Option<StoredFile>, BlobError> {
        self.inner.checksum(key).await
    }

    async fn head(&self, key: &str) -> Result<Option<u64>, BlobError> {
        self.inner.head(key).await
    }

    async fn read(&self, key: &str, range: Range<u64>) -> Result<ByteStream, BlobError> {
        if self.gone.swap(0, Ordering::SeqCst) > 0 {
            self.inner.delete(key).await?;
        }
        self.inner.read(key, range).await
    }

    async fn delete(&self, key: &str) -> Result<(), BlobError> {
        self.removals.fetch_add(1, Ordering::SeqCst);
        let mut hold = self.hold_removals.subscribe();
        let free = hold.wait_for(|hold| !hold).await.is_ok();
        assert!(free, "the test ended while a removal was held");
        self.inner.delete(key).await
    }

    fn list(&self, prefix: &str) -> EntryStream {
        self.inner.list(prefix)
    }

    async fn probe(&self) -> Result<(), BlobError> {
        self.inner.probe().await
    }
}
