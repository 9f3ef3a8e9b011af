//! Blobs as objects of a bucket, in any service that speaks S3. The key of a blob, behind the prefix,
//! is the key of its object; SHA-256 is kept in the object's metadata. A key is looked at before it is
//! put, and the put asks the server to create only: servers that ignore this keep the last of
//! several puts that happen at once, which is why the keys of results name their attempt.

mod error;
mod http;
mod list;
mod options;
mod probe;
mod put;
mod read;

use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use async_trait::async_trait;
use bytes::Bytes;
use hyper::Method;
use kinora_contract::StoredFile;
use kinora_pool::Pool;
use object_store::aws::AmazonS3;
use object_store::path::Path as ObjectPath;
use object_store::signer::{SignedUrlOptions, Signer};
use object_store::{Attribute, Attributes, GetOptions, ObjectStore, ObjectStoreExt};
use url::Url;

use crate::measure::measure_bytes;
use crate::{BlobError, BlobKey, BlobStore, ByteStream, DirectLink, EntryStream};
use error::{failure, read_only};
pub(crate) use options::Address;
pub use options::{S3Options, S3Variables};
use put::Body;

/// The name of the metadata: the header `x-amz-meta-kinora-sha256`.
const SHA256: &str = "kinora-sha256";
/// Threads of the runtime that read files to be put.
const READING_THREADS: usize = 8;

/// A blob store in a bucket. Clones share it.
#[derive(Clone)]
pub struct S3Blobs(Arc<Bucket>);

/// What the operations share.
struct Bucket {
    store: AmazonS3,
    /// Signs addresses for machines that reach the server by another name.
    outer: Option<AmazonS3>,
    address: Address,
    /// Whether puts are refused.
    read_only: bool,
    /// Set once the server has refused to create only, which it does not know.
    overwrites: AtomicBool,
    files: Pool,
}

/// An object, as its head describes it.
struct Found {
    bytes: u64,
    /// `None` for an object that was not put by this service.
    sha256: Option<String>,
}

impl S3Blobs {
    /// The store at `address`. Opens no connection.
    ///
    /// # Errors
    /// [`BlobError::Misconfigured`].
    pub(crate) fn new(
        address: Address,
        options: &S3Options,
        read_only: bool,
    ) -> Result<Self, BlobError> {
        let (store, outer) = options::open(&address, options)?;
        Ok(Self(Arc::new(Bucket {
            store,
            outer,
            address,
            read_only,
            overwrites: AtomicBool::new(false),
            files: Pool::new(READING_THREADS),
        })))
    }
}

/// The clients know the credentials.
impl fmt::Debug for S3Blobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("S3Blobs").field(&self.0.address).finish()
    }
}

impl Bucket {
    fn path(&self, key: &str) -> Result<ObjectPath, BlobError> {
        BlobKey::parse(key)?;
        self.object(key)
    }

    /// The same for names that are no keys.
    fn object(&self, name: &str) -> Result<ObjectPath, BlobError> {
        let full = format!("{}{name}", self.address.prefix);
        ObjectPath::parse(full).map_err(|_| BlobError::InvalidKey(name.to_owned()))
    }

    /// `None` for an unknown key.
    async fn look(&self, key: &str) -> Result<Option<Found>, BlobError> {
        let path = self.path(key)?;
        let found = self
            .store
            .get_opts(&path, GetOptions::new().with_head(true));
        match found.await {
            Ok(head) => Ok(Some(Found {
                bytes: head.meta.size,
                sha256: sha256(&head.attributes),
            })),
            Err(error) => match failure(key, &error) {
                BlobError::NotFound(_) => Ok(None),
                error => Err(error),
            },
        }
    }

    /// Reads the object itself only where its metadata lacks the hash.
    async fn checksum(&self, key: &str) -> Result<Option<StoredFile>, BlobError> {
        let Some(Found { bytes, sha256 }) = self.look(key).await? else {
            return Ok(None);
        };
        let key = key.to_owned();
        if let Some(sha256) = sha256 {
            return Ok(Some(StoredFile { key, bytes, sha256 }));
        }
        match read::measure(self, &key).await {
            Ok((bytes, sha256)) => Ok(Some(StoredFile { key, bytes, sha256 })),
            Err(BlobError::NotFound(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn check_writable(&self) -> Result<(), BlobError> {
        if self.read_only {
            return Err(read_only());
        }
        Ok(())
    }
}

/// The hash in an object's metadata, if it is one.
fn sha256(attributes: &Attributes) -> Option<String> {
    let text = attributes
        .get(&Attribute::Metadata(SHA256.into()))?
        .as_ref();
    let digit = |c: u8| matches!(c, b'0'..=b'9' | b'a'..=b'f');
    (text.len() == 64 && text.bytes().all(digit)).then(|| text.to_owned())
}

#[async_trait]
impl BlobStore for S3Blobs {
    async fn put_file(&self, file: &StoredFile, from: &Path) -> Result<(), BlobError> {
        BlobKey::parse(&file.key)?;
        let (bucket, file, from) = (self.0.clone(), file.clone(), from.to_owned());
        // One unit of work: a caller that stops waiting leaves no upload half done.
        let put = tokio::spawn(async move { put::put(&bucket, &file, Body::File(from)).await });
        put.await
            .map_err(|error| BlobError::Unavailable(std::io::Error::other(error)))?
    }

    async fn put_bytes(&self, key: &str, bytes: Bytes) -> Result<StoredFile, BlobError> {
        BlobKey::parse(key)?;
        let (name, body) = (key.to_owned(), bytes.clone());
        let hash = self.0.files.run(move || measure_bytes(&name, &body));
        let file = hash.await?;
        put::put(&self.0, &file, Body::Bytes(bytes)).await?;
        Ok(file)
    }

    async fn checksum(&self, key: &str) -> Result<Option<StoredFile>, BlobError> {
        self.0.checksum(key).await
    }

    async fn head(&self, key: &str) -> Result<Option<u64>, BlobError> {
        Ok(self.0.look(key).await?.map(|found| found.bytes))
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
        list::pages(self.0.clone(), prefix)
    }

    async fn probe(&self) -> Result<(), BlobError> {
        self.0.check_writable()?;
        probe::probe(&self.0).await
    }

    async fn direct_url(&self, key: &str, link: &DirectLink<'_>) -> Result<Option<Url>, BlobError> {
        let path = self.0.path(key)?;
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
