//! The store's part of a backup: a snapshot while the store is served, the files that the snapshot
//! refers to, and another look at the store afterwards. The caller makes folders and moves files.

use std::path::Path;

use kinora_contract::{StoredFile, TaskId};

use crate::StoreError;

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
}

/// The contents of a snapshot, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
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
    /// Video, thumbnail and spritesheet of a completed task.
    pub results: Vec<StoredFile>,
    /// Keys of the references kept for it.
    pub references: Vec<String>,
}
