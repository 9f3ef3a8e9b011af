//! The traits of the store, one per file: they answer from memory, or pass an operation to the
//! writer.

mod chores;
mod operations;
mod secrets;
mod tasks;
mod webhooks;
mod work;
mod workers;

use std::sync::Arc;

use async_trait::async_trait;
use kinora_contract::{Task, TaskId};

use super::SqliteStore;
use crate::{Reads, StoreError};

#[async_trait]
impl Reads for SqliteStore {
    async fn task(&self, id: TaskId) -> Result<Option<Arc<Task>>, StoreError> {
        self.find_task(None, id).await
    }
}
