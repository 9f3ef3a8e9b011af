//! Chores and maintenance, for workers.

use std::sync::Arc;

use async_trait::async_trait;
use kinora_contract::{Reading, Task, TaskId};

use super::super::opening::read_gap;
use super::super::statement::Statement;
use super::super::{PostgresStore, chores};
use crate::{
    Chore, ChoreDone, ChoreRequest, Chores, ExpiryCursor, Gap, Postpone, StoreError, SweepRequest,
    Swept,
};

#[async_trait]
impl Chores for PostgresStore {
    async fn clock(&self) -> Result<Reading, StoreError> {
        Ok(self.reader.present().await?.reading())
    }

    async fn sweep(&self, request: SweepRequest) -> Result<Swept, StoreError> {
        self.queue.call(request).await
    }

    async fn postpone(&self, request: Postpone) -> Result<Option<ExpiryCursor>, StoreError> {
        self.queue.call(request).await
    }

    async fn take_chores(&self, request: ChoreRequest) -> Result<Vec<Chore>, StoreError> {
        self.acts.call(request).await
    }

    async fn settle_chores(&self, done: Vec<ChoreDone>) -> Result<(), StoreError> {
        self.acts.call(chores::Settle(done)).await
    }

    async fn known(
        &self,
        ids: &[TaskId],
    ) -> Result<Vec<Result<Option<Arc<Task>>, StoreError>>, StoreError> {
        let found = self.reader.find_all(ids).await?;
        let task = |found: Result<Option<Arc<_>>, StoreError>| {
            found.map(|record: Option<Arc<kinora_contract::lifecycle::Record>>| {
                record.map(|record| record.task.clone())
            })
        };
        Ok(found.into_iter().map(task).collect())
    }

    async fn gaps(&self) -> Result<Vec<Gap>, StoreError> {
        let ask = "SELECT after_ms, before_ms FROM gaps ORDER BY current, after_ms";
        let found = self.reader.query(Statement::new(ask)).await?;
        let mut gaps = Vec::with_capacity(found.len());
        for row in &found {
            gaps.push(read_gap(row)?);
        }
        Ok(gaps)
    }

    async fn close_gaps(&self, gaps: &[Gap]) -> Result<(), StoreError> {
        self.acts.call(chores::CloseGaps(gaps.to_vec())).await
    }

    fn identity(&self) -> u64 {
        self.identity
    }
}
