//! One task from submit to file. The submit goes to the next upstream only while it is certain that none
//! accepted it: a second run may be charged twice. Unanswered calls are retried within limits; a stored ticket
//! is polled and never submitted again.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use hyper::Method;
use kinora_contract::Money;
use kinora_engine::places::{PlaceChoice, PlaceVisit, PlaceWish, Places};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::answer::{Refusal, TaskSnapshot, object, submitted_id};
use super::calls::RepeatRule;
use super::encode::{EncodedRequest, RemoteRequest, RemoteTicket, encode};
use super::error::RemoteError;
use super::job::RemoteJob;
use super::options::RemoteOptions;
use super::pointer::text;
use super::remote::{NoJob, RemoteServers};
use super::shape::UpstreamPhase;
use crate::servers::{
    CallError, EncodedBody, PatienceError, PatienceLimits, ServerAnswer, ServerCall, TaskPatience,
    chain, retry_after,
};

/// Number of consecutive polls that must report a task as unknown before it counts as forgotten:
/// some servers know a new task only a moment later.
const MISSING_MAX: u32 = 2;

/// Receives the events of a run.
#[async_trait]
pub trait JobWatcher: Send + Sync {
    /// A submit that may be charged begins. Returns once [`RemoteTicket::in_flight`] is stored durably: a run that
    /// finds it does not submit again.
    ///
    /// # Errors
    /// When it cannot be stored; nothing is submitted then.
    async fn submitting(&mut self) -> Result<(), Box<dyn Error + Send + Sync>> {
        Ok(())
    }

    /// No upstream accepted that submit. Returns once its ticket is removed durably.
    ///
    /// # Errors
    /// When it cannot be removed.
    async fn not_accepted(&mut self) -> Result<(), Box<dyn Error + Send + Sync>> {
        Ok(())
    }

    /// The task is at an upstream now. Returns once the ticket is stored durably: from then on a
    /// restart polls on instead of paying twice.
    ///
    /// # Errors
    /// When it cannot be stored; the upstream's task is cancelled then.
    async fn submitted(
        &mut self,
        ticket: &RemoteTicket,
    ) -> Result<(), Box<dyn Error + Send + Sync>>;

    /// The task is about to be followed at the place with this index.
    fn placed(&mut self, _places: &Arc<Places>, _index: usize) {}

    /// A sign of life: `fraction` (0.0 to 1.0) is done. It never decreases.
    fn alive(&mut self, fraction: f64);

    /// The upstream said what it charged for the task, which has ended.
    fn charged(&mut self, _charged: Money) {}
}

impl RemoteServers {
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
        mut ticket: Option<RemoteTicket>,
        to: &Path,
        watcher: &mut dyn JobWatcher,
        cancel: &CancellationToken,
    ) -> Result<u64, RemoteError> {
        let options = &self.0.options;
        let limits = PatienceLimits {
            backoff_first: options.backoff_first,
            backoff_max: options.backoff_max,
            silence_max: options.silence_max,
            run_max: options.run_max,
        };
        let mut run = RemoteRun {
            remote: self,
            request,
            watcher,
            cancel,
            patience: TaskPatience::new(&*self.0.timer, cancel, limits, &request.key),
            fraction: 0.0,
        };
        let repeat = options.dialect.repeat();
        let (mut resubmits, mut only) = (0, None);
        loop {
            let entered = match ticket.take() {
                // Where a repeated submit is not charged, it is repeated.
                Some(ticket) if ticket.is_in_flight() && repeat == RepeatRule::Never => {
                    return Err(RemoteError::Interrupted);
                }
                Some(ticket) if !ticket.is_in_flight() => self.resume(&ticket),
                _ => run.enter(only).await,
            };
            let ended = match entered {
                Ok(job) => {
                    run.watcher.placed(&self.0.places, job.place());
                    run.follow(&job, to).await
                }
                Err(error) => Err(error),
            };
            match ended {
                Err(RemoteError::Forgotten(upstream)) if repeat == RepeatRule::Never => {
                    return Err(RemoteError::Lost(upstream));
                }
                Err(RemoteError::Forgotten(upstream)) if resubmits < options.resubmits_max => {
                    resubmits += 1;
                    // The key is known to this one alone.
                    if repeat == RepeatRule::WithKey {
                        only = Some(self.index_of(&upstream)?);
                    }
                    tracing::warn!(upstream, "upstream lost the task; submitting it again");
                }
                other => return other,
            }
        }
    }
}

struct RemoteRun<'a> {
    remote: &'a RemoteServers,
    request: &'a RemoteRequest,
    watcher: &'a mut dyn JobWatcher,
    cancel: &'a CancellationToken,
    patience: TaskPatience<'a>,
    fraction: f64,
}

impl RemoteRun<'_> {
    fn options(&self) -> &RemoteOptions {
        &self.remote.0.options
    }

    /// Submits until an upstream accepts the task, and has the ticket stored; with `only`, just at that upstream.
    async fn enter(&mut self, mut only: Option<usize>) -> Result<RemoteJob, RemoteError> {
        let encoded = self.remote.encode(self.request).await?;
        let has_key = self.options().dialect.repeat() == RepeatRule::WithKey;
        let mut failures = 0;
        let mut changes = self.remote.0.places.changes();
        let job = loop {
            changes.mark_unchanged();
            match self.submit_noted(&encoded, only).await {
                Ok(job) => break job,
                Err(RemoteError::Busy { after, cause }) => {
                    // Wakes up when an upstream is available sooner than expected.
                    let changed = async { changes.changed().await.unwrap_or(()) };
                    let waited = self.patience.wait_for(changed, after, cause).await;
                    waited.map_err(|error| match error {
                        PatienceError::Silent { cause, .. } if only.is_none() => {
                            RemoteError::NoPlace(cause)
                        }
                        error => error.into(),
                    })?;
                }
                Err(RemoteError::Unsettled { upstream, cause }) if has_key => {
                    // With the same key this upstream returns the same task; another one would
                    // start a second.
                    only = Some(self.remote.index_of(&upstream)?);
                    self.patience
                        .wait_to_retry(Duration::ZERO, cause, failures)
                        .await?;
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

    /// Submits once, and has it stored before that the submit may be charged.
    async fn submit_noted(
        &mut self,
        encoded: &EncodedRequest,
        only: Option<usize>,
    ) -> Result<RemoteJob, RemoteError> {
        // Example: a provider takes the task, and the process is killed before its answer. Without the note, the next run
        // would know of nothing, submit again, and pay again.
        if self.options().dialect.repeat() != RepeatRule::Never || self.cancel.is_cancelled() {
            return self.submit(encoded, only).await;
        }
        let noted = self.watcher.submitting().await;
        noted.map_err(RemoteError::NotKept)?;
        let submitted = self.submit(encoded, only).await;
        if let Err(RemoteError::Busy { .. }) = submitted {
            let removed = self.watcher.not_accepted().await;
            removed.map_err(RemoteError::NotKept)?;
        }
        submitted
    }

    /// Submits once. A cancel waits briefly for the submit, so that an accepted task can be
    /// stopped.
    async fn submit(
        &self,
        encoded: &EncodedRequest,
        only: Option<usize>,
    ) -> Result<RemoteJob, RemoteError> {
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
    async fn follow(&mut self, job: &RemoteJob, to: &Path) -> Result<u64, RemoteError> {
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

    async fn poll_and_fetch(&mut self, job: &RemoteJob, to: &Path) -> Result<u64, RemoteError> {
        let (mut failures, mut missing) = (0, 0);
        loop {
            self.patience.check_end()?;
            match job.poll().await {
                Ok(poll) => {
                    (failures, missing) = (0, 0);
                    let snapshot = poll.snapshot;
                    if let Some(charged) = snapshot.cost.filter(|_| has_ended(snapshot.phase)) {
                        self.watcher.charged(charged);
                    }
                    match snapshot.phase {
                        UpstreamPhase::Completed => return self.fetch(job, &snapshot, to).await,
                        UpstreamPhase::Failed => return Err(job.failure(&snapshot)),
                        UpstreamPhase::Cancelled => return Err(RemoteError::Ended(snapshot.word)),
                        UpstreamPhase::Queued | UpstreamPhase::Running => {
                            self.hear(snapshot.progress);
                        }
                        UpstreamPhase::Unknown => {
                            let unknown = CallError::Word(snapshot.word);
                            self.patience.wait_left(unknown).map(drop)?;
                        }
                    }
                    self.patience.sleep(poll.after).await?;
                }
                Err(RemoteError::Busy { after, cause }) => {
                    self.patience.wait_to_retry(after, cause, failures).await?;
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
        job: &RemoteJob,
        snapshot: &TaskSnapshot,
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
            self.patience.wait_to_retry(after, cause, attempt).await?;
            attempt += 1;
        }
    }

    /// Records a sign of life.
    fn hear(&mut self, progress: Option<f64>) {
        self.patience.record_activity();
        self.fraction = self.fraction.max(progress.unwrap_or_default());
        self.watcher.alive(self.fraction);
    }

    async fn pass_cancel_on(&self, job: &RemoteJob) {
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

const fn has_ended(phase: UpstreamPhase) -> bool {
    matches!(
        phase,
        UpstreamPhase::Completed | UpstreamPhase::Failed | UpstreamPhase::Cancelled
    )
}

/// The consequence of a failed attempt.
enum SubmitMiss {
    /// This upstream did not accept it: try the next.
    Next(CallError),
    /// No other upstream may be tried.
    Final(RemoteError),
}

impl RemoteServers {
    /// Submits `request` to the least busy upstream that accepts it. Tries each at most once.
    ///
    /// # Errors
    /// [`RemoteError::Busy`] if none is available, [`RemoteError::Unsettled`] if one may have
    /// accepted it without answering, [`RemoteError::Refused`] if the request is invalid, and
    /// errors of encoding the request.
    pub async fn submit(&self, request: &RemoteRequest) -> Result<RemoteJob, RemoteError> {
        let encoded = self.encode(request).await?;
        self.submit_encoded(&encoded, request, None).await
    }

    pub(crate) async fn encode(
        &self,
        request: &RemoteRequest,
    ) -> Result<EncodedRequest, RemoteError> {
        let options = &self.0.options;
        encode(request, &options.dialect, options.request_bytes_max).await
    }

    /// Like [`Self::submit`]; with `only`, just at that upstream.
    async fn submit_encoded(
        &self,
        encoded: &EncodedRequest,
        request: &RemoteRequest,
        only: Option<usize>,
    ) -> Result<RemoteJob, RemoteError> {
        let places = &self.0.places;
        let mut last = CallError::NoUpstream;
        loop {
            let choice = match only {
                Some(index) => places.choose_only(index),
                None => places.choose(&PlaceWish {
                    may: &|_| true,
                    prefers: &|_| false,
                    avoid: &request.avoid,
                }),
            };
            match choice {
                PlaceChoice::Probe(probe) => self.probe(probe.index).await,
                PlaceChoice::Wait(until) => {
                    let after = until.saturating_sub(self.0.timer.now());
                    return Err(RemoteError::Busy { after, cause: last });
                }
                PlaceChoice::Take(visit) => {
                    match self.submit_at(visit, encoded, &request.key).await {
                        Ok(job) => return Ok(job),
                        Err(SubmitMiss::Final(error)) => return Err(error),
                        Err(SubmitMiss::Next(cause)) => last = cause,
                    }
                }
            }
        }
    }

    async fn submit_at(
        &self,
        visit: PlaceVisit,
        encoded: &EncodedRequest,
        key: &str,
    ) -> Result<RemoteJob, SubmitMiss> {
        let (options, index) = (&self.0.options, visit.index);
        let (dialect, upstream) = (&options.dialect, &self.0.upstreams[index]);
        let mut headers = encoded.headers();
        headers.extend(
            dialect
                .submit
                .idempotency_header
                .as_deref()
                .map(|name| (name, key)),
        );
        let body = self.upload_files(index, encoded, key).await?;
        let call = ServerCall {
            method: dialect.submit.method.into(),
            url: upstream.url_below(&encoded.path.path, encoded.path.query.as_deref()),
            body: Some(&body),
            headers: &headers,
            limit: options.submit_timeout,
            is_public: false,
        };
        let cause = match self.send(index, &call).await? {
            Ok(mut reply) if reply.is_success() => match submitted_id(&reply.body, dialect) {
                Ok(id) => {
                    self.0.places.record_answer(index);
                    let ticket = encoded.ticket(&upstream.name, id);
                    return Ok(RemoteJob::new(Arc::clone(&self.0), visit, ticket));
                }
                // A refusal with a status of success.
                Err(error) => {
                    upstream.conceal(&mut reply);
                    match Refusal::read(&reply, dialect).failure(dialect) {
                        Some(failure) => return Err(SubmitMiss::Final(failure)),
                        None => self.failed(index, CallError::Answer(error.into())),
                    }
                }
            },
            Ok(reply) => self.refused(index, &reply)?,
            Err(cause) => self.failed(index, cause),
        };
        tracing::warn!(
            upstream = upstream.name,
            error = chain(&cause),
            "submit failed"
        );
        if cause.is_ambiguous() && dialect.repeat() != RepeatRule::Freely {
            return Err(SubmitMiss::Final(RemoteError::Unsettled {
                upstream: upstream.name.clone(),
                cause,
            }));
        }
        Err(SubmitMiss::Next(cause))
    }

    /// Uploads the request's files to the upstream with this index, and returns the body that names them.
    async fn upload_files(
        &self,
        index: usize,
        encoded: &EncodedRequest,
        key: &str,
    ) -> Result<EncodedBody, SubmitMiss> {
        let mut addresses = Vec::with_capacity(encoded.files.len());
        for (number, file) in encoded.files.iter().enumerate() {
            // The same key at each repetition: the upstream stores the file once, under one address, and
            // so recognises the submit as the same.
            let file_key = format!("{key}-{number}");
            addresses.push(self.upload(index, &file.form, &file_key).await?);
        }
        encoded.body_with(&addresses).map_err(SubmitMiss::Final)
    }

    /// Uploads one file, and returns its address.
    async fn upload(
        &self,
        index: usize,
        form: &EncodedBody,
        key: &str,
    ) -> Result<String, SubmitMiss> {
        let (options, upstream) = (&self.0.options, &self.0.upstreams[index]);
        let Some(uploads) = &options.dialect.uploads else {
            let what = "an uploaded file as a URL".into();
            return Err(SubmitMiss::Final(RemoteError::Unsupported(what)));
        };
        let path = uploads
            .path
            .expand(&NoJob { model: None })
            .map_err(SubmitMiss::Final)?;
        let header = options.dialect.submit.idempotency_header.as_deref();
        let headers: Vec<(&str, &str)> = header.map(|name| (name, key)).into_iter().collect();
        let call = ServerCall {
            method: Method::POST,
            url: upstream.url_below(&path.path, path.query.as_deref()),
            body: Some(form),
            headers: &headers,
            limit: options.submit_timeout,
            is_public: false,
        };
        let cause = match self.send(index, &call).await? {
            Ok(mut reply) if reply.is_success() => {
                let sent = object(&reply.body).ok();
                match sent.and_then(|sent| uploads.url.find(&sent, text).map(str::to_owned)) {
                    Some(address) => return Ok(address),
                    None => {
                        upstream.conceal(&mut reply);
                        self.failed(index, reply.refusal())
                    }
                }
            }
            // An earlier version, which works without files.
            Ok(reply) if matches!(reply.status, 404 | 405) => {
                let what = "an uploaded file: the server is of an earlier version".into();
                return Err(SubmitMiss::Final(RemoteError::Unsupported(what)));
            }
            Ok(reply) => self.refused(index, &reply)?,
            Err(cause) => self.failed(index, cause),
        };
        let (name, error) = (&upstream.name, chain(&cause));
        tracing::warn!(upstream = name, error, "upload of a reference failed");
        Err(SubmitMiss::Next(cause))
    }

    /// Makes a call of a submit; the status of the answer is the one that its body means. A request that cannot
    /// be written is wrong at each upstream.
    async fn send(
        &self,
        index: usize,
        call: &ServerCall<'_>,
    ) -> Result<Result<ServerAnswer, CallError>, SubmitMiss> {
        let upstream = &self.0.upstreams[index];
        let mut reply = match upstream.call(call).await {
            Ok(reply) => self.dialect().judged(reply),
            Err(cause @ CallError::Request(_)) => {
                return Err(SubmitMiss::Final(RemoteError::Refused(cause)));
            }
            Err(cause) => return Ok(Err(cause)),
        };
        if !reply.is_success() {
            upstream.conceal(&mut reply);
        }
        Ok(Ok(reply))
    }

    fn failed(&self, index: usize, cause: CallError) -> CallError {
        self.0.places.record_outage(index, &chain(&cause));
        cause
    }

    /// Handles an error status; returns whether another upstream may be tried.
    fn refused(&self, index: usize, reply: &ServerAnswer) -> Result<CallError, SubmitMiss> {
        let (places, refusal) = (&self.0.places, reply.refusal());
        let dialect = &self.0.options.dialect;
        // The words of a refusal tell more than its status: it is about the request then.
        let told = Refusal::read(reply, dialect);
        if let Some(failure) = told.failure_at(reply.status, dialect) {
            return Err(SubmitMiss::Final(failure));
        }
        match reply.status {
            429 | 503 => places.record_pause(index, retry_after(&reply.headers)),
            // A wrong key, no credit, or a wrong URL.
            300..=399 | 401..=405 => places.record_breakage(index, &refusal.to_string()),
            408 | 500..=599 => places.record_outage(index, &refusal.to_string()),
            _ => return Err(SubmitMiss::Final(RemoteError::Refused(refusal))),
        }
        Ok(refusal)
    }
}
