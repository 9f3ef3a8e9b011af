//! One task's run, in five stages: prepare, make, clear, publish, finish. Every stage can safely be
//! repeated from the claim, and nothing is written once the lease is lost.

use std::sync::Arc;

use kinora_contract::{Artifact, SteadyMs};
use kinora_engine::Control;
use kinora_store::Claim;
use kinora_traces::{Span, Trail};
use tokio_util::sync::CancellationToken;

use crate::clear::{Cleared, clear};
use crate::drain::Shutdown;
use crate::elsewhere::FailedRuns;
use crate::error::{PrepareError, RecordError, Unmade};
use crate::film::{FilmOrder, film};
use crate::keeper::LeaseKeeper;
use crate::metered::{Stage, timed};
use crate::prepare::{EngineWork, Prepared, prepare};
use crate::publish::publish;
use crate::record::{RecordJob, Recorded, Staged, record};
use crate::slot::{EnginePermits, SlotHold};
use crate::task_run::TaskRun;
use crate::worker::Worker;

/// Runs one claimed task to its end. `asked_ms` is the time of the claim's request, by the worker's
/// steady clock. Its span has the highest level, so that no setting of the log takes the task from
/// its lines.
#[tracing::instrument(level = "error", name = "run", skip_all, fields(task = %claim.lease.task, attempt = claim.task.attempt))]
pub(crate) async fn run_task(
    worker: Arc<Worker>,
    claim: Claim,
    asked_ms: SteadyMs,
    keeper: Arc<LeaseKeeper>,
    permits: EnginePermits,
    shutdown: Shutdown,
) {
    let model = &claim.task.spec.model;
    let Some(served) = worker.lineup.of(model) else {
        tracing::error!(model, "claimed a task whose model is not served");
        return;
    };
    let engine_name = served.engine_name();
    tracing::info!(model, engine = engine_name, "task started");
    kinora_crash::point("worker.claimed");
    let mut slot = permits.hold();
    let control = Control::default();
    let run = TaskRun {
        worker: &worker,
        claim: &claim,
        served,
        lease: keeper.keep(
            claim.lease.clone(),
            asked_ms,
            engine_name.clone(),
            control.clone(),
        ),
        control,
        shutdown: &shutdown,
        span: begin_span(&worker, &claim, &served.engine.describe().full_name()),
        engine_name,
    };
    run.avoid_failed_places();
    if claim.task.engine.as_deref() != Some(&*run.engine_name) {
        run.begin().await;
    }
    run.complete(permits, &mut slot).await;
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

impl TaskRun<'_> {
    /// Takes the task through its stages. What stops or fails one of them ends the run.
    async fn complete(self, permits: EnginePermits, slot: &mut SlotHold) {
        // 1. Prepare: references become materials, the spec is completed, and the engine plans the clip.
        let prepared = tokio::select! {
            biased;
            prepared = self.prepare() => prepared,
            stop = self.until_stop(None) => return self.give_up(stop).await,
        };
        let prepared = match prepared {
            Ok(prepared) => prepared,
            Err(error) => return self.end_unprepared(&error).await,
        };
        if prepared.spec != self.claim.task.spec {
            self.decide(prepared.spec.clone()).await;
        }
        if prepared.warnings != self.claim.task.warnings {
            self.warn(&prepared.warnings).await;
        }
        kinora_crash::point("worker.prepared");
        // 2. to 4. Make, clear, publish.
        let made = self.make_and_publish(prepared, permits, slot).await;
        // 5. Finish: the task completes, fails, or returns to the queue.
        self.end(made).await;
    }

    async fn prepare(&self) -> Result<Prepared, PrepareError> {
        let (task, lease) = (&self.claim.task, &self.claim.lease);
        let engine = self.served.engine.clone();
        timed(
            self.worker,
            &self.span.trail(),
            Stage::Prepare,
            |error: &PrepareError| error.failure(&task.spec).code,
            |_| prepare(self.worker, task, lease, engine),
        )
        .await
    }

    async fn make_and_publish(
        &self,
        prepared: Prepared,
        permits: EnginePermits,
        slot: &mut SlotHold,
    ) -> Result<Artifact, Unmade> {
        let (worker, trail, code) = (self.worker, self.span.trail(), Unmade::code);
        let recorded = timed(worker, &trail, Stage::Make, code, |trail| {
            self.make(prepared, permits, trail)
        })
        .await?;
        let cleared = timed(worker, &trail, Stage::Clear, code, |_| {
            clear(recorded, self)
        })
        .await?;
        timed(worker, &trail, Stage::Publish, code, |_| {
            self.publish(cleared, slot)
        })
        .await
    }

    /// Makes the video with an engine of either kind, while the lease is held.
    async fn make(
        &self,
        prepared: Prepared,
        permits: EnginePermits,
        trail: Trail,
    ) -> Result<Recorded, Unmade> {
        let Prepared {
            spec,
            work,
            provenance,
            ..
        } = prepared;
        let (worker, control) = (self.worker, self.control.clone());
        let lease = &self.claim.lease;
        let name = format!("{}-{}.mp4", lease.task, lease.token);
        let staged = Staged::new(&worker.scratch, &name);
        let sealer = worker.settings.sealer.clone();
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
                    options: worker.settings.recorder.clone(),
                    marker: worker.settings.marker.clone(),
                    sealer,
                    control,
                    trail,
                };
                tokio::select! {
                    biased;
                    recorded = record(job, permits) => Ok(recorded?),
                    stop = self.until_stop(Some(self.served.progress_timeout)) => {
                        self.control.cancel.cancel();
                        Err(stop.into())
                    }
                }
            }
            EngineWork::Film {
                engine,
                references,
                source,
            } => {
                // An engine's own ticket of an earlier attempt.
                let ticket = self.claim.ticket.clone();
                let order = FilmOrder {
                    engine,
                    spec,
                    references,
                    source,
                    ticket: ticket.filter(|ticket| FailedRuns::read(ticket).is_none()),
                    provenance,
                    sealer,
                    staged,
                    control,
                };
                film(order, self).await
            }
        }
    }

    /// Publishes while the lease is held. Returns a reason to stop only after all writes have ended,
    /// so that a withdrawal leaves nothing behind.
    async fn publish(&self, cleared: Cleared, slot: &mut SlotHold) -> Result<Artifact, Unmade> {
        let stopped = CancellationToken::new();
        let publishing = publish(&*self.worker.blobs, &self.claim.lease, cleared, &stopped);
        tokio::pin!(publishing);
        tokio::select! {
            biased;
            published = &mut publishing => Ok(published.map_err(RecordError::Publish)?),
            stop = self.until_stop(None) => {
                stopped.cancel();
                slot.leave();
                let _ = publishing.await;
                Err(stop.into())
            }
        }
    }
}
