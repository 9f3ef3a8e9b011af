//! A [`BlobStore`] wrapper that fails before a call, fails after it, or yields to others first, as
//! its [`Plan`] says. For tests: it changes nothing else.

#[cfg(test)]
mod tests;

use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use kinora_contract::StoredFile;
pub use kinora_testkit::faults::{Fault, Injected, Plan, Rates};
use url::Url;

use crate::{BlobError, BlobStore, ByteStream, DirectLink, EntryStream};

/// The methods of [`BlobStore`] that can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BlobMethod {
    /// [`BlobStore::put_file`]. Failing after the call leaves a blob under the key, like a
    /// connection that breaks before the answer.
    PutFile,
    /// [`BlobStore::put_bytes`], as [`BlobMethod::PutFile`].
    PutBytes,
    /// [`BlobStore::checksum`] and everything built on it.
    Checksum,
    /// [`BlobStore::head`].
    Head,
    /// [`BlobStore::read`]. Failing after the call breaks off the stream.
    Read,
    /// [`BlobStore::delete`].
    Delete,
    /// One page of [`BlobStore::list`].
    List,
    /// [`BlobStore::probe`].
    Probe,
}

/// A blob store with faults.
#[derive(Debug)]
pub struct FaultyBlobs {
    inner: Arc<dyn BlobStore>,
    plan: Arc<Plan<BlobMethod>>,
}

impl FaultyBlobs {
    /// Wraps `inner` with the faults of `plan`.
    pub fn new(inner: Arc<dyn BlobStore>, plan: Arc<Plan<BlobMethod>>) -> Self {
        Self { inner, plan }
    }

    /// Runs `call`, which must not start before it is awaited, as the plan says.
    async fn call<T>(
        &self,
        method: BlobMethod,
        call: impl Future<Output = Result<T, BlobError>> + Send,
    ) -> Result<T, BlobError> {
        self.plan
            .call(method, call, |how| injected(how).into())
            .await
    }
}

fn injected(how: &str) -> io::Error {
    io::Error::other(format!("an injected fault: {how}"))
}

#[async_trait]
impl BlobStore for FaultyBlobs {
    async fn put_file(&self, file: &StoredFile, from: &Path) -> Result<(), BlobError> {
        self.call(BlobMethod::PutFile, self.inner.put_file(file, from))
            .await
    }

    async fn put_bytes(&self, key: &str, bytes: Bytes) -> Result<StoredFile, BlobError> {
        self.call(BlobMethod::PutBytes, self.inner.put_bytes(key, bytes))
            .await
    }

    async fn checksum(&self, key: &str) -> Result<Option<StoredFile>, BlobError> {
        self.call(BlobMethod::Checksum, self.inner.checksum(key))
            .await
    }

    async fn head(&self, key: &str) -> Result<Option<u64>, BlobError> {
        self.call(BlobMethod::Head, self.inner.head(key)).await
    }

    async fn read(&self, key: &str, range: Range<u64>) -> Result<ByteStream, BlobError> {
        let decision = self.plan.decide(BlobMethod::Read);
        decision.pause().await;
        if decision.fault == Some(Fault::Before) {
            return Err(injected("not done").into());
        }
        let bytes = self.inner.read(key, range).await?;
        if decision.fault.is_none() {
            return Ok(bytes);
        }
        // One good chunk, then the error: readers must cope with a body that breaks off after
        // its beginning was passed on.
        let broken = stream::once(async { Err(injected("the stream broke off")) });
        Ok(Box::pin(bytes.take(1).chain(broken)))
    }

    async fn delete(&self, key: &str) -> Result<(), BlobError> {
        self.call(BlobMethod::Delete, self.inner.delete(key)).await
    }

    fn list(&self, prefix: &str) -> EntryStream {
        let (plan, pages) = (self.plan.clone(), self.inner.list(prefix));
        let page = move |pages: EntryStream| {
            let plan = plan.clone();
            async move {
                let mut pages = pages;
                let next = async { pages.try_next().await };
                let page = plan
                    .call(BlobMethod::List, next, |how| injected(how).into())
                    .await?;
                Ok::<_, BlobError>(page.map(|page| (page, pages)))
            }
        };
        Box::pin(stream::try_unfold(pages, page))
    }

    async fn probe(&self) -> Result<(), BlobError> {
        self.call(BlobMethod::Probe, self.inner.probe()).await
    }

    async fn direct_url(&self, key: &str, link: &DirectLink<'_>) -> Result<Option<Url>, BlobError> {
        self.inner.direct_url(key, link).await
    }
}
