//! Copies of a store. A backup is a snapshot of a store that may be in service, with the files that it
//! refers to. An export and an import move the rows of [`crate::COPIED_TABLES`] between stores of any
//! kind, in steps that can be repeated; a store with an unfinished import cannot be served. The caller
//! makes folders and moves files.

use std::path::Path;

use async_trait::async_trait;
use kinora_contract::{StoredFile, TaskId};

use crate::{CopiedRow, CopiedTable, OpenError, StoreError};

/// A store to back up, possibly while another process serves it. Blocks.
pub trait BackupSource: std::fmt::Debug {
    /// Writes the store, as it is at one moment, into the new file `to`, synced. It contains every
    /// task that was acknowledged before the call.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be read or the file cannot be written; a partial file is useless.
    fn snapshot(&self, to: &Path) -> Result<(), StoreError>;

    /// Whether the task has a result now: files of a deleted or expired task may be gone.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read.
    fn has_result(&self, task: TaskId) -> Result<bool, StoreError>;

    /// Whether an uploaded file has the bytes with this key now.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read.
    fn has_upload(&self, key: &str) -> Result<bool, StoreError>;
}

/// The contents of a snapshot, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BackupCounts {
    /// Tasks that wait or run; running ones start again after a restore.
    pub unfinished: u64,
    /// Tasks with a result.
    pub completed: u64,
    /// Tasks that failed.
    pub failed: u64,
    /// Tasks that have expired.
    pub expired: u64,
    /// API keys, revoked ones included.
    pub keys: u64,
}

/// The files of one task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskFiles {
    /// The task.
    pub task: TaskId,
    /// Whether it is completed, so that all its files must exist. Missing references of an
    /// unfinished task are fetched again.
    pub completed: bool,
    /// The files of a completed task's result.
    pub results: Vec<StoredFile>,
    /// Keys of the references kept for it.
    pub references: Vec<String>,
}

/// A store to read, as it is at one moment, possibly while processes serve it.
#[async_trait]
pub trait StoreExport: Send {
    /// The next rows of a table, at most [`crate::COPIED_AT_ONCE`], in an order that both kinds of
    /// stores share; empty after the last. A row that cannot be read gives an error of its own, and
    /// so does an idempotency key of such a task.
    ///
    /// # Errors
    /// [`StoreError`] if the iteration cannot continue.
    async fn rows(
        &mut self,
        table: &'static CopiedTable,
    ) -> Result<Vec<Result<CopiedRow, StoreError>>, StoreError>;
}

/// A store being filled. It is locked against other imports and cannot be opened otherwise until
/// [`StoreImport::finish`], even after this process has died.
#[async_trait]
pub trait StoreImport: Send {
    /// Number of rows of a table that are stored, where an interrupted import resumes.
    ///
    /// # Errors
    /// [`StoreError`] if they cannot be counted.
    async fn stored(&mut self, table: &CopiedTable) -> Result<u64, StoreError>;

    /// Stores rows, which must follow all stored ones. All or none.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] for a row that no store could read, or another [`StoreError`] if they
    /// cannot be stored.
    async fn put(&mut self, table: &CopiedTable, rows: &[CopiedRow]) -> Result<(), StoreError>;

    /// Computes the sums over all rows, after the last. Repeatable.
    ///
    /// # Errors
    /// [`StoreError`] if they cannot be stored.
    async fn put_sums(&mut self) -> Result<(), StoreError>;

    /// Reads the store as it is now.
    ///
    /// # Errors
    /// [`OpenError`] if it cannot be opened.
    async fn read_back(&mut self) -> Result<Box<dyn StoreExport>, OpenError>;

    /// Unlocks the store.
    ///
    /// # Errors
    /// [`StoreError`] if that cannot be recorded.
    async fn finish(self: Box<Self>) -> Result<(), StoreError>;
}
