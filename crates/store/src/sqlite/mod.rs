//! The embedded store, in the order in which a change crosses it: `mod` (the interface) hands an
//! operation (`insert`, `fetches`, `leases`, `owner`, `sweep`, `keys`) to the `writer`, which runs it in a
//! `batch` against the `rows` and the `index` of the queue, commits, and publishes to `memory`
//! (`cache`, `queue`), from where `reads` answer. One process serves a file at a time.

mod abandoned;
mod alone;
mod backup;
mod batch;
mod cache;
mod checkpoint;
mod ending;
mod fault;
mod fetches;
mod files;
mod gaps;
mod index;
mod insert;
mod inspector;
mod key_store;
mod keys;
mod leases;
mod mark;
mod memory;
mod opening;
mod owner;
mod pages;
mod postpone;
mod presence;
mod queue;
mod reads;
mod record;
mod recover;
mod rows;
mod schema;
mod shares;
mod starts;
mod sum;
mod sums;
mod sweep;
#[cfg(test)]
mod tests;
mod times;
mod usage;
mod writer;
mod writes;

pub use backup::{Snapshot, SqliteSource};
pub(crate) use inspector::Inspector;
pub use keys::SqliteKeys;

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use kinora_contract::{Artifact, Failure, TaskId, UnixMs};
use tokio::sync::watch;

use crate::{
    Attempt, Cancellation, Claim, ClaimRequest, Deletion, Fetch, FetchRequest, Fetched, Gap, Holds,
    Idempotency, Insertion, Lease, NewTask, OpenError, OpenOptions, Page, PageRequest, Place,
    Postpone, Renewed, StoreError, SweepRequest, Swept, TaskStore, TaskView, Usage,
};
use checkpoint::{Checkpointer, Log};
use fault::Done;
use files::Files;
use kinora_pool::Pool;
use mark::Mark;
use memory::Memory;
use reads::Readers;
use record::Record;
use shares::Shares;
use writer::{Kept, Writer};

/// Threads of the runtime that a store reads with at most, pages of lists apart.
pub const THREADS: usize = reads::CONNECTIONS + 2;

/// Tasks and keys in one SQLite file, served by this process alone.
#[derive(Debug)]
pub struct SqliteStore {
    memory: Arc<Memory>,
    identity: u64,
    holds: Holds,
    // Closed in this order: when the writer carries over the log for the last time, nobody reads it, and
    // SQLite removes it with the last connection.
    readers: Arc<Readers>,
    /// Places at the readers for what memory cannot answer.
    reading: Shares,
    keys: Arc<keys::KeyReader>,
    /// Places at the one connection of the keys: for those that were known a moment ago, and for
    /// whatever else comes, so that keys nobody has do not hold up those that are.
    key_reading: [Pool; 2],
    unclean_starts: u64,
    _checkpointer: Checkpointer,
    writer: Writer,
    /// Last, so that the store is unlocked after the writer has stopped, which has it too.
    _locks: Arc<schema::Locks>,
}

impl SqliteStore {
    /// Opens the store in the file at `path`, which is made where there is none.
    ///
    /// # Errors
    /// [`OpenError`], with a message that is fit for an operator.
    pub fn open(path: &Path, options: &OpenOptions) -> Result<Self, OpenError> {
        let mut locks = schema::lock(path)?;
        // Kept until there is another connection: closing the last one would carry the log over.
        let judged = opening::judge(path, options)?;
        let conn = schema::open_writer(path, options)?;
        drop(judged);
        // Of a process that was killed, also where the log had filled the disk.
        checkpoint::carry_over(&conn);
        let memory = Arc::new(Memory::new(options.finished_cached_bytes_max));
        let unavailable = |fault| schema::unavailable(StoreError::from(fault));
        let mut index = recover::recover(&conn, &memory, options).map_err(unavailable)?;
        let unclean_starts = starts::begin(&conn);
        index.unsettled = unclean_starts > 0;
        let identity = rows::counter(&conn, "identity").map_err(unavailable)?;
        let log = Log::default();
        // Whatever the recovery has written is in it.
        log.committed();
        let database = locks.database(path)?;
        let files = Files::of(path, database, log.clone()).map_err(schema::unavailable)?;
        let locks = Arc::new(locks);
        let kept = Kept {
            files,
            mark: Mark::begin(path, identity, index.changes),
            _locks: locks.clone(),
        };
        Ok(Self {
            identity,
            unclean_starts,
            holds: rows::holds(&conn).map_err(unavailable)?,
            readers: Arc::new(Readers::open(path, options)?),
            reading: Shares::of(
                shares::pool(reads::CONNECTIONS, options),
                reads::CONNECTIONS,
            ),
            keys: Arc::new(keys::KeyReader::open(path, options)?),
            key_reading: [shares::pool(1, options), shares::pool(1, options)],
            _checkpointer: Checkpointer::start(path, options, log, locks.clone())?,
            writer: Writer::start(conn, index, memory.clone(), kept)
                .map_err(schema::unavailable)?,
            memory,
            _locks: locks,
        })
    }

    /// What was there at the opening.
    pub fn holds(&self) -> Holds {
        self.holds.clone()
    }

    /// The record, from memory where it is there: that takes no thread, and waits for nobody. Otherwise
    /// from the disk, in a share of `project`.
    async fn find(
        &self,
        project: Option<&str>,
        id: TaskId,
    ) -> Result<Option<Arc<Record>>, StoreError> {
        if let Ok(record) = self.memory.cache.get(id) {
            return Ok(Some(record));
        }
        let read = move |readers: &Readers, memory: &Memory| readers.find(memory, id);
        self.read(project, read).await
    }

    /// Runs `read` on a thread that may wait for the disk.
    async fn read<T: Send + 'static>(
        &self,
        project: Option<&str>,
        read: impl FnOnce(&Readers, &Memory) -> Done<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (readers, memory) = (self.readers.clone(), self.memory.clone());
        let read = self.reading.run(project, move || read(&readers, &memory));
        Ok(read.await.map_err(stopped)??)
    }
}

fn stopped(error: impl std::error::Error + Send + Sync + 'static) -> StoreError {
    StoreError::Unavailable(Box::new(error))
}

#[async_trait]
impl TaskStore for SqliteStore {
    async fn insert(&self, new: NewTask) -> Result<Insertion, StoreError> {
        let queue = &self.memory.queue;
        let (project, now_ms, bounds) = (new.project.clone(), new.now_ms, new.bounds);
        let reserved = queue.reserved(&project, now_ms);
        let insert = insert::Insert { new, reserved };
        Ok(match self.writer.call(insert).await? {
            insert::Outcome::Inserted(record) => {
                queue.admitted(&project, now_ms);
                Insertion::Inserted(self.memory.view(&record))
            }
            insert::Outcome::Replayed(record) => Insertion::Replayed(self.memory.view(&record)),
            insert::Outcome::KeyReused => Insertion::KeyReused,
            insert::Outcome::QueueFull => {
                Insertion::QueueFull(queue.promise_place(&project, now_ms, bounds.waiting_max))
            }
            insert::Outcome::ProjectFull => {
                let bound = bounds.project_unfinished_max;
                Insertion::ProjectFull(queue.promise_own_place(&project, now_ms, bound))
            }
            insert::Outcome::QuotaFull(quota) => Insertion::QuotaFull(quota),
        })
    }

    async fn find_twin(
        &self,
        project: &str,
        idempotency: &Idempotency,
    ) -> Result<Option<TaskView>, StoreError> {
        let (owner, idempotency) = (project.to_owned(), idempotency.clone());
        let read = move |readers: &Readers, memory: &Memory| {
            readers.find_twin(memory, &owner, &idempotency)
        };
        let found = self.read(Some(project), read).await?;
        Ok(found.map(|record| self.memory.view(&record)))
    }

    async fn get(&self, project: &str, id: TaskId) -> Result<Option<TaskView>, StoreError> {
        let found = self.find(Some(project), id).await?;
        let own = found.filter(|record| record.task.project == project);
        Ok(own.map(|record| self.memory.view(&record)))
    }

    async fn get_of_any_project(&self, id: TaskId) -> Result<Option<TaskView>, StoreError> {
        let found = self.find(None, id).await?;
        Ok(found.map(|record| self.memory.view(&record)))
    }

    async fn list(&self, request: PageRequest) -> Result<Page, StoreError> {
        // A hundred tasks may have to come from the disk: not on a thread that serves others.
        let (readers, memory) = (self.readers.clone(), self.memory.clone());
        let read = tokio::task::spawn_blocking(move || readers.list(&memory, &request));
        Ok(read.await.map_err(stopped)??)
    }

    async fn cancel(
        &self,
        project: &str,
        id: TaskId,
        failure: Failure,
        now_ms: UnixMs,
        expires_at_ms: UnixMs,
    ) -> Result<Cancellation, StoreError> {
        let project = project.to_owned();
        let cancel = owner::Cancel {
            project,
            id,
            failure,
            now_ms,
            expires_at_ms,
        };
        Ok(match self.writer.call(cancel).await? {
            owner::Outcome::Cancelled(record) => Cancellation::Cancelled(self.memory.view(&record)),
            owner::Outcome::AlreadyFinished(record) => {
                Cancellation::AlreadyFinished(self.memory.view(&record))
            }
            owner::Outcome::NotFound => Cancellation::NotFound,
        })
    }

    async fn delete(&self, project: &str, id: TaskId) -> Result<Deletion, StoreError> {
        self.writer
            .call(owner::Delete {
                project: project.to_owned(),
                id,
            })
            .await
    }

    async fn take_fetches(&self, request: FetchRequest) -> Result<Vec<Fetch>, StoreError> {
        // Asked after every submit, and mostly there are none.
        if !self.memory.has_unready() {
            return Ok(Vec::new());
        }
        self.writer.call(request).await
    }

    async fn settle_fetch(&self, fetch: &Fetch, fetched: Fetched) -> Result<(), StoreError> {
        let fetch = fetch.clone();
        let answer = self.writer.call(fetches::Settle { fetch, fetched }).await?;
        answer.map_err(StoreError::LeaseLost)
    }

    async fn claim(&self, request: ClaimRequest) -> Result<Vec<Claim>, StoreError> {
        self.memory.queue.learn(&request);
        self.writer.call(request).await
    }

    async fn renew(&self, lease: &Lease, renewed: Renewed) -> Result<(), StoreError> {
        let answer = self
            .writer
            .call(leases::Renew(lease.clone(), renewed))
            .await?;
        answer.map_err(StoreError::LeaseLost)
    }

    async fn check(&self, lease: &Lease) -> Result<(), StoreError> {
        let record = self.find(None, lease.task).await?;
        leases::judge(record.as_deref(), lease).map_err(StoreError::LeaseLost)
    }

    async fn finish(
        &self,
        lease: &Lease,
        outcome: Result<Artifact, Failure>,
        now_ms: UnixMs,
        expires_at_ms: UnixMs,
    ) -> Result<(), StoreError> {
        let finish = leases::Finish {
            lease: lease.clone(),
            outcome,
            now_ms,
            expires_at_ms,
        };
        self.writer
            .call(finish)
            .await?
            .map_err(StoreError::LeaseLost)
    }

    async fn release(&self, lease: &Lease, attempt: Attempt) -> Result<(), StoreError> {
        let release = leases::Release(lease.clone(), attempt);
        let answer = self.writer.call(release).await?;
        answer.map_err(StoreError::LeaseLost)
    }

    async fn sweep(&self, request: SweepRequest) -> Result<Swept, StoreError> {
        let uses = self.keys.take_uses();
        if !uses.is_empty() {
            // They are kept to about a minute: no sweep fails for them.
            let _ = self.writer.call(keys::NoteUses(uses)).await;
        }
        self.writer.call(request).await
    }

    async fn postpone(&self, request: Postpone) -> Result<Option<Place>, StoreError> {
        self.writer.call(request).await
    }

    async fn newest_below(&self, bound: TaskId) -> Result<Option<TaskId>, StoreError> {
        let read = move |readers: &Readers, _: &Memory| readers.newest_below(bound);
        self.read(None, read).await
    }

    async fn forget_files(&self, keys: &[String]) -> Result<(), StoreError> {
        self.writer.call(owner::ForgetFiles(keys.to_vec())).await
    }

    async fn forget_abandoned(&self, tasks: &[TaskId]) -> Result<(), StoreError> {
        let forget = abandoned::Forget(tasks.to_vec());
        self.writer.call(forget).await
    }

    async fn charge_references(&self, task: TaskId, bytes: u64) -> Result<(), StoreError> {
        let charge = usage::ChargeReferences { task, bytes };
        self.writer.call(charge).await
    }

    async fn usage(&self, project: &str) -> Result<Usage, StoreError> {
        self.writer.call(usage::Ask(project.to_owned())).await
    }

    fn is_writable(&self) -> bool {
        self.memory.is_writable()
    }

    fn unclean_starts(&self) -> u64 {
        self.unclean_starts
    }

    async fn settle(&self) -> Result<(), StoreError> {
        self.writer.call(starts::Settle).await
    }

    fn gaps(&self) -> Vec<Gap> {
        self.memory.gaps()
    }

    async fn close_gaps(&self, gaps: &[Gap]) -> Result<(), StoreError> {
        self.writer.call(gaps::Close(gaps.to_vec())).await
    }

    fn identity(&self) -> u64 {
        self.identity
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.memory.changes()
    }
}
