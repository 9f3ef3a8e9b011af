//! The fifth step of a run: its task completes, fails, or returns to the queue. The terminal state is
//! written once; if the store's answer is lost, the state is looked up, never guessed. A run without
//! a result removes the files that it may have published before another run can have the task.
//!
//! A failure that may be the fault of a place (a device or a server) sends the task to another place
//! once, without losing an attempt; the failure at the second place is final.

use std::error::Error;
use std::time::Duration;

use kinora_contract::{Artifact, Failure, FailureCode, Money, TaskState};
use kinora_engine::EngineError;
use kinora_engine::places::FailedJob;
use kinora_media::MediaError;
use kinora_store::{LeaseLost, LeaseRenewal, ReleasedAttempt, StoreError, WorkerState};

use crate::error::{
    PrepareError, RecordError, RunEnd, StopReason, is_engines_fault, is_machine_fault,
};
use crate::task_run::{FailedRuns, TaskRun};

/// Pause between two calls that return a task to the queue: shorter than that between two sweeps,
/// because a sweep that finds the lease expired counts the attempt.
const RELEASE_AGAIN_EVERY: Duration = Duration::from_secs(1);
/// First pause between two attempts to store an outcome; it doubles.
const STORE_PAUSE_MIN: Duration = Duration::from_millis(200);
/// Longest pause between two attempts to store an outcome.
const STORE_PAUSE_MAX: Duration = Duration::from_secs(5);
/// Maximum number of runs of one task whose processes reported themselves broken; then the task is
/// taken for the cause.
const BROKEN_RUNS_MAX: u32 = 3;
/// Maximum number of failed runs at one place while another worker could run the task: with the
/// growing pauses of a place, about half an hour.
const FAILED_RUNS_MAX: u32 = 30;

impl TaskRun<'_> {
    /// Ends the run. The cases, in the order of the steps that lead to them:
    ///
    /// | result | the task |
    /// |---|---|
    /// | preparation failed | waits for its references, runs again, or fails |
    /// | engine, recording or publication failed | runs again, perhaps elsewhere, or fails |
    /// | refused by policy | fails |
    /// | stopped: no progress | as if the engine had failed |
    /// | stopped: lease lost | belongs to another run, or has ended |
    /// | stopped: otherwise | returns to the queue |
    /// | published | completes |
    pub(crate) async fn finish(self, result: Result<Artifact, RunEnd>) {
        let worker = self.worker;
        match result {
            Ok(artifact) => {
                self.control.place.record_success();
                self.store_outcome(Ok(artifact)).await;
                worker.backoff.record_success();
            }
            Err(RunEnd::Unprepared { error, failure }) => {
                self.end_unprepared(&error, failure).await;
            }
            Err(RunEnd::Failed(error)) => self.end_failed(&error).await,
            Err(RunEnd::Refused(failure)) => {
                // The place has made a video; the policy's verdict is not its fault.
                self.control.place.record_success();
                self.store_outcome(Err(failure)).await;
            }
            Err(RunEnd::Stopped(stop)) => self.end_stopped(stop).await,
        }
    }

    /// Ends a run that failed before its engine started.
    async fn end_unprepared(mut self, error: &PrepareError, failure: Failure) {
        self.span.fail(failure.code.clone());
        if error.is_missing() {
            self.release_for_references().await;
        } else if is_machine_fault(error) {
            self.release_after_fault(error).await;
        } else if error.is_lost() && self.has_attempts_left() {
            self.release_after_crash(error).await;
        } else {
            error.log();
            self.store_outcome(Err(failure)).await;
        }
    }

    /// Ends a run whose engine, recording or publication failed.
    async fn end_failed(mut self, error: &RecordError) {
        self.span.fail(error.code().as_str());
        if is_machine_fault(error) {
            return self.release_after_fault(error).await;
        }
        let blame = FailureBlame::from_error(error);
        match blame {
            FailureBlame::NoPlace => {
                tracing::warn!(%error, "no place for the task; task requeued");
                self.withdraw().await;
                self.release(ReleasedAttempt::Forgiven).await;
            }
            FailureBlame::Crash if self.has_attempts_left() => {
                if let Some(next) = self.next_elsewhere(blame, &error.to_string()).await {
                    self.store_failed_runs(&next).await;
                }
                self.release_after_crash(error).await;
            }
            _ => match self.next_elsewhere(blame, &error.to_string()).await {
                Some(next) => self.release_for_another_place(error, &next).await,
                None => self.store_outcome(Err(public_failure(error))).await,
            },
        }
    }

    /// Ends a run that had to stop.
    async fn end_stopped(mut self, stop: StopReason) {
        tracing::info!(?stop, "run stopped");
        self.span.fail(stop.code());
        match stop {
            StopReason::Lost(_) => self.withdraw().await,
            StopReason::Stalled => {
                let error = EngineError::JobFailed {
                    code: FailureCode::GenerationTimeout,
                    cause: "the engine made no progress for too long".to_owned(),
                };
                self.end_failed(&error.into()).await;
            }
            StopReason::RanOut => {
                self.withdraw().await;
                self.release(ReleasedAttempt::Forgiven).await;
            }
            StopReason::Shutdown => {
                self.withdraw().await;
                self.release_once(ReleasedAttempt::Forgiven).await;
            }
        }
    }
}

/// The ways back to the queue. Files are withdrawn before the release: after it, another worker may
/// hold the task.
impl TaskRun<'_> {
    /// Returns the task to the queue because the process that worked for it crashed; the attempt
    /// counts, so that a task that crashes every process does not run for ever.
    async fn release_after_crash(&self, error: &(dyn Error + Sync + 'static)) {
        tracing::warn!(%error, "run crashed; task requeued");
        self.withdraw().await;
        self.release_once(ReleasedAttempt::Counts).await;
    }

    /// Returns the task to the queue because of a fault of this machine. A full disk may prevent
    /// that too, hence the retries.
    async fn release_after_fault(&self, error: &(dyn Error + Sync + 'static)) {
        self.worker.backoff.record_fault(error);
        tracing::warn!(%error, "run failed because of this machine; task requeued");
        self.withdraw().await;
        self.release(ReleasedAttempt::Forgiven).await;
    }

    /// Returns the task to the queue for an attempt at another place; this one does not count.
    async fn release_for_another_place(
        &self,
        error: &(dyn Error + Sync + 'static),
        next: &FailedRuns,
    ) {
        let place = self.control.place.chosen().map(|(_, name)| name);
        tracing::warn!(%error, place, "run failed at its place; task requeued for another");
        self.withdraw().await;
        self.store_failed_runs(next).await;
        self.release(ReleasedAttempt::Forgiven).await;
    }

    /// Returns the task to the queue for another fetch: a run never fetches references itself, so
    /// that a slow host holds no slot.
    async fn release_for_references(&self) {
        tracing::warn!("references lost; task waits for another fetch");
        self.release_once(ReleasedAttempt::ReferencesLost).await;
    }

    /// Releases the lease, and repeats the call until the store accepts it or the lease is gone.
    async fn release(&self, attempt: ReleasedAttempt) {
        let (work, lease) = (&self.worker.work, &self.claim.lease);
        self.repeat(|| work.release(lease, attempt)).await;
    }

    /// Releases the lease with one call. If that fails, the lease expires, which only costs time.
    async fn release_once(&self, attempt: ReleasedAttempt) {
        let (work, lease) = (&self.worker.work, &self.claim.lease);
        if let Err(error) = work.release(lease, attempt).await {
            tracing::warn!(%error, "task not returned to the queue; lease will expire");
        }
    }

    /// Stores the list of failed places for the next attempt. Repeats the call until the store
    /// accepts it: with the ticket of this run instead, the next one would follow its failed job.
    async fn store_failed_runs(&self, next: &FailedRuns) {
        let (worker, lease) = (self.worker, &self.claim.lease);
        let charged = self.acceptable_charge();
        self.repeat(|| {
            let renewal = LeaseRenewal {
                ticket: Some(next.to_ticket()),
                charged,
                ..LeaseRenewal::default()
            };
            worker.work.renew(lease, worker.settings.lease_ms, renewal)
        })
        .await;
    }

    /// Makes a call under the lease, and repeats it until the store accepts it or the lease is gone.
    async fn repeat<Call>(&self, call: impl Fn() -> Call)
    where
        Call: Future<Output = Result<(), StoreError>>,
    {
        loop {
            match call().await {
                Ok(()) | Err(StoreError::LeaseLost(_)) => return,
                Err(StoreError::Corrupt(cause)) => {
                    tracing::error!(cause, "task not returned to the queue; lease will expire");
                    return;
                }
                Err(StoreError::Unavailable(cause)) => {
                    tracing::debug!(%cause, "task not returned to the queue; retrying");
                }
            }
            tokio::select! {
                biased;
                () = tokio::time::sleep(RELEASE_AGAIN_EVERY) => {}
                () = self.shutdown.at_once() => return,
            }
        }
    }

    fn has_attempts_left(&self) -> bool {
        self.claim.task.attempt < self.worker.settings.attempts_max
    }
}

/// The failure for the client; the log gets the cause.
fn public_failure(error: &RecordError) -> Failure {
    let code = error.code();
    tracing::error!(%error, %code, "run failed");
    code.into()
}

/// Result of one attempt to store an outcome.
enum StoreAttempt {
    /// The outcome is the task's state.
    Stored,
    /// The task no longer belongs to this run.
    Unwanted(LeaseLost),
}

/// The terminal state.
impl TaskRun<'_> {
    /// Stores the outcome. Retries until the store answers or the process stops; the store's answer
    /// says whether the lease still held.
    async fn store_outcome(mut self, outcome: Result<Artifact, Failure>) {
        if let Err(failure) = &outcome {
            self.span.fail(failure.code.clone());
        }
        let _finishing = self.span.trail().span("finish");
        if outcome.is_err() {
            // Before the state: nothing refers to these files, now or later.
            self.withdraw().await;
        }
        kinora_system::crash::point("worker.before_finish");
        let completed = outcome.is_ok();
        let mut pause = STORE_PAUSE_MIN;
        loop {
            match self.try_store_outcome(&outcome).await {
                Ok(StoreAttempt::Stored) => {
                    kinora_system::crash::point("worker.finished");
                    tracing::info!(completed, "task finished");
                    return;
                }
                Ok(StoreAttempt::Unwanted(how)) => {
                    tracing::info!(%how, "result discarded: lease lost");
                    self.withdraw().await;
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
                () = self.shutdown.at_once() => {
                    // Keep the files: the last try may have been written after all.
                    tracing::warn!("stopped before the task outcome was stored; the task will run again");
                    return;
                }
            }
            pause = (pause * 2).min(STORE_PAUSE_MAX);
        }
    }

    /// What a provider charges for the job, if it said that and the task may cost that much.
    fn acceptable_charge(&self) -> Option<Money> {
        let (charged, cost) = (
            self.control.reported_cost()?,
            self.claim.task.cost.as_ref()?,
        );
        if cost.accepts(charged) {
            return Some(charged);
        }
        let estimate = Money {
            amount: cost.amount,
            currency: cost.currency,
        };
        tracing::warn!(
            %charged, %estimate,
            "cost of a provider ignored: in another currency, or far above the estimate"
        );
        None
    }

    /// Stores what a provider charges for the job, before the end of the task, which makes its cost final.
    async fn store_charge(&self) -> Result<(), StoreError> {
        let Some(charged) = self.acceptable_charge() else {
            return Ok(());
        };
        let renewal = LeaseRenewal {
            charged: Some(charged),
            ..LeaseRenewal::default()
        };
        let (work, lease_ms) = (&self.worker.work, self.worker.settings.lease_ms);
        match work.renew(&self.claim.lease, lease_ms, renewal).await {
            // The outcome is refused as well then.
            Err(StoreError::LeaseLost(_)) => Ok(()),
            stored => stored,
        }
    }

    async fn try_store_outcome(
        &self,
        outcome: &Result<Artifact, Failure>,
    ) -> Result<StoreAttempt, StoreError> {
        let (work, lease) = (&self.worker.work, &self.claim.lease);
        self.store_charge().await?;
        let retention_ms = match outcome {
            Ok(_) => self.worker.settings.retention_ms,
            Err(_) => self.worker.settings.failed_retention_ms,
        };
        match work.finish(lease, outcome.clone(), retention_ms).await {
            Ok(()) => Ok(StoreAttempt::Stored),
            Err(StoreError::LeaseLost(how)) => {
                // An earlier attempt may have been written although its answer was lost: the write
                // ended the lease, and this attempt finds it gone. Withdrawing now would remove the
                // files of a completed task.
                let found = work.task(lease.task).await?;
                let stands = found.is_some_and(|task| is_outcome(&task.state, outcome));
                Ok(if stands {
                    StoreAttempt::Stored
                } else {
                    StoreAttempt::Unwanted(how)
                })
            }
            Err(error) => Err(error),
        }
    }
}

/// Whether the run with this outcome completed the task: keys contain the lease's token, so no
/// other run has the same ones. A failure has no files to keep.
fn is_outcome(state: &TaskState, outcome: &Result<Artifact, Failure>) -> bool {
    match (state, outcome) {
        (TaskState::Completed(stored), Ok(artifact)) => stored.video.key == artifact.video.key,
        _ => false,
    }
}

/// The party that may be at fault for a failed run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FailureBlame {
    /// The task, or this service: final.
    Task,
    /// The place or the task.
    Unclear,
    /// The place, if the job did not break it.
    Broken,
    /// The place; the job was not begun.
    NoPlace,
    /// A process died: another attempt, which counts.
    Crash,
}

impl FailureBlame {
    fn from_error(error: &RecordError) -> Self {
        match error {
            RecordError::Engine(error) => Self::from_engine_error(error),
            RecordError::Media(MediaError::Lost(_)) => Self::Crash,
            RecordError::Media(error) if !matches!(error, MediaError::Io(_)) => Self::Unclear,
            _ => Self::Task,
        }
    }

    fn from_engine_error(error: &EngineError) -> Self {
        match error {
            EngineError::Failed(_) | EngineError::JobFailed { .. } => Self::Unclear,
            EngineError::Sink(cause) if is_engines_fault(&**cause) => Self::Unclear,
            EngineError::Broken(_) => Self::Broken,
            EngineError::NoPlace(_) => Self::NoPlace,
            EngineError::Crashed { .. } => Self::Crash,
            _ => Self::Task,
        }
    }
}

/// The choice of another place.
impl TaskRun<'_> {
    /// Records a failed run with its place. Returns the list for the next attempt, or `None` if the
    /// failure is final.
    async fn next_elsewhere(&self, blame: FailureBlame, error: &str) -> Option<FailedRuns> {
        let (places, name) = self.control.place.chosen()?;
        let here = if places.are_shared() {
            name
        } else {
            format!("{}/{name}", self.owner())
        };
        let before = self.failed_runs();
        // Other workers reach the same servers, but have devices of their own.
        let has_elsewhere = !places.are_shared() && self.is_served_elsewhere().await;
        let has_other = has_elsewhere || places.count() > 1;
        if blame == FailureBlame::Unclear {
            self.control.place.record_job_failure(FailedJob {
                key: &self.claim.lease.task.to_string(),
                has_elsewhere,
                has_failed_elsewhere: before.includes_other(&here),
                error,
            });
        }
        let may = match blame {
            // Failures at two places leave only the task as the cause. Runs at the same place are
            // bounded too: this worker may claim the task again before another one does.
            FailureBlame::Unclear => {
                let is_first = !before.includes_other(&here) && before.runs < FAILED_RUNS_MAX;
                has_other && is_first && self.served.engine.repeats_failed_jobs()
            }
            FailureBlame::Broken => before.runs + 1 < BROKEN_RUNS_MAX,
            FailureBlame::Crash => has_other,
            FailureBlame::Task | FailureBlame::NoPlace => false,
        };
        may.then(|| before.with(here))
    }

    /// Whether another live worker serves the model. If the registry cannot be read, one may.
    async fn is_served_elsewhere(&self) -> bool {
        let model = &self.claim.task.spec.model;
        match self.worker.workers.living().await {
            Ok(living) => living.iter().any(|one| {
                let other = &one.worker;
                let mut models = other.models.iter();
                other.id != self.worker.settings.name
                    && other.state == WorkerState::Serving
                    && models.any(|served| served.model == *model && served.is_available)
            }),
            Err(error) => {
                tracing::debug!(%error, "live workers not read");
                true
            }
        }
    }
}
