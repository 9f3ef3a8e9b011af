//! Removes files that no task names: what a run put after its lease was lost and everything else
//! had been swept. The store's garbage list is the usual way; this is for what slips by it.

use std::sync::Arc;
use std::time::Duration;

use kinora_blobs::BlobError;
use kinora_contract::TaskId;
use kinora_store::{StoreError, names_file};

use crate::Worker;
use crate::drain::Shutdown;

/// Where tasks' files are.
const PREFIXES: [&str; 2] = ["videos/", "references/"];
/// Files that are listed at once.
const PAGE: usize = 500;
/// Younger files may be of a run whose task has just changed hands.
const YOUNG_MS: u64 = 60 * 60 * 1000;
/// How often all files are looked through.
const EVERY: Duration = Duration::from_hours(1);

/// Why the look came to an end early.
#[derive(Debug, thiserror::Error)]
enum OrphanError {
    #[error("files could not be listed or removed: {0}")]
    Blobs(#[from] BlobError),
    #[error("their tasks could not be looked up: {0}")]
    Store(#[from] StoreError),
}

/// Looks at the start and every hour, until a drain.
pub(crate) async fn sweep_orphans_until_drain(worker: Arc<Worker>, shutdown: Shutdown) {
    while !shutdown.is_draining() {
        tokio::select! {
            swept = sweep_orphans(&worker) => match swept {
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

async fn sweep_orphans(worker: &Worker) -> Result<u64, OrphanError> {
    let mut removed = 0;
    for prefix in PREFIXES {
        let mut after: Option<String> = None;
        loop {
            let page = worker.blobs.list(prefix, after.as_deref(), PAGE).await?;
            let Some(last) = page.last() else { break };
            after = Some(last.key.clone());
            let now_ms = worker.clock.now_ms();
            for entry in page {
                let old = entry.modified_at_ms.saturating_add(YOUNG_MS) < now_ms;
                if old && is_orphan(worker, &entry.key).await? {
                    worker.blobs.delete(&entry.key).await?;
                    removed += 1;
                }
            }
        }
    }
    Ok(removed)
}

/// Whether a file is a task's that does not name it, or is not there. What is not of our naming
/// is left alone.
async fn is_orphan(worker: &Worker, key: &str) -> Result<bool, StoreError> {
    let task = key
        .split('/')
        .nth(1)
        .and_then(|id| id.parse::<TaskId>().ok());
    let Some(task) = task else {
        return Ok(false);
    };
    let found = worker.tasks.get_of_any_project(task).await?;
    Ok(found.is_none_or(|view| !names_file(&view.task, key)))
}
