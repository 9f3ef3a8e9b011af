//! Takes up what was left behind: expired leases, expired results, the files of tasks that are gone,
//! and what they had begun elsewhere. Any number of sweepers may run; each change is the store's own compare-and-set.

use std::sync::Arc;

use kinora_store::{StoreError, SweepRequest, Swept};

use crate::Worker;
use crate::calloff::CallOffs;
use crate::drain::Shutdown;

/// Rows of each kind that one sweep takes up at most, so that submits never wait for long.
const BATCH: usize = 500;

/// What one sweep leaves to the next.
#[derive(Debug, Default)]
pub(crate) struct Sweeper {
    call_offs: CallOffs,
    /// Whether the store refused the last one: then leases could not be renewed either.
    failed: bool,
    /// Whether there may be more files to be removed than the last one took.
    is_behind: bool,
}

impl Sweeper {
    /// Sweeps at the configured pace, the first pause first, until a drain is asked for. What one sweep could not
    /// take is taken at once: clients can make files to be removed faster than the pace.
    pub(crate) async fn sweep_until_drain(mut self, worker: Arc<Worker>, shutdown: Shutdown) {
        while !shutdown.is_draining() {
            if !self.is_behind {
                tokio::select! {
                    () = tokio::time::sleep(worker.settings.sweep_every) => {}
                    () = shutdown.draining() => return,
                }
            }
            self.sweep_once(&worker).await;
        }
    }

    /// One sweep. What it could not do is left for the next one.
    pub(crate) async fn sweep_once(&mut self, worker: &Worker) {
        let after_outage = self.failed;
        let swept = self.sweep(worker).await;
        self.failed = swept.is_err();
        // After an outage runs have until the next sweep to renew their leases.
        self.is_behind = !after_outage && matches!(swept, Ok(BATCH..));
        if let Err(error) = swept {
            tracing::warn!(%error, "the sweep could not be done; trying again");
        }
    }

    /// Returns how many files it has removed.
    async fn sweep(&mut self, worker: &Worker) -> Result<usize, StoreError> {
        let swept = worker.tasks.sweep(self.request(worker)).await?;
        tell(&swept);
        let removed = remove_files(worker, swept.files).await?;
        self.call_offs.attend(worker, swept.abandoned).await?;
        Ok(removed)
    }

    fn request(&self, worker: &Worker) -> SweepRequest {
        let settings = &worker.settings;
        SweepRequest {
            now_ms: worker.clock.now_ms(),
            lease_ahead_max_ms: settings.lease_ms * 2,
            attempts_max: settings.attempts_max,
            spares_leases: self.failed,
            waiting_ms_max: settings.waiting_ms_max,
            retention_ms: settings.retention_ms,
            tombstone_ms: settings.tombstone_ms,
            batch: BATCH,
        }
    }
}

fn tell(swept: &Swept) {
    if *swept == Swept::default() {
        return;
    }
    let Swept {
        requeued,
        lost,
        waited,
        expired,
        forgotten,
        files,
        abandoned,
    } = swept;
    tracing::info!(
        requeued,
        lost,
        waited,
        expired,
        forgotten,
        files = files.len(),
        abandoned = abandoned.len(),
        "swept"
    );
}

/// Returns how many are gone.
async fn remove_files(worker: &Worker, files: Vec<String>) -> Result<usize, StoreError> {
    let mut gone = Vec::with_capacity(files.len());
    for key in files {
        match worker.blobs.delete(&key).await {
            Ok(()) => {
                kinora_crash::point("worker.swept_file");
                gone.push(key);
            }
            Err(error) => tracing::warn!(%error, %key, "an expired file could not be removed yet"),
        }
    }
    if !gone.is_empty() {
        worker.tasks.forget_files(&gone).await?;
    }
    Ok(gone.len())
}
