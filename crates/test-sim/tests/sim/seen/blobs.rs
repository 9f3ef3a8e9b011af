//! The blob store.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{FutureExt, StreamExt, TryStreamExt, stream};
use kinora_blobs::{BlobError, BlobStore, ByteStream, EntryStream};
use kinora_contract::StoredFile;
use kinora_store::MARKS;

use super::{Way, told};
use crate::moment::at_one_moment;
use crate::process::Pulse;
use crate::witness::Witness;

#[derive(Debug)]
pub(crate) struct SeenBlobs {
    way: Arc<Way>,
    /// With its faults.
    inner: Arc<dyn BlobStore>,
}

impl SeenBlobs {
    pub(crate) fn new(inner: Arc<dyn BlobStore>, witness: Arc<Witness>, pulse: Arc<Pulse>) -> Self {
        let way = Arc::new(Way { witness, pulse });
        Self { way, inner }
    }
}

#[async_trait]
impl BlobStore for SeenBlobs {
    async fn put_file(&self, file: &StoredFile, from: &Path) -> Result<(), BlobError> {
        let call = async {
            let put = self.inner.put_file(file, from).await;
            self.way.tell(&format!("put {} {}", file.key, told(&put)));
            put
        };
        self.way.there_and_back(call).await
    }

    async fn put_bytes(&self, key: &str, bytes: Bytes) -> Result<StoredFile, BlobError> {
        let call = async {
            let put = self.inner.put_bytes(key, bytes).await;
            let done = put.as_ref().map(drop);
            // The mark of a store has its name from nowhere.
            let name = if key.starts_with(MARKS) { MARKS } else { key };
            self.way.tell(&format!("put {name} {}", told(&done)));
            put
        };
        self.way.there_and_back(call).await
    }

    async fn checksum(&self, key: &str) -> Result<Option<StoredFile>, BlobError> {
        self.way.there_and_back(self.inner.checksum(key)).await
    }

    async fn head(&self, key: &str) -> Result<Option<u64>, BlobError> {
        self.way.there_and_back(self.inner.head(key)).await
    }

    /// All of it at one moment.
    async fn read(&self, key: &str, range: Range<u64>) -> Result<ByteStream, BlobError> {
        let call = async {
            let chunks = self.inner.read(key, range).await?;
            Ok::<_, BlobError>(chunks.collect::<Vec<_>>().await)
        };
        let chunks = self.way.there_and_back(call).await?;
        Ok(Box::pin(stream::iter(chunks)))
    }

    async fn delete(&self, key: &str) -> Result<(), BlobError> {
        let call = async {
            let deleted = self.inner.delete(key).await;
            self.way.tell(&format!("delete {key} {}", told(&deleted)));
            self.way.witness.contents_are_there();
            deleted
        };
        self.way.there_and_back(call).await
    }

    /// All of them at one moment.
    fn list(&self, prefix: &str) -> EntryStream {
        let (way, inner, prefix) = (self.way.clone(), self.inner.clone(), prefix.to_owned());
        let listed = async move {
            way.go().await;
            let all = at_one_moment(inner.list(&prefix).try_concat());
            way.go().await;
            all
        };
        Box::pin(listed.into_stream())
    }

    async fn probe(&self) -> Result<(), BlobError> {
        self.way.there_and_back(self.inner.probe()).await
    }
}
