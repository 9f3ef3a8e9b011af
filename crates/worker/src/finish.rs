//! The terminal state of a run, written once. If it cannot be written, the run's published files
//! are removed. If the store's answer is lost, the state is looked up, never guessed.

use std::time::Duration;

use kinora_contract::{Artifact, Failure, State};
use kinora_store::{Lease, LeaseLost, StoreError};

use crate::drain::Shutdown;
use crate::publish;
use crate::worker::Worker;

/// Stores the outcome; retries while the store is unavailable and the lease may still hold.
pub(crate) async fn finish(
    worker: &Worker,
    lease: &Lease,
    outcome: Result<Artifact, Failure>,
    shutdown: &Shutdown,
) {
    if outcome.is_err() {
        // Before the state: nothing refers to these files, now or later.
        publish::withdraw(&*worker.blobs, lease).await;
    }
    kinora_crash::point("worker.before_finish");
    let completed = outcome.is_ok();
    let mut pause = Duration::from_millis(200);
    loop {
        match write(worker, lease, &outcome).await {
            Ok(Attempted::Stands) => {
                kinora_crash::point("worker.finished");
                tracing::info!(completed, "task finished");
                return;
            }
            Ok(Attempted::Unwanted(how)) => {
                tracing::info!(%how, "result discarded: lease lost");
                publish::withdraw(&*worker.blobs, lease).await;
                return;
            }
            Err(error @ StoreError::Corrupt(_)) => {
                tracing::error!(%error, "task outcome not stored; lease will expire");
                return;
            }
            Err(error) => {
                tracing::warn!(%error, ?pause, "task outcome not stored; retrying");
            }
        }
        tokio::select! {
            biased;
            () = tokio::time::sleep(pause) => {}
            () = shutdown.at_once() => {
                // Keep the files: the last try may have been written after all.
                tracing::warn!("stopped before the task outcome was stored; the task will run again");
                return;
            }
        }
        pause = (pause * 2).min(Duration::from_secs(5));
    }
}

/// Result of one attempt to write an outcome.
enum Attempted {
    /// The outcome is the task's state.
    Stands,
    /// The task no longer belongs to this run.
    Unwanted(LeaseLost),
}

/// Makes one try.
async fn write(
    worker: &Worker,
    lease: &Lease,
    outcome: &Result<Artifact, Failure>,
) -> Result<Attempted, StoreError> {
    let work = &worker.work;
    let retention_ms = match outcome {
        Ok(_) => worker.settings.retention_ms,
        Err(_) => worker.settings.failed_retention_ms,
    };
    match work.finish(lease, outcome.clone(), retention_ms).await {
        Ok(()) => Ok(Attempted::Stands),
        Err(StoreError::LeaseLost(how)) => {
            // An earlier try may have been written although its answer was lost.
            let found = work.task(lease.task).await?;
            let stands = found.is_some_and(|task| is_outcome(&task.state, outcome));
            Ok(if stands {
                Attempted::Stands
            } else {
                Attempted::Unwanted(how)
            })
        }
        Err(error) => Err(error),
    }
}

/// Whether the run with this outcome completed the task: keys contain the lease's token, so no
/// other run has the same ones. A failure has no files to keep.
fn is_outcome(state: &State, outcome: &Result<Artifact, Failure>) -> bool {
    match (state, outcome) {
        (State::Completed(stored), Ok(artifact)) => stored.video.key == artifact.video.key,
        _ => false,
    }
}
