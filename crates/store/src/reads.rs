//! Reads that every audience may make.

use std::sync::Arc;

use async_trait::async_trait;
use kinora_contract::{Task, TaskId};

use crate::StoreError;

/// Looks up tasks by their ids, for callers whose right to them was proved by other means than a key: a lease, a
/// signed address.
#[async_trait]
pub trait Reads: Send + Sync + std::fmt::Debug {
    /// The task with this id, in any project.
    ///
    /// # Errors
    /// [`StoreError`] when it cannot be read.
    async fn task(&self, id: TaskId) -> Result<Option<Arc<Task>>, StoreError>;
}
