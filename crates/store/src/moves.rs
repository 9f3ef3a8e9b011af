//! Moves data between two stores of any kind: reads one as it is at one moment, and fills the other
//! in repeatable steps. A store with an unfinished import cannot be served.

use async_trait::async_trait;

use crate::{MovedChore, MovedKey, MovedStore, MovedTask, OpenError, StoreError};

/// Number of tasks per step.
pub const MOVED_AT_ONCE: usize = 500;

/// A store to read, as it is at one moment, possibly while processes serve it.
#[async_trait]
pub trait Export: Send {
    /// The data besides tasks, keys and chores.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read.
    async fn store(&mut self) -> Result<MovedStore, StoreError>;

    /// The next tasks in order of acceptance, at most [`MOVED_AT_ONCE`]; empty after the last. A
    /// task that cannot be read gives an error of its own.
    ///
    /// # Errors
    /// [`StoreError`] if the iteration cannot continue.
    async fn tasks(&mut self) -> Result<Vec<Result<MovedTask, StoreError>>, StoreError>;

    /// All API keys, oldest first.
    ///
    /// # Errors
    /// [`StoreError`] if they cannot be read.
    async fn keys(&mut self) -> Result<Vec<MovedKey>, StoreError>;

    /// All chores that concern tasks, oldest first.
    ///
    /// # Errors
    /// [`StoreError`] if they cannot be read.
    async fn chores(&mut self) -> Result<Vec<MovedChore>, StoreError>;
}

/// A store being filled. It is locked against other imports and cannot be opened otherwise until
/// [`Import::finish`], even after this process has died.
#[async_trait]
pub trait Import: Send {
    /// Place of the last stored task, where an interrupted import resumes; 0 at the beginning.
    fn stored_up_to(&self) -> u64;

    /// Stores tasks, whose places must follow those of all stored tasks. All or none.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] for a task that no store could read, or another [`StoreError`] if
    /// they cannot be stored.
    async fn put_tasks(&mut self, tasks: &[MovedTask]) -> Result<(), StoreError>;

    /// Stores everything else, after all tasks, and computes the sums. Repeatable.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be stored.
    async fn put_rest(
        &mut self,
        store: &MovedStore,
        keys: &[MovedKey],
        chores: &[MovedChore],
    ) -> Result<(), StoreError>;

    /// Reads the store as it is now.
    ///
    /// # Errors
    /// [`OpenError`] if it cannot be opened.
    async fn read_back(&mut self) -> Result<Box<dyn Export>, OpenError>;

    /// Unlocks the store.
    ///
    /// # Errors
    /// [`StoreError`] if that cannot be recorded.
    async fn finish(self: Box<Self>) -> Result<(), StoreError>;
}
