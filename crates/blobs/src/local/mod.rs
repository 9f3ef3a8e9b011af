//! Blobs as files in a folder: `objects/<key>` holds published files, `staging/` those being put. A
//! file is synced and then hard-linked to its key, so it appears whole or not at all, and never
//! replaces another.

mod folders;
mod publish;
mod read;

use std::fs;
use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use kinora_contract::StoredFile;
use kinora_system::pool::BlockingPool;

use crate::measure::measure_bytes;
use crate::{BlobError, BlobKey, BlobStore, ByteStream, EntryStream};
use folders::StoreFolders;
use publish::blocking;
pub(crate) use publish::is_absent;

/// Runtime threads for reading results, for writing them, and for maintenance: slow downloads delay
/// no publishing.
const READING_THREADS: usize = 16;
const WRITING_THREADS: usize = 8;
const KEEPING_THREADS: usize = 4;
/// Maximum number of runtime threads used by a store.
pub(crate) const THREADS: usize = READING_THREADS + WRITING_THREADS + KEEPING_THREADS;

/// A blob store in a local folder. Several processes may have it open.
#[derive(Debug)]
pub struct LocalBlobs {
    folders: Arc<StoreFolders>,
    reading: BlockingPool,
    writing: BlockingPool,
    keeping: BlockingPool,
}

impl LocalBlobs {
    /// Opens or creates the store in the folder `root`, and removes staged files of dead processes.
    ///
    /// # Errors
    /// [`BlobError::Unavailable`] if the folders cannot be created.
    pub fn open(root: impl AsRef<Path>) -> Result<Self, BlobError> {
        let root = root.as_ref();
        let folders = StoreFolders::open(root)?;
        folders::remove_leftovers(&folders);
        Ok(Self::from_folders(folders))
    }

    /// The store in the folder `root`, while another process may have it open: to read, list and
    /// delete.
    pub(crate) fn beside(root: impl AsRef<Path>) -> Self {
        Self::from_folders(StoreFolders::new(root.as_ref()))
    }

    fn from_folders(folders: StoreFolders) -> Self {
        Self {
            folders: Arc::new(folders),
            reading: BlockingPool::new(READING_THREADS),
            writing: BlockingPool::new(WRITING_THREADS),
            keeping: BlockingPool::new(KEEPING_THREADS),
        }
    }

    fn path(&self, key: &str) -> Result<PathBuf, BlobError> {
        Ok(self.folders.objects.join(BlobKey::parse(key)?.as_str()))
    }
}

#[async_trait]
impl BlobStore for LocalBlobs {
    async fn put_file(&self, file: &StoredFile, from: &Path) -> Result<(), BlobError> {
        BlobKey::parse(&file.key)?;
        let (folders, file, from) = (self.folders.clone(), file.clone(), from.to_owned());
        // One unit of work: a caller that stops waiting leaves nothing half done.
        blocking(&self.writing, move || {
            let staged = folders.stage()?;
            publish::stage(&file, &from, &staged)?;
            publish::publish(&folders.objects, &file, &staged)
        })
        .await
    }

    async fn put_bytes(&self, key: &str, bytes: Bytes) -> Result<StoredFile, BlobError> {
        BlobKey::parse(key)?;
        let (folders, key) = (self.folders.clone(), key.to_owned());
        blocking(&self.writing, move || {
            let file = measure_bytes(&key, &bytes);
            let staged = folders.stage()?;
            fs::File::create_new(staged.path())?.write_all(&bytes)?;
            publish::publish(&folders.objects, &file, &staged)?;
            Ok(file)
        })
        .await
    }

    async fn checksum(&self, key: &str) -> Result<Option<StoredFile>, BlobError> {
        let (path, folders) = (self.path(key)?, self.folders.clone());
        let key = key.to_owned();
        blocking(&self.keeping, move || {
            let Some((bytes, sha256)) = publish::checksum(&path)? else {
                return Ok(folders.check_mounted().map(|()| None)?);
            };
            Ok(Some(StoredFile { key, bytes, sha256 }))
        })
        .await
    }

    async fn head(&self, key: &str) -> Result<Option<u64>, BlobError> {
        let (path, folders) = (self.path(key)?, self.folders.clone());
        // Downloads call it: they must not wait behind removals.
        blocking(&self.reading, move || match fs::metadata(path) {
            Ok(data) if data.is_file() => Ok(Some(data.len())),
            Ok(_) => Ok(None),
            // An unmounted volume looks like an empty store: "unknown key" would make callers treat
            // stored results as lost.
            Err(error) if is_absent(&error) => Ok(folders.check_mounted().map(|()| None)?),
            Err(error) => Err(error.into()),
        })
        .await
    }

    async fn read(&self, key: &str, range: Range<u64>) -> Result<ByteStream, BlobError> {
        let (path, folders) = (self.path(key)?, self.folders.clone());
        let absent = BlobError::NotFound(key.to_owned());
        let file = blocking(&self.reading, move || match fs::File::open(path) {
            Ok(file) if file.metadata()?.is_file() => Ok(file),
            Ok(_) => Err(absent),
            Err(error) if is_absent(&error) => {
                folders.check_mounted()?;
                Err(absent)
            }
            Err(error) => Err(error.into()),
        })
        .await?;
        Ok(read::chunks(file, range, self.reading.clone()))
    }

    async fn delete(&self, key: &str) -> Result<(), BlobError> {
        let (path, folders) = (self.path(key)?, self.folders.clone());
        blocking(&self.keeping, move || {
            folders.check_mounted()?;
            publish::remove(&folders.objects, &path)
        })
        .await
    }

    fn list(&self, prefix: &str) -> EntryStream {
        read::pages(
            self.folders.clone(),
            prefix.to_owned(),
            self.keeping.clone(),
        )
    }

    async fn probe(&self) -> Result<(), BlobError> {
        let folders = self.folders.clone();
        blocking(&self.writing, move || Ok(folders::probe(&folders)?)).await
    }
}

/// The folder of published files for the store in `root`.
pub(crate) fn objects_of(root: &Path) -> PathBuf {
    root.join("objects")
}
