//! Moves data between two stores of any kind: reads one as it is at one moment, and fills the other
//! in repeatable steps. A store with an unfinished import cannot be served.

use async_trait::async_trait;

use crate::{CopiedRow, CopiedTable, OpenError, StoreError};

/// A store to read, as it is at one moment, possibly while processes serve it.
#[async_trait]
pub trait Export: Send {
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
/// [`Import::finish`], even after this process has died.
#[async_trait]
pub trait Import: Send {
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
    async fn read_back(&mut self) -> Result<Box<dyn Export>, OpenError>;

    /// Unlocks the store.
    ///
    /// # Errors
    /// [`StoreError`] if that cannot be recorded.
    async fn finish(self: Box<Self>) -> Result<(), StoreError>;
}
