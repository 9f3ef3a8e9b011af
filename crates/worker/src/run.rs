//! The straight line of one task: prepare, make, clear, publish, finish. Every stage can safely be
//! repeated from the claim, and nothing is written once the lease is lost.

use std::sync::Arc;
use std::time::Duration;

use kinora_contract::{Artifact, SteadyMs, Task};
use kinora_engine::Control;
use kinora_store::Claim;
use kinora_traces::{Span, Trail};
use tokio_util::sync::CancellationToken;

use crate::clear::{Cleared, clear};
use crate::drain::Shutdown;
use crate::elsewhere::{FailedRuns, PlacedRun};
use crate::ending::Run;
use crate::error::{PrepareError, RecordError, Unmade};
use crate::film::{FilmOrder, film};
use crate::keeper::LeaseKeeper;
use crate::maker::Maker;
use crate::metered::{Stage, timed};
use crate::prepare::{EngineWork, Prepared, prepare};
use crate::publish;
use crate::record::{RecordJob, Recorded, Staged, record};
use crate::slot::{EnginePermits, SlotHold};
use crate::watch::Watch;
use crate::worker::Worker;

/// A claimed task, and the time of the claim's request by the worker's steady clock.
pub(crate) struct Claimed {
    pub(crate) claim: Claim,
    pub(crate) asked_ms: SteadyMs,
}

/// Runs one claimed task to its end. Its span has the highest level, so that no setting of the log takes the task from
/// its lines.
#[tracing::instrument(level = "error", name = "run", skip_all, fields(task = %claimed.claim.lease.task, attempt = claimed.claim.task.attempt))]
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
            "claimed a task whose model is not served"
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
    let (mut slot, control) = (permits.hold(), Control::default());
    let run = begin(&worker, &claim, &shutdown, &served.engine, &control);
    let trail = run.span.trail();
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
    let preparing = prepare(&worker, &claim.task, &claim.lease, served.engine.clone());
    let preparing = timed(
        &worker,
        &trail,
        Stage::Prepare,
        |error: &PrepareError| error.failure(&claim.task.spec).code,
        |_| preparing,
    );
    let prepared = tokio::select! {
        biased;
        prepared = preparing => prepared,
        stop = watch.until_stop(None) => return run.give_up(stop).await,
    };
    let prepared = match prepared {
        Ok(prepared) => prepared,
        Err(error) => return run.end_unprepared(&error).await,
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
        ticket: engine_ticket(&claim),
        control: control.clone(),
        silence_max: served.progress_timeout,
        permits,
    };
    let made = make_and_publish(job, &claim.task, &watch, &trail, &mut slot).await;
    run.end(made).await;
}

/// A run at a place other than those at which its task has failed, if there is one.
fn begin<'a>(
    worker: &'a Worker,
    claim: &'a Claim,
    shutdown: &'a Shutdown,
    engine: &'a Maker,
    control: &'a Control,
) -> Run<'a> {
    let failed_runs = claim.ticket.as_deref().and_then(FailedRuns::read);
    let placed = PlacedRun {
        worker,
        claim,
        engine,
        control,
        failed_runs: failed_runs.unwrap_or_default(),
    };
    placed.avoid_failed_places();
    Run {
        worker,
        claim,
        shutdown,
        placed,
        span: begin_span(worker, claim, &engine.describe().full_name()),
    }
}

/// The engine's ticket of an earlier attempt.
fn engine_ticket(claim: &Claim) -> Option<String> {
    let ticket = claim.ticket.as_ref();
    ticket
        .filter(|ticket| FailedRuns::read(ticket).is_none())
        .cloned()
}

/// The span of a run; the first run also gets a span for the task's time in the queue.
fn begin_span(worker: &Worker, claim: &Claim, engine_name: &str) -> Span {
    let task = &claim.task;
    let trail = worker.tracer.trail(task.trace);
    // An earlier attempt that was forgiven has left its engine's name.
    if let (1, None, Some(started_at_ms)) = (task.attempt, &task.engine, task.started_at_ms) {
        trail.past("queue", task.created_at_ms, started_at_ms);
    }
    let mut span = trail.span("run");
    if !span.is_recorded() {
        return span;
    }
    span.set("kinora.task.id", task.id.to_string());
    span.set("kinora.model", task.spec.model.clone());
    span.set("kinora.attempt", task.attempt);
    span.set("kinora.engine", engine_name.to_owned());
    span
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
    task: &Task,
    watch: &Watch<'_>,
    trail: &Trail,
    slot: &mut SlotHold,
) -> Result<Artifact, Unmade> {
    let (worker, code) = (watch.worker, Unmade::code);
    let recorded = timed(worker, trail, Stage::Make, code, |trail| {
        make(job, watch, trail)
    })
    .await?;
    let cleared = timed(worker, trail, Stage::Clear, code, |_| {
        clear(recorded, task, watch)
    })
    .await?;
    timed(worker, trail, Stage::Publish, code, |_| {
        publish_watched(watch, cleared, slot)
    })
    .await
}

/// Makes the video with an engine of either kind, while the lease is held.
async fn make(job: MakeJob, watch: &Watch<'_>, trail: Trail) -> Result<Recorded, Unmade> {
    let MakeJob {
        prepared:
            Prepared {
                spec,
                work,
                provenance,
                ..
            },
        ticket,
        control,
        silence_max,
        permits,
    } = job;
    let lease = watch.lease();
    let name = format!("{}-{}.mp4", lease.task, lease.token);
    let staged = Staged::new(&watch.worker.scratch, &name);
    let sealer = watch.worker.settings.sealer.clone();
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
                provenance,
                staged,
                options: watch.worker.settings.recorder.clone(),
                marker: watch.worker.settings.marker.clone(),
                sealer,
                control: control.clone(),
                trail,
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
        EngineWork::Film {
            engine,
            references,
            source,
        } => {
            let order = FilmOrder {
                engine,
                spec,
                references,
                source,
                ticket,
                provenance,
                sealer,
                staged,
                control,
            };
            film(order, watch, silence_max).await
        }
    }
}

/// Publishes while the lease is held. Returns a reason to stop only after all writes have ended, so
/// that a withdrawal leaves nothing behind.
async fn publish_watched(
    watch: &Watch<'_>,
    cleared: Cleared,
    slot: &mut SlotHold,
) -> Result<Artifact, Unmade> {
    let stopped = CancellationToken::new();
    let publishing = publish::publish(&*watch.worker.blobs, watch.lease(), cleared, &stopped);
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
