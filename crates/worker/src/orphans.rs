//! Removes files that no task names: what a run put after its lease was lost and everything else
//! had been swept. The store's garbage list is the usual way; this is for what slips by it. Where
//! another store has left its mark beside ours nothing is removed: its tasks are not known here.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use kinora_blobs::{BlobEntry, BlobError, BlobStore};
use kinora_contract::{TaskId, UnixMs};
use kinora_store::{StoreError, TaskStore, names_file};

use crate::Worker;
use crate::drain::Shutdown;

/// Where tasks' files are.
const PREFIXES: [&str; 2] = ["videos/", "references/"];
/// Where each store that uses a result store leaves its mark: an empty file.
const MARKS: &str = "stores/";
/// Files that are listed at once.
const PAGE: usize = 500;
/// Younger files may be of a run whose task has just changed hands.
const YOUNG_MS: u64 = 60 * 60 * 1000;
/// How often all files are looked through.
const EVERY: Duration = Duration::from_hours(1);

/// Why the look came to an end early.
#[derive(Debug, thiserror::Error)]
pub enum OrphanError {
    /// The blob store did not say what it holds.
    #[error("files could not be listed: {0}")]
    Blobs(#[from] BlobError),
    /// The store did not say which tasks there are.
    #[error("their tasks could not be looked up: {0}")]
    Store(#[from] StoreError),
}

/// Looks at the start and every hour, until a drain.
pub(crate) async fn sweep_orphans_until_drain(worker: Arc<Worker>, shutdown: Shutdown) {
    while !shutdown.is_draining() {
        let now_ms = worker.clock.now_ms();
        tokio::select! {
            swept = remove_orphans(&*worker.tasks, &*worker.blobs, now_ms) => match swept {
                Ok(0) => {}
                Ok(files) => tracing::info!(files, "files that no task names were removed"),
                Err(error) => tracing::warn!(%error, "orphans are looked for again in an hour"),
            },
            () = shutdown.draining() => return,
        }
        tokio::select! {
            () = tokio::time::sleep(EVERY) => {}
            () = shutdown.draining() => {}
        }
    }
}

/// Removes every file of `blobs` that is an hour old at `now_ms` and that no task of `tasks`
/// names. Returns how many there were; one that cannot be removed is left for the next look.
///
/// # Errors
/// [`OrphanError`] when not all files could be looked at.
pub async fn remove_orphans(
    tasks: &dyn TaskStore,
    blobs: &dyn BlobStore,
    now_ms: UnixMs,
) -> Result<u64, OrphanError> {
    if !are_ours(tasks, blobs).await? {
        return Ok(0);
    }
    let mut removed = 0;
    for prefix in PREFIXES {
        let mut after: Option<String> = None;
        loop {
            let page = blobs.list(prefix, after.as_deref(), PAGE).await?;
            let Some(last) = page.last() else { break };
            after = Some(last.key.clone());
            for BlobEntry {
                key,
                modified_at_ms,
                ..
            } in page
            {
                let old = modified_at_ms.saturating_add(YOUNG_MS) < now_ms;
                if !old || !is_orphan(tasks, &key).await? {
                    continue;
                }
                match blobs.delete(&key).await {
                    Ok(()) => removed += 1,
                    // It must not keep those behind it.
                    Err(error) => tracing::warn!(%error, %key, "an orphan could not be removed"),
                }
            }
        }
    }
    Ok(removed)
}

/// Leaves the store's mark, and says whether it is the only one. A wrong or new database beside
/// old results must not take them all for orphans.
async fn are_ours(tasks: &dyn TaskStore, blobs: &dyn BlobStore) -> Result<bool, BlobError> {
    let mark = format!("{MARKS}{:016x}", tasks.identity());
    match blobs.put_bytes(&mark, Bytes::new()).await {
        Ok(_) | Err(BlobError::Exists(_)) => {}
        Err(error) => return Err(error),
    }
    let marks = blobs.list(MARKS, None, 2).await?;
    if marks.len() > 1 {
        tracing::warn!(
            %mark,
            "files that no task names are left alone, since another store uses the same results: \
             give each store its own, or remove the mark of one that is gone"
        );
    }
    Ok(marks.len() == 1)
}

/// Whether a file is a task's that does not name it, or is not there. What is not of our naming
/// is left alone.
async fn is_orphan(tasks: &dyn TaskStore, key: &str) -> Result<bool, StoreError> {
    let task = key
        .split('/')
        .nth(1)
        .and_then(|id| id.parse::<TaskId>().ok());
    let Some(task) = task else {
        return Ok(false);
    };
    match tasks.get_of_any_project(task).await {
        Ok(found) => Ok(found.is_none_or(|view| !names_file(&view.task, key))),
        // It is there, and what it names is not for this version to say.
        Err(StoreError::Corrupt(_)) => Ok(false),
        Err(error) => Err(error),
    }
}
