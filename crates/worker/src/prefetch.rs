//! Fetches the references of waiting tasks ahead of their turn, so that short-lived addresses
//! still work when a slot comes free. A reference that cannot be had fails its task at once.

use std::sync::Arc;
use std::time::Duration;

use kinora_contract::Task;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::Worker;
use crate::drain::Shutdown;
use crate::references::GatherError;

/// Tasks whose references are fetched at a time; each has up to twelve.
const TASKS_AT_A_TIME: usize = 8;
/// How often the store is asked although it gave no hint.
const POLL_EVERY: Duration = Duration::from_secs(1);

/// Fetches ahead until a drain is asked for. What is under way then is dropped: the next process
/// fetches it again.
pub(crate) async fn prefetch_until_drain(worker: Arc<Worker>, shutdown: Shutdown) {
    let mut hints = worker.tasks.changes();
    let places = Arc::new(Semaphore::new(TASKS_AT_A_TIME));
    let mut fetches = JoinSet::new();
    let mut after = 0;
    while !shutdown.is_draining() {
        hints.mark_unchanged();
        let found = worker.tasks.waiting_with_references(after, TASKS_AT_A_TIME);
        let found = found.await.unwrap_or_else(|error| {
            tracing::warn!(%error, "waiting tasks could not be read; trying again");
            Vec::new()
        });
        let idle = found.is_empty();
        for (place, task) in found {
            after = place;
            if worker.lineup.of(&task.spec.model).is_none() {
                continue;
            }
            let permit = tokio::select! {
                permit = places.clone().acquire_owned() => permit,
                () = shutdown.draining() => return,
            };
            let worker = worker.clone();
            fetches.spawn(async move {
                let _permit = permit;
                fetch_ahead(&worker, &task).await;
            });
        }
        while fetches.try_join_next().is_some() {}
        if idle {
            tokio::select! {
                Ok(()) = hints.changed() => {}
                () = tokio::time::sleep(POLL_EVERY) => {}
                () = shutdown.draining() => {}
            }
        }
    }
}

async fn fetch_ahead(worker: &Worker, task: &Task) {
    let (tasks, blobs) = (&*worker.tasks, &*worker.blobs);
    let Err(error) = worker.references.gather(tasks, blobs, task).await else {
        return;
    };
    tracing::info!(task = %task.id, %error, "references could not be fetched ahead");
    if !matches!(error, GatherError::Fetch { .. }) {
        // A fault of ours: the run tries again.
        return;
    }
    let now_ms = worker.clock.now_ms();
    let expires_at_ms = now_ms + worker.settings.retention_ms;
    let failed = tasks.cancel(
        &task.project,
        task.id,
        error.failure(&task.spec),
        now_ms,
        expires_at_ms,
    );
    if let Err(error) = failed.await {
        tracing::warn!(%error, task = %task.id, "the task could not be failed; its run will be");
    }
}
