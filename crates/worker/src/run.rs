//! The run of one claimed task, in five steps, each a method of [`TaskRun`]: `prepare` in the file
//! of this name, `make` below, `clear` in `policy_check`, `publish` and `finish` in the files of
//! these names. Any step may be repeated from the claim, and a run writes nothing once it has lost
//! its lease.

use std::sync::Arc;

use kinora_contract::SteadyMs;
use kinora_engine::JobControl;
use kinora_store::ClaimedTask;
use kinora_system::scratch::ScratchFile;
use kinora_traces::{SpanParent, TaskSpan};

use crate::error::RunEnd;
use crate::film::FilmOrder;
use crate::lease_keeper::LeaseKeeper;
use crate::prepare::{EngineWork, PreparedTask};
use crate::record::{RecordJob, RecordedVideo, record};
use crate::shutdown::Shutdown;
use crate::slots::{EnginePermits, SlotHold};
use crate::stage_metrics::RunStage;
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
            let stage = self.begin(RunStage::Make);
            let made = self.make(prepared, permits, stage.trail()).await;
            let recorded = stage.end(made, RunEnd::code)?;
            // 3. Clear.
            let stage = self.begin(RunStage::Clear);
            let cleared = stage.end(self.clear(recorded).await, RunEnd::code)?;
            // 4. Publish.
            let stage = self.begin(RunStage::Publish);
            stage.end(self.publish(cleared, slot).await, RunEnd::code)
        }
        .await;
        // 5. Finish.
        self.finish(result).await;
    }

    /// Step 2. Makes the video with an engine of either kind, while the lease is held.
    async fn make(
        &self,
        prepared: PreparedTask,
        permits: EnginePermits,
        trail: SpanParent,
    ) -> Result<RecordedVideo, RunEnd> {
        let PreparedTask {
            spec,
            work,
            provenance,
            warnings,
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
                    preset: self.served.preset.clone(),
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
                let order = FilmOrder {
                    engine,
                    spec,
                    warnings,
                    references,
                    source,
                    ticket: self.engine_ticket(),
                    provenance,
                    signer,
                    staged,
                    control,
                };
                self.make_film(order).await
            }
        }
    }
}
