//! What truly lies in the blob store: a [`BlobStore`] around the real one that measures what is
//! put, dates it by the simulated clock, and crosses out what is deleted, below all injected
//! faults.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{FutureExt, TryFutureExt, TryStreamExt};
use kinora_blobs::{BlobError, BlobStore, ByteStream, EntryStream, measure_bytes};
use kinora_contract::{Clock, StoredFile, UnixMs};

use crate::clocks::SimClock;

/// What is there, by key.
pub(crate) type HeldFiles = BTreeMap<String, Held>;

/// A file that is there.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub(crate) file: StoredFile,
    pub(crate) put_at_ms: UnixMs,
}

#[derive(Debug)]
pub(crate) struct Ledger {
    inner: Arc<dyn BlobStore>,
    clock: Arc<SimClock>,
    held: Arc<Mutex<HeldFiles>>,
}

impl Ledger {
    /// Around a store that holds what `held` says.
    pub(crate) fn new(inner: Arc<dyn BlobStore>, clock: Arc<SimClock>, held: HeldFiles) -> Self {
        let held = Arc::new(Mutex::new(held));
        Self { inner, clock, held }
    }

    /// Everything that is there.
    pub(crate) fn held(&self) -> MutexGuard<'_, HeldFiles> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, measured: StoredFile, told: &Result<StoredFile, BlobError>) {
        let Ok(told) = told else { return };
        assert_eq!(
            *told, measured,
            "P4: the blob store tells another length or hash"
        );
        let mut held = self.held();
        // A put whose answer was lost is repeated.
        if let Some(before) = held.get(&told.key) {
            assert_eq!(
                before.file, measured,
                "P3: {} was published twice",
                told.key
            );
            return;
        }
        let put_at_ms = self.clock.now_ms();
        let file = measured;
        held.insert(told.key.clone(), Held { file, put_at_ms });
    }
}

#[async_trait]
impl BlobStore for Ledger {
    async fn put_file(&self, file: &StoredFile, from: &Path) -> Result<(), BlobError> {
        let bytes = std::fs::read(from)?;
        let put = self.inner.put_file(file, from).await;
        let told = put.map(|()| file.clone());
        self.note(measure_bytes(&file.key, &bytes), &told);
        told.map(drop)
    }

    async fn put_bytes(&self, key: &str, bytes: Bytes) -> Result<StoredFile, BlobError> {
        let told = self.inner.put_bytes(key, bytes.clone()).await;
        self.note(measure_bytes(key, &bytes), &told);
        told
    }

    async fn checksum(&self, key: &str) -> Result<Option<StoredFile>, BlobError> {
        self.inner.checksum(key).await
    }

    async fn head(&self, key: &str) -> Result<Option<u64>, BlobError> {
        self.inner.head(key).await
    }

    async fn read(&self, key: &str, range: Range<u64>) -> Result<ByteStream, BlobError> {
        self.inner.read(key, range).await
    }

    async fn delete(&self, key: &str) -> Result<(), BlobError> {
        let deleted = self.inner.delete(key).await;
        if deleted.is_ok() {
            self.held().remove(key);
        }
        deleted
    }

    fn list(&self, prefix: &str) -> EntryStream {
        let held = self.held.clone();
        let all = self.inner.list(prefix).try_concat().map_ok(move |mut all| {
            // Looked up after the list, since files may be put meanwhile.
            let held = held.lock().unwrap_or_else(PoisonError::into_inner);
            for entry in &mut all {
                entry.modified_at_ms = held[&entry.key].put_at_ms;
            }
            // Folders have no fixed order; equal seeds shall live alike.
            all.sort_unstable_by(|one, other| one.key.cmp(&other.key));
            all
        });
        Box::pin(all.into_stream())
    }

    async fn probe(&self) -> Result<(), BlobError> {
        self.inner.probe().await
    }
}
