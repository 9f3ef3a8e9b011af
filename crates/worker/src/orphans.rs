//! Removes files that no task refers to, such as those of a run that stored them after its lease
//! was lost and the sweep was over. Usually the store's chores remove files; this finds the ones
//! they miss. Files of tasks that this store cannot know, because a copy of it accepted them, are
//! left until an operator decides; and so are all files if another store has left its mark beside
//! ours.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::TryStreamExt;
use kinora_blobs::{BlobEntry, BlobError, BlobStore};
use kinora_contract::{Task, TaskId, UnixMs};
use kinora_store::{
    ChoreKind, ChoreRequest, Chores, Gap, Inspection, MARKS, StoreError, TASK_FILES, names_file,
    task_of_file,
};

use crate::drain::Shutdown;
use crate::worker::Worker;

/// Newer files may belong to a run whose task has just changed hands.
const YOUNG_MS: u64 = 60 * 60 * 1000;
/// How often to check all files, in milliseconds.
const EVERY_MS: u64 = 60 * 60 * 1000;
/// If a check takes longer, another process may start one too.
const LOOK_LEASE_MS: u64 = EVERY_MS;
/// How often to ask the store whether a check is due.
const ASK_EVERY: Duration = Duration::from_mins(1);

/// Why a check ended early.
#[derive(Debug, thiserror::Error)]
pub enum OrphanError {
    /// The blob store could not be listed.
    #[error("files could not be listed: {0}")]
    Blobs(#[from] BlobError),
    /// The store did not return the known tasks.
    #[error("their tasks could not be looked up: {0}")]
    Store(#[from] StoreError),
}

/// A source of known tasks: the store itself, or a reader beside the running service.
#[async_trait::async_trait]
pub trait Known: Send + Sync {
    /// Looks up these ids, in order. A task that this version cannot read gives an error for that
    /// id alone.
    ///
    /// # Errors
    /// [`StoreError`] if the tasks cannot be read.
    async fn known(
        &self,
        ids: &[TaskId],
    ) -> Result<Vec<Result<Option<Arc<Task>>, StoreError>>, StoreError>;

    /// The ids that this store cannot know, as [`Chores::gaps`].
    ///
    /// # Errors
    /// [`StoreError`] if they cannot be read.
    async fn gaps(&self) -> Result<Vec<Gap>, StoreError>;

    /// As [`Chores::identity`].
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read.
    fn identity(&self) -> Result<u64, StoreError>;
}

#[async_trait::async_trait]
impl Known for dyn Chores + '_ {
    async fn known(
        &self,
        ids: &[TaskId],
    ) -> Result<Vec<Result<Option<Arc<Task>>, StoreError>>, StoreError> {
        Chores::known(self, ids).await
    }

    async fn gaps(&self) -> Result<Vec<Gap>, StoreError> {
        Chores::gaps(self).await
    }

    fn identity(&self) -> Result<u64, StoreError> {
        Ok(Chores::identity(self))
    }
}

#[async_trait::async_trait]
impl Known for Inspection {
    async fn known(
        &self,
        ids: &[TaskId],
    ) -> Result<Vec<Result<Option<Arc<Task>>, StoreError>>, StoreError> {
        Ok(ids.iter().map(|id| self.task(*id)).collect())
    }

    async fn gaps(&self) -> Result<Vec<Gap>, StoreError> {
        Self::gaps(self)
    }

    fn identity(&self) -> Result<u64, StoreError> {
        Self::identity(self)
    }
}

/// The number and size of files that no task refers to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Orphans {
    /// Number of files.
    pub files: u64,
    /// Their total size in bytes.
    pub bytes: u64,
    /// When the oldest of their tasks was accepted.
    pub oldest_ms: Option<UnixMs>,
    /// When the newest of their tasks was accepted.
    pub newest_ms: Option<UnixMs>,
}

impl Orphans {
    fn count(&mut self, file: &Orphan) {
        let at_ms = file.task.created_at_ms();
        self.files += 1;
        self.bytes += file.bytes;
        self.oldest_ms = Some(self.oldest_ms.map_or(at_ms, |oldest| oldest.min(at_ms)));
        self.newest_ms = Some(self.newest_ms.map_or(at_ms, |newest| newest.max(at_ms)));
    }
}

/// A file that no task refers to.
#[derive(Debug)]
struct Orphan {
    key: String,
    bytes: u64,
    modified_at_ms: UnixMs,
    task: TaskId,
    /// Whether the store has the task, with other files: one of its runs may be about to use this
    /// one.
    is_known: bool,
}

impl Orphan {
    /// Whether the task may belong to another history of the store.
    fn is_strange(&self, gaps: &[Gap]) -> bool {
        !self.is_known && gaps.iter().any(|gap| gap.holds(self.task))
    }

    /// Whether the file is too old for a run that has yet to finish.
    fn is_old(&self, now_ms: UnixMs) -> bool {
        self.modified_at_ms.saturating_add(YOUNG_MS) < now_ms
    }
}

/// Result of a check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Looked {
    /// Number of removed files.
    pub removed: u64,
    /// Files that were left, because the store cannot know their tasks.
    pub left: Orphans,
}

/// Checks at the start and every hour, until a drain: in one process at a time.
pub(crate) async fn sweep_orphans_until_drain(worker: Arc<Worker>, shutdown: Shutdown) {
    while !shutdown.is_draining() {
        tokio::select! {
            biased;
            looked = look_when_due(&worker) => if let Err(error) = looked {
                tracing::warn!(%error, "search for orphans failed; retrying later");
            },
            () = shutdown.draining() => return,
        }
        tokio::select! {
            biased;
            () = tokio::time::sleep(ASK_EVERY) => {}
            () = shutdown.draining() => {}
        }
    }
}

async fn look_when_due(worker: &Worker) -> Result<(), OrphanError> {
    let request = ChoreRequest {
        kind: ChoreKind::LookForOrphans,
        count: 1,
        lease_ms: LOOK_LEASE_MS,
    };
    let Some(chore) = worker.chores.take_chores(request).await?.pop() else {
        return Ok(());
    };
    let now_ms = worker.chores.clock().await?.wall_ms;
    let looked = remove_orphans(&*worker.chores, &*worker.blobs, now_ms).await;
    // After a failure too: the whole check is repeated at its regular time.
    worker
        .chores
        .settle_chores(vec![chore.again(EVERY_MS)])
        .await?;
    tell(&looked?);
    Ok(())
}

fn tell(looked: &Looked) {
    if looked.removed > 0 {
        let files = looked.removed;
        tracing::info!(files, "removed files that no task refers to");
    }
    let Orphans { files, bytes, .. } = looked.left;
    if files > 0 {
        tracing::warn!(
            files,
            bytes,
            "result files left alone: no task names them, and this store was not there when their tasks \
             were accepted. An older copy of the database was put back, or tasks were lost. Restore the \
             newer database to have them back, or see `kinora orphans`, which also removes them"
        );
    }
}

/// Removes every file of `blobs` that is an hour old at `now_ms` and that no task of `tasks` refers
/// to, unless the store cannot know its task. A file that cannot be removed is left for the next
/// check.
///
/// # Errors
/// [`OrphanError`] if not all files could be checked.
pub async fn remove_orphans(
    tasks: &dyn Chores,
    blobs: &dyn BlobStore,
    now_ms: UnixMs,
) -> Result<Looked, OrphanError> {
    if !are_ours(tasks, blobs).await? {
        return Ok(Looked::default());
    }
    let gaps = Chores::gaps(tasks).await?;
    let mut open = vec![false; gaps.len()];
    let mut looked = Looked::default();
    let mut named = 0;
    for prefix in TASK_FILES {
        let mut pages = blobs.list(prefix);
        while let Some(page) = pages.try_next().await? {
            named += page.len();
            let found = orphans(tasks, page).await?;
            let now = Chores::gaps(tasks).await?;
            for orphan in found {
                named -= 1;
                if orphan.is_strange(&now) {
                    looked.left.count(&orphan);
                    for (gap, open) in gaps.iter().zip(&mut open) {
                        *open |= gap.holds(orphan.task);
                    }
                } else if orphan.is_old(now_ms) && remove(blobs, &orphan.key).await {
                    looked.removed += 1;
                }
            }
        }
    }
    let closed = gaps.into_iter().zip(open).filter(|(_, open)| !open);
    let closed: Vec<Gap> = closed.map(|(gap, _)| gap).collect();
    // An empty folder may be an unmounted volume: it proves no gaps, and emptiness does not make it
    // ours.
    let marked = is_marked(tasks, blobs).await?;
    if marked && !closed.is_empty() {
        tasks.close_gaps(&closed).await?;
    }
    if !marked && named > 0 {
        put_mark(tasks, blobs).await?;
    }
    Ok(looked)
}

/// Counts the files that no task of `tasks` refers to, or removes them on an operator's order,
/// including those of tasks that the store cannot know. `None` if another store uses the same
/// results.
///
/// # Errors
/// [`OrphanError`] if not all files could be checked.
pub async fn look_for_orphans(
    tasks: &(impl Known + ?Sized),
    blobs: &dyn BlobStore,
    now_ms: UnixMs,
    removes: bool,
) -> Result<Option<Orphans>, OrphanError> {
    if !are_ours(tasks, blobs).await? {
        return Ok(None);
    }
    let gaps = tasks.gaps().await?;
    let mut found = Orphans::default();
    for prefix in TASK_FILES {
        let mut pages = blobs.list(prefix);
        while let Some(page) = pages.try_next().await? {
            for orphan in orphans(tasks, page).await? {
                if (orphan.is_strange(&gaps) || orphan.is_old(now_ms))
                    && (!removes || remove(blobs, &orphan.key).await)
                {
                    found.count(&orphan);
                }
            }
        }
    }
    Ok(Some(found))
}

async fn remove(blobs: &dyn BlobStore, key: &str) -> bool {
    let removed = blobs.delete(key).await;
    if let Err(error) = &removed {
        // One failure must not block the files after it.
        tracing::warn!(%error, %key, "orphan not removed");
    }
    removed.is_ok()
}

/// Whether the results carry this store's mark.
///
/// # Errors
/// [`OrphanError`] if the store or the blob store cannot be read.
pub async fn is_marked(
    tasks: &(impl Known + ?Sized),
    blobs: &dyn BlobStore,
) -> Result<bool, OrphanError> {
    let mark = kinora_store::mark_key(tasks.identity()?);
    Ok(blobs.head(&mark).await?.is_some())
}

/// Leaves the store's mark beside its results.
///
/// # Errors
/// [`BlobError`] if the mark could not be stored.
pub async fn put_mark(tasks: &dyn Chores, blobs: &dyn BlobStore) -> Result<(), BlobError> {
    let mark = kinora_store::mark_key(Chores::identity(tasks));
    match blobs.put_bytes(&mark, Bytes::new()).await {
        Ok(_) | Err(BlobError::Exists(_)) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Whether no other store has left its mark. With a wrong or new database, the results of another
/// one must not be taken for orphans.
async fn are_ours(
    tasks: &(impl Known + ?Sized),
    blobs: &dyn BlobStore,
) -> Result<bool, OrphanError> {
    let mark = kinora_store::mark_key(tasks.identity()?);
    let marks: Vec<BlobEntry> = blobs.list(MARKS).try_concat().await?;
    let ours = marks.iter().all(|entry| entry.key == mark);
    if !ours {
        tracing::warn!(
            %mark,
            "files that no task names are left alone, since another store uses the same results: \
             give each store its own, or remove the mark of one that is gone"
        );
    }
    Ok(ours)
}

/// The files of `page` that their task does not refer to, or whose task does not exist. Keys that
/// we did not generate are ignored.
async fn orphans(
    tasks: &(impl Known + ?Sized),
    page: Vec<BlobEntry>,
) -> Result<Vec<Orphan>, OrphanError> {
    let named = |entry: BlobEntry| Some((task_of_file(&entry.key)?, entry));
    let page: Vec<(TaskId, BlobEntry)> = page.into_iter().filter_map(named).collect();
    let mut ids: Vec<TaskId> = page.iter().map(|(id, _)| *id).collect();
    ids.sort_unstable();
    ids.dedup();
    let known = tasks.known(&ids).await?;
    let known: HashMap<TaskId, Result<Option<Arc<Task>>, StoreError>> =
        ids.into_iter().zip(known).collect();
    let mut orphans = Vec::new();
    for (id, entry) in page {
        let task = match known.get(&id) {
            Some(Ok(task)) => task.as_deref(),
            // The task exists, but this version cannot read which files it has.
            Some(Err(StoreError::Corrupt(_))) => continue,
            Some(Err(error)) => {
                return Err(StoreError::Unavailable(error.to_string().into()).into());
            }
            None => continue,
        };
        if task.is_none_or(|task| !names_file(task, &entry.key)) {
            orphans.push(Orphan {
                key: entry.key,
                bytes: entry.bytes,
                modified_at_ms: entry.modified_at_ms,
                task: id,
                is_known: task.is_some(),
            });
        }
    }
    Ok(orphans)
}
