//! Chores and maintenance, for workers.

use std::sync::Arc;

use async_trait::async_trait;
use kinora_contract::{Reading, Task, TaskId};

use super::super::memory::Memory;
use super::super::reads::Readers;
use super::super::{SqliteStore, chores};
use crate::tables::keys::RecordUses;
use crate::{
    Chore, ChoreDone, ChoreRequest, Chores, ExpiryCursor, Gap, Postpone, StoreError, SweepRequest,
    Swept,
};

#[async_trait]
impl Chores for SqliteStore {
    async fn clock(&self) -> Result<Reading, StoreError> {
        Ok(self.clock.read())
    }

    async fn sweep(&self, request: SweepRequest) -> Result<Swept, StoreError> {
        let uses = self.keys.take_uses();
        if !uses.is_empty() {
            // They are only exact to a minute, so a failure here must not fail the sweep.
            let _ = self.writer.call(RecordUses(uses)).await;
        }
        self.writer.call(request).await
    }

    async fn postpone(&self, request: Postpone) -> Result<Option<ExpiryCursor>, StoreError> {
        self.writer.call(request).await
    }

    async fn take_chores(&self, request: ChoreRequest) -> Result<Vec<Chore>, StoreError> {
        self.writer.call(request).await
    }

    async fn settle_chores(&self, done: Vec<ChoreDone>) -> Result<(), StoreError> {
        self.writer.call(chores::Settle(done)).await
    }

    async fn known(
        &self,
        ids: &[TaskId],
    ) -> Result<Vec<Result<Option<Arc<Task>>, StoreError>>, StoreError> {
        let ids = ids.to_vec();
        let read = move |readers: &Readers, memory: &Memory| {
            let find = |id: &TaskId| {
                let found = readers.find(memory, *id);
                let task = found.map(|record| record.map(|record| record.task.clone()));
                task.map_err(StoreError::from)
            };
            Ok(ids.iter().map(find).collect())
        };
        self.read(None, read).await
    }

    async fn gaps(&self) -> Result<Vec<Gap>, StoreError> {
        Ok(self.memory.gaps())
    }

    async fn close_gaps(&self, gaps: &[Gap]) -> Result<(), StoreError> {
        self.writer.call(chores::CloseGaps(gaps.to_vec())).await
    }

    fn identity(&self) -> u64 {
        self.identity
    }
}
