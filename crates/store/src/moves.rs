//! Moving between two stores of any kind: one is read as it stands at one moment, the other filled in steps that can be
//! repeated. Nobody serves a store into which an import has not ended.

use async_trait::async_trait;

use crate::{MovedChore, MovedKey, MovedStore, MovedTask, OpenError, StoreError};

/// Tasks of one step.
pub const MOVED_AT_ONCE: usize = 500;

/// A store that is read to be moved, as it stands at one moment. A process may be serving it.
#[async_trait]
pub trait Export: Send {
    /// What it has besides tasks, keys and chores.
    ///
    /// # Errors
    /// [`StoreError`] when it cannot be read.
    async fn store(&mut self) -> Result<MovedStore, StoreError>;

    /// The next tasks in the order of their acceptance, at most [`MOVED_AT_ONCE`]; none after the last. One that
    /// cannot be read is an error of its own.
    ///
    /// # Errors
    /// [`StoreError`] when there is no going on.
    async fn tasks(&mut self) -> Result<Vec<Result<MovedTask, StoreError>>, StoreError>;

    /// All API keys, oldest first.
    ///
    /// # Errors
    /// [`StoreError`] when they cannot be read.
    async fn keys(&mut self) -> Result<Vec<MovedKey>, StoreError>;

    /// All chores that have to do with tasks, oldest first.
    ///
    /// # Errors
    /// [`StoreError`] when they cannot be read.
    async fn chores(&mut self) -> Result<Vec<MovedChore>, StoreError>;
}

/// A store that is being filled. It is locked against other imports, and whoever opens it is refused until
/// [`Import::finish`], also after this process has died.
#[async_trait]
pub trait Import: Send {
    /// Place of the last task that is stored: where an import that was interrupted goes on. 0 at the beginning.
    fn stored_up_to(&self) -> u64;

    /// Stores tasks, whose places lie behind those of all tasks that are stored. All or none.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] for one that no store could read, or another [`StoreError`] when they cannot be stored.
    async fn put_tasks(&mut self, tasks: &[MovedTask]) -> Result<(), StoreError>;

    /// Stores everything else, after all tasks, and sums the tasks up. May be repeated.
    ///
    /// # Errors
    /// [`StoreError`] when it cannot be stored.
    async fn put_rest(
        &mut self,
        store: &MovedStore,
        keys: &[MovedKey],
        chores: &[MovedChore],
    ) -> Result<(), StoreError>;

    /// Reads the store as it is now.
    ///
    /// # Errors
    /// [`OpenError`] when it cannot be opened.
    async fn read_back(&mut self) -> Result<Box<dyn Export>, OpenError>;

    /// Opens the store to everybody.
    ///
    /// # Errors
    /// [`StoreError`] when that cannot be noted.
    async fn finish(self: Box<Self>) -> Result<(), StoreError>;
}
