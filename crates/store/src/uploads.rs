//! The store for uploaded files, which tasks name as references: the trait [`FileStore`], its requests
//! and answers. It has the rows; the bytes are in the blob store, under [`UploadedFile::blob_key`].

use async_trait::async_trait;
use kinora_contract::{FileId, FileKind, UnixMs};

use crate::{ExceededQuota, IdempotencyKey, ListOrder, StoreError};

/// Operations on uploaded files. A changing method returns only after the change is synced to disk.
///
/// An upload takes three steps: [`FileStore::add_file`], the bytes into the blob store, and
/// [`FileStore::confirm_file`]. Only a confirmed file exists for the other methods. If the last step
/// is missing after [`PENDING_FILE_MS`], a sweep removes the row and the bytes.
#[async_trait]
pub trait FileStore: Send + Sync + std::fmt::Debug {
    /// Adds a file, if it is within the limits and its idempotency key is free. The checks and the
    /// insert are one transaction.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be written now.
    async fn add_file(&self, new: NewFile) -> Result<AddFileOutcome, StoreError>;

    /// Makes a file visible, now that its bytes are stored. Repeatable. `None` if its row is gone, so
    /// that a sweep removes the bytes.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be written now.
    async fn confirm_file(&self, id: FileId) -> Result<Option<UploadedFile>, StoreError>;

    /// The file with this id in this project; `None` for an unknown id, for another project's, and
    /// for a file that is deleted or expired.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read.
    async fn file(&self, project: &str, id: FileId) -> Result<Option<UploadedFile>, StoreError>;

    /// Like [`FileStore::file`], in any project: for a caller with a signed address.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read.
    async fn any_file(&self, id: FileId) -> Result<Option<UploadedFile>, StoreError>;

    /// One page of a project's files, by creation.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read.
    async fn list_files(&self, request: FilePageRequest) -> Result<FilePage, StoreError>;

    /// Deletes a file; `false` if the project has none with this id. Its bytes stay while an unfinished
    /// task that names it may need them, and while another file has the same.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be written now.
    async fn delete_file(&self, project: &str, id: FileId) -> Result<bool, StoreError>;
}

/// How long a file may wait for [`FileStore::confirm_file`], in milliseconds.
pub const PENDING_FILE_MS: u64 = 10 * 60 * 1000;

/// An uploaded file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UploadedFile {
    /// Its id.
    pub id: FileId,
    /// The project that owns it.
    pub project: String,
    /// The name that the client gave it.
    pub filename: String,
    /// The purpose that the client named.
    pub purpose: String,
    /// Its kind.
    pub kind: FileKind,
    /// The media type of its bytes, such as `image/png`.
    pub media_type: String,
    /// Length.
    pub bytes: u64,
    /// SHA-256 of its bytes, in hexadecimal.
    pub sha256: String,
    /// Key of its bytes in the blob store.
    pub blob_key: String,
    /// When it was uploaded.
    pub created_at_ms: UnixMs,
    /// When it expires.
    pub expires_at_ms: UnixMs,
}

/// A file to add.
#[derive(Clone, Debug)]
pub struct NewFile {
    /// Drawn by the caller.
    pub id: FileId,
    /// The project that owns it.
    pub project: String,
    /// The name that the client gave it.
    pub filename: String,
    /// The purpose that the client named.
    pub purpose: String,
    /// Its kind.
    pub kind: FileKind,
    /// The media type of its bytes.
    pub media_type: String,
    /// Length.
    pub bytes: u64,
    /// SHA-256 of its bytes, in hexadecimal.
    pub sha256: String,
    /// How long it is kept from now on, in milliseconds.
    pub lifetime_ms: u64,
    /// The request's idempotency key, if it has one. It stays bound as long as the file exists.
    pub idempotency: Option<IdempotencyKey>,
    /// The limits.
    pub bounds: FileBounds,
}

/// The limits on files, checked in the transaction of the insert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileBounds {
    /// Files of the project.
    pub files_max: u64,
    /// Stored bytes of the project: as [`crate::QueueBounds::project_bytes_max`].
    pub project_bytes_max: u64,
    /// Stored bytes of all projects.
    pub bytes_max: u64,
}

/// The outcome of [`FileStore::add_file`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AddFileOutcome {
    /// The file is added, and must be confirmed.
    Added {
        /// The file.
        file: UploadedFile,
        /// Whether its bytes must be stored first; otherwise the project has them already.
        needs_bytes: bool,
    },
    /// The same request was stored before under this idempotency key, as this file.
    Replayed(UploadedFile),
    /// The idempotency key belongs to another request. Nothing was stored.
    KeyReused,
    /// The project has its maximum of files. Nothing was stored.
    TooMany,
    /// A limit on stored bytes is reached. Nothing was stored.
    QuotaFull(ExceededQuota),
}

/// A query for files.
#[derive(Clone, Debug)]
pub struct FilePageRequest {
    /// The project.
    pub project: String,
    /// Only files after this one in the order. It need not exist any more.
    pub after: Option<FileId>,
    /// Maximum number.
    pub limit: usize,
    /// The order.
    pub order: ListOrder,
    /// Only files with this purpose.
    pub purpose: Option<String>,
}

/// A page of files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FilePage {
    /// The files, in the requested order.
    pub files: Vec<UploadedFile>,
    /// Whether there are more after them.
    pub has_more: bool,
}
