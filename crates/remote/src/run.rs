//! One task from submit to file. Unanswered calls are retried within limits; a stored ticket is
//! polled and never submitted again, so a result is paid for only once.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kinora_engine::places::Places;
use kinora_upstream::{Cause, Encoded, Impatience, Limits, Patience, chain};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::answer::Snapshot;
use crate::dialect::{Phase, Resubmit};
use crate::error::RemoteError;
use crate::job::Job;
use crate::options::Options;
use crate::remote::Remote;
use crate::request::{RemoteRequest, Ticket};

/// Number of consecutive polls that must report a task as unknown before it counts as forgotten:
/// some servers know a new task only a moment later.
const MISSING_MAX: u32 = 2;

/// Receives the events of a run.
#[async_trait]
pub trait Watcher: Send + Sync {
    /// The task is at an upstream now. Returns once the ticket is stored durably: from then on a
    /// restart polls on instead of paying twice.
    ///
    /// # Errors
    /// When it cannot be stored; the upstream's task is cancelled then.
    async fn submitted(&mut self, ticket: &Ticket) -> Result<(), Box<dyn Error + Send + Sync>>;

    /// The task is about to be followed at the place with this index.
    fn placed(&mut self, _places: &Arc<Places>, _index: usize) {}

    /// A sign of life: `fraction` (0.0 to 1.0) is done. It never decreases.
    fn alive(&mut self, fraction: f64);
}

impl Remote {
    /// Makes `request` at some upstream, or follows the `ticket` of an earlier run of it, and
    /// writes the result to the new file `to`, which is not synced; returns its length in bytes.
    ///
    /// `cancel` stops the upstream as well. Dropping the future stops nothing there: the stored
    /// ticket can be followed later.
    ///
    /// # Errors
    /// [`RemoteError`], but never [`RemoteError::Busy`].
    pub async fn run(
        &self,
        request: &RemoteRequest,
        mut ticket: Option<Ticket>,
        to: &Path,
        watcher: &mut dyn Watcher,
        cancel: &CancellationToken,
    ) -> Result<u64, RemoteError> {
        let options = &self.0.options;
        let limits = Limits {
            backoff_first: options.backoff_first,
            backoff_max: options.backoff_max,
            silence_max: options.silence_max,
            run_max: options.run_max,
        };
        let mut run = Run {
            remote: self,
            request,
            watcher,
            cancel,
            patience: Patience::new(&*self.0.timer, cancel, limits, &request.key),
            fraction: 0.0,
        };
        let mut resubmits = 0;
        loop {
            let entered = match ticket.take() {
                Some(ticket) => self.resume(&ticket),
                None => run.enter().await,
            };
            let ended = match entered {
                Ok(job) => {
                    run.watcher.placed(&self.0.places, job.place());
                    run.follow(&job, to).await
                }
                Err(error) => Err(error),
            };
            match ended {
                Err(error @ RemoteError::Forgotten(_)) if resubmits < options.resubmits_max => {
                    resubmits += 1;
                    tracing::warn!(%error, "upstream lost the task; submitting it again");
                }
                other => return other,
            }
        }
    }
}

struct Run<'a> {
    remote: &'a Remote,
    request: &'a RemoteRequest,
    watcher: &'a mut dyn Watcher,
    cancel: &'a CancellationToken,
    patience: Patience<'a>,
    fraction: f64,
}

impl Run<'_> {
    fn options(&self) -> &Options {
        &self.remote.0.options
    }

    /// Submits until an upstream accepts the task, and has the ticket stored.
    async fn enter(&mut self) -> Result<Job, RemoteError> {
        let encoded = self.remote.encode(self.request).await?;
        let has_key = matches!(self.options().dialect.resubmit, Resubmit::WithKey(_));
        let (mut only, mut failures) = (None, 0);
        let mut changes = self.remote.0.places.changes();
        let job = loop {
            changes.mark_unchanged();
            match self.submit(&encoded, only).await {
                Ok(job) => break job,
                Err(RemoteError::Busy { after, cause }) => {
                    // Wakes up when an upstream is available sooner than expected.
                    let changed = async { changes.changed().await.unwrap_or(()) };
                    let waited = self.patience.wait_for(changed, after, cause).await;
                    waited.map_err(|error| match error {
                        Impatience::Silent { cause, .. } if only.is_none() => {
                            RemoteError::NoPlace(cause)
                        }
                        error => error.into(),
                    })?;
                }
                Err(RemoteError::Unsettled { upstream, cause }) if has_key => {
                    // With the same key this upstream returns the same task; another one would
                    // start a second.
                    only = Some(self.remote.index_of(&upstream)?);
                    self.patience.rest(Duration::ZERO, cause, failures).await?;
                }
                Err(error) => return Err(error),
            }
            failures += 1;
        };
        if let Err(error) = self.watcher.submitted(job.ticket()).await {
            self.pass_cancel_on(&job).await;
            return Err(RemoteError::NotKept(error));
        }
        self.hear(None);
        Ok(job)
    }

    /// Submits once. A cancel waits briefly for the submit, so that an accepted task can be
    /// stopped.
    async fn submit(&self, encoded: &Encoded, only: Option<usize>) -> Result<Job, RemoteError> {
        if self.cancel.is_cancelled() {
            return Err(RemoteError::Cancelled);
        }
        let submitting = self.remote.submit_encoded(encoded, self.request, only);
        tokio::pin!(submitting);
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => {
                let limit = self.options().cancel_timeout;
                match timeout(limit, submitting).await {
                    Ok(Ok(job)) => self.pass_cancel_on(&job).await,
                    Ok(Err(_)) => {}
                    Err(_) => tracing::warn!("cancelled during a submit; the upstream may still work on it"),
                }
                Err(RemoteError::Cancelled)
            }
            submitted = &mut submitting => submitted,
        }
    }

    /// Polls until the task ends; on a cancel or timeout, stops the upstream's task.
    async fn follow(&mut self, job: &Job, to: &Path) -> Result<u64, RemoteError> {
        let cancel = self.cancel;
        let ended = tokio::select! {
            biased;
            () = cancel.cancelled() => Err(RemoteError::Cancelled),
            ended = self.poll_and_fetch(job, to) => ended,
        };
        if let Err(RemoteError::Cancelled | RemoteError::Silent { .. } | RemoteError::Overdue(_)) =
            ended
        {
            self.pass_cancel_on(job).await;
        }
        ended
    }

    async fn poll_and_fetch(&mut self, job: &Job, to: &Path) -> Result<u64, RemoteError> {
        let (mut failures, mut missing) = (0, 0);
        loop {
            self.patience.check_end()?;
            match job.poll().await {
                Ok(poll) => {
                    (failures, missing) = (0, 0);
                    let snapshot = poll.snapshot;
                    match snapshot.phase {
                        Phase::Completed => return self.fetch(job, &snapshot, to).await,
                        Phase::Failed => return Err(job.failure(&snapshot)),
                        Phase::Queued | Phase::Running => self.hear(snapshot.progress),
                        Phase::Unknown => {
                            let unknown = Cause::Word(snapshot.word);
                            self.patience.wait_left(unknown).map(drop)?;
                        }
                    }
                    self.patience.sleep(poll.after).await?;
                }
                Err(RemoteError::Busy { after, cause }) => {
                    self.patience.rest(after, cause, failures).await?;
                    failures += 1;
                }
                Err(error @ RemoteError::Forgotten(_)) => {
                    missing += 1;
                    if missing >= MISSING_MAX {
                        return Err(error);
                    }
                    self.patience.sleep(self.options().poll_every).await?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn fetch(
        &mut self,
        job: &Job,
        snapshot: &Snapshot,
        to: &Path,
    ) -> Result<u64, RemoteError> {
        let options = self.options();
        let (bytes_max, attempts_max) = (options.result_bytes_max, options.result_attempts_max);
        let mut attempt = 0;
        loop {
            let (watcher, fraction) = (&mut *self.watcher, self.fraction);
            let patience = &self.patience;
            let mut on_bytes = |_| {
                // One that takes too long in all is soon taken for one that stands still.
                if patience.check_end().is_ok() {
                    watcher.alive(fraction);
                }
            };
            let fetched = job.fetch_result(snapshot, to, bytes_max, &mut on_bytes);
            // The same limit as for polls, in real time like the limits of sockets.
            let fetched = timeout(patience.time_left(), fetched).await;
            let fetched = fetched.unwrap_or_else(|_| Err(patience.overdue().into()));
            let Err(RemoteError::Busy { after, cause }) = fetched else {
                return fetched;
            };
            if attempt + 1 == attempts_max {
                return Err(RemoteError::NoResult(cause));
            }
            // Completion is a sign of life, and so are received bytes; attempts are counted
            // separately.
            self.hear(None);
            self.patience.rest(after, cause, attempt).await?;
            attempt += 1;
        }
    }

    /// Records a sign of life.
    fn hear(&mut self, progress: Option<f64>) {
        self.patience.hear();
        self.fraction = self.fraction.max(progress.unwrap_or_default());
        self.watcher.alive(self.fraction);
    }

    async fn pass_cancel_on(&self, job: &Job) {
        let limit = self.options().cancel_timeout;
        let error = match timeout(limit, job.cancel()).await {
            Ok(Ok(())) => return,
            Ok(Err(error)) => chain(&error),
            Err(_) => format!("no answer within {limit:?}"),
        };
        let upstream = &job.ticket().upstream;
        tracing::warn!(
            upstream,
            error,
            "upstream did not accept the cancel and may still work on the task"
        );
    }
}
