//! For operators, in a process that serves the store.

use async_trait::async_trait;

use super::super::{PostgresStore, overview, script};
use crate::tables::{keys, tallies};
use crate::{KeyAction, Operations, Overview, StoreError, TallyRequest, TallyRow};

#[async_trait]
impl Operations for PostgresStore {
    async fn tallies(&self, request: &TallyRequest) -> Result<Vec<TallyRow>, StoreError> {
        script::ask(&self.reader, tallies::sums(request)).await
    }

    async fn key_log(&self, project: Option<&str>) -> Result<Vec<KeyAction>, StoreError> {
        script::ask(&self.reader, keys::log(project)).await
    }

    async fn overview(&self) -> Result<Overview, StoreError> {
        overview::read(&self.reader, &self.reader.present().await?).await
    }
}
