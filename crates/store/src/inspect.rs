//! A store as a doctor sees it: read-only, beside a process that may be serving it, and never made.

use std::sync::Arc;

use kinora_contract::{Task, TaskId};

use crate::sqlite::Inspector;
use crate::{Gap, Loss, OpenError, StoreError};

/// Opens the store at `url` to look at it; `None` where there is none.
///
/// # Errors
/// [`OpenError`], with a message that is fit for an operator.
pub fn inspect(url: &str) -> Result<Option<Inspection>, OpenError> {
    let inspector = Inspector::open(&crate::open::sqlite_path(url)?)?;
    Ok(inspector.map(Inspection))
}

/// A store that is looked at.
#[derive(Debug)]
pub struct Inspection(Inspector);

impl Inspection {
    /// The number that is this store's own.
    ///
    /// # Errors
    /// [`StoreError`] when it cannot be read.
    pub fn identity(&self) -> Result<u64, StoreError> {
        self.0.identity()
    }

    /// Whether it has the key that signs result addresses.
    ///
    /// # Errors
    /// [`StoreError`] when it cannot be read.
    pub fn has_signing_key(&self) -> Result<bool, StoreError> {
        self.0.has_signing_key()
    }

    /// What SQLite's check of the whole database finds; nothing in one that is whole.
    ///
    /// # Errors
    /// [`OpenError`] when it could not be done.
    pub fn check(&self) -> Result<Vec<String>, OpenError> {
        self.0.check()
    }

    /// What the store lacks, by its high-water mark.
    ///
    /// # Errors
    /// [`OpenError`] when that cannot be told.
    pub fn loss(&self) -> Result<Option<Loss>, OpenError> {
        self.0.loss()
    }

    /// Rows of tasks, those that are expired included.
    ///
    /// # Errors
    /// [`StoreError`] when they cannot be counted.
    pub fn count(&self) -> Result<u64, StoreError> {
        self.0.count()
    }

    /// Hands every task to `each`, or why it cannot be read, in the order in which they were accepted.
    ///
    /// # Errors
    /// [`StoreError`] when there is no going on.
    pub fn tasks(
        &self,
        each: &mut dyn FnMut(Result<&Task, &StoreError>),
    ) -> Result<(), StoreError> {
        self.0.tasks(each)
    }

    /// The task with this id, of any project.
    ///
    /// # Errors
    /// [`StoreError`] when it cannot be read.
    pub fn task(&self, id: TaskId) -> Result<Option<Arc<Task>>, StoreError> {
        self.0.task(id)
    }

    /// What the store cannot know, as [`crate::Chores::gaps`].
    ///
    /// # Errors
    /// [`StoreError`] when it cannot be read.
    pub fn gaps(&self) -> Result<Vec<Gap>, StoreError> {
        self.0.gaps()
    }
}
