//! The store as the API sees it.

use std::sync::Arc;

use async_trait::async_trait;
use kinora_contract::{Failure, Task, TaskId};

use crate::{
    Cancellation, Changes, ChoreDone, Counts, Deletion, Ended, EndedRequest, Glance, Idempotency,
    Insertion, NewTask, Page, PageRequest, Reads, StoreError, Usage,
};

/// What the owners of tasks do with them. Every answer of a changing method is given after the change is synced to
/// disk.
#[async_trait]
pub trait Tasks: Reads {
    /// Adds a waiting task, once it is within the queue's bounds and its idempotency key is
    /// free. On `Ok` the task (or the twin that was there before) is on disk. The bounds, the
    /// key and the insert are one transaction. A failed call may have inserted the task: the
    /// id was chosen by the caller, who can look it up.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot take it now.
    async fn insert(&self, new: NewTask) -> Result<Insertion, StoreError>;

    /// The task that the same request under the same key has made in this project, or `None`: for
    /// a repeat that would be refused by now, whose first answer still stands. A twin that is just
    /// being stored is not found here; [`Tasks::insert`] finds it, in its transaction.
    ///
    /// # Errors
    /// [`StoreError`] when it cannot be read.
    async fn find_twin(
        &self,
        project: &str,
        idempotency: &Idempotency,
    ) -> Result<Option<Arc<Task>>, StoreError>;

    /// The task with this id in this project, or `None` for an unknown and for another
    /// project's id alike. Never a scan.
    ///
    /// # Errors
    /// [`StoreError`] when it cannot be read.
    async fn get(&self, project: &str, id: TaskId) -> Result<Option<Arc<Task>>, StoreError>;

    /// One page of a project's tasks by creation, expired ones left out. It has fewer tasks than
    /// asked for where they would take more than [`kinora_contract::limits::PAGE_BYTES_MAX`] in
    /// all ([`kinora_contract::listed_bytes`]), but at least one. One that cannot be read is left out and
    /// logged, and ends no list. It blocks no thread that serves other calls.
    ///
    /// # Errors
    /// [`StoreError`] when it cannot be read.
    async fn list(&self, request: PageRequest) -> Result<Page, StoreError>;

    /// For each of these tasks, how many are expected to start before it; `None` for a task that does not wait
    /// for its first worker, and where that is unknown, as far back in a long queue. Up to a second old.
    ///
    /// # Errors
    /// [`StoreError`] when it cannot be read.
    async fn positions(&self, ids: &[TaskId]) -> Result<Vec<Option<u64>>, StoreError>;

    /// Where these tasks stand, each in its place; `None` for one that is expired or gone. Cheap: to be asked again
    /// and again.
    ///
    /// # Errors
    /// [`StoreError`] when it cannot be read.
    async fn glance(&self, ids: &[TaskId]) -> Result<Vec<Option<Glance>>, StoreError>;

    /// Where the unfinished tasks of a project stand, by creation. As cheap.
    ///
    /// # Errors
    /// [`StoreError`] when it cannot be read.
    async fn unfinished(&self, project: &str) -> Result<Vec<Glance>, StoreError>;

    /// The tasks of a project that ended lately and are not expired. Never a scan.
    ///
    /// # Errors
    /// [`StoreError`] when it cannot be read.
    async fn ended(&self, request: EndedRequest) -> Result<Ended, StoreError>;

    /// Hears of every change of a task's [`Glance`] from now on, after it can be read.
    /// A hint that saves waiting; polling is the truth.
    fn changes(&self) -> Changes;

    /// The last picture of the work in progress on a running task, encoded.
    ///
    /// # Errors
    /// [`StoreError`] when it cannot be read.
    async fn preview(&self, id: TaskId) -> Result<Option<Arc<[u8]>>, StoreError>;

    /// Makes an unfinished task `failed` with `failure`, at once and for good, and keeps it for `retention_ms`.
    /// A worker that runs it loses its lease, and its finish will be refused.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot change now.
    async fn cancel(
        &self,
        project: &str,
        id: TaskId,
        failure: Failure,
        retention_ms: u64,
    ) -> Result<Cancellation, StoreError>;

    /// Removes a task in any phase. The files of its result become chores that are leased to the caller, so that
    /// a crash leaks none.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot change now.
    async fn delete(&self, project: &str, id: TaskId) -> Result<Deletion, StoreError>;

    /// As [`crate::Chores::settle_chores`], for those that came with a deletion.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot change now.
    async fn settle_deleted(&self, done: Vec<ChoreDone>) -> Result<(), StoreError>;

    /// What a project has stored at the moment.
    ///
    /// # Errors
    /// [`StoreError`] when it cannot be read.
    async fn usage(&self, project: &str) -> Result<Usage, StoreError>;

    /// How many tasks wait and run.
    ///
    /// # Errors
    /// [`StoreError`] when it cannot be read.
    async fn counts(&self) -> Result<Counts, StoreError>;

    /// Whether changes are stored at the moment: the last one was. While they are not, the store tries by itself,
    /// so that this turns true again without a caller.
    fn is_writable(&self) -> bool;
}
