//! The interface for the API.

use std::sync::Arc;

use async_trait::async_trait;
use kinora_contract::lifecycle::Record;
use kinora_contract::{Failure, Task, TaskId};

use super::super::memory::Memory;
use super::super::pages::{Reading, Unreadable};
use super::super::reads::Readers;
use super::super::{SqliteStore, chores, insert, owner, stopped, usage};
use crate::changes::{UNDER_WAY_MS, ended_from};
use crate::{
    Cancellation, Changes, ChoreDone, Counts, Deletion, Ended, EndedRequest, Glance, Idempotency,
    Insertion, NewTask, Page, PageRequest, StoreError, Tasks, Usage,
};

#[async_trait]
impl Tasks for SqliteStore {
    async fn insert(&self, new: NewTask) -> Result<Insertion, StoreError> {
        let queue = &self.memory.queue;
        let (project, now_ms, bounds) = (new.project.clone(), self.clock.now_ms(), new.bounds);
        let reserved = queue.reserved(&project, now_ms);
        let insert = insert::Insert { new, reserved };
        Ok(match self.writer.call(insert).await? {
            insert::Outcome::Inserted(record) => {
                queue.admitted(&project, now_ms);
                Insertion::Inserted(record.task.clone())
            }
            insert::Outcome::Replayed(record) => Insertion::Replayed(record.task.clone()),
            insert::Outcome::KeyReused => Insertion::KeyReused,
            insert::Outcome::Refused(full) => queue.refuse(&project, now_ms, bounds, full),
        })
    }

    async fn find_twin(
        &self,
        project: &str,
        idempotency: &Idempotency,
    ) -> Result<Option<Arc<Task>>, StoreError> {
        let (owner, idempotency) = (project.to_owned(), idempotency.clone());
        let read = move |readers: &Readers, memory: &Memory| {
            readers.find_twin(memory, &owner, &idempotency)
        };
        let found = self.read(Some(project), read).await?;
        Ok(found.map(|record| record.task.clone()))
    }

    async fn get(&self, project: &str, id: TaskId) -> Result<Option<Arc<Task>>, StoreError> {
        self.find_task(Some(project), id).await
    }

    async fn list(&self, request: PageRequest) -> Result<Page, StoreError> {
        // A hundred tasks may have to come from disk, so not on a thread that serves others.
        let (readers, memory) = (self.readers.clone(), self.memory.clone());
        let read = tokio::task::spawn_blocking(move || readers.list(&memory, &request));
        let Reading { page, unreadable } = read.await.map_err(stopped)??;
        for Unreadable { seq, error } in unreadable {
            tracing::error!(seq, error, "unreadable task left out of a list");
        }
        Ok(page)
    }

    async fn positions(&self, ids: &[TaskId]) -> Result<Vec<Option<u64>>, StoreError> {
        // Waiting tasks are in memory.
        let position = |id: &TaskId| {
            let record: Arc<Record> = self.memory.cache.get(*id).ok()?;
            self.memory.queue.position(&record)
        };
        Ok(ids.iter().map(position).collect())
    }

    async fn glance(&self, ids: &[TaskId]) -> Result<Vec<Option<Glance>>, StoreError> {
        let mut glances = Vec::with_capacity(ids.len());
        for id in ids {
            // Few of the requested tasks have ended, and fewer have left memory.
            let found = self.find(None, *id).await?;
            glances.push(found.and_then(|record| Glance::of(&record.task)));
        }
        Ok(glances)
    }

    async fn unfinished(&self, project: &str) -> Result<Vec<Glance>, StoreError> {
        let own = self.memory.unfinished.of(project);
        let glance = |id| Glance::of(&self.memory.cache.get(id).ok()?.task);
        let glances = own.into_iter().filter_map(glance);
        Ok(glances.filter(|glance| !glance.has_ended()).collect())
    }

    async fn ended(&self, request: EndedRequest) -> Result<Ended, StoreError> {
        let now_ms = self.clock.now_ms();
        let from_ms = ended_from(request.since_ms, now_ms);
        let project = request.project.clone();
        let read = move |readers: &Readers, _: &Memory| readers.ended(&request, from_ms);
        Ok(Ended {
            tasks: self.read(Some(&project), read).await?,
            from_ms,
            // A transaction takes its time at its start, but is readable only at its end.
            next_ms: now_ms.saturating_sub(UNDER_WAY_MS),
            now_ms,
        })
    }

    fn changes(&self) -> Changes {
        self.memory.followers.join()
    }

    async fn preview(&self, id: TaskId) -> Result<Option<Arc<[u8]>>, StoreError> {
        Ok(self.memory.previews.get(id))
    }

    async fn cancel(
        &self,
        project: &str,
        id: TaskId,
        failure: Failure,
        retention_ms: u64,
    ) -> Result<Cancellation, StoreError> {
        let cancel = owner::Cancel {
            project: project.to_owned(),
            id,
            failure,
            retention_ms,
        };
        Ok(match self.writer.call(cancel).await? {
            owner::Outcome::Cancelled(record) => Cancellation::Cancelled(record.task.clone()),
            owner::Outcome::AlreadyFinished(record) => {
                Cancellation::AlreadyFinished(record.task.clone())
            }
            owner::Outcome::NotFound => Cancellation::NotFound,
        })
    }

    async fn delete(&self, project: &str, id: TaskId) -> Result<Deletion, StoreError> {
        let project = project.to_owned();
        self.writer.call(owner::Delete { project, id }).await
    }

    async fn settle_deleted(&self, done: Vec<ChoreDone>) -> Result<(), StoreError> {
        self.writer.call(chores::Settle(done)).await
    }

    async fn usage(&self, project: &str) -> Result<Usage, StoreError> {
        self.writer.call(usage::Ask(project.to_owned())).await
    }

    async fn counts(&self) -> Result<Counts, StoreError> {
        self.writer.call(usage::Count).await
    }

    fn is_writable(&self) -> bool {
        self.memory.is_writable()
    }
}
