//! The end of a run, whatever became of it: its task is completed, has failed, or goes back to the queue.

use std::error::Error;
use std::time::Duration;

use kinora_contract::{Artifact, Failure, FailureCode};
use kinora_engine::EngineError;
use kinora_media::MediaError;
use kinora_store::{Attempt, Claim, Lease, StoreError};
use kinora_traces::Span;

use crate::drain::Shutdown;
use crate::error::{PrepareError, RecordError, Stop, Unmade};
use crate::fault::is_ours;
use crate::finish::finish;
use crate::publish;
use crate::worker::Worker;

/// Sooner than the next sweep, which would count the attempt once the store works again.
const RELEASE_AGAIN_EVERY: Duration = Duration::from_secs(1);

/// A run on its way to its end.
pub(crate) struct Run<'a> {
    pub(crate) worker: &'a Worker,
    pub(crate) claim: &'a Claim,
    pub(crate) shutdown: &'a Shutdown,
    pub(crate) span: Span,
}

impl Run<'_> {
    /// Ends a run that came to nothing before its engine was asked: its task waits, runs again, or has failed.
    pub(crate) async fn end_unprepared(mut self, error: &PrepareError) {
        let failure = error.failure(&self.claim.task.spec);
        self.span.fail(failure.code.clone());
        let (worker, lease, shutdown) = (self.worker, &self.claim.lease, self.shutdown);
        if error.is_missing() {
            give_back_for_references(worker, lease).await;
        } else if is_ours(error) {
            give_back(worker, lease, error, shutdown).await;
        } else if error.is_lost() && self.claim.task.attempt < worker.settings.attempts_max {
            try_again(worker, lease, error).await;
        } else {
            error.log();
            self.finish(Err(failure)).await;
        }
    }

    /// Ends a run whose engine was asked.
    pub(crate) async fn end(self, made: Result<Artifact, Unmade>) {
        let worker = self.worker;
        match made {
            Ok(artifact) => {
                self.finish(Ok(artifact)).await;
                worker.backoff.note_success();
            }
            Err(Unmade::Failed(error)) => self.end_failed(&error).await,
            Err(Unmade::Refused(failure)) => self.finish(Err(failure)).await,
            Err(Unmade::Stopped(stop)) => self.give_up(stop).await,
        }
    }

    /// Ends a run that came to nothing: its task runs again, or has failed.
    async fn end_failed(mut self, error: &RecordError) {
        self.span.fail(error.code().as_str());
        let (worker, lease, shutdown) = (self.worker, &self.claim.lease, self.shutdown);
        if is_ours(error) {
            give_back(worker, lease, error, shutdown).await;
        } else if is_worth_another(error, self.claim.task.attempt, worker) {
            try_again(worker, lease, error).await;
        } else {
            self.finish(Err(public_failure(error))).await;
        }
    }

    /// Ends a run before its time.
    pub(crate) async fn give_up(mut self, stop: Stop) {
        tracing::info!(?stop, "run stopped");
        self.span.fail(stop.code());
        let (worker, lease, shutdown) = (self.worker, &self.claim.lease, self.shutdown);
        match stop {
            Stop::Lost(_) => publish::withdraw(&*worker.blobs, lease).await,
            Stop::Stalled => {
                let failure = FailureCode::GenerationTimeout.into();
                self.finish(Err(failure)).await;
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

    /// Writes the outcome.
    async fn finish(mut self, outcome: Result<Artifact, Failure>) {
        if let Err(failure) = &outcome {
            self.span.fail(failure.code.clone());
        }
        let _finishing = self.span.trail().span("finish");
        finish(self.worker, &self.claim.lease, outcome, self.shutdown).await;
    }
}

/// The failure for the client; the cause goes to the log.
fn public_failure(error: &RecordError) -> Failure {
    let code = error.code();
    tracing::error!(%error, %code, "the run failed");
    code.into()
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
