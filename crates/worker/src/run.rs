//! The run of one claimed task, in five steps: prepare, make, clear, publish, finish. Steps 1 to 4
//! are methods below; they enter `prepare`, `record` or `film`, `policy_check` and `publish`. Step 5
//! is in `finish`. Any step may be repeated from the claim, and a run writes nothing once it has
//! lost its lease.

use std::sync::Arc;

use kinora_contract::{Artifact, SteadyMs};
use kinora_engine::JobControl;
use kinora_store::ClaimedTask;
use kinora_system::scratch::ScratchFile;
use kinora_traces::{SpanParent, TaskSpan};
use tokio_util::sync::CancellationToken;

use crate::error::{PrepareError, RecordError, RunEnd};
use crate::film::{FilmOrder, make_film};
use crate::finish::FailedRuns;
use crate::lease_keeper::LeaseKeeper;
use crate::policy_check::{ApprovedRecording, clear};
use crate::prepare::{EngineWork, PreparedTask, prepare};
use crate::publish::publish;
use crate::record::{RecordJob, RecordedVideo, record};
use crate::shutdown::Shutdown;
use crate::slots::{EnginePermits, SlotHold};
use crate::stage_metrics::{RunStage, timed};
use crate::task_run::TaskRun;
use crate::worker::Worker;

/// Runs one claimed task to its end. `asked_ms` is the time of the claim's request, by the worker's
/// steady clock. Its span has the highest level, so that no setting of the log takes the task from
/// its lines.
#[tracing::instrument(level = "error", name = "run", skip_all, fields(task = %claim.lease.task, attempt = claim.task.attempt))]
pub(crate) async fn run_task(
    worker: Arc<Worker>,
    claim: ClaimedTask,
    asked_ms: SteadyMs,
    keeper: Arc<LeaseKeeper>,
    permits: EnginePermits,
    shutdown: Shutdown,
) {
    let model = &claim.task.spec.model;
    let Some(served) = worker.lineup.find(model) else {
        tracing::error!(model, "claimed a task whose model is not served");
        return;
    };
    let engine_name = served.engine_name();
    tracing::info!(model, engine = engine_name, "task started");
    kinora_system::crash::point("worker.claimed");
    let mut slot = permits.hold();
    let control = JobControl::default();
    let run = TaskRun {
        worker: &worker,
        claim: &claim,
        served,
        lease: keeper.add(
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
        run.store_engine().await;
    }
    run.complete(permits, &mut slot).await;
}

/// The span of a run; the first run also gets a span for the task's time in the queue.
fn begin_span(worker: &Worker, claim: &ClaimedTask, engine_name: &str) -> TaskSpan {
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
    /// Takes the task through the five steps:
    ///
    /// 1. Prepare: the references become materials, and the engine plans the clip.
    /// 2. Make: the engine generates the video into a file of this machine.
    /// 3. Clear: the operator's policy service approves the file.
    /// 4. Publish: the file and its thumbnails go to the result store.
    /// 5. Finish: the task completes, fails, or returns to the queue.
    ///
    /// A step that fails or is stopped leads straight to the fifth, which alone decides what becomes
    /// of the task.
    async fn complete(self, permits: EnginePermits, slot: &mut SlotHold) {
        // 1. Prepare. If it fails, the engine never starts, and `permits` are held until the end.
        let prepared = match self.prepare().await {
            Ok(prepared) => prepared,
            Err(unmade) => return self.finish(Err(unmade)).await,
        };
        kinora_system::crash::point("worker.prepared");
        let result = async {
            // 2. Make. The engine's thread takes the permits, and frees them when it has ended.
            let recorded = self.make(prepared, permits).await?;
            // 3. Clear.
            let cleared = self.clear(recorded).await?;
            // 4. Publish.
            self.publish(cleared, slot).await
        }
        .await;
        // 5. Finish.
        self.finish(result).await;
    }

    /// Step 1. Also stores what preparation decided or found out, so that clients see it while the
    /// task runs.
    async fn prepare(&self) -> Result<PreparedTask, RunEnd> {
        let (task, lease) = (&self.claim.task, &self.claim.lease);
        let (engine, trail) = (self.served.engine.clone(), self.span.trail());
        let preparing = timed(
            self.worker,
            &trail,
            RunStage::Prepare,
            |error: &PrepareError| error.failure(&task.spec).code,
            |_| prepare(self.worker, task, lease, engine),
        );
        // The race is outside of the span: a preparation that is stopped has not failed, so its span
        // ends without an error.
        let prepared = self.unless_stopped(None, preparing).await?;
        let prepared = prepared.map_err(|error| RunEnd::Unprepared {
            failure: error.failure(&task.spec),
            error,
        })?;
        if prepared.spec != task.spec {
            self.store_spec(prepared.spec.clone()).await;
        }
        if prepared.warnings != task.warnings {
            self.store_warnings(&prepared.warnings).await;
        }
        Ok(prepared)
    }

    /// Step 2. Makes the video with an engine of either kind, while the lease is held.
    async fn make(
        &self,
        prepared: PreparedTask,
        permits: EnginePermits,
    ) -> Result<RecordedVideo, RunEnd> {
        let (worker, trail) = (self.worker, self.span.trail());
        timed(worker, &trail, RunStage::Make, RunEnd::code, |trail| {
            self.make_traced(prepared, permits, trail)
        })
        .await
    }

    async fn make_traced(
        &self,
        prepared: PreparedTask,
        permits: EnginePermits,
        trail: SpanParent,
    ) -> Result<RecordedVideo, RunEnd> {
        let PreparedTask {
            spec,
            work,
            provenance,
            ..
        } = prepared;
        let (worker, control) = (self.worker, self.control.clone());
        let lease = &self.claim.lease;
        let name = format!("{}-{}.mp4", lease.task, lease.token);
        let staged = ScratchFile::new(&worker.scratch, &name);
        let signer = worker.settings.film_signer.clone();
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
                    signer,
                    control,
                    trail,
                };
                let silence_max = Some(self.served.progress_timeout);
                match self.unless_stopped(silence_max, record(job, permits)).await {
                    Ok(recorded) => Ok(recorded?),
                    Err(stop) => {
                        // The engine's thread is on its own by now and holds `permits`: the cancel
                        // ends it at its next report, and the slot stays taken until then.
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
                // An earlier attempt left either its engine's ticket, which leads back to a job in
                // progress, or a list of failed places, which is ours and means nothing to the engine.
                let ticket = self.claim.ticket.clone();
                let order = FilmOrder {
                    engine,
                    spec,
                    references,
                    source,
                    ticket: ticket.filter(|ticket| FailedRuns::from_ticket(ticket).is_none()),
                    provenance,
                    signer,
                    staged,
                    control,
                };
                make_film(order, self).await
            }
        }
    }

    /// Step 3. Without a policy service, every recording is cleared.
    async fn clear(&self, recorded: RecordedVideo) -> Result<ApprovedRecording, RunEnd> {
        let (worker, trail) = (self.worker, self.span.trail());
        timed(worker, &trail, RunStage::Clear, RunEnd::code, |_| {
            clear(recorded, self)
        })
        .await
    }

    /// Step 4. Publishes while the lease is held. Returns a reason to stop only after all writes
    /// have ended, so that a withdrawal leaves nothing behind.
    async fn publish(
        &self,
        cleared: ApprovedRecording,
        slot: &mut SlotHold,
    ) -> Result<Artifact, RunEnd> {
        let (worker, trail) = (self.worker, self.span.trail());
        timed(worker, &trail, RunStage::Publish, RunEnd::code, |_| {
            self.publish_until_stop(cleared, slot)
        })
        .await
    }

    async fn publish_until_stop(
        &self,
        cleared: ApprovedRecording,
        slot: &mut SlotHold,
    ) -> Result<Artifact, RunEnd> {
        let stopped = CancellationToken::new();
        let publishing = publish(&*self.worker.blobs, &self.claim.lease, cleared, &stopped);
        tokio::pin!(publishing);
        tokio::select! {
            biased;
            published = &mut publishing => Ok(published.map_err(RecordError::Publish)?),
            stop = self.until_stop(None) => {
                // Dropping the write instead would not end it: a blocking write runs on, and could
                // create a file after the withdrawal that has removed all of them.
                stopped.cancel();
                slot.release_early();
                let _ = publishing.await;
                Err(stop.into())
            }
        }
    }
}
