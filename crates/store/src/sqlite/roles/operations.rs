//! The interface for operators, in the process that serves the store.

use async_trait::async_trait;

use super::super::SqliteStore;
use super::super::memory::Memory;
use super::super::reads::Readers;
use crate::tables::{keys, tallies};
use crate::{KeyAction, Operations, Overview, StoreError, TallyRequest, TallyRow, Workers};

#[async_trait]
impl Operations for SqliteStore {
    async fn tallies(&self, request: &TallyRequest) -> Result<Vec<TallyRow>, StoreError> {
        self.ask(tallies::sums(request)).await
    }

    async fn key_log(&self, project: Option<&str>) -> Result<Vec<KeyAction>, StoreError> {
        self.ask(keys::log(project)).await
    }

    async fn overview(&self) -> Result<Overview, StoreError> {
        let now_ms = self.clock.now_ms();
        let read = move |readers: &Readers, _: &Memory| readers.overview(now_ms);
        let overview = self.read(None, read).await?;
        // Memory has the current state; the rows are for other processes.
        let workers = self.living().await?;
        Ok(Overview {
            workers,
            ..overview
        })
    }
}
