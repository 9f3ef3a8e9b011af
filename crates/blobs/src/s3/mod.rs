//! Blobs as objects of a bucket, in any service that supports S3. The key of a blob, after the
//! prefix, is the key of its object; the object's metadata has the SHA-256. A put first looks at
//! the key, and then asks the server to create only. Servers that ignore this keep the last of
//! several concurrent puts, which is why the keys of results contain their attempt.

mod bucket;
mod http;
mod options;
mod put;
mod read;

use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use hyper::Method;
use kinora_contract::StoredFile;
use object_store::ObjectStoreExt;
use object_store::signer::{SignedUrlOptions, Signer};
use tracing::Instrument;
use url::Url;

use crate::measure::measure_bytes;
use crate::{BlobError, BlobKey, BlobStore, ByteStream, DirectLink, EntryStream};
use bucket::{S3Bucket, failure};
pub(crate) use options::BucketAddress;
pub use options::{S3Options, S3Variables};
use put::PutBody;

/// A blob store in a bucket. Clones share it.
#[derive(Clone)]
pub struct S3Blobs(Arc<S3Bucket>);

impl S3Blobs {
    /// The store at `address`. Opens no connection.
    ///
    /// # Errors
    /// [`BlobError::Misconfigured`].
    pub(crate) fn new(
        address: BucketAddress,
        options: &S3Options,
        read_only: bool,
    ) -> Result<Self, BlobError> {
        let bucket = S3Bucket::open(address, options, read_only)?;
        Ok(Self(Arc::new(bucket)))
    }
}

/// The clients know the credentials.
impl fmt::Debug for S3Blobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("S3Blobs").field(&self.0.address).finish()
    }
}

#[async_trait]
impl BlobStore for S3Blobs {
    async fn put_file(&self, file: &StoredFile, from: &Path) -> Result<(), BlobError> {
        BlobKey::parse(&file.key)?;
        let (bucket, file, from) = (self.0.clone(), file.clone(), from.to_owned());
        // One unit of work: a caller that stops waiting leaves no upload half done.
        let put = async move { put::put(&bucket, &file, PutBody::File(from)).await };
        tokio::spawn(put.in_current_span())
            .await
            .map_err(|error| BlobError::Unavailable(std::io::Error::other(error)))?
    }

    async fn put_bytes(&self, key: &str, bytes: Bytes) -> Result<StoredFile, BlobError> {
        BlobKey::parse(key)?;
        let (name, body) = (key.to_owned(), bytes.clone());
        // Hashing megabytes takes milliseconds of pure computation, which would delay other
        // tasks of this runtime thread.
        let hash = self.0.files.run(move || measure_bytes(&name, &body));
        let file = hash.await?;
        put::put(&self.0, &file, PutBody::Bytes(bytes)).await?;
        Ok(file)
    }

    async fn checksum(&self, key: &str) -> Result<Option<StoredFile>, BlobError> {
        read::checksum(&self.0, key).await
    }

    async fn head(&self, key: &str) -> Result<Option<u64>, BlobError> {
        Ok(self.0.read_head(key).await?.map(|found| found.bytes))
    }

    async fn read(&self, key: &str, range: Range<u64>) -> Result<ByteStream, BlobError> {
        read::read(&self.0, key, range).await
    }

    async fn delete(&self, key: &str) -> Result<(), BlobError> {
        let path = self.0.path(key)?;
        let deleted = self.0.store.delete(&path).await;
        match deleted.map_err(|error| failure(key, &error)) {
            Err(BlobError::NotFound(_)) => Ok(()),
            deleted => deleted,
        }
    }

    fn list(&self, prefix: &str) -> EntryStream {
        read::pages(self.0.clone(), prefix)
    }

    async fn probe(&self) -> Result<(), BlobError> {
        self.0.check_writable()?;
        put::probe(&self.0).await
    }

    async fn direct_url(&self, key: &str, link: &DirectLink<'_>) -> Result<Option<Url>, BlobError> {
        let path = self.0.path(key)?;
        // The signature covers the host, so the URL must be signed for the name by which clients
        // reach the server.
        let store = self.0.outer.as_ref().unwrap_or(&self.0.store);
        let options = SignedUrlOptions::default().with_query([
            ("response-cache-control", link.cache_control),
            ("response-content-disposition", link.disposition),
            ("response-content-type", link.media_type),
        ]);
        let url = store.signed_url_opts(Method::GET, &path, link.ttl, &options);
        Ok(Some(url.await.map_err(|error| failure(key, &error))?))
    }
}
