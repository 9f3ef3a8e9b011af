//! The interface for cleaning up.

use std::sync::Arc;

use async_trait::async_trait;
use kinora_contract::{Reading, Task, TaskId};

use super::ReferenceStore;
use super::chore_row::ChoreRow;
use super::state::State;
use crate::{
    Chore, ChoreDone, ChoreRequest, ChoreWork, Chores, ExpiryCursor, Gap, Postpone, StoreError,
    SweepRequest, Swept,
};

#[async_trait]
impl Chores for ReferenceStore {
    async fn clock(&self) -> Result<Reading, StoreError> {
        Ok(self.state().now().reading())
    }

    async fn sweep(&self, request: SweepRequest) -> Result<Swept, StoreError> {
        self.state().sweep(&request)
    }

    async fn postpone(&self, request: Postpone) -> Result<Option<ExpiryCursor>, StoreError> {
        self.state().postpone(&request)
    }

    async fn take_chores(&self, request: ChoreRequest) -> Result<Vec<Chore>, StoreError> {
        let mut state = self.state();
        let now_ms = state.now().wall_ms;
        let due = state.chores.values();
        let due = due.filter(|row| row.is_due(now_ms) && request.kind.covers(&row.chore.work));
        let mut due: Vec<_> = due.map(|row| (row.due_ms, row.chore.number)).collect();
        due.sort_unstable();
        due.truncate(request.count);
        let numbers: Vec<u64> = due.into_iter().map(|(_, number)| number).collect();
        Ok(state.lease_chores(&numbers, request.lease_ms))
    }

    async fn settle_chores(&self, done: Vec<ChoreDone>) -> Result<(), StoreError> {
        self.state().settle_chores(done);
        Ok(())
    }

    async fn known(
        &self,
        ids: &[TaskId],
    ) -> Result<Vec<Result<Option<Arc<Task>>, StoreError>>, StoreError> {
        let state = self.state();
        Ok(ids.iter().map(|id| Ok(state.task(*id))).collect())
    }

    async fn gaps(&self) -> Result<Vec<Gap>, StoreError> {
        Ok(self.state().gaps.all())
    }

    async fn close_gaps(&self, gaps: &[Gap]) -> Result<(), StoreError> {
        self.state().gaps.close(gaps);
        Ok(())
    }

    fn identity(&self) -> u64 {
        self.state().identity
    }
}

impl State {
    /// Adds a chore, unless it exists.
    pub(super) fn note(&mut self, work: ChoreWork) {
        if self.chore(&work).is_none() {
            let number = self.next_number();
            let chore = Chore {
                number,
                token: 0,
                attempts: 0,
                work,
            };
            self.chores.insert(number, ChoreRow { chore, due_ms: 0 });
        }
    }

    /// The number of the chore.
    pub(super) fn chore(&self, work: &ChoreWork) -> Option<u64> {
        let mut rows = self.chores.values();
        let row = rows.find(|row| row.chore.work == *work)?;
        Some(row.chore.number)
    }

    /// Leases these chores.
    pub(super) fn lease_chores(&mut self, numbers: &[u64], lease_ms: u64) -> Vec<Chore> {
        let until_ms = self.now().wall_ms.saturating_add(lease_ms);
        let mut leased = Vec::new();
        for number in numbers {
            let token = self.next_number();
            if let Some(row) = self.chores.get_mut(number) {
                row.chore.token = token;
                row.chore.attempts += 1;
                row.due_ms = until_ms;
                leased.push(row.chore.clone());
            }
        }
        leased
    }

    pub(super) fn settle_chores(&mut self, done: Vec<ChoreDone>) {
        let now_ms = self.now().wall_ms;
        for one in done {
            let number = one.chore.number;
            let row = self.chores.get_mut(&number);
            // Another process holds it, or it is done.
            let Some(row) = row.filter(|row| row.chore.token == one.chore.token) else {
                continue;
            };
            match one.again_after_ms {
                Some(after_ms) => row.free(now_ms.saturating_add(after_ms)),
                None => drop(self.chores.remove(&number)),
            }
        }
    }
}
