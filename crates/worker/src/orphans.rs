//! Removes leftover files of known tasks, such as those of a run that stored them after its lease
//! was lost and the sweep was over. Usually the store's chores remove files; this finds the ones
//! they miss. A file whose task the store does not know, or an uploaded one that it does not know, is
//! never removed here: another copy of the database may know it. It is counted, and left until an operator
//! decides; and so are all files if another store has left its mark beside ours.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::TryStreamExt;
use kinora_blobs::{BlobEntry, BlobError, BlobStore};
use kinora_contract::{Task, TaskId, UnixMs};
use kinora_store::{
    ChoreKind, ChoreRequest, ChoreStore, MARKS, StoreError, StoreInspection, TASK_FILES, UPLOADS,
    owns_file, task_of_file, upload_of_key,
};

use crate::shutdown::Shutdown;
use crate::worker::Worker;

/// The beginnings of the keys that are checked.
const CHECKED: [&str; 3] = [TASK_FILES[0], TASK_FILES[1], UPLOADS];
/// Newer files may belong to a run whose task has just changed hands.
const YOUNG_MS: u64 = 60 * 60 * 1000;
/// How often to check all files, in milliseconds.
const EVERY_MS: u64 = 60 * 60 * 1000;
/// If a check takes longer, another process may start one too.
const CHECK_LEASE_MS: u64 = EVERY_MS;
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
pub trait KnownTasks: Send + Sync {
    /// Looks up these ids, in order. A task that this version cannot read gives an error for that
    /// id alone.
    ///
    /// # Errors
    /// [`StoreError`] if the tasks cannot be read.
    async fn known(
        &self,
        ids: &[TaskId],
    ) -> Result<Vec<Result<Option<Arc<Task>>, StoreError>>, StoreError>;

    /// As [`ChoreStore::find_uploads`].
    ///
    /// # Errors
    /// [`StoreError`] if they cannot be read.
    async fn known_uploads(&self, keys: &[String]) -> Result<HashSet<String>, StoreError>;

    /// As [`ChoreStore::identity`].
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read.
    fn identity(&self) -> Result<u64, StoreError>;
}

#[async_trait::async_trait]
impl KnownTasks for dyn ChoreStore + '_ {
    async fn known(
        &self,
        ids: &[TaskId],
    ) -> Result<Vec<Result<Option<Arc<Task>>, StoreError>>, StoreError> {
        ChoreStore::find_tasks(self, ids).await
    }

    async fn known_uploads(&self, keys: &[String]) -> Result<HashSet<String>, StoreError> {
        ChoreStore::find_uploads(self, keys).await
    }

    fn identity(&self) -> Result<u64, StoreError> {
        Ok(ChoreStore::identity(self))
    }
}

#[async_trait::async_trait]
impl KnownTasks for StoreInspection {
    async fn known(
        &self,
        ids: &[TaskId],
    ) -> Result<Vec<Result<Option<Arc<Task>>, StoreError>>, StoreError> {
        Ok(ids.iter().map(|id| self.task(*id)).collect())
    }

    async fn known_uploads(&self, keys: &[String]) -> Result<HashSet<String>, StoreError> {
        self.find_uploads(keys)
    }

    fn identity(&self) -> Result<u64, StoreError> {
        Self::identity(self)
    }
}

/// The number and size of files that no task refers to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OrphanCount {
    /// Number of files.
    pub files: u64,
    /// Their total size in bytes.
    pub bytes: u64,
    /// When the oldest of their tasks was accepted, or of them uploaded.
    pub oldest_ms: Option<UnixMs>,
    /// When the newest of their tasks was accepted, or of them uploaded.
    pub newest_ms: Option<UnixMs>,
}

impl OrphanCount {
    fn count(&mut self, file: &OrphanFile) {
        let at_ms = file.accepted_at_ms;
        self.files += 1;
        self.bytes += file.bytes;
        self.oldest_ms = Some(self.oldest_ms.map_or(at_ms, |oldest| oldest.min(at_ms)));
        self.newest_ms = Some(self.newest_ms.map_or(at_ms, |newest| newest.max(at_ms)));
    }
}

/// A file that no task refers to.
#[derive(Debug)]
struct OrphanFile {
    key: String,
    bytes: u64,
    modified_at_ms: UnixMs,
    /// When its task was accepted, or itself uploaded.
    accepted_at_ms: UnixMs,
    /// Whether the store has the task, with other files: one of its runs may be about to use this
    /// one.
    is_known: bool,
}

impl OrphanFile {
    /// Whether the file is too old for a run that has yet to finish.
    fn is_old(&self, now_ms: UnixMs) -> bool {
        self.modified_at_ms.saturating_add(YOUNG_MS) < now_ms
    }
}

/// Result of a check by the service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OrphanCheck {
    /// Number of removed files, all of known tasks.
    pub removed: u64,
    /// Files that were left, because the store does not know their tasks.
    pub unknown: OrphanCount,
}

/// Checks at the start and every hour, until a drain: in one process at a time.
pub(crate) async fn sweep_orphans_until_drain(worker: Arc<Worker>, shutdown: Shutdown) {
    while !shutdown.is_draining() {
        tokio::select! {
            biased;
            looked = check_when_due(&worker) => if let Err(error) = looked {
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

async fn check_when_due(worker: &Worker) -> Result<(), OrphanError> {
    let request = ChoreRequest {
        kind: ChoreKind::LookForOrphans,
        count: 1,
        lease_ms: CHECK_LEASE_MS,
    };
    let Some(chore) = worker.chores.lease_chores(request).await?.pop() else {
        return Ok(());
    };
    let now_ms = worker.chores.clock().await?.wall_ms;
    let checked = remove_orphans(&*worker.chores, &*worker.blobs, now_ms).await;
    // After a failure too: the whole check is repeated at its regular time.
    worker
        .chores
        .complete_chores(vec![chore.again(EVERY_MS)])
        .await?;
    log(&checked?);
    Ok(())
}

fn log(checked: &OrphanCheck) {
    if checked.removed > 0 {
        let files = checked.removed;
        tracing::info!(files, "removed files that no task refers to");
    }
    let OrphanCount { files, bytes, .. } = checked.unknown;
    if files > 0 {
        tracing::warn!(
            files,
            bytes,
            "files left alone: this store does not know their tasks, or the uploads. An older copy of the \
             database was put back, or a worker died while it stored files of a task that was deleted. \
             Restore the newer database to have its tasks back, or see `kinora orphans`, which also \
             removes the files"
        );
    }
}

/// Removes every file of `blobs` that is an hour old at `now_ms` and whose task is known to `tasks`
/// but does not refer to it. Files of that age whose tasks are unknown are counted and left. A file
/// that cannot be removed is left for the next check.
///
/// # Errors
/// [`OrphanError`] if not all files could be checked.
pub async fn remove_orphans(
    tasks: &dyn ChoreStore,
    blobs: &dyn BlobStore,
    now_ms: UnixMs,
) -> Result<OrphanCheck, OrphanError> {
    let mut checked = OrphanCheck::default();
    if !are_ours(tasks, blobs).await? {
        return Ok(checked);
    }
    let mut has_named = false;
    for prefix in CHECKED {
        let mut pages = blobs.list(prefix);
        while let Some(page) = pages.try_next().await? {
            let files = page.len();
            let found = orphans(tasks, page).await?;
            has_named |= found.len() < files;
            for orphan in found.iter().filter(|orphan| orphan.is_old(now_ms)) {
                if !orphan.is_known {
                    checked.unknown.count(orphan);
                } else if remove(blobs, &orphan.key).await {
                    checked.removed += 1;
                }
            }
        }
    }
    // An empty folder may be an unmounted volume: emptiness does not make it ours.
    if has_named && !is_marked(tasks, blobs).await? {
        store_mark(tasks, blobs).await?;
    }
    Ok(checked)
}

/// Counts the files that no task of `tasks` refers to, or removes them on an operator's order,
/// including those of tasks that the store does not know. `None` if another store uses the same
/// results.
///
/// # Errors
/// [`OrphanError`] if not all files could be checked.
pub async fn find_orphans(
    tasks: &(impl KnownTasks + ?Sized),
    blobs: &dyn BlobStore,
    now_ms: UnixMs,
    removes: bool,
) -> Result<Option<OrphanCount>, OrphanError> {
    if !are_ours(tasks, blobs).await? {
        return Ok(None);
    }
    let mut found = OrphanCount::default();
    for prefix in CHECKED {
        let mut pages = blobs.list(prefix);
        while let Some(page) = pages.try_next().await? {
            for orphan in orphans(tasks, page).await? {
                // A row is stored before its files: an unknown one is unknown at any age.
                if (!orphan.is_known || orphan.is_old(now_ms))
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
    tasks: &(impl KnownTasks + ?Sized),
    blobs: &dyn BlobStore,
) -> Result<bool, OrphanError> {
    let mark = kinora_store::mark_key(tasks.identity()?);
    Ok(blobs.head(&mark).await?.is_some())
}

/// Leaves the store's mark beside its results.
///
/// # Errors
/// [`BlobError`] if the mark could not be stored.
pub async fn store_mark(tasks: &dyn ChoreStore, blobs: &dyn BlobStore) -> Result<(), BlobError> {
    let mark = kinora_store::mark_key(ChoreStore::identity(tasks));
    match blobs.put_bytes(&mark, Bytes::new()).await {
        Ok(_) | Err(BlobError::Exists(_)) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Whether no other store has left its mark. With a wrong or new database, the results of another
/// one must not be taken for orphans.
async fn are_ours(
    tasks: &(impl KnownTasks + ?Sized),
    blobs: &dyn BlobStore,
) -> Result<bool, OrphanError> {
    let mark = kinora_store::mark_key(tasks.identity()?);
    // A mark is an empty file that names a store. One of another store beside ours means that two
    // stores use these results, and that each would take the other's files for orphans.
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
    tasks: &(impl KnownTasks + ?Sized),
    page: Vec<BlobEntry>,
) -> Result<Vec<OrphanFile>, OrphanError> {
    let mut orphans = upload_orphans(tasks, &page).await?;
    let page: Vec<(TaskId, BlobEntry)> = page
        .into_iter()
        .filter_map(|entry| Some((task_of_file(&entry.key)?, entry)))
        .collect();
    let mut ids: Vec<TaskId> = page.iter().map(|(id, _)| *id).collect();
    ids.sort_unstable();
    ids.dedup();
    let known = tasks.known(&ids).await?;
    let known: HashMap<TaskId, Result<Option<Arc<Task>>, StoreError>> =
        ids.into_iter().zip(known).collect();
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
        if task.is_none_or(|task| !owns_file(task, &entry.key)) {
            orphans.push(OrphanFile {
                key: entry.key,
                bytes: entry.bytes,
                modified_at_ms: entry.modified_at_ms,
                accepted_at_ms: id.created_at_ms(),
                is_known: task.is_some(),
            });
        }
    }
    Ok(orphans)
}

/// The uploaded files of `page` that the store does not know.
async fn upload_orphans(
    tasks: &(impl KnownTasks + ?Sized),
    page: &[BlobEntry],
) -> Result<Vec<OrphanFile>, OrphanError> {
    let uploads = page
        .iter()
        .filter_map(|entry| Some((upload_of_key(&entry.key)?, entry)));
    let uploads: Vec<_> = uploads.collect();
    if uploads.is_empty() {
        return Ok(Vec::new());
    }
    let keys: Vec<String> = uploads.iter().map(|(_, entry)| entry.key.clone()).collect();
    let known = tasks.known_uploads(&keys).await?;
    let unknown = uploads
        .into_iter()
        .filter(|(_, entry)| !known.contains(&entry.key));
    let orphans = unknown.map(|(id, entry)| OrphanFile {
        key: entry.key.clone(),
        bytes: entry.bytes,
        modified_at_ms: entry.modified_at_ms,
        accepted_at_ms: id.created_at_ms(),
        is_known: false,
    });
    Ok(orphans.collect())
}
