//! Read-only checks of a store for operators, possibly while a process serves it. Writes nothing and
//! never creates a store.

use std::collections::HashSet;
use std::sync::Arc;

use kinora_contract::{StoredFile, Task, TaskId, UnixMs};

use crate::sqlite::SqliteInspector;
use crate::{LostChanges, OpenError, StoreError};

/// A store under inspection.
#[derive(Debug)]
pub struct StoreInspection(SqliteInspector);

impl StoreInspection {
    pub(crate) const fn new(inspector: SqliteInspector) -> Self {
        Self(inspector)
    }

    /// The number that identifies this store.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read.
    pub fn identity(&self) -> Result<u64, StoreError> {
        self.0.identity()
    }

    /// Whether it has the key that signs result URLs.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read.
    pub fn has_signing_key(&self) -> Result<bool, StoreError> {
        self.0.has_signing_key()
    }

    /// The findings of SQLite's check of the whole database; empty if it is undamaged.
    ///
    /// # Errors
    /// [`OpenError`] if the check failed.
    pub fn check(&self) -> Result<Vec<String>, OpenError> {
        self.0.check()
    }

    /// The changes that the store lacks, according to its high-water mark.
    ///
    /// # Errors
    /// [`OpenError`] if that is unknown.
    pub fn loss(&self) -> Result<Option<LostChanges>, OpenError> {
        self.0.loss()
    }

    /// Number of rows of tasks, including expired ones.
    ///
    /// # Errors
    /// [`StoreError`] if they cannot be counted.
    pub fn count(&self) -> Result<u64, StoreError> {
        self.0.count()
    }

    /// Calls `each` with every task, or the reason why it cannot be read, in the order of
    /// acceptance.
    ///
    /// # Errors
    /// [`StoreError`] if the iteration cannot continue.
    pub fn tasks(
        &self,
        each: &mut dyn FnMut(Result<&Task, &StoreError>),
    ) -> Result<(), StoreError> {
        self.0.tasks(each)
    }

    /// The task with this id, in any project.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read.
    pub fn task(&self, id: TaskId) -> Result<Option<Arc<Task>>, StoreError> {
        self.0.task(id)
    }

    /// As [`crate::ChoreStore::find_uploads`].
    ///
    /// # Errors
    /// [`StoreError`] if they cannot be read.
    pub fn find_uploads(&self, keys: &[String]) -> Result<HashSet<String>, StoreError> {
        self.0.find_uploads(keys)
    }

    /// The bytes of all uploaded files; files with the same bytes count once.
    ///
    /// # Errors
    /// [`StoreError`] if they cannot be read.
    pub fn uploads(&self) -> Result<Vec<StoredFile>, StoreError> {
        self.0.uploads()
    }

    /// Number of uploaded files that a sweep should have looked at by this time: expired, deleted or unconfirmed.
    ///
    /// # Errors
    /// [`StoreError`] if they cannot be counted.
    pub fn overdue_uploads(&self, due_ms: UnixMs) -> Result<u64, StoreError> {
        self.0.overdue_uploads(due_ms)
    }
}
