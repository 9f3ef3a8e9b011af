//! The store's part of a backup: a snapshot while the store is served, the files that the snapshot names, and a look
//! back at the store. Making folders and moving files is the caller's.

use std::path::Path;

use kinora_contract::{StoredFile, TaskId};

use crate::StoreError;

/// A store that is to be backed up, beside a process that may be serving it. Blocks.
pub trait BackupSource: std::fmt::Debug {
    /// Writes the store as it stands at one moment into the new file `to`, synced. Every task that was
    /// acknowledged before the call is in it.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be read or the file cannot be written; a partial file is useless.
    fn snapshot(&self, to: &Path) -> Result<(), StoreError>;

    /// Whether the task has a result now: a file of one that was deleted or has expired may be gone.
    ///
    /// # Errors
    /// [`StoreError`] when it cannot be read.
    fn has_result(&self, task: TaskId) -> Result<bool, StoreError>;
}

/// How much a snapshot holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Tasks that wait or run; those that run begin anew after a restore.
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
    /// Whether it is completed: all its files must be there then. References of an unfinished task that
    /// are absent are fetched again.
    pub completed: bool,
    /// Video, thumbnail and spritesheet of a completed task.
    pub results: Vec<StoredFile>,
    /// Keys of the references that are kept for it.
    pub references: Vec<String>,
}
