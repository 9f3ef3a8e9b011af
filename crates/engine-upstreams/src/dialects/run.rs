//! One task from submit to file. The submit goes to the next upstream only while it is certain that none
//! accepted it: a second run may be charged twice. Unanswered calls are retried within limits; a stored ticket
//! is polled and never submitted again.

use std::sync::Arc;
use std::time::Duration;

use hyper::Method;
use kinora_engine::places::{PlaceChoice, PlaceVisit, PlaceWish};
use kinora_engine::{FilmJob, WorkStage};
use tokio::time::timeout;

use super::answer::{Refusal, TaskSnapshot, object, submitted_id};
use super::calls::RepeatRule;
use super::encode::{EncodedRequest, NO_UPLOADS, RemoteRequest, RemoteTicket, encode};
use super::job::RemoteJob;
use super::pointer::text;
use super::remote::{NoJob, RemoteServers, RemoteShared};
use super::shape::UpstreamPhase;
use crate::servers::{
    CallError, EncodedBody, ServerAnswer, ServerCall, TaskPatience, UpstreamError, chain,
    retry_after,
};

/// Number of consecutive polls that must report a task as unknown before it counts as forgotten:
/// some servers know a new task only a moment later.
const MISSING_MAX: u32 = 2;

impl RemoteServers {
    /// Makes `request` of `job` at some upstream, or follows the `ticket` of an earlier run of it, and
    /// writes the result to the new file `job.to`, which is not synced; returns its length in bytes.
    ///
    /// A submit that may be charged is noted in `job.tickets` before it begins, as [`RemoteTicket::in_flight`]: a run
    /// that finds the note does not submit again. The ticket of an accepted task is stored before its first poll: from
    /// then on a restart polls on instead of paying twice.
    ///
    /// A cancel stops the upstream as well. Dropping the future stops nothing there: the stored
    /// ticket can be followed later.
    ///
    /// # Errors
    /// [`UpstreamError`], but never [`UpstreamError::Busy`].
    pub async fn run(
        &self,
        request: &RemoteRequest,
        mut ticket: Option<RemoteTicket>,
        job: &FilmJob<'_>,
    ) -> Result<u64, UpstreamError> {
        let pool = &self.0.pool;
        let mut run = RemoteRun {
            remote: self,
            request,
            job,
            patience: pool.patience(job.cancel, &request.key),
            fraction: 0.0,
        };
        let repeat = self.0.dialect().repeat();
        let (mut resubmits, mut only) = (0, None);
        loop {
            let entered = match ticket.take() {
                // Where a repeated submit is not charged, it is repeated.
                Some(ticket) if ticket.is_in_flight() && repeat == RepeatRule::Never => {
                    return Err(UpstreamError::Interrupted);
                }
                Some(ticket) if !ticket.is_in_flight() => self.resume(&ticket),
                _ => run.enter(only).await,
            };
            let ended = match entered {
                Ok(task) => {
                    job.control.place.set_chosen(&pool.places, task.visit.index);
                    run.follow(&task).await
                }
                Err(error) => Err(error),
            };
            match ended {
                Err(UpstreamError::Forgotten(upstream)) if repeat == RepeatRule::Never => {
                    return Err(UpstreamError::Lost(upstream));
                }
                Err(UpstreamError::Forgotten(upstream))
                    if resubmits < pool.options.resubmits_max =>
                {
                    resubmits += 1;
                    // The key is known to this one alone.
                    if repeat == RepeatRule::WithKey {
                        only = Some(pool.index_of(&upstream)?);
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
    job: &'a FilmJob<'a>,
    patience: TaskPatience<'a>,
    fraction: f64,
}

impl RemoteRun<'_> {
    fn shared(&self) -> &RemoteShared {
        &self.remote.0
    }

    /// Submits until an upstream accepts the task, and has the ticket stored; with `only`, just at that upstream.
    async fn enter(&mut self, mut only: Option<usize>) -> Result<RemoteJob, UpstreamError> {
        let encoded = self.remote.encode(self.request).await?;
        let has_key = self.shared().dialect().repeat() == RepeatRule::WithKey;
        let mut failures = 0;
        let mut changes = self.shared().pool.places.changes();
        let task = loop {
            changes.mark_unchanged();
            match self.submit_noted(&encoded, only).await {
                Ok(task) => break task,
                Err(UpstreamError::Busy { after, cause }) => {
                    // Wakes up when an upstream is available sooner than expected.
                    let changed = async { changes.changed().await.unwrap_or(()) };
                    let waited = self.patience.wait_for(changed, after, cause).await;
                    waited.map_err(|error| match error {
                        UpstreamError::Silent { cause, .. } if only.is_none() => {
                            UpstreamError::NoPlace(cause)
                        }
                        error => error,
                    })?;
                }
                Err(UpstreamError::Unsettled { upstream, cause }) if has_key => {
                    // With the same key this upstream returns the same task; another one would
                    // start a second.
                    only = Some(self.shared().pool.index_of(&upstream)?);
                    let patience = &self.patience;
                    patience
                        .wait_to_retry(Duration::ZERO, cause, failures)
                        .await?;
                }
                Err(error) => return Err(error),
            }
            failures += 1;
        };
        let ticket = task.ticket();
        tracing::info!(
            upstream = ticket.upstream,
            id = ticket.id,
            "task submitted to upstream"
        );
        let stored = self.store(ticket).await;
        self.job.control.report_submit(false);
        if let Err(error) = stored {
            self.pass_cancel_on(&task).await;
            return Err(error);
        }
        self.hear(None);
        Ok(task)
    }

    /// Submits once, and has it stored before that the submit may be charged.
    async fn submit_noted(
        &mut self,
        encoded: &EncodedRequest,
        only: Option<usize>,
    ) -> Result<RemoteJob, UpstreamError> {
        // Example: a provider takes the task, and the process is killed before its answer. Without the note, the next run
        // would know of nothing, submit again, and pay again.
        let is_free = self.shared().dialect().repeat() != RepeatRule::Never;
        if is_free || self.job.cancel.is_cancelled() {
            return self.submit(encoded, only).await;
        }
        self.store(&RemoteTicket::in_flight()).await?;
        self.job.control.report_submit(true);
        let submitted = self.submit(encoded, only).await;
        if let Err(UpstreamError::Busy { .. }) = submitted {
            let removed = self.job.tickets.store("").await;
            self.job.control.report_submit(false);
            removed.map_err(UpstreamError::NotKept)?;
        }
        submitted
    }

    async fn store(&self, ticket: &RemoteTicket) -> Result<(), UpstreamError> {
        let ticket = serde_json::json!(ticket).to_string();
        let stored = self.job.tickets.store(&ticket).await;
        stored.map_err(UpstreamError::NotKept)
    }

    /// Submits once. A cancel waits briefly for the submit, so that an accepted task can be
    /// stopped.
    async fn submit(
        &self,
        encoded: &EncodedRequest,
        only: Option<usize>,
    ) -> Result<RemoteJob, UpstreamError> {
        if self.job.cancel.is_cancelled() {
            return Err(UpstreamError::Cancelled);
        }
        let submitting = self.remote.submit_encoded(encoded, self.request, only);
        tokio::pin!(submitting);
        tokio::select! {
            biased;
            () = self.job.cancel.cancelled() => {
                let limit = self.shared().pool.options.cancel_timeout;
                match timeout(limit, submitting).await {
                    Ok(Ok(task)) => self.pass_cancel_on(&task).await,
                    Ok(Err(_)) => {}
                    Err(_) => tracing::warn!("cancelled during a submit; the upstream may still work on it"),
                }
                Err(UpstreamError::Cancelled)
            }
            submitted = &mut submitting => submitted,
        }
    }

    /// Polls until the task ends; on a cancel or timeout, stops the upstream's task.
    async fn follow(&mut self, task: &RemoteJob) -> Result<u64, UpstreamError> {
        let cancel = self.job.cancel;
        let ended = tokio::select! {
            biased;
            () = cancel.cancelled() => Err(UpstreamError::Cancelled),
            ended = self.poll_and_fetch(task) => ended,
        };
        if ended.as_ref().is_err_and(UpstreamError::leaves_work) {
            self.pass_cancel_on(task).await;
        }
        ended
    }

    async fn poll_and_fetch(&mut self, task: &RemoteJob) -> Result<u64, UpstreamError> {
        let (mut failures, mut missing) = (0, 0);
        loop {
            self.patience.check_end()?;
            match task.poll().await {
                Ok((snapshot, after)) => {
                    (failures, missing) = (0, 0);
                    if let Some(charged) = snapshot.cost.filter(|_| snapshot.phase.has_ended()) {
                        tracing::info!(%charged, "upstream charged the task");
                        self.job.control.report_cost(charged);
                    }
                    match snapshot.phase {
                        UpstreamPhase::Completed => return self.fetch(task, &snapshot).await,
                        UpstreamPhase::Failed => return Err(snapshot.into_failure()),
                        UpstreamPhase::Cancelled => {
                            return Err(UpstreamError::Ended(snapshot.word));
                        }
                        UpstreamPhase::Queued | UpstreamPhase::Running => {
                            self.hear(snapshot.progress);
                        }
                        UpstreamPhase::Unknown => {
                            let unknown = CallError::Word(snapshot.word);
                            self.patience.wait_left(unknown).map(drop)?;
                        }
                    }
                    self.patience.sleep(after).await?;
                }
                Err(error @ UpstreamError::Forgotten(_)) => {
                    missing += 1;
                    if missing >= MISSING_MAX {
                        return Err(error);
                    }
                    self.patience.wait_for_poll().await?;
                }
                Err(error) => self.patience.retry(error, &mut failures).await?,
            }
        }
    }

    async fn fetch(
        &mut self,
        task: &RemoteJob,
        snapshot: &TaskSnapshot,
    ) -> Result<u64, UpstreamError> {
        let attempts_max = self.shared().pool.options.result_attempts_max;
        let mut failures = 0;
        loop {
            let mut on_bytes = |_| {
                // One that takes too long in all is soon taken for one that stands still.
                if self.patience.check_end().is_ok() {
                    self.report();
                }
            };
            let fetching = task.fetch_result(snapshot, self.job.to, &mut on_bytes);
            match self.patience.within_time(fetching).await {
                Err(UpstreamError::Busy { cause, .. }) if failures + 1 == attempts_max => {
                    return Err(UpstreamError::NoResult(cause));
                }
                Err(error @ UpstreamError::Busy { .. }) => {
                    // Completion is a sign of life, and so are received bytes; attempts are counted
                    // separately.
                    self.hear(None);
                    self.patience.retry(error, &mut failures).await?;
                }
                fetched => return fetched,
            }
        }
    }

    /// Records a sign of life.
    fn hear(&mut self, progress: Option<f64>) {
        self.patience.record_activity();
        self.fraction = self.fraction.max(progress.unwrap_or_default());
        self.report();
    }

    fn report(&self) {
        // A cancel arrives through the job's token.
        let _ = self
            .job
            .control
            .report(WorkStage::Generating, self.fraction);
    }

    async fn pass_cancel_on(&self, task: &RemoteJob) {
        let pool = &self.shared().pool;
        pool.pass_cancel_on(task.visit.index, task.cancel()).await;
    }
}

/// The consequence of a failed attempt.
enum SubmitMiss {
    /// This upstream did not accept it: try the next.
    Next(CallError),
    /// No other upstream may be tried.
    Final(UpstreamError),
}

impl From<UpstreamError> for SubmitMiss {
    fn from(error: UpstreamError) -> Self {
        Self::Final(error)
    }
}

impl RemoteServers {
    /// Submits `request` to the least busy upstream that accepts it. Tries each at most once.
    ///
    /// # Errors
    /// [`UpstreamError::Busy`] if none is available, [`UpstreamError::Unsettled`] if one may have
    /// accepted it without answering, [`UpstreamError::Refused`] if the request is invalid, and
    /// errors of encoding the request.
    pub async fn submit(&self, request: &RemoteRequest) -> Result<RemoteJob, UpstreamError> {
        let encoded = self.encode(request).await?;
        self.submit_encoded(&encoded, request, None).await
    }

    pub(crate) async fn encode(
        &self,
        request: &RemoteRequest,
    ) -> Result<EncodedRequest, UpstreamError> {
        let bytes_max = self.0.pool.options.request_bytes_max;
        encode(request, &self.0.options.dialect, bytes_max).await
    }

    /// Like [`Self::submit`]; with `only`, just at that upstream.
    async fn submit_encoded(
        &self,
        encoded: &EncodedRequest,
        request: &RemoteRequest,
        only: Option<usize>,
    ) -> Result<RemoteJob, UpstreamError> {
        let pool = &self.0.pool;
        let mut last = CallError::NoUpstream;
        loop {
            let choice = match only {
                Some(index) => pool.places.choose_only(index),
                None => pool.places.choose(&PlaceWish {
                    may: &|_| true,
                    prefers: &|_| false,
                    avoid: &request.avoid,
                }),
            };
            match choice {
                PlaceChoice::Probe(probe) => self.0.probe(probe.index).await,
                PlaceChoice::Wait(until) => {
                    let after = until.saturating_sub(pool.timer.now());
                    return Err(UpstreamError::Busy { after, cause: last });
                }
                PlaceChoice::Take(visit) => {
                    match self.submit_at(visit, encoded, &request.key).await {
                        Ok(task) => return Ok(task),
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
        let (shared, index) = (&self.0, visit.index);
        let body = shared.upload_files(index, encoded, key).await?;
        let upstream = &shared.pool.servers[index].name;
        let submitted = shared.submit_body(index, encoded, &body).await;
        let id = submitted.map_err(|miss| match miss {
            SubmitMiss::Next(cause)
                if cause.is_ambiguous() && shared.dialect().repeat() != RepeatRule::Freely =>
            {
                SubmitMiss::Final(UpstreamError::Unsettled {
                    upstream: upstream.clone(),
                    cause,
                })
            }
            miss => miss,
        })?;
        Ok(RemoteJob {
            shared: Arc::clone(shared),
            visit,
            ticket: encoded.ticket(upstream, id),
        })
    }
}

impl RemoteShared {
    /// Submits to the upstream with this index; returns the identifier of the task there.
    async fn submit_body(
        &self,
        index: usize,
        encoded: &EncodedRequest,
        body: &EncodedBody,
    ) -> Result<String, SubmitMiss> {
        let (method, url) = (self.dialect().submit.method, self.url(index, &encoded.path));
        let call = ServerCall {
            body: Some(body),
            headers: &encoded.headers(),
            ..ServerCall::new(method.into(), url, self.pool.options.submit_timeout)
        };
        let mut reply = self.send(index, &call).await?;
        if !reply.is_success() {
            return Err(self.refused(index, &reply));
        }
        match submitted_id(&reply.body, self.dialect()) {
            Ok(id) => {
                self.pool.places.record_answer(index);
                Ok(id)
            }
            // A refusal with a status of success.
            Err(error) => {
                self.pool.servers[index].conceal(&mut reply);
                match Refusal::read(&reply, self.dialect()).failure(self.dialect()) {
                    Some(failure) => Err(failure.into()),
                    None => Err(self.missed(index, error.into())),
                }
            }
        }
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
        Ok(encoded.body_with(&addresses)?)
    }

    /// Uploads one file, and returns its address.
    async fn upload(
        &self,
        index: usize,
        form: &EncodedBody,
        key: &str,
    ) -> Result<String, SubmitMiss> {
        let uploads = self.dialect().uploads.as_ref();
        let uploads = uploads.ok_or(UpstreamError::Unsupported(NO_UPLOADS.into()))?;
        let path = uploads.path.expand(&NoJob { model: None })?;
        let header = self.dialect().submit.idempotency_header.as_deref();
        let headers: Vec<(&str, &str)> = header.map(|name| (name, key)).into_iter().collect();
        let (url, limit) = (self.url(index, &path), self.pool.options.submit_timeout);
        let call = ServerCall {
            body: Some(form),
            headers: &headers,
            ..ServerCall::new(Method::POST, url, limit)
        };
        let mut reply = self.send(index, &call).await?;
        match reply.status {
            200..=299 => {
                let sent = object(&reply.body).ok();
                let found = sent.and_then(|sent| uploads.url.find(&sent, text).map(str::to_owned));
                found.ok_or_else(|| {
                    self.pool.servers[index].conceal(&mut reply);
                    self.missed(index, reply.refusal())
                })
            }
            // An earlier version, which works without files.
            404 | 405 => {
                let what = "an uploaded file: the server is of an earlier version";
                Err(UpstreamError::Unsupported(what.into()).into())
            }
            _ => Err(self.refused(index, &reply)),
        }
    }

    /// Makes a call of a submit. A request that cannot be written is wrong at each upstream.
    async fn send(&self, index: usize, call: &ServerCall<'_>) -> Result<ServerAnswer, SubmitMiss> {
        self.call(index, call).await.map_err(|cause| match cause {
            CallError::Request(_) => SubmitMiss::Final(UpstreamError::Refused(cause)),
            cause => self.missed(index, cause),
        })
    }

    fn missed(&self, index: usize, cause: CallError) -> SubmitMiss {
        self.pool.record_outage(index, &cause);
        self.next(index, cause)
    }

    fn next(&self, index: usize, cause: CallError) -> SubmitMiss {
        let (upstream, error) = (&self.pool.servers[index].name, chain(&cause));
        tracing::warn!(upstream, error, "submit failed");
        SubmitMiss::Next(cause)
    }

    /// Handles an error status.
    fn refused(&self, index: usize, reply: &ServerAnswer) -> SubmitMiss {
        let (places, refusal) = (&self.pool.places, reply.refusal());
        // The words of a refusal tell more than its status: it is about the request then.
        let told = Refusal::read(reply, self.dialect());
        if let Some(failure) = told.failure_at(reply.status, self.dialect()) {
            return failure.into();
        }
        match reply.status {
            429 | 503 => places.record_pause(index, retry_after(&reply.headers)),
            // A wrong key, no credit, or a wrong URL.
            300..=399 | 401..=405 => places.record_breakage(index, &refusal.to_string()),
            408 | 500..=599 => return self.missed(index, refusal),
            _ => return UpstreamError::Refused(refusal).into(),
        }
        self.next(index, refusal)
    }
}
