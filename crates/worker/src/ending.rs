//! The end of a run: its task completes, fails, or returns to the queue.

use std::error::Error;
use std::time::Duration;

use kinora_contract::{Artifact, Failure, FailureCode};
use kinora_engine::EngineError;
use kinora_store::{Attempt, Lease, Renewal, StoreError};

use crate::drain::Shutdown;
use crate::elsewhere::{Blame, FailedRuns};
use crate::error::{PrepareError, RecordError, Stop, Unmade};
use crate::fault::is_ours;
use crate::finish::finish;
use crate::publish;
use crate::task_run::TaskRun;
use crate::worker::Worker;

/// Sooner than the next sweep, which would count the attempt once the store works again.
const RELEASE_AGAIN_EVERY: Duration = Duration::from_secs(1);

impl TaskRun<'_> {
    /// Ends a run that failed before its engine started: its task waits, runs again, or fails.
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

    /// Ends a run whose engine has started.
    pub(crate) async fn end(self, made: Result<Artifact, Unmade>) {
        let worker = self.worker;
        match made {
            Ok(artifact) => {
                self.control.place.succeeded();
                self.finish(Ok(artifact)).await;
                worker.backoff.note_success();
            }
            Err(Unmade::Failed(error)) => self.end_failed(&error).await,
            Err(Unmade::Refused(failure)) => {
                self.control.place.succeeded();
                self.finish(Err(failure)).await;
            }
            Err(Unmade::Stopped(stop)) => self.give_up(stop).await,
        }
    }

    /// Ends a run without a result: its task runs again, or fails.
    async fn end_failed(mut self, error: &RecordError) {
        self.span.fail(error.code().as_str());
        let (worker, lease, shutdown) = (self.worker, &self.claim.lease, self.shutdown);
        if is_ours(error) {
            return give_back(worker, lease, error, shutdown).await;
        }
        let blame = Blame::of(error);
        match blame {
            Blame::NoPlace => {
                tracing::warn!(%error, "no place for the task; task requeued");
                publish::withdraw(&*worker.blobs, lease).await;
                insist(shutdown, || worker.work.release(lease, Attempt::Forgiven)).await;
            }
            Blame::Crash if self.claim.task.attempt < worker.settings.attempts_max => {
                if let Some(next) = self.next_elsewhere(blame, &error.to_string()).await {
                    self.keep(&next).await;
                }
                try_again(worker, lease, error).await;
            }
            _ => match self.next_elsewhere(blame, &error.to_string()).await {
                Some(next) => self.run_elsewhere(error, &next).await,
                None => self.finish(Err(public_failure(error))).await,
            },
        }
    }

    /// Returns the task to the queue for an attempt at another place; this one does not count.
    async fn run_elsewhere(&self, error: &(dyn Error + Sync + 'static), next: &FailedRuns) {
        let (worker, lease) = (self.worker, &self.claim.lease);
        let place = self.control.place.chosen().map(|(_, name)| name);
        tracing::warn!(%error, place, "run failed at its place; task requeued for another");
        publish::withdraw(&*worker.blobs, lease).await;
        self.keep(next).await;
        insist(self.shutdown, || {
            worker.work.release(lease, Attempt::Forgiven)
        })
        .await;
    }

    /// Stores what the next attempt must know. Insists, because without it that would follow the
    /// failed job of this one.
    async fn keep(&self, next: &FailedRuns) {
        let (worker, lease) = (self.worker, &self.claim.lease);
        insist(self.shutdown, || {
            let renewal = Renewal {
                ticket: Some(next.ticket()),
                ..Renewal::default()
            };
            worker.work.renew(lease, worker.settings.lease_ms, renewal)
        })
        .await;
    }

    /// Ends a run early.
    pub(crate) async fn give_up(mut self, stop: Stop) {
        tracing::info!(?stop, "run stopped");
        self.span.fail(stop.code());
        let (worker, lease, shutdown) = (self.worker, &self.claim.lease, self.shutdown);
        match stop {
            Stop::Lost(_) => publish::withdraw(&*worker.blobs, lease).await,
            Stop::Stalled => {
                let error = EngineError::JobFailed {
                    code: FailureCode::GenerationTimeout,
                    cause: "the engine made no progress for too long".to_owned(),
                };
                self.end_failed(&error.into()).await;
            }
            Stop::RanOut => {
                publish::withdraw(&*worker.blobs, lease).await;
                insist(shutdown, || worker.work.release(lease, Attempt::Forgiven)).await;
            }
            Stop::Shutdown => {
                // Withdraw first: after the release another worker may hold the task.
                publish::withdraw(&*worker.blobs, lease).await;
                if let Err(error) = worker.work.release(lease, Attempt::Forgiven).await {
                    tracing::warn!(%error, "task not returned to the queue; lease will expire");
                }
            }
        }
    }

    /// Stores the outcome.
    async fn finish(mut self, outcome: Result<Artifact, Failure>) {
        if let Err(failure) = &outcome {
            self.span.fail(failure.code.clone());
        }
        let _finishing = self.span.trail().span("finish");
        finish(self.worker, &self.claim.lease, outcome, self.shutdown).await;
    }
}

/// The failure for the client; the log gets the cause.
fn public_failure(error: &RecordError) -> Failure {
    let code = error.code();
    tracing::error!(%error, %code, "run failed");
    code.into()
}

/// Gives the task back; the attempt counts.
async fn try_again(worker: &Worker, lease: &Lease, error: &(dyn Error + Sync + 'static)) {
    tracing::warn!(%error, "run crashed; task requeued");
    // Withdraw first: after the release another worker may hold the task.
    publish::withdraw(&*worker.blobs, lease).await;
    if let Err(error) = worker.work.release(lease, Attempt::Counts).await {
        tracing::warn!(%error, "task not returned to the queue; lease will expire");
    }
}

/// Gives the task back because of a fault of this machine. A full disk may prevent that too.
async fn give_back(
    worker: &Worker,
    lease: &Lease,
    error: &(dyn Error + Sync + 'static),
    shutdown: &Shutdown,
) {
    worker.backoff.note_fault(error);
    tracing::warn!(%error, "run failed because of this machine; task requeued");
    // Withdraw first: after the release another worker may hold the task.
    publish::withdraw(&*worker.blobs, lease).await;
    insist(shutdown, || worker.work.release(lease, Attempt::Forgiven)).await;
}

/// Makes a call under the lease; repeats it until the store accepts it or the lease is gone.
async fn insist<Call>(shutdown: &Shutdown, call: impl Fn() -> Call)
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
            () = shutdown.at_once() => return,
        }
    }
}

/// Gives the slot back: references are fetched before a run, not during it.
async fn give_back_for_references(worker: &Worker, lease: &Lease) {
    tracing::warn!("references lost; task waits for another fetch");
    let given_back = worker.work.release(lease, Attempt::ReferencesLost);
    if let Err(error) = given_back.await {
        tracing::warn!(%error, "task not returned to the queue; lease will expire");
    }
}
