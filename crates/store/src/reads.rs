//! Reads for every audience.

use std::sync::Arc;

use async_trait::async_trait;
use kinora_contract::{Task, TaskId};

use crate::StoreError;

/// Looks up tasks by id, for callers who have proved their right to them without a key: by a lease
/// or a signed URL.
#[async_trait]
pub trait Reads: Send + Sync + std::fmt::Debug {
    /// The task with this id, in any project.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read.
    async fn task(&self, id: TaskId) -> Result<Option<Arc<Task>>, StoreError>;
}
