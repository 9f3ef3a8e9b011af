//! The straight line of one task: prepare, record, publish, finish. Every stage may be repeated from the
//! claim without harm, and nothing is written once the lease is lost.

use std::path::PathBuf;
use std::sync::Arc;

use kinora_contract::{Artifact, Failure, FailureCode};
use kinora_engine::{Control, EngineError};
use kinora_media::MediaError;
use kinora_store::{Claim, Lease, LeaseLost};
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;

use crate::Worker;
use crate::drain::Shutdown;
use crate::finish::finish;
use crate::heartbeat::{Stop, Watch};
use crate::prepare::{Prepared, prepare};
use crate::publish;
use crate::record::{RecordError, RecordJob, Recorded, Staged, record};

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
    kinora_crash::point("worker.claimed");
    let lease = claim.lease.clone();
    let control = Control::default();
    let engine_name = served.engine_name();
    let watch = Watch {
        worker: &worker,
        lease: &lease,
        engine_name: &engine_name,
        progress: &control.progress,
        shutdown: &shutdown,
    };
    let prepared = tokio::select! {
        prepared = prepare(&worker, &claim.task, &lease, served.engine.clone()) => prepared,
        stop = watch.keep(None) => return give_up(&worker, &lease, stop, &shutdown).await,
    };
    let Prepared {
        spec,
        materials,
        clip,
    } = match prepared {
        Ok(prepared) => prepared,
        Err(error) => {
            error.log();
            return finish(&worker, &lease, Err(error.failure()), &shutdown).await;
        }
    };
    if spec != claim.task.spec {
        watch.decide(spec.clone()).await;
    }
    kinora_crash::point("worker.prepared");
    let job = RecordJob {
        engine: served.engine,
        spec,
        materials,
        clip,
        staged: Staged::at(staging_path(&worker, &lease)),
        options: worker.settings.recorder.clone(),
        control: control.clone(),
    };
    let recorded = tokio::select! {
        recorded = record(job, slot) => recorded,
        stop = watch.keep(Some(served.progress_timeout)) => {
            control.cancel.cancel();
            return give_up(&worker, &lease, stop, &shutdown).await;
        }
    };
    let outcome = match recorded {
        Ok(recorded) => match publish_watched(&watch, recorded).await {
            Ok(published) => published,
            Err(stop) => return give_up(&worker, &lease, stop, &shutdown).await,
        },
        Err(error) => Err(public_failure(&error)),
    };
    finish(&worker, &lease, outcome, &shutdown).await;
}

/// Publishes while the lease is kept. When there is a reason to stop it is told only after
/// nothing is being written any more, so that a withdrawal leaves nothing.
async fn publish_watched(
    watch: &Watch<'_>,
    recorded: Recorded,
) -> Result<Result<Artifact, Failure>, Stop> {
    let stopped = CancellationToken::new();
    let publishing = publish::publish(&*watch.worker.blobs, watch.lease, recorded, &stopped);
    tokio::pin!(publishing);
    let published = tokio::select! {
        published = &mut publishing => published,
        stop = watch.keep(None) => {
            stopped.cancel();
            let _ = publishing.await;
            return Err(stop);
        }
    };
    Ok(published.map_err(|error| {
        tracing::error!(%error, "the result could not be stored");
        FailureCode::StorageFailed.into()
    }))
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
        RecordError::Engine(EngineError::OutOfMemory(_)) => FailureCode::OutOfMemory,
        RecordError::Engine(EngineError::Sink(cause)) if !is_engines_fault(&**cause) => {
            FailureCode::StorageFailed
        }
        RecordError::Media(MediaError::Io(_)) => FailureCode::StorageFailed,
        // A `Cancelled` that nobody asked for is the engine's fault as well: runs that were
        // told to stop never come here.
        _ => FailureCode::GenerationFailed,
    };
    tracing::error!(%error, %code, "the run failed");
    code.into()
}

/// Whether a sink refused what it was given, rather than failed to take it.
fn is_engines_fault(cause: &(dyn std::error::Error + 'static)) -> bool {
    let cause = cause.downcast_ref::<MediaError>();
    cause.is_some_and(|cause| !matches!(cause, MediaError::Io(_)))
}

/// Ends a run before its time.
async fn give_up(worker: &Worker, lease: &Lease, stop: Stop, shutdown: &Shutdown) {
    tracing::info!(?stop, "the run was stopped");
    match stop {
        Stop::Lost(LeaseLost::Withdrawn | LeaseLost::Superseded) => {
            publish::withdraw(&*worker.blobs, lease).await;
        }
        Stop::Stalled => {
            let failure = FailureCode::GenerationTimeout.into();
            finish(worker, lease, Err(failure), shutdown).await;
        }
        Stop::Shutdown => {
            // Withdrawn first: after the release another worker may hold the task.
            publish::withdraw(&*worker.blobs, lease).await;
            if let Err(error) = worker.tasks.release(lease).await {
                tracing::warn!(%error, "the task was not given back; its lease will run out");
            }
        }
    }
}
