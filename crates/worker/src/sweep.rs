//! Takes up what was left behind: expired leases, expired results, and the files of tasks that
//! are gone. Any number of sweepers may run; each change is the store's own compare-and-set.

use std::sync::Arc;

use kinora_store::{StoreError, SweepRequest, Swept};

use crate::Worker;
use crate::drain::Shutdown;

/// Rows of each kind that one sweep takes up at most, so that submits never wait for long.
const BATCH: usize = 500;

/// Sweeps at the configured pace, the first pause first, until a drain is asked for.
pub(crate) async fn sweep_until_drain(worker: Arc<Worker>, shutdown: Shutdown) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(worker.settings.sweep_every) => {}
            () = shutdown.draining() => return,
        }
        sweep_once(&worker).await;
    }
}

/// One sweep. What it could not do is left for the next one.
pub(crate) async fn sweep_once(worker: &Worker) {
    if let Err(error) = sweep(worker).await {
        tracing::warn!(%error, "the sweep could not be done; trying again");
    }
}

async fn sweep(worker: &Worker) -> Result<(), StoreError> {
    let request = SweepRequest {
        now_ms: worker.clock.now_ms(),
        lease_ahead_max_ms: worker.settings.lease_ms * 2,
        attempts_max: worker.settings.attempts_max,
        retention_ms: worker.settings.retention_ms,
        tombstone_ms: worker.settings.tombstone_ms,
        batch: BATCH,
    };
    let swept = worker.tasks.sweep(request).await?;
    if swept != Swept::default() {
        let Swept {
            requeued,
            lost,
            expired,
            forgotten,
            ref files,
        } = swept;
        tracing::info!(
            requeued,
            lost,
            expired,
            forgotten,
            files = files.len(),
            "swept"
        );
    }
    let mut gone = Vec::with_capacity(swept.files.len());
    for key in swept.files {
        match worker.blobs.delete(&key).await {
            Ok(()) => {
                kinora_crash::point("worker.swept_file");
                gone.push(key);
            }
            Err(error) => tracing::warn!(%error, %key, "an expired file could not be removed yet"),
        }
    }
    if gone.is_empty() {
        Ok(())
    } else {
        worker.tasks.forget_files(&gone).await
    }
}
