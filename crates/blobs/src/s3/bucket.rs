//! A bucket, with the parts that all operations need: names and heads of objects, and the
//! translation of errors. The texts of the library and of the server are never passed on: they
//! contain URLs, and may contain parts of requests.

use std::error::Error;
use std::io::{self, ErrorKind};
use std::sync::atomic::AtomicBool;

use kinora_system::pool::BlockingPool;
use object_store::aws::AmazonS3;
use object_store::client::HttpError;
use object_store::path::Path as ObjectPath;
use object_store::{Attribute, Attributes, GetOptions, ObjectStore};

use super::options::{self, BucketAddress, S3Options};
use crate::{BlobError, BlobKey};

/// The name of the metadata: the header `x-amz-meta-kinora-sha256`.
pub(super) const SHA256: &str = "kinora-sha256";
/// Number of runtime threads that read files to put.
const READING_THREADS: usize = 8;

/// Shared by all operations.
pub(super) struct S3Bucket {
    pub store: AmazonS3,
    /// Signs URLs for machines that reach the server by another name.
    pub outer: Option<AmazonS3>,
    pub address: BucketAddress,
    /// Whether puts are refused.
    read_only: bool,
    /// Set once the server has rejected a create-only put as unsupported.
    pub overwrites: AtomicBool,
    pub files: BlockingPool,
}

/// An object according to its head.
pub(super) struct ObjectHead {
    pub bytes: u64,
    /// `None` for an object that another program has put.
    pub sha256: Option<String>,
}

impl S3Bucket {
    /// Opens no connection.
    pub(super) fn open(
        address: BucketAddress,
        options: &S3Options,
        read_only: bool,
    ) -> Result<Self, BlobError> {
        let (store, outer) = options::open(&address, options)?;
        Ok(Self {
            store,
            outer,
            address,
            read_only,
            overwrites: AtomicBool::new(false),
            files: BlockingPool::new(READING_THREADS),
        })
    }

    pub(super) fn path(&self, key: &str) -> Result<ObjectPath, BlobError> {
        BlobKey::parse(key)?;
        self.object(key)
    }

    /// Object path of a name that is not a key.
    pub(super) fn object(&self, name: &str) -> Result<ObjectPath, BlobError> {
        let full = format!("{}{name}", self.address.prefix);
        ObjectPath::parse(full).map_err(|_| BlobError::InvalidKey(name.to_owned()))
    }

    /// Reads the head of an object; `None` for an unknown key.
    pub(super) async fn read_head(&self, key: &str) -> Result<Option<ObjectHead>, BlobError> {
        let path = self.path(key)?;
        let found = self
            .store
            .get_opts(&path, GetOptions::new().with_head(true));
        match found.await {
            Ok(head) => Ok(Some(ObjectHead {
                bytes: head.meta.size,
                sha256: sha256(&head.attributes),
            })),
            Err(error) => match failure(key, &error) {
                BlobError::NotFound(_) => Ok(None),
                error => Err(error),
            },
        }
    }

    pub(super) fn check_writable(&self) -> Result<(), BlobError> {
        if self.read_only {
            return Err(read_only());
        }
        Ok(())
    }
}

/// The hash in an object's metadata, if it is valid.
pub(super) fn sha256(attributes: &Attributes) -> Option<String> {
    let text = attributes
        .get(&Attribute::Metadata(SHA256.into()))?
        .as_ref();
    // Another program may have put the object, with metadata of its own.
    let is_hash = text.len() == 64 && text.bytes().all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f'));
    is_hash.then(|| text.to_owned())
}

/// Maximum length of a displayed error code, in bytes.
const CODE_BYTES_MAX: usize = 64;

/// The error of a call about `key`. If the bucket is missing, nothing is known about the key.
pub(super) fn failure(key: &str, error: &object_store::Error) -> BlobError {
    // S3 answers 404 for a missing bucket as well. Taken for a missing key, a misconfigured
    // bucket would look like an empty store.
    let is_absent = matches!(error, object_store::Error::NotFound { .. });
    if is_absent && code(error).as_deref() != Some("NoSuchBucket") {
        return BlobError::NotFound(key.to_owned());
    }
    BlobError::Unavailable(unavailable(error))
}

/// The error of a call that does not depend on a key's content.
pub(super) fn unavailable(error: &object_store::Error) -> io::Error {
    if let Some(io) = transport(error) {
        return io::Error::new(io.kind(), format!("S3: {io}"));
    }
    let status = status(error);
    let told = [status.map(|status| status.to_string()), code(error)];
    let told: Vec<String> = told.into_iter().flatten().collect();
    if told.is_empty() {
        return io::Error::other(
            "S3: the request failed; check the credentials, the region and the clock",
        );
    }
    io::Error::other(format!("S3 answered {}", told.join(" ")))
}

/// The error of our client, if there was no complete answer.
fn transport(error: &object_store::Error) -> Option<&io::Error> {
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    // The error of our own HTTP client is somewhere in the chain of causes, at a depth that
    // differs by call.
    while let Some(error) = cause {
        if let Some(http) = error.downcast_ref::<HttpError>() {
            return http.source()?.downcast_ref();
        }
        cause = error.source();
    }
    None
}

/// The `Code` of S3's error document: `AccessDenied`, `SlowDown`.
pub(super) fn code(error: &object_store::Error) -> Option<String> {
    let text = error.to_string();
    // The library keeps the server's XML only inside its message.
    let (code, _) = text.split_once("<Code>")?.1.split_once("</Code>")?;
    let is_code = code.len() <= CODE_BYTES_MAX && code.bytes().all(|c| c.is_ascii_alphanumeric());
    is_code.then(|| code.to_owned())
}

/// The HTTP status of an answer.
pub(super) fn status(error: &object_store::Error) -> Option<u16> {
    // The library exposes its error of a refused request only as text.
    let text = error.to_string();
    let (_, rest) = text.split_once("status code: ")?;
    rest.get(..3)?.parse().ok()
}

/// The store is open for reading only.
fn read_only() -> BlobError {
    io::Error::new(
        ErrorKind::PermissionDenied,
        "the blob store is open for reading only",
    )
    .into()
}
