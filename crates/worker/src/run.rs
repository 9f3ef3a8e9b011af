//! The straight line of one task: prepare, make, publish, finish. Every stage may be repeated from the
//! claim without harm, and nothing is written once the lease is lost.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use kinora_contract::{Artifact, Failure, FailureCode, SteadyMs};
use kinora_engine::{Control, EngineError};
use kinora_media::MediaError;
use kinora_store::{Attempt, Claim, Lease, StoreError};
use tokio_util::sync::CancellationToken;

use crate::drain::Shutdown;
use crate::error::{PrepareError, RecordError, Stop, Unmade};
use crate::fault::is_ours;
use crate::film::{FilmOrder, film};
use crate::finish::finish;
use crate::keeper::LeaseKeeper;
use crate::prepare::{EngineWork, Prepared, prepare};
use crate::publish;
use crate::record::{RecordJob, Recorded, Staged, record};
use crate::slot::{EnginePermits, SlotHold};
use crate::watch::Watch;
use crate::worker::Worker;

/// Sooner than the next sweep, which would count the attempt once the store works again.
const RELEASE_AGAIN_EVERY: Duration = Duration::from_secs(1);

/// A claimed task, and when the claim was asked for, by the worker's steady clock.
pub(crate) struct Claimed {
    pub(crate) claim: Claim,
    pub(crate) asked_ms: SteadyMs,
}

/// Runs one claimed task to its end.
#[tracing::instrument(name = "run", skip_all, fields(task = %claimed.claim.lease.task, attempt = claimed.claim.task.attempt))]
pub(crate) async fn run_task(
    worker: Arc<Worker>,
    claimed: Claimed,
    keeper: Arc<LeaseKeeper>,
    permits: EnginePermits,
    shutdown: Shutdown,
) {
    let Claimed { claim, asked_ms } = claimed;
    let Some(served) = worker.lineup.of(&claim.task.spec.model).cloned() else {
        tracing::error!(
            model = claim.task.spec.model,
            "claimed a model that is not served"
        );
        return;
    };
    let engine_name = served.engine_name();
    tracing::info!(
        model = claim.task.spec.model,
        engine = engine_name,
        "task started"
    );
    kinora_crash::point("worker.claimed");
    let mut slot = permits.hold();
    let control = Control::default();
    let lease = keeper.keep(
        claim.lease.clone(),
        asked_ms,
        engine_name.clone(),
        control.clone(),
    );
    let watch = Watch {
        worker: &worker,
        lease: &lease,
        engine_name: &engine_name,
        control: &control,
        shutdown: &shutdown,
    };
    if claim.task.engine.as_deref() != Some(&*engine_name) {
        watch.begin().await;
    }
    let prepared = tokio::select! {
        biased;
        prepared = prepare(&worker, &claim.task, &claim.lease, served.engine.clone()) => prepared,
        stop = watch.until_stop(None) => return give_up(&worker, &claim.lease, stop, &shutdown).await,
    };
    let prepared = match prepared {
        Ok(prepared) => prepared,
        Err(error) => return end_unprepared(&worker, &claim, &error, &shutdown).await,
    };
    if prepared.spec != claim.task.spec {
        watch.decide(prepared.spec.clone()).await;
    }
    if prepared.warnings != claim.task.warnings {
        watch.warn(&prepared.warnings).await;
    }
    kinora_crash::point("worker.prepared");
    let job = MakeJob {
        prepared,
        ticket: claim.ticket,
        control: control.clone(),
        silence_max: served.progress_timeout,
        permits,
    };
    match make_and_publish(job, &watch, &mut slot).await {
        Ok(artifact) => {
            finish(&worker, &claim.lease, Ok(artifact), &shutdown).await;
            worker.backoff.note_success();
        }
        Err(Unmade::Failed(error)) => {
            let attempt = claim.task.attempt;
            end(&worker, &claim.lease, &error, attempt, &shutdown).await;
        }
        Err(Unmade::Stopped(stop)) => give_up(&worker, &claim.lease, stop, &shutdown).await,
    }
}

/// Ends a run that came to nothing before its engine was asked: its task waits, runs again, or has failed.
async fn end_unprepared(worker: &Worker, claim: &Claim, error: &PrepareError, shutdown: &Shutdown) {
    let lease = &claim.lease;
    if error.is_missing() {
        give_back_for_references(worker, lease).await;
    } else if is_ours(error) {
        give_back(worker, lease, error, shutdown).await;
    } else if error.is_lost() && claim.task.attempt < worker.settings.attempts_max {
        try_again(worker, lease, error).await;
    } else {
        error.log();
        let failure = error.failure(&claim.task.spec);
        finish(worker, lease, Err(failure), shutdown).await;
    }
}

/// Ends a run that came to nothing: its task runs again, or has failed.
async fn end(
    worker: &Worker,
    lease: &Lease,
    error: &RecordError,
    attempt: u32,
    shutdown: &Shutdown,
) {
    if is_ours(error) {
        give_back(worker, lease, error, shutdown).await;
    } else if is_worth_another(error, attempt, worker) {
        try_again(worker, lease, error).await;
    } else {
        finish(worker, lease, Err(public_failure(error)), shutdown).await;
    }
}

/// Inputs of making a video.
struct MakeJob {
    prepared: Prepared,
    ticket: Option<String>,
    control: Control,
    silence_max: Duration,
    permits: EnginePermits,
}

async fn make_and_publish(
    job: MakeJob,
    watch: &Watch<'_>,
    slot: &mut SlotHold,
) -> Result<Artifact, Unmade> {
    let recorded = make(job, watch).await?;
    publish_watched(watch, recorded, slot).await
}

/// Makes the video, by an engine of either kind, while the lease is kept.
async fn make(job: MakeJob, watch: &Watch<'_>) -> Result<Recorded, Unmade> {
    let MakeJob {
        prepared: Prepared { spec, work, .. },
        ticket,
        control,
        silence_max,
        permits,
    } = job;
    let lease = watch.lease();
    let name = format!("{}-{}.mp4", lease.task, lease.token);
    let staged = Staged::new(&watch.worker.scratch, &name);
    match work {
        EngineWork::Frames {
            engine,
            materials,
            clip,
        } => {
            let job = RecordJob {
                engine,
                spec,
                materials,
                clip,
                staged,
                options: watch.worker.settings.recorder.clone(),
                control: control.clone(),
            };
            tokio::select! {
                biased;
                recorded = record(job, permits) => Ok(recorded?),
                stop = watch.until_stop(Some(silence_max)) => {
                    control.cancel.cancel();
                    Err(stop.into())
                }
            }
        }
        EngineWork::Film { engine, references } => {
            let order = FilmOrder {
                engine,
                spec,
                references,
                ticket,
                staged,
                control,
            };
            film(order, watch, silence_max).await
        }
    }
}

/// Publishes while the lease is kept. A reason to stop is returned only after nothing is being
/// written any more, so that a withdrawal leaves nothing.
async fn publish_watched(
    watch: &Watch<'_>,
    recorded: Recorded,
    slot: &mut SlotHold,
) -> Result<Artifact, Unmade> {
    let stopped = CancellationToken::new();
    let publishing = publish::publish(&*watch.worker.blobs, watch.lease(), recorded, &stopped);
    tokio::pin!(publishing);
    tokio::select! {
        biased;
        published = &mut publishing => Ok(published.map_err(RecordError::Publish)?),
        stop = watch.until_stop(None) => {
            stopped.cancel();
            slot.leave();
            let _ = publishing.await;
            Err(stop.into())
        }
    }
}

/// The failure for the client; the cause goes to the log.
fn public_failure(error: &RecordError) -> Failure {
    let code = match error {
        RecordError::Engine(EngineError::OutOfMemory(_)) => FailureCode::OutOfMemory,
        RecordError::Engine(EngineError::Sink(cause)) if !is_engines_fault(&**cause) => {
            FailureCode::StorageFailed
        }
        RecordError::Engine(EngineError::Told { code, .. } | EngineError::Crashed { code, .. }) => {
            *code
        }
        RecordError::Media(MediaError::Io(_)) | RecordError::Publish(_) => {
            FailureCode::StorageFailed
        }
        // A `Cancelled` that nobody asked for is the engine's fault as well: runs that were
        // told to stop never come here.
        _ => FailureCode::GenerationFailed,
    };
    tracing::error!(%error, %code, "the run failed");
    code.into()
}

/// Whether a sink refused invalid data, rather than failed to write it.
fn is_engines_fault(cause: &(dyn std::error::Error + 'static)) -> bool {
    let cause = cause.downcast_ref::<MediaError>();
    cause.is_some_and(|cause| !matches!(cause, MediaError::Io(_)))
}

/// Whether something broke that another attempt may spare the task, and there is one.
fn is_worth_another(error: &RecordError, attempt: u32, worker: &Worker) -> bool {
    let crashed = matches!(
        error,
        RecordError::Engine(EngineError::Crashed { .. }) | RecordError::Media(MediaError::Lost(_))
    );
    crashed && attempt < worker.settings.attempts_max
}

/// Gives the task back with one attempt less.
async fn try_again(worker: &Worker, lease: &Lease, error: &(dyn Error + Sync + 'static)) {
    tracing::warn!(%error, "the run broke; the task will run again");
    // Withdrawn first: after the release another worker may hold the task.
    publish::withdraw(&*worker.blobs, lease).await;
    if let Err(error) = worker.work.release(lease, Attempt::Counts).await {
        tracing::warn!(%error, "the task was not given back; its lease will run out");
    }
}

/// Gives the task back: this machine was at fault. A full disk may refuse that as well.
async fn give_back(
    worker: &Worker,
    lease: &Lease,
    error: &(dyn Error + Sync + 'static),
    shutdown: &Shutdown,
) {
    worker.backoff.note_fault(error);
    tracing::warn!(%error, "the run met a fault of this machine; the task goes back to the queue");
    // Withdrawn first: after the release another worker may hold the task.
    publish::withdraw(&*worker.blobs, lease).await;
    release_again_and_again(worker, lease, shutdown).await;
}

/// Gives the task back as if it had not been claimed, until the store takes it or the lease is gone.
async fn release_again_and_again(worker: &Worker, lease: &Lease, shutdown: &Shutdown) {
    loop {
        match worker.work.release(lease, Attempt::Forgiven).await {
            Ok(()) | Err(StoreError::LeaseLost(_)) => return,
            Err(StoreError::Corrupt(cause)) => {
                tracing::error!(cause, "task not given back; its lease will run out");
                return;
            }
            Err(StoreError::Unavailable(cause)) => {
                tracing::debug!(%cause, "task not given back yet; trying again");
            }
        }
        tokio::select! {
            biased;
            () = tokio::time::sleep(RELEASE_AGAIN_EVERY) => {}
            () = shutdown.at_once() => return,
        }
    }
}

/// Gives the slot back: references are fetched before a run, not in it.
async fn give_back_for_references(worker: &Worker, lease: &Lease) {
    tracing::warn!("references are gone; the task waits until they are fetched again");
    let given_back = worker.work.release(lease, Attempt::ReferencesLost);
    if let Err(error) = given_back.await {
        tracing::warn!(%error, "the task was not given back; its lease will run out");
    }
}

/// Ends a run before its time.
async fn give_up(worker: &Worker, lease: &Lease, stop: Stop, shutdown: &Shutdown) {
    tracing::info!(?stop, "run stopped");
    match stop {
        Stop::Lost(_) => publish::withdraw(&*worker.blobs, lease).await,
        Stop::Stalled => {
            let failure = FailureCode::GenerationTimeout.into();
            finish(worker, lease, Err(failure), shutdown).await;
        }
        Stop::RanOut => {
            publish::withdraw(&*worker.blobs, lease).await;
            release_again_and_again(worker, lease, shutdown).await;
        }
        Stop::Shutdown => {
            // Withdrawn first: after the release another worker may hold the task.
            publish::withdraw(&*worker.blobs, lease).await;
            if let Err(error) = worker.work.release(lease, Attempt::Forgiven).await {
                tracing::warn!(%error, "task not given back; its lease will run out");
            }
        }
    }
}
