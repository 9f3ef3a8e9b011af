//! Metrics of a [`BlobStore`]: the duration of its calls, and their failures. Without a recorder
//! this costs almost nothing.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use kinora_contract::{Clock, Stopwatch, StoredFile};
use metrics::{counter, histogram};
use url::Url;

use crate::{BlobError, BlobStore, ByteStream, DirectLink, EntryStream};

/// Wraps a store so that its calls are timed by `clock` and counted: `kinora_blob_seconds` and
/// `kinora_blob_failures_total`, by operation.
pub fn metered(inner: Arc<dyn BlobStore>, clock: Arc<dyn Clock>) -> Arc<dyn BlobStore> {
    Arc::new(MeteredBlobs { inner, clock })
}

#[derive(Debug)]
struct MeteredBlobs {
    inner: Arc<dyn BlobStore>,
    clock: Arc<dyn Clock>,
}

impl MeteredBlobs {
    async fn call<T>(
        &self,
        operation: &'static str,
        call: impl Future<Output = Result<T, BlobError>> + Send,
    ) -> Result<T, BlobError> {
        // Only answers are timed: a timeout would put the patience of the client into the
        // histogram, not the speed of the store.
        let watch = Stopwatch::start(&self.clock);
        let done = call.await;
        match &done {
            // The store has answered: the key does not exist.
            Ok(_) | Err(BlobError::NotFound(_)) => {
                histogram!("kinora_blob_seconds", "operation" => operation).record(watch.elapsed());
            }
            Err(_) => {
                counter!("kinora_blob_failures_total", "operation" => operation).increment(1);
            }
        }
        done
    }
}

#[async_trait]
impl BlobStore for MeteredBlobs {
    async fn put_file(&self, file: &StoredFile, from: &Path) -> Result<(), BlobError> {
        self.call("put", self.inner.put_file(file, from)).await
    }

    async fn put_bytes(&self, key: &str, bytes: Bytes) -> Result<StoredFile, BlobError> {
        self.call("put", self.inner.put_bytes(key, bytes)).await
    }

    async fn checksum(&self, key: &str) -> Result<Option<StoredFile>, BlobError> {
        self.call("checksum", self.inner.checksum(key)).await
    }

    async fn head(&self, key: &str) -> Result<Option<u64>, BlobError> {
        self.call("head", self.inner.head(key)).await
    }

    /// Measured until the bytes begin.
    async fn read(&self, key: &str, range: Range<u64>) -> Result<ByteStream, BlobError> {
        self.call("read", self.inner.read(key, range)).await
    }

    async fn delete(&self, key: &str) -> Result<(), BlobError> {
        self.call("delete", self.inner.delete(key)).await
    }

    fn list(&self, prefix: &str) -> EntryStream {
        self.inner.list(prefix)
    }

    async fn probe(&self) -> Result<(), BlobError> {
        self.call("probe", self.inner.probe()).await
    }

    async fn direct_url(&self, key: &str, link: &DirectLink<'_>) -> Result<Option<Url>, BlobError> {
        self.inner.direct_url(key, link).await
    }
}
