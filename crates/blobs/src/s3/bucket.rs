//! A bucket, with the parts that all operations need: the names of its objects, and their heads.

use std::sync::atomic::AtomicBool;

use kinora_pool::Pool;
use object_store::aws::AmazonS3;
use object_store::path::Path as ObjectPath;
use object_store::{Attribute, Attributes, GetOptions, ObjectStore};

use super::error::{failure, read_only};
use super::options::{self, Address, S3Options};
use crate::{BlobError, BlobKey};

/// The name of the metadata: the header `x-amz-meta-kinora-sha256`.
pub(super) const SHA256: &str = "kinora-sha256";
/// Number of runtime threads that read files to put.
const READING_THREADS: usize = 8;

/// Shared by all operations.
pub(super) struct Bucket {
    pub store: AmazonS3,
    /// Signs URLs for machines that reach the server by another name.
    pub outer: Option<AmazonS3>,
    pub address: Address,
    /// Whether puts are refused.
    read_only: bool,
    /// Set once the server has rejected a create-only put as unsupported.
    pub overwrites: AtomicBool,
    pub files: Pool,
}

/// An object according to its head.
pub(super) struct Found {
    pub bytes: u64,
    /// `None` for an object that another program has put.
    pub sha256: Option<String>,
}

impl Bucket {
    /// Opens no connection.
    pub(super) fn open(
        address: Address,
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
            files: Pool::new(READING_THREADS),
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
    pub(super) async fn look(&self, key: &str) -> Result<Option<Found>, BlobError> {
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
