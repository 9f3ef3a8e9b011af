//! The store's interface for the API.

use std::sync::Arc;

use async_trait::async_trait;
use kinora_contract::{Failure, Task, TaskId};

use crate::{
    Cancellation, Changes, ChoreDone, Counts, Deletion, Ended, EndedRequest, Glance, Idempotency,
    Insertion, NewTask, Page, PageRequest, Reads, StoreError, Usage,
};

/// Operations for the owners of tasks. A changing method returns only after the change is synced to
/// disk.
#[async_trait]
pub trait Tasks: Reads {
    /// Adds a waiting task, if it is within the queue's limits and its idempotency key is free. On
    /// `Ok` the task (or its earlier twin) is on disk. Checking the limits and the key, and the
    /// insert, are one transaction. A failed call may have inserted the task: the caller chose the
    /// id and can look it up.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be written now.
    async fn insert(&self, new: NewTask) -> Result<Insertion, StoreError>;

    /// The task that the same request under the same key created in this project, or `None`: for a
    /// repeated request that would be refused by now, whose first answer still stands. Does not
    /// find a twin that is just being stored; [`Tasks::insert`] does, in its transaction.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read.
    async fn find_twin(
        &self,
        project: &str,
        idempotency: &Idempotency,
    ) -> Result<Option<Arc<Task>>, StoreError>;

    /// The task with this id in this project; `None` for an unknown id and for another project's
    /// alike. Never scans.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read.
    async fn get(&self, project: &str, id: TaskId) -> Result<Option<Arc<Task>>, StoreError>;

    /// The same for a client that polls. Where several processes serve the store, an unfinished task may be shown as it
    /// was a moment ago, if another process has changed it meanwhile; but never as it was before something else that
    /// this process has shown or done.
    ///
    /// # Errors
    /// [`StoreError`] when it cannot be read.
    async fn poll(&self, project: &str, id: TaskId) -> Result<Option<Arc<Task>>, StoreError> {
        self.get(project, id).await
    }

    /// One page of a project's tasks by creation, expired ones left out. It has fewer tasks than
    /// asked for where they would take more than [`kinora_contract::limits::PAGE_BYTES_MAX`] in
    /// all ([`kinora_contract::listed_bytes`]), but at least one. One that cannot be read is left out and
    /// logged, and ends no list. It blocks no thread that serves other calls.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read.
    async fn list(&self, request: PageRequest) -> Result<Page, StoreError>;

    /// For each of these tasks, how many are expected to start before it; `None` for a task that
    /// does not wait for its first worker, and if the number is unknown, as far back in a long
    /// queue. Up to a second old.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read.
    async fn positions(&self, ids: &[TaskId]) -> Result<Vec<Option<u64>>, StoreError>;

    /// The short states of these tasks, in order; `None` for one that is expired or does not exist.
    /// Cheap enough for frequent calls.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read.
    async fn glance(&self, ids: &[TaskId]) -> Result<Vec<Option<Glance>>, StoreError>;

    /// The short states of a project's unfinished tasks, by creation. As cheap.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read.
    async fn unfinished(&self, project: &str) -> Result<Vec<Glance>, StoreError>;

    /// The tasks of a project that ended recently and are not expired. Never scans.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read.
    async fn ended(&self, request: EndedRequest) -> Result<Ended, StoreError>;

    /// Reports every change of a task's [`Glance`] from now on, once it can be read. Only a hint
    /// that shortens waiting; polling must be enough.
    fn changes(&self) -> Changes;

    /// The latest encoded preview of a running task.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read.
    async fn preview(&self, id: TaskId) -> Result<Option<Arc<[u8]>>, StoreError>;

    /// Makes an unfinished task `failed` with `failure`, immediately and finally, and keeps it for
    /// `retention_ms`. A worker that runs it loses its lease, and its finish is refused.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be written now.
    async fn cancel(
        &self,
        project: &str,
        id: TaskId,
        failure: Failure,
        retention_ms: u64,
    ) -> Result<Cancellation, StoreError>;

    /// Removes a task in any phase. Its result files become chores leased to the caller, so that a
    /// crash leaks none.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be written now.
    async fn delete(&self, project: &str, id: TaskId) -> Result<Deletion, StoreError>;

    /// As [`crate::Chores::settle_chores`], for the chores of a deletion.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be written now.
    async fn settle_deleted(&self, done: Vec<ChoreDone>) -> Result<(), StoreError>;

    /// A project's stored data.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read.
    async fn usage(&self, project: &str) -> Result<Usage, StoreError>;

    /// Numbers of waiting and running tasks.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read.
    async fn counts(&self) -> Result<Counts, StoreError>;

    /// Whether the last change was stored. While it was not, the store retries by itself, so this
    /// becomes true again without any caller.
    fn is_writable(&self) -> bool;
}
