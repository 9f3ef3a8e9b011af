//! The second step of a run for a film made elsewhere: orders or follows it, downloads it into a
//! file, checks it, and adds its provenance label. A run that ends because the process stops, or
//! because another run has the task, does not cancel the work: it continues elsewhere, and the
//! stored ticket leads back to it.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use kinora_contract::limits::{SECONDS_MAX, WARNINGS_MAX};
use kinora_contract::{VideoLength, VideoSpec, Warning, WarningCode};
use kinora_engine::{FilmEngine, FilmJob, JobControl, ReferenceFile, TicketStore, WorkStage};
use kinora_media::{
    FilmFormat, FilmOpener, FormatMismatch, MediaError, MismatchPolicy, Provenance,
    UndecodablePolicy,
};
use kinora_store::{LeaseLost, StoreError};
use kinora_system::scratch::ScratchFile;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::error::{RecordError, RunEnd, StopReason};
use crate::prepare::OpenedReference;
use crate::record::{FilmSigner, RecordedVideo, measured, sign};
use crate::retry::retry_unavailable;
use crate::task_run::TaskRun;

/// Engines pass on a cancel within 2 s; one that does not must not hold its slot.
const CANCEL_LIMIT: Duration = Duration::from_secs(5);

/// A stop waits this long for the answer to a submit that may be charged.
const SUBMIT_LIMIT: Duration = Duration::from_secs(20);

/// Everything that a film needs, as owned values.
pub(crate) struct FilmOrder {
    pub(crate) engine: Arc<dyn FilmEngine>,
    pub(crate) spec: VideoSpec,
    /// The warnings that the task already has.
    pub(crate) warnings: Vec<Warning>,
    pub(crate) references: Vec<OpenedReference>,
    /// The video that the spec edits.
    pub(crate) source: Option<ScratchFile>,
    /// The engine's ticket of an earlier attempt.
    pub(crate) ticket: Option<String>,
    pub(crate) provenance: Provenance,
    pub(crate) signer: Option<Arc<dyn FilmSigner>>,
    pub(crate) staged: ScratchFile,
    pub(crate) control: JobControl,
}

impl TaskRun<'_> {
    /// Orders the film or follows it, and checks it, while the lease is held.
    pub(crate) async fn make_film(&self, order: FilmOrder) -> Result<RecordedVideo, RunEnd> {
        order_film(&order, self).await?;
        let (spec, warnings) = (order.spec.clone(), order.warnings.clone());
        let asked = format(&spec, &*order.engine)?;
        // Examining a long film takes seconds on a thread that no drop can end. A flag, set when
        // this future ends or is dropped, ends it at its next frame.
        let stopped = StopOnDrop::default();
        let (stop, films) = (stopped.0.clone(), self.worker.films.clone());
        let files = &self.worker.pools.files;
        let looking = files.run(move || examine(order, &asked, &*films, &stop));
        let silence_max = Some(self.served.progress_timeout);
        let looked = self.unless_stopped(silence_max, looking).await?;
        let recorded = looked.unwrap_or(Err(RecordError::Panicked))?;
        let mismatches = asked.mismatches(&recorded.recording.info);
        if !mismatches.is_empty() {
            tracing::warn!(
                ?mismatches,
                "film kept although it does not match the request"
            );
            // First, because the list is bounded.
            let mut all: Vec<_> = mismatches.iter().map(mismatch_warning).collect();
            all.extend(warnings);
            all.truncate(WARNINGS_MAX);
            self.store_warnings(&all).await;
        }
        if spec.seconds == VideoLength::Auto {
            // Lengths are in whole seconds; the exact length is measured on the file.
            let exact = recorded.recording.info.duration_seconds;
            let seconds = VideoLength::Fixed(exact.round() as u32);
            self.store_spec(VideoSpec { seconds, ..spec }).await;
        }
        Ok(recorded)
    }
}

/// Waits until the engine has written the film. The reasons to stop end the wait.
async fn order_film(order: &FilmOrder, run: &TaskRun<'_>) -> Result<(), RunEnd> {
    let references: Vec<_> = order
        .references
        .iter()
        .map(|reference| ReferenceFile {
            path: reference.file.path().to_owned(),
            media_type: reference.media_type.to_owned(),
        })
        .collect();
    let source = order.source.as_ref().map(|file| ReferenceFile {
        path: file.path().to_owned(),
        media_type: "video/mp4".to_owned(),
    });
    let (key, cancel) = (run.claim.lease.task.to_string(), CancellationToken::new());
    let job = FilmJob {
        key: &key,
        spec: &order.spec,
        references: &references,
        source: source.as_ref(),
        ticket: order.ticket.as_deref(),
        to: order.staged.path(),
        control: &order.control,
        cancel: &cancel,
        tickets: run,
    };
    let mut making = order.engine.film(&job);
    tokio::select! {
        biased;
        made = &mut making => Ok(made?),
        stop = run.until_stop(Some(run.served.progress_timeout)) => {
            // In all other cases the film is still wanted: by the next process after a stop, or by
            // the run that has taken the task over.
            if is_final(stop) {
                cancel.cancel();
                // The result does not matter, only that the engine receives the cancel.
                if timeout(CANCEL_LIMIT, making).await.is_err() {
                    tracing::warn!("engine did not pass on a cancel in time");
                }
            } else if stop == StopReason::Shutdown {
                // A submit without an answer is not repeated where it may be charged: the task would fail.
                tokio::select! {
                    _ = &mut making => {}
                    _ = timeout(SUBMIT_LIMIT, order.control.submit_settled()) => {}
                }
            }
            Err(stop.into())
        }
    }
}

/// Whether the film is no longer needed.
const fn is_final(stop: StopReason) -> bool {
    matches!(
        stop,
        StopReason::Lost(LeaseLost::Withdrawn) | StopReason::Stalled
    )
}

#[async_trait]
impl TicketStore for TaskRun<'_> {
    async fn store(&self, ticket: &str) -> Result<(), Box<dyn Error + Send + Sync>> {
        // Dropped when the run is stopped.
        let never = CancellationToken::new();
        loop {
            match retry_unavailable(&never, || self.store_ticket(ticket)).await {
                // The run that now holds the task may follow the same job, so do not cancel it: this
                // run is about to be stopped anyway.
                Err(StoreError::LeaseLost(LeaseLost::Superseded)) => std::future::pending().await,
                // The ticket may be stored all the same. If the store stays away, this run loses its lease,
                // and stops. The next run finds the job by its key, or fails the task where a submit may be charged.
                Err(StoreError::Unavailable(_)) => {}
                stored => return Ok(stored?),
            }
        }
    }
}

/// Tells the client how the video differs from the request.
fn mismatch_warning(mismatch: &FormatMismatch) -> Warning {
    let (code, message) = match *mismatch {
        FormatMismatch::Size {
            width,
            height,
            actual_width,
            actual_height,
        } => (
            WarningCode::SizeDiffers,
            format!("The video is {actual_width}x{actual_height}; {width}x{height} was requested."),
        ),
        FormatMismatch::Duration { expected, actual } => (
            WarningCode::LengthDiffers,
            format!("The video lasts {actual:.1} s; {expected} s was requested."),
        ),
        FormatMismatch::Audio { actual: true, .. } => (
            WarningCode::SoundDiffers,
            "The video has sound, although none was requested.".to_owned(),
        ),
        FormatMismatch::Audio { actual: false, .. } => (
            WarningCode::SoundDiffers,
            "The video has no sound, although it was requested.".to_owned(),
        ),
        // Other differences are those of recordings, and not of films.
        _ => (WarningCode::LengthDiffers, mismatch.to_string()),
    };
    Warning::new(code, message)
}

fn examine(
    order: FilmOrder,
    asked: &FilmFormat,
    films: &dyn FilmOpener,
    stopped: &AtomicBool,
) -> Result<RecordedVideo, RecordError> {
    let control = &order.control;
    let mut go_on = || {
        // The film is complete: only report that the run is alive.
        let _ = control.report(WorkStage::Finishing, 0.5);
        !stopped.load(Ordering::Relaxed)
    };
    let path = order.staged.path();
    if films.defragment(path)? {
        tracing::info!("fragmented film rewritten with one index");
    }
    let mut recording = films.examine(path, asked, &mut go_on)?;
    let is_labelled = films.label(path, &mut recording, &order.provenance)?;
    if !is_labelled {
        tracing::info!("film left without a label: its maker has signed it, or it has no room");
    }
    // A film without our label is its maker's alone.
    let signer = order.signer.as_deref().filter(|_| is_labelled);
    sign(signer, path, &order.provenance, &mut go_on)?;
    // Written by an engine, or by a process that it started: its bytes did not pass through this process.
    let written = measured(path)?;
    recording.info.file_bytes = written.bytes;
    Ok(RecordedVideo {
        recording,
        staged: order.staged,
        written,
    })
}

fn format(spec: &VideoSpec, engine: &dyn FilmEngine) -> Result<FilmFormat, RecordError> {
    let size = spec
        .render_size()
        .ok_or(MediaError::InvalidFormat("a shape that is not decided"))?;
    Ok(FilmFormat {
        width: size.width,
        height: size.height,
        seconds: match spec.seconds {
            VideoLength::Fixed(seconds) => Some(seconds),
            VideoLength::Auto => None,
        },
        seconds_max: SECONDS_MAX,
        audio: engine.has_sound_switch().then_some(spec.generate_audio),
        undecodable: if engine.keeps_undecodable() {
            UndecodablePolicy::Keep
        } else {
            UndecodablePolicy::Refuse
        },
        mismatched: if engine.keeps_mismatched() {
            MismatchPolicy::Keep
        } else {
            MismatchPolicy::Refuse
        },
    })
}

/// Signals a thread that its result is no longer needed.
#[derive(Default)]
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
