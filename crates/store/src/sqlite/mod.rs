//! The embedded store, in the order in which a change crosses it: `mod` (the interface) hands an
//! operation (`insert`, `fetches`, `leases`, `owner`, `sweep`, `keys`) to the `writer`, which runs it in a
//! `batch` against the `rows` and the `index` of the queue, commits, and publishes to `memory`
//! (`cache`, `queue`), from where `reads` answer. One process serves a file at a time.

mod abandoned;
mod batch;
mod cache;
mod fault;
mod fetches;
mod gaps;
mod index;
mod insert;
mod inspector;
mod keys;
mod leases;
mod mark;
mod memory;
mod opening;
mod owner;
mod queue;
mod reads;
mod record;
mod recover;
mod rows;
mod schema;
mod scrub;
mod sum;
mod sums;
mod sweep;
mod usage;
mod writer;

pub(crate) use inspector::Inspector;
pub use keys::SqliteKeys;

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use kinora_contract::{Artifact, Failure, TaskId, UnixMs};
use tokio::sync::watch;

use crate::{
    ApiKey, Attempt, Cancellation, Claim, ClaimRequest, Deletion, Fetch, FetchRequest, Fetched,
    Gap, Holds, Idempotency, Insertion, KeyStore, Lease, NewKey, NewTask, OpenError, OpenOptions,
    Page, PageRequest, Renewed, StoreError, SweepRequest, Swept, TaskStore, TaskView, Usage,
};
use mark::Mark;
use memory::Memory;
use reads::Readers;
use scrub::{Scrub, Scrubber};
use writer::Writer;

/// Tasks and keys in one SQLite file, served by this process alone.
#[derive(Debug)]
pub struct SqliteStore {
    writer: Writer,
    memory: Arc<Memory>,
    readers: Arc<Readers>,
    keys: keys::KeyReader,
    identity: u64,
    holds: Holds,
    _scrubber: Scrubber,
    /// Last, so that the store is unlocked after the writer has stopped.
    _lock: File,
}

impl SqliteStore {
    /// Opens the store in the file at `path`, which is made where there is none.
    ///
    /// # Errors
    /// [`OpenError`], with a message that is fit for an operator.
    pub fn open(path: &Path, options: &OpenOptions) -> Result<Self, OpenError> {
        let lock = schema::lock(path)?;
        // Kept until there is another connection: closing the last one would carry the log over.
        let judged = opening::judge(path, options)?;
        let conn = schema::open_writer(path, options)?;
        drop(judged);
        let memory = Arc::new(Memory::new(options.finished_cached_bytes_max));
        let index = recover::recover(&conn, &memory, options)
            .map_err(|fault| schema::unavailable(StoreError::from(fault)))?;
        let identity = rows::counter(&conn, "identity")
            .map_err(|fault| schema::unavailable(StoreError::from(fault)))?;
        let mark = Mark::begin(path, identity, index.changes);
        let scrub = Scrub::default();
        Ok(Self {
            identity,
            holds: rows::holds(&conn)
                .map_err(|fault| schema::unavailable(StoreError::from(fault)))?,
            readers: Arc::new(Readers::open(path, options)?),
            keys: keys::KeyReader::open(path, options)?,
            writer: Writer::start(conn, index, memory.clone(), mark, scrub.clone())
                .map_err(schema::unavailable)?,
            _scrubber: Scrubber::start(path, options, scrub)?,
            memory,
            _lock: lock,
        })
    }

    /// What was there at the opening.
    pub fn holds(&self) -> Holds {
        self.holds.clone()
    }
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
        now_ms: UnixMs,
    ) -> Result<Option<TaskView>, StoreError> {
        let found = self
            .readers
            .find_twin(&self.memory, project, idempotency, now_ms)?;
        Ok(found.map(|record| self.memory.view(&record)))
    }

    async fn get(&self, project: &str, id: TaskId) -> Result<Option<TaskView>, StoreError> {
        let found = self.readers.find(&self.memory, id)?;
        let own = found.filter(|record| record.task.project == project);
        Ok(own.map(|record| self.memory.view(&record)))
    }

    async fn get_of_any_project(&self, id: TaskId) -> Result<Option<TaskView>, StoreError> {
        let found = self.readers.find(&self.memory, id)?;
        Ok(found.map(|record| self.memory.view(&record)))
    }

    async fn list(&self, request: PageRequest) -> Result<Page, StoreError> {
        // A hundred tasks may have to come from the disk: not on a thread that serves others.
        let (readers, memory) = (self.readers.clone(), self.memory.clone());
        let read = tokio::task::spawn_blocking(move || readers.list(&memory, &request));
        let page = read
            .await
            .map_err(|stopped| StoreError::Unavailable(Box::new(stopped)))?;
        Ok(page?)
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
        let record = self.readers.find(&self.memory, lease.task)?;
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

#[async_trait]
impl KeyStore for SqliteStore {
    async fn add_key(&self, key: NewKey) -> Result<ApiKey, StoreError> {
        let added = self.writer.call(keys::AddKey(key)).await?;
        self.keys.refresh();
        Ok(added)
    }

    async fn list_keys(&self) -> Result<Vec<ApiKey>, StoreError> {
        Ok(self.keys.list()?)
    }

    async fn find_key(
        &self,
        sha256: &[u8; 32],
        now_ms: UnixMs,
    ) -> Result<Option<Arc<ApiKey>>, StoreError> {
        Ok(self.keys.find(sha256, now_ms)?)
    }

    async fn revoke_key(&self, id: &str, now_ms: UnixMs) -> Result<bool, StoreError> {
        let revoked = self
            .writer
            .call(keys::RevokeKey(id.to_owned(), now_ms))
            .await?;
        self.keys.refresh();
        Ok(revoked)
    }

    async fn rotate_key(
        &self,
        old: &str,
        new: NewKey,
        now_ms: UnixMs,
        grace_ms: u64,
    ) -> Result<Option<ApiKey>, StoreError> {
        let rotate = keys::RotateKey {
            old: old.to_owned(),
            new,
            now_ms,
            grace_ms,
        };
        let added = self.writer.call(rotate).await?;
        self.keys.refresh();
        Ok(added)
    }
}
