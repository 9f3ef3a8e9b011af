//! The contract of every [`FilmEngine`], checked against a [`FilmSite`] that the
//! engine's tests provide: a fake upstream that follows a script and counts requests. Only the
//! limit on a cancel (2 s) is measured; all other waits end with their event, and time out only in
//! a failing test.

use std::error::Error;
use std::future::poll_fn;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use async_trait::async_trait;
use kinora_contract::{FailureCode, VideoSpec};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::{CheckError, CheckResult, require};
use crate::{EngineError, FilmEngine, FilmJob, JobControl, TicketStore};

/// Runs every check; `open` returns a fresh site.
///
/// # Errors
/// The first broken promise.
pub async fn check<S: FilmSite>(open: impl AsyncFn() -> S) -> CheckResult {
    brings_a_film(&open().await).await?;
    leaves_what_it_follows_later(&open().await).await?;
    begins_anew_with_a_strangers_ticket(&open().await).await?;
    begins_nothing_after_a_cancel(&open().await).await?;
    obeys_cancel(&open().await).await?;
    passes_on_the_cancel_of_what_it_follows(&open().await).await?;
    calls_off_what_was_left(&open().await).await?;
    obeys_cancel_in_silence(&open().await).await?;
    reports_failures(&open().await).await?;
    ends_what_it_cannot_keep(&open().await).await
}

/// A film is delivered, every look at it counts as a sign of life, and progress rises.
///
/// # Errors
/// The broken promise.
pub async fn brings_a_film(site: &impl FilmSite) -> CheckResult {
    site.turn(WorkFate::Succeeding);
    let attempt = FilmAttempt::new(site);
    let mut fractions = Vec::new();
    let progress = &attempt.control.progress;
    let (job, mut watch) = (attempt.job(), || {
        if progress.reports() > 0 {
            fractions.push(progress.fraction());
        }
        false
    });
    let ended = step(&mut site.engine().film(&job), &mut watch).await?;
    check_film(site, ended)?;
    let looks = site.looks() as u64;
    require(looks > 0, "a work is looked at")?;
    require(
        progress.reports() >= looks,
        "every look at a work is a sign of life",
    )?;
    require(fractions.is_sorted(), "progress never falls")?;
    require(
        !site.reports_progress() || fractions.first() < fractions.last(),
        "progress rises while a work gets on",
    )?;
    require(site.begun() == 1, "one work is begun for one film")?;
    require(site.cancelled() == 0, "a work that ends is not cancelled")
}

/// Dropping the future leaves the work running, and the next attempt continues it.
///
/// # Errors
/// The broken promise.
pub async fn leaves_what_it_follows_later(site: &impl FilmSite) -> CheckResult {
    let ticket = leave_at_work(site).await?;
    check_no_file(site)?;
    site.turn(WorkFate::Succeeding);
    let next = FilmAttempt::with_ticket(site, ticket);
    let ended = next.run_to_end(site).await?;
    check_film(site, ended)?;
    require(
        site.begun() == 1,
        "the ticket is followed, the work not repeated",
    )?;
    // A cancel sent because of the drop would have arrived before the film.
    require(site.cancelled() == 0, "a drop cancels nothing upstream")
}

/// An attempt does not follow a ticket from another kind of engine.
///
/// # Errors
/// The broken promise.
pub async fn begins_anew_with_a_strangers_ticket(site: &impl FilmSite) -> CheckResult {
    site.turn(WorkFate::Succeeding);
    let attempt = FilmAttempt::with_ticket(site, "half a frame".to_owned());
    let ended = attempt.run_to_end(site).await?;
    check_film(site, ended)?;
    require(site.begun() == 1, "a stranger's ticket is not followed")
}

/// A cancel before the start leaves no work running.
///
/// # Errors
/// The broken promise.
pub async fn begins_nothing_after_a_cancel(site: &impl FilmSite) -> CheckResult {
    site.turn(WorkFate::Endless);
    let attempt = FilmAttempt::new(site);
    attempt.cancel.cancel();
    let job = attempt.job();
    cancelled(&mut site.engine().film(&job)).await?;
    check_no_file(site)?;
    check_all_stopped(site)
}

/// A cancel is answered in time, and passed on.
///
/// # Errors
/// The broken promise.
pub async fn obeys_cancel(site: &impl FilmSite) -> CheckResult {
    site.turn(WorkFate::Endless);
    let attempt = FilmAttempt::new(site);
    cancel_at_work(site, &attempt).await?;
    require(site.begun() == 1, "one work is begun for one film")?;
    check_all_stopped(site)
}

/// Like [`obeys_cancel`], for a work that an earlier attempt began.
///
/// # Errors
/// The broken promise.
pub async fn passes_on_the_cancel_of_what_it_follows(site: &impl FilmSite) -> CheckResult {
    let ticket = leave_at_work(site).await?;
    cancel_at_work(site, &FilmAttempt::with_ticket(site, ticket)).await?;
    require(
        site.begun() == 1,
        "the ticket is followed, the work not repeated",
    )?;
    check_all_stopped(site)
}

/// The ticket alone calls off an abandoned work, also a second time; a ticket that leads nowhere
/// counts as called off.
///
/// # Errors
/// The broken promise.
pub async fn calls_off_what_was_left(site: &impl FilmSite) -> CheckResult {
    let ticket = leave_at_work(site).await?;
    call_off(site, &ticket).await?;
    let cancelled = usize::from(site.can_cancel());
    require(
        site.cancelled() == cancelled,
        "what was left is told to stop",
    )?;
    call_off(site, &ticket).await?;
    call_off(site, "half a frame").await?;
    if !site.can_cancel() {
        return Ok(());
    }
    site.turn(WorkFate::Silent);
    let told = in_time(site.engine().call_off(&ticket)).await?;
    require(
        matches!(told, Err(EngineError::CodedFailure { .. })),
        "a call-off that reached nobody is an error",
    )
}

/// A cancel is answered in time even if the place does not answer.
///
/// # Errors
/// The broken promise.
pub async fn obeys_cancel_in_silence(site: &impl FilmSite) -> CheckResult {
    site.turn(WorkFate::Endless);
    let attempt = FilmAttempt::new(site);
    let job = attempt.job();
    let mut making = site.engine().film(&job);
    wait_for_work(site, &mut making).await?;
    site.turn(WorkFate::Silent);
    attempt.cancel.cancel();
    cancelled(&mut making).await?;
    check_no_file(site)
}

/// A failure is returned by its code, and leaves no file.
///
/// # Errors
/// The broken promise.
pub async fn reports_failures(site: &impl FilmSite) -> CheckResult {
    site.turn(WorkFate::Failing);
    let ended = FilmAttempt::new(site).run_to_end(site).await?;
    check_failure(ended, site.failure())?;
    check_no_file(site)
}

/// Work whose ticket cannot be stored is stopped.
///
/// # Errors
/// The broken promise.
pub async fn ends_what_it_cannot_keep(site: &impl FilmSite) -> CheckResult {
    site.turn(WorkFate::Endless);
    let mut attempt = FilmAttempt::new(site);
    attempt.shelf.fails = true;
    let ended = attempt.run_to_end(site).await?;
    check_failure(ended, FailureCode::StorageFailed)?;
    check_no_file(site)?;
    check_all_stopped(site)
}

/// Maximum time to answer a cancel.
const CANCEL_MAX: Duration = Duration::from_secs(2);
/// Maximum wait, reached only in a failing test.
const PATIENCE: Duration = Duration::from_secs(60);

/// Stores the last ticket in memory, or fails.
#[derive(Default)]
struct MemoryTickets {
    ticket: Mutex<Option<String>>,
    fails: bool,
}

#[async_trait]
impl TicketStore for MemoryTickets {
    async fn store(&self, ticket: &str) -> Result<(), Box<dyn Error + Send + Sync>> {
        if self.fails {
            return Err("the shelf is away".into());
        }
        let mut stored = self.ticket.lock().unwrap_or_else(PoisonError::into_inner);
        *stored = Some(ticket.to_owned()).filter(|ticket| !ticket.is_empty());
        Ok(())
    }
}

/// The inputs of one attempt.
struct FilmAttempt {
    spec: VideoSpec,
    to: PathBuf,
    ticket: Option<String>,
    control: JobControl,
    cancel: CancellationToken,
    shelf: MemoryTickets,
}

type FilmOutcome = Result<(), EngineError>;
type FilmFuture<'a> = Pin<Box<dyn Future<Output = FilmOutcome> + Send + 'a>>;

impl FilmAttempt {
    fn new(site: &impl FilmSite) -> Self {
        Self {
            spec: site.spec(),
            to: site.to(),
            ticket: None,
            control: JobControl::default(),
            cancel: CancellationToken::new(),
            shelf: MemoryTickets::default(),
        }
    }

    /// An attempt that gets the ticket of an earlier one.
    fn with_ticket(site: &impl FilmSite, ticket: String) -> Self {
        Self {
            ticket: Some(ticket),
            ..Self::new(site)
        }
    }

    fn job(&self) -> FilmJob<'_> {
        FilmJob {
            key: KEY,
            spec: &self.spec,
            references: &[],
            source: None,
            ticket: self.ticket.as_deref(),
            to: &self.to,
            control: &self.control,
            cancel: &self.cancel,
            tickets: &self.shelf,
        }
    }

    /// Runs the attempt to its end.
    async fn run_to_end(&self, site: &impl FilmSite) -> Result<Option<FilmOutcome>, CheckError> {
        let job = self.job();
        step(&mut site.engine().film(&job), &mut || false).await
    }
}

/// Polls `making`. After each poll that did not end it, `is_enough` may stop the polling without
/// dropping the future: `None`.
async fn step(
    making: &mut FilmFuture<'_>,
    is_enough: &mut (dyn FnMut() -> bool + Send),
) -> Result<Option<FilmOutcome>, CheckError> {
    // Polled by hand, so that the check can look at the site between two steps and stop without
    // dropping the future: a drop has a meaning of its own here.
    let stepping = poll_fn(|context| match making.as_mut().poll(context) {
        Poll::Ready(ended) => Poll::Ready(Some(ended)),
        Poll::Pending if is_enough() => Poll::Ready(None),
        Poll::Pending => Poll::Pending,
    });
    let stepped = timeout(PATIENCE, stepping).await;
    stepped.map_err(|_| CheckError::Broken(format!("nothing came of a work within {PATIENCE:?}")))
}

/// Polls until the engine has checked the work once more.
async fn wait_for_work(site: &impl FilmSite, making: &mut FilmFuture<'_>) -> CheckResult {
    let before = site.looks();
    let ended = step(making, &mut || site.looks() > before).await?;
    require(ended.is_none(), "a work that goes on is followed")
}

/// Starts a work and abandons it; returns its ticket.
async fn leave_at_work(site: &impl FilmSite) -> Result<String, CheckError> {
    site.turn(WorkFate::Endless);
    let attempt = FilmAttempt::new(site);
    let job = attempt.job();
    wait_for_work(site, &mut site.engine().film(&job)).await?;
    let ticket = attempt.shelf.ticket.into_inner();
    let ticket = ticket.unwrap_or_else(PoisonError::into_inner);
    ticket.ok_or_else(|| CheckError::Broken("every work leaves a ticket".to_owned()))
}

async fn cancel_at_work(site: &impl FilmSite, attempt: &FilmAttempt) -> CheckResult {
    let job = attempt.job();
    let mut making = site.engine().film(&job);
    wait_for_work(site, &mut making).await?;
    attempt.cancel.cancel();
    cancelled(&mut making).await?;
    check_no_file(site)
}

async fn call_off(site: &impl FilmSite, ticket: &str) -> CheckResult {
    let called = in_time(site.engine().call_off(ticket)).await?;
    called.map_err(|error| CheckError::Broken(format!("it is not called off: {error}")))
}

async fn in_time<T>(stopping: impl Future<Output = T>) -> Result<T, CheckError> {
    let stopped = timeout(CANCEL_MAX, stopping).await;
    stopped.map_err(|_| CheckError::Broken(format!("a cancel is obeyed within {CANCEL_MAX:?}")))
}

async fn cancelled(making: &mut FilmFuture<'_>) -> CheckResult {
    let ended = in_time(making).await?;
    require(
        matches!(ended, Err(EngineError::Cancelled)),
        "a cancel is answered as one",
    )
}

fn check_film(site: &impl FilmSite, ended: Option<FilmOutcome>) -> CheckResult {
    if let Some(Err(error)) = ended {
        return Err(CheckError::Broken(format!("no film came: {error}")));
    }
    let film = std::fs::read(site.to());
    let film = film.map_err(|error| {
        CheckError::Broken(format!("a film is a file where it was asked: {error}"))
    })?;
    require(film == site.film(), "the film is the whole one")
}

fn check_failure(ended: Option<FilmOutcome>, expected: FailureCode) -> CheckResult {
    match ended {
        Some(Err(EngineError::CodedFailure { code, .. } | EngineError::JobFailed { code, .. }))
            if code == expected =>
        {
            Ok(())
        }
        other => Err(CheckError::Broken(format!(
            "{expected} is told, and not {other:?}"
        ))),
    }
}

fn check_no_file(site: &impl FilmSite) -> CheckResult {
    require(!site.to().exists(), "there is no file without a film")
}

fn check_all_stopped(site: &impl FilmSite) -> CheckResult {
    require(
        !site.can_cancel() || site.begun() == site.cancelled(),
        "every unwanted work is stopped",
    )
}

/// The key of every attempt.
pub const KEY: &str = "video_0001";

/// How the works of a [`FilmSite`] behave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkFate {
    /// They make progress and end with a film.
    Succeeding,
    /// They make progress and never end.
    Endless,
    /// They begin and then fail.
    Failing,
    /// The site no longer answers.
    Silent,
}

/// An engine and the place where its films are made.
pub trait FilmSite: Send + Sync {
    /// The engine.
    fn engine(&self) -> &dyn FilmEngine;

    /// The spec to request, without references.
    fn spec(&self) -> VideoSpec;

    /// The path of a nonexistent file, the same on every call.
    fn to(&self) -> PathBuf;

    /// Sets how all works behave from now on, including those already begun.
    fn turn(&self, fate: WorkFate);

    /// The bytes of the resulting film.
    fn film(&self) -> Vec<u8>;

    /// The failure code of a failed work.
    fn failure(&self) -> FailureCode;

    /// Number of works begun.
    fn begun(&self) -> usize;

    /// Number of times the engine has looked at a work.
    fn looks(&self) -> usize;

    /// Number of cancelled jobs.
    fn cancelled(&self) -> usize;

    /// Whether the place can stop a work.
    fn can_cancel(&self) -> bool {
        true
    }

    /// Whether the place tells how far a work is.
    fn reports_progress(&self) -> bool {
        true
    }
}
