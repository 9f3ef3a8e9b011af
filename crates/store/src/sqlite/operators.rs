//! Operators' queries, beside the process that serves the store.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use kinora_contract::Clock;

use super::inspector::Inspector;
use super::{overview, script};
use crate::tables::{keys, tallies};
use crate::{KeyAction, OpenError, Operations, Overview, StoreError, TallyRequest, TallyRow};

/// A store opened for queries. Commands have their own thread, which may block.
#[derive(Debug)]
pub(crate) struct SqliteOperations {
    inspector: Inspector,
    clock: Arc<dyn Clock>,
}

impl SqliteOperations {
    /// Opens the store in the file at `path`.
    pub(crate) fn open(path: &Path, clock: Arc<dyn Clock>) -> Result<Self, OpenError> {
        let inspector =
            Inspector::open(path)?.ok_or_else(|| OpenError::Missing(path.to_owned()))?;
        Ok(Self { inspector, clock })
    }
}

#[async_trait]
impl Operations for SqliteOperations {
    async fn tallies(&self, request: &TallyRequest) -> Result<Vec<TallyRow>, StoreError> {
        self.inspector
            .read(|conn| script::ask(conn, &tallies::sums(request)))
    }

    async fn key_log(&self, project: Option<&str>) -> Result<Vec<KeyAction>, StoreError> {
        self.inspector
            .read(|conn| script::ask(conn, &keys::log(project)))
    }

    async fn overview(&self) -> Result<Overview, StoreError> {
        let now_ms = self.clock.now_ms();
        self.inspector.read(|conn| overview::read(conn, now_ms))
    }
}
