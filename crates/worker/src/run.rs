//! The straight line of one task: record, publish, finish. Every stage may be repeated from the
//! claim without harm, and nothing is written once the lease is lost.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kinora_contract::{Artifact, Failure, FailureCode};
use kinora_engine::{Control, EngineError};
use kinora_media::MediaError;
use kinora_store::{Claim, Lease, LeaseLost, StoreError};
use tokio::sync::OwnedSemaphorePermit;

use crate::Worker;
use crate::drain::Shutdown;
use crate::heartbeat::{Stop, Watch};
use crate::lineup::Served;
use crate::publish;
use crate::record::{RecordError, RecordJob, record};

/// How a run ended.
enum Ended {
    /// With a result or a failure, to be written.
    Outcome(Result<Artifact, Failure>),
    /// Before its time.
    Stopped(Stop),
}

/// Runs one claimed task to its end.
#[tracing::instrument(name = "run", skip_all, fields(task = %claim.lease.task, attempt = claim.task.attempt))]
pub(crate) async fn run_task(
    worker: Arc<Worker>,
    claim: Claim,
    slot: OwnedSemaphorePermit,
    shutdown: Shutdown,
) {
    let Some(served) = worker.lineup.of(&claim.task.spec.model).cloned() else {
        tracing::error!(
            model = claim.task.spec.model,
            "claimed a model that is not served"
        );
        return;
    };
    tracing::info!(
        model = claim.task.spec.model,
        engine = served.engine_name(),
        "task started"
    );
    let lease = claim.lease.clone();
    let control = Control::default();
    let engine_name = served.engine_name();
    let watch = Watch {
        worker: &worker,
        lease: &lease,
        engine_name: &engine_name,
        progress: &control.progress,
        progress_timeout: served.progress_timeout,
        shutdown: &shutdown,
    };
    let ended = tokio::select! {
        outcome = make(&worker, claim, &served, &control, slot) => Ended::Outcome(outcome),
        stop = watch.keep() => Ended::Stopped(stop),
    };
    control.cancel.cancel();
    match ended {
        Ended::Outcome(outcome) => finish(&worker, &lease, outcome).await,
        Ended::Stopped(stop) => give_up(&worker, &lease, stop).await,
    }
}

/// Record and publish.
async fn make(
    worker: &Worker,
    claim: Claim,
    served: &Served,
    control: &Control,
    slot: OwnedSemaphorePermit,
) -> Result<Artifact, Failure> {
    let path = staging_path(worker, &claim.lease);
    let job = RecordJob {
        engine: served.engine.clone(),
        spec: claim.task.spec,
        path: path.clone(),
        options: worker.settings.recorder.clone(),
        control: control.clone(),
    };
    let recording = record(job, slot)
        .await
        .map_err(|error| public_failure(&error))?;
    let published = publish::publish(&*worker.blobs, &claim.lease, &path, recording).await;
    published.map_err(|error| {
        tracing::error!(%error, "the result could not be stored");
        FailureCode::StorageFailed.into()
    })
}

fn staging_path(worker: &Worker, lease: &Lease) -> PathBuf {
    worker
        .blobs
        .staging_dir()
        .join(format!("{}-{}.mp4", lease.task, lease.token))
}

/// What a client is told; the cause goes to the log.
fn public_failure(error: &RecordError) -> Failure {
    let code = match error {
        RecordError::Engine(EngineError::Cancelled) => FailureCode::Cancelled,
        RecordError::Engine(EngineError::OutOfMemory(_)) => FailureCode::OutOfMemory,
        RecordError::Engine(EngineError::Sink(_)) | RecordError::Media(MediaError::Io(_)) => {
            FailureCode::StorageFailed
        }
        _ => FailureCode::GenerationFailed,
    };
    tracing::error!(%error, %code, "the run failed");
    code.into()
}

/// Writes the outcome, for as long as the lease may hold.
async fn finish(worker: &Worker, lease: &Lease, outcome: Result<Artifact, Failure>) {
    let completed = outcome.is_ok();
    let mut pause = Duration::from_millis(200);
    loop {
        let now_ms = worker.clock.now_ms();
        let expires_at_ms = now_ms + worker.settings.retention_ms;
        match worker
            .tasks
            .finish(lease, outcome.clone(), now_ms, expires_at_ms)
            .await
        {
            Ok(()) => {
                tracing::info!(completed, "task finished");
                if !completed {
                    publish::withdraw(&*worker.blobs, lease).await;
                }
                return;
            }
            Err(StoreError::LeaseLost(how)) => {
                tracing::info!(%how, "the result was not wanted any more");
                publish::withdraw(&*worker.blobs, lease).await;
                return;
            }
            Err(error) => {
                tracing::warn!(%error, ?pause, "the outcome could not be written; trying again");
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(Duration::from_secs(5));
            }
        }
    }
}

/// Ends a run before its time.
async fn give_up(worker: &Worker, lease: &Lease, stop: Stop) {
    tracing::info!(?stop, "the run was stopped");
    match stop {
        Stop::Lost(LeaseLost::Withdrawn | LeaseLost::Superseded) => {
            publish::withdraw(&*worker.blobs, lease).await;
        }
        Stop::Stalled => finish(worker, lease, Err(FailureCode::GenerationTimeout.into())).await,
        Stop::Shutdown => {
            // Withdrawn first: after the release another worker may hold the task.
            publish::withdraw(&*worker.blobs, lease).await;
            if let Err(error) = worker.tasks.release(lease).await {
                tracing::warn!(%error, "the task was not given back; its lease will run out");
            }
        }
    }
}
