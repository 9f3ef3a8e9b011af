//! One task from the choice of a server to the film. Its job has an identifier of ours, kept in a [`ComfyTicket`]
//! before the server hears of it, so any process finds the job again. If it is unclear whether a server has taken
//! the job, nothing is submitted anywhere until it has said so. Only the server's answers count; events bring
//! progress, and the next look sooner.

use std::collections::BTreeMap;
use std::mem;
use std::sync::Arc;

use bytes::Bytes;
use kinora_contract::Size;
use kinora_engine::places::{PlaceChoice, PlaceVisit, PlaceWish};
use kinora_engine::{FilmJob, JobControl, RgbPicture, WorkStage};
use kinora_http::ExchangeError;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::time::timeout;

use super::answer::{FilmLocation, FilmSearch, JobState, film_of};
use super::card::{FileUpload, UploadedFiles, read_files};
use super::feed::{ComfyEvent, EventFeed, NodeProgress};
use super::server::{ComfyServer, SubmitMiss};
use super::shared::{ComfyServers, ComfyShared};
use crate::servers::{CallError, TaskPatience, UpstreamError, chain, read_ticket};

impl ComfyServers {
    /// Makes the film of `job`, or follows its ticket, and writes it to the new file `job.to`, which is
    /// not synced; returns its length in bytes.
    ///
    /// A cancel stops the server as well. Dropping the future stops nothing there: the stored ticket can
    /// be followed later.
    ///
    /// # Errors
    /// [`UpstreamError`], but never [`UpstreamError::Busy`].
    pub async fn make(&self, job: &FilmJob<'_>) -> Result<u64, UpstreamError> {
        let mut attempt = JobAttempt {
            shared: &self.0,
            job,
            id: prompt_id(job.key),
            patience: self.0.pool.patience(job.cancel, job.key),
            view: ProgressView {
                control: job.control,
                progress: NodeProgress::of(&self.0.card.workflow),
                fraction: 0.0,
            },
            at: None,
            unfit: BTreeMap::new(),
        };
        let (mut ticket, mut resubmits) = (job.ticket.and_then(read_ticket), 0);
        loop {
            let entered = match ticket.take() {
                Some(ticket) => attempt.resume(ticket),
                None => attempt.enter().await,
            };
            let ended = match entered {
                Ok(visit) => {
                    job.control
                        .place
                        .set_chosen(&self.0.pool.places, visit.index);
                    attempt.follow(&visit).await
                }
                Err(error) => Err(error),
            };
            match ended {
                Err(error @ UpstreamError::Forgotten(_)) if resubmits < RESUBMITS_MAX => {
                    resubmits += 1;
                    attempt.at = None;
                    tracing::warn!(%error, "server lost the job; submitting it again");
                }
                Err(error) => {
                    if error.leaves_work() {
                        attempt.call_off().await;
                    }
                    return Err(error);
                }
                Ok(bytes) => return Ok(bytes),
            }
        }
    }

    /// Stops the job of `ticket`. A finished or unknown job counts as stopped.
    ///
    /// # Errors
    /// [`UpstreamError::Busy`] if the server does not answer. [`UpstreamError::Forgotten`] if it is no longer
    /// configured.
    pub async fn call_off(&self, ticket: &ComfyTicket) -> Result<(), UpstreamError> {
        let server = self.0.server(self.0.pool.index_of(&ticket.comfyui)?);
        let limit = self.0.pool.options.cancel_timeout;
        let stopped = timeout(limit, server.cancel(&ticket.prompt_id)).await;
        stopped.unwrap_or_else(|_| Err(UpstreamError::later(ExchangeError::Timeout(limit).into())))
    }
}

/// A job at a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ComfyTicket {
    /// The configured base URL of the server.
    pub comfyui: String,
    /// The job's `prompt_id` there.
    pub prompt_id: String,
}

/// A UUID of version 8 (RFC 9562, 5.8) in lower case, as ComfyUI demands.
pub(crate) fn prompt_id(key: &str) -> String {
    let mut hash = Sha256::new();
    hash.update(b"kinora comfyui job\0");
    hash.update(key.as_bytes());
    let mut bytes = [0_u8; 16];
    bytes.copy_from_slice(&hash.finalize()[..16]);
    bytes[6] = bytes[6] & 0x0f | 0x80;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    [
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..],
    ]
    .join("-")
}

/// Larger previews are not shown.
const PREVIEW_SIDE_MAX: u32 = 2_048;

/// An attempt and what it has learned.
struct JobAttempt<'a> {
    shared: &'a Arc<ComfyShared>,
    job: &'a FilmJob<'a>,
    /// The job's identifier at every server.
    id: String,
    patience: TaskPatience<'a>,
    view: ProgressView<'a>,
    /// The server that may have the job.
    at: Option<usize>,
    /// What each server lacks that cannot run the workflow.
    unfit: BTreeMap<usize, String>,
}

/// What the task's client sees of the work.
struct ProgressView<'a> {
    control: &'a JobControl,
    progress: NodeProgress,
    /// The fraction done; never decreases.
    fraction: f64,
}

impl ProgressView<'_> {
    /// Reports a sign of life.
    fn alive(&mut self, fraction: f64) {
        self.fraction = self.fraction.max(fraction.clamp(0.0, 1.0));
        // A cancel arrives through the job's token.
        let _ = self.control.report(WorkStage::Generating, self.fraction);
    }

    /// Shows an event; returns whether the job has ended.
    async fn show(&mut self, event: ComfyEvent, shared: &ComfyShared) -> bool {
        match event {
            ComfyEvent::Nodes(nodes) => {
                let fraction = self.progress.record(nodes);
                self.alive(fraction);
            }
            ComfyEvent::Preview(image) if self.control.preview.is_wanted() => {
                if let Some(picture) = decoded(image, shared).await {
                    self.control.preview.show(picture);
                }
            }
            ComfyEvent::Preview(_) => {}
            ComfyEvent::Ended => return true,
        }
        false
    }
}

/// Decodes a preview; one that cannot be decoded is not shown.
async fn decoded(image: Bytes, shared: &ComfyShared) -> Option<RgbPicture> {
    let decoding = shared
        .pool
        .disk
        .run(move || kinora_media_decode::image_of(&image, PREVIEW_SIDE_MAX));
    match decoding.await.ok()? {
        Ok(image) => Some(RgbPicture {
            size: Size::new(image.width, image.height),
            rgb: image.rgb,
        }),
        Err(error) => {
            tracing::debug!(error = chain(&error), "a preview could not be decoded");
            None
        }
    }
}

/// Number of consecutive polls that must report a job as unknown before it counts as forgotten: a submit
/// whose connection broke may arrive a moment later.
const MISSING_MAX: u32 = 2;
/// Maximum number of resubmits of a job that its server no longer knows.
const RESUBMITS_MAX: u32 = 3;
/// Maximum number of polls for the outputs of a completed job: they may come a moment later.
const LAG_POLLS_MAX: u32 = 10;
/// Where files are uploaded to, in a server's input folder; the task's own folder is in it.
const FOLDER: &str = "kinora";

impl JobAttempt<'_> {
    /// Goes back to the job of an earlier attempt.
    fn resume(&mut self, ticket: ComfyTicket) -> Result<PlaceVisit, UpstreamError> {
        let index = self.shared.pool.index_of(&ticket.comfyui)?;
        self.at = Some(index);
        self.id = ticket.prompt_id;
        Ok(self.shared.pool.places.record_visit(index))
    }

    /// Waits for `working`, or for a cancel.
    async fn unless_cancelled<T>(
        &self,
        working: impl Future<Output = Result<T, UpstreamError>>,
    ) -> Result<T, UpstreamError> {
        tokio::select! {
            biased;
            () = self.job.cancel.cancelled() => Err(UpstreamError::Cancelled),
            worked = working => worked,
        }
    }

    /// Stops the job at the server that may have it.
    async fn call_off(&self) {
        if let Some(index) = self.at {
            let cancelling = self.shared.server(index);
            let cancelling = cancelling.cancel(&self.id);
            self.shared.pool.pass_cancel_on(index, cancelling).await;
        }
    }

    /// Brings the job to a server, and returns its visit there.
    async fn enter(&mut self) -> Result<PlaceVisit, UpstreamError> {
        let pool = &self.shared.pool;
        let bytes_max = pool.options.request_bytes_max;
        let uploads = read_files(self.job, bytes_max).await?;
        let avoid = self.job.control.place.avoided();
        let mut last = CallError::NoUpstream;
        let mut changes = pool.places.changes();
        loop {
            changes.mark_unchanged();
            if self.job.cancel.is_cancelled() {
                return Err(UpstreamError::Cancelled);
            }
            let unfit = &self.unfit;
            if unfit.len() == pool.servers.len() {
                return Err(UpstreamError::Unfit(self.lacking()));
            }
            let choice = pool.places.choose(&PlaceWish {
                may: &|index| !unfit.contains_key(&index),
                prefers: &|_| false,
                avoid: &avoid,
            });
            match choice {
                PlaceChoice::Probe(probe) => {
                    let asking = async {
                        self.shared.probe(probe.index).await;
                        Ok(())
                    };
                    self.unless_cancelled(asking).await?;
                }
                PlaceChoice::Wait(until) => {
                    let cause = mem::replace(&mut last, CallError::NoUpstream);
                    let wait = until.saturating_sub(pool.timer.now());
                    // Wakes up when a server is available sooner than expected.
                    let changed = async { changes.changed().await.unwrap_or(()) };
                    let waited = self.patience.wait_for(changed, wait, cause).await;
                    waited.map_err(|error| match error {
                        UpstreamError::Silent { cause, .. } => UpstreamError::NoPlace(cause),
                        error => error,
                    })?;
                }
                PlaceChoice::Take(visit) => match self.enter_at(visit.index, &uploads).await {
                    Ok(()) => return Ok(visit),
                    Err(SubmitMiss::Next(cause) | SubmitMiss::Unclear(cause)) => last = cause,
                    Err(SubmitMiss::Lacks(what)) => {
                        let server = &pool.servers[visit.index].name;
                        tracing::warn!(server, what, "server cannot run the workflow");
                        self.unfit.insert(visit.index, what);
                    }
                    Err(SubmitMiss::Final(error)) => return Err(error),
                },
            }
        }
    }

    /// What each server lacks.
    fn lacking(&self) -> String {
        let told = self.unfit.iter().map(|(index, what)| {
            let name = &self.shared.pool.servers[*index].name;
            format!("{name}: {what}")
        });
        told.collect::<Vec<_>>().join("; ")
    }

    async fn enter_at(&mut self, index: usize, uploads: &[FileUpload]) -> Result<(), SubmitMiss> {
        let server = self.shared.server(index);
        let missing = self.unless_cancelled(self.shared.missing(index)).await?;
        if let Some(what) = missing {
            return Err(SubmitMiss::Lacks(what));
        }
        // An attempt whose ticket was lost may have brought it here.
        if self
            .unless_cancelled(server.look(&self.id))
            .await?
            .is_some()
        {
            self.keep(index).await?;
            return Ok(());
        }
        let uploaded = self.unless_cancelled(self.bring(server, uploads)).await?;
        let card = &self.shared.card;
        let graph = card.fill(self.job.spec, &self.id, &uploaded)?;
        // Before the submit: a process that dies now asks there first.
        self.keep(index).await?;
        let miss = match self.submit(server, &graph).await {
            Ok(()) => {
                let server = &server.upstream().name;
                tracing::info!(server, id = self.id, "job submitted");
                return Ok(());
            }
            Err(SubmitMiss::Unclear(cause)) => match self.settle(server, cause).await? {
                None => return Ok(()),
                Some(cause) => SubmitMiss::Next(cause),
            },
            // Cancelled: the server may have taken the job.
            Err(miss @ SubmitMiss::Final(UpstreamError::Cancelled)) => return Err(miss),
            Err(miss) => miss,
        };
        if let SubmitMiss::Lacks(_) = miss {
            self.shared.set_fit(index, false);
        }
        self.at = None;
        Err(miss)
    }

    async fn bring(
        &self,
        server: ComfyServer<'_>,
        uploads: &[FileUpload],
    ) -> Result<UploadedFiles, UpstreamError> {
        let folder = format!("{FOLDER}/{}", self.id);
        let mut uploaded = UploadedFiles::new();
        for upload in uploads {
            let name = server.upload(upload, &folder).await?;
            uploaded.entry(upload.role).or_default().push(name);
        }
        Ok(uploaded)
    }

    /// Stores where the job is about to be.
    async fn keep(&mut self, index: usize) -> Result<(), UpstreamError> {
        let ticket = ComfyTicket {
            comfyui: self.shared.pool.servers[index].name.clone(),
            prompt_id: self.id.clone(),
        };
        let ticket = json!(ticket).to_string();
        let kept = self.job.tickets.store(&ticket).await;
        kept.map_err(UpstreamError::NotKept)?;
        self.at = Some(index);
        Ok(())
    }

    /// Submits once. A cancel waits briefly for the answer, so that an accepted job can be stopped.
    async fn submit(&self, server: ComfyServer<'_>, graph: &Value) -> Result<(), SubmitMiss> {
        if self.job.cancel.is_cancelled() {
            return Err(UpstreamError::Cancelled.into());
        }
        let submitting = server.submit(&self.id, graph);
        tokio::pin!(submitting);
        tokio::select! {
            biased;
            () = self.job.cancel.cancelled() => {
                let limit = self.shared.pool.options.cancel_timeout;
                let _ = timeout(limit, submitting).await;
                Err(UpstreamError::Cancelled.into())
            }
            submitted = &mut submitting => submitted,
        }
    }

    /// Asks until it is clear whether the server has the job: `None` if it has, otherwise `cause`.
    async fn settle(
        &self,
        server: ComfyServer<'_>,
        cause: CallError,
    ) -> Result<Option<CallError>, UpstreamError> {
        let (mut failures, mut missing) = (0, 0);
        loop {
            match self.unless_cancelled(server.look(&self.id)).await {
                Ok(Some(_)) => return Ok(None),
                Ok(None) => {
                    missing += 1;
                    if missing >= MISSING_MAX {
                        return Ok(Some(cause));
                    }
                    self.patience.wait_for_poll().await?;
                }
                Err(error) => {
                    missing = 0;
                    self.patience.retry(error, &mut failures).await?;
                }
            }
        }
    }
}

/// What a job at work has done at least: it has left the queue.
const BEGUN: f64 = 0.01;

impl JobAttempt<'_> {
    /// Waits for the job at its server and saves its film; returns its length in bytes.
    async fn follow(&mut self, visit: &PlaceVisit) -> Result<u64, UpstreamError> {
        let cancel = self.job.cancel;
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(UpstreamError::Cancelled),
            ended = self.poll_and_fetch(visit.index) => ended,
        }
    }

    async fn poll_and_fetch(&mut self, index: usize) -> Result<u64, UpstreamError> {
        let server = self.shared.server(index);
        let mut feed = EventFeed::open(Arc::clone(self.shared), index, &self.id);
        let (mut failures, mut missing) = (0, 0);
        loop {
            self.patience.check_end()?;
            match server.look(&self.id).await {
                Ok(Some(seen)) => {
                    (failures, missing) = (0, 0);
                    match seen.state {
                        JobState::Completed => {
                            self.hear(1.0);
                            let film = self.film_at(server, seen.outputs).await?;
                            return self.fetch(server, &film).await;
                        }
                        JobState::Failed { code, text } => {
                            return Err(UpstreamError::Failed { code, text });
                        }
                        JobState::Pending => self.hear(0.0),
                        JobState::Running => self.hear(BEGUN),
                        JobState::Unknown(word) => {
                            self.patience.wait_left(CallError::Word(word)).map(drop)?;
                        }
                    }
                    self.pass(&mut feed).await?;
                }
                Ok(None) => {
                    missing += 1;
                    if missing >= MISSING_MAX {
                        let name = server.upstream().name.clone();
                        return Err(UpstreamError::Forgotten(name));
                    }
                    self.patience.wait_for_poll().await?;
                }
                Err(error) => self.patience.retry(error, &mut failures).await?,
            }
        }
    }

    /// Shows events until the next look is due, or the job says that it has ended.
    async fn pass(&mut self, feed: &mut EventFeed) -> Result<(), UpstreamError> {
        let slept = self.patience.wait_for_poll();
        tokio::pin!(slept);
        loop {
            tokio::select! {
                biased;
                event = feed.next() => {
                    if self.view.show(event, self.shared).await {
                        return Ok(());
                    }
                }
                slept = &mut slept => return slept,
            }
        }
    }

    /// Finds the film of a completed job. Its outputs may come a moment later than its state.
    async fn film_at(
        &self,
        server: ComfyServer<'_>,
        mut outputs: Value,
    ) -> Result<FilmLocation, UpstreamError> {
        let output = &self.shared.card.bindings.output;
        let (mut polls, mut failures) = (0, 0);
        loop {
            match film_of(&outputs, output) {
                FilmSearch::Film(film) => return Ok(film),
                FilmSearch::Others(names) => {
                    let names = names.join(", ");
                    return Err(UpstreamError::NoFilm(format!(
                        "node {output} made {names}; let it save an MP4 with H.264"
                    )));
                }
                FilmSearch::Nothing if polls == LAG_POLLS_MAX => {
                    return Err(UpstreamError::NoFilm(format!(
                        "node {output} put out no file; is it the node that saves the film?"
                    )));
                }
                FilmSearch::Nothing => {}
            }
            if polls > 0 {
                self.patience.wait_for_poll().await?;
            }
            match server.outputs(&self.id).await {
                Ok(seen) => {
                    outputs = seen;
                    polls += 1;
                    failures = 0;
                }
                Err(error) => self.patience.retry(error, &mut failures).await?,
            }
        }
    }

    async fn fetch(
        &mut self,
        server: ComfyServer<'_>,
        film: &FilmLocation,
    ) -> Result<u64, UpstreamError> {
        let attempts_max = self.shared.pool.options.result_attempts_max;
        let mut failures = 0;
        loop {
            let (view, patience) = (&mut self.view, &self.patience);
            let mut on_bytes = |_| {
                // One that takes too long in all is soon taken for one that stands still.
                if patience.check_end().is_ok() {
                    view.alive(view.fraction);
                }
            };
            let fetching = server.film(film, self.job.to, &mut on_bytes);
            match patience.within_time(fetching).await {
                Err(UpstreamError::Busy { cause, .. }) if failures + 1 == attempts_max => {
                    return Err(UpstreamError::NoResult(cause));
                }
                Err(error @ UpstreamError::Busy { .. }) => {
                    // Completion is a sign of life, and so are received bytes; attempts are counted separately.
                    self.patience.record_activity();
                    self.patience.retry(error, &mut failures).await?;
                }
                fetched => return fetched,
            }
        }
    }

    fn hear(&mut self, fraction: f64) {
        self.patience.record_activity();
        self.view.alive(fraction);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_one_identifier_and_no_other_key_has_it() {
        let id = prompt_id("video_0001");
        assert_eq!(id, prompt_id("video_0001"));
        assert_ne!(id, prompt_id("video_0002"));
        assert_eq!((id.len(), &id[14..15]), (36, "8"));
        assert!("89ab".contains(&id[19..20]) && id == id.to_lowercase());
    }
}
