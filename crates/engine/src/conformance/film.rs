//! The contract of every [`FilmEngine`](crate::FilmEngine), checked against a [`Site`] that the
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

use super::{Check, CheckError, hold};
use crate::{Control, EngineError, FilmEngine, FilmJob, TicketStore};

/// Runs every check; `open` returns a fresh site.
///
/// # Errors
/// The first broken promise.
pub async fn check<S: Site>(open: impl AsyncFn() -> S) -> Check {
    brings_a_film(&open().await).await?;
    leaves_what_it_follows_later(&open().await).await?;
    begins_anew_with_a_strangers_ticket(&open().await).await?;
    begins_nothing_after_a_cancel(&open().await).await?;
    obeys_cancel(&open().await).await?;
    passes_on_the_cancel_of_what_it_follows(&open().await).await?;
    calls_off_what_was_left(&open().await).await?;
    obeys_cancel_in_silence(&open().await).await?;
    tells_failures(&open().await).await?;
    ends_what_it_cannot_keep(&open().await).await
}

/// A film is delivered, every look at it counts as a sign of life, and progress rises.
///
/// # Errors
/// The broken promise.
pub async fn brings_a_film(site: &impl Site) -> Check {
    site.turn(Fate::Well);
    let attempt = Attempt::at(site);
    let mut fractions = Vec::new();
    let progress = &attempt.control.progress;
    let (job, mut watch) = (attempt.job(), || {
        if progress.reports() > 0 {
            fractions.push(progress.fraction());
        }
        false
    });
    let ended = step(&mut site.engine().film(&job), &mut watch).await?;
    brought(site, ended)?;
    let looks = site.looks() as u64;
    hold(looks > 0, "a work is looked at")?;
    hold(
        progress.reports() >= looks,
        "every look at a work is a sign of life",
    )?;
    hold(fractions.is_sorted(), "progress never falls")?;
    hold(
        fractions.first() < fractions.last(),
        "progress rises while a work gets on",
    )?;
    hold(site.begun() == 1, "one work is begun for one film")?;
    hold(site.cancelled() == 0, "a work that ends is not cancelled")
}

/// Dropping the future leaves the work running, and the next attempt continues it.
///
/// # Errors
/// The broken promise.
pub async fn leaves_what_it_follows_later(site: &impl Site) -> Check {
    let ticket = leave_at_work(site).await?;
    absent(site)?;
    site.turn(Fate::Well);
    let next = Attempt::after(site, ticket);
    let ended = next.end(site).await?;
    brought(site, ended)?;
    hold(
        site.begun() == 1,
        "the ticket is followed, the work not repeated",
    )?;
    // A cancel sent because of the drop would have arrived before the film.
    hold(site.cancelled() == 0, "a drop cancels nothing upstream")
}

/// An attempt does not follow a ticket from another kind of engine.
///
/// # Errors
/// The broken promise.
pub async fn begins_anew_with_a_strangers_ticket(site: &impl Site) -> Check {
    site.turn(Fate::Well);
    let attempt = Attempt::after(site, "half a frame".to_owned());
    let ended = attempt.end(site).await?;
    brought(site, ended)?;
    hold(site.begun() == 1, "a stranger's ticket is not followed")
}

/// A cancel before the start leaves no work running.
///
/// # Errors
/// The broken promise.
pub async fn begins_nothing_after_a_cancel(site: &impl Site) -> Check {
    site.turn(Fate::Endless);
    let attempt = Attempt::at(site);
    attempt.cancel.cancel();
    let job = attempt.job();
    cancelled(&mut site.engine().film(&job)).await?;
    absent(site)?;
    nobody_works(site)
}

/// A cancel is answered in time, and passed on.
///
/// # Errors
/// The broken promise.
pub async fn obeys_cancel(site: &impl Site) -> Check {
    site.turn(Fate::Endless);
    let attempt = Attempt::at(site);
    cancel_at_work(site, &attempt).await?;
    hold(site.begun() == 1, "one work is begun for one film")?;
    nobody_works(site)
}

/// Like [`obeys_cancel`], for a work that an earlier attempt began.
///
/// # Errors
/// The broken promise.
pub async fn passes_on_the_cancel_of_what_it_follows(site: &impl Site) -> Check {
    let ticket = leave_at_work(site).await?;
    cancel_at_work(site, &Attempt::after(site, ticket)).await?;
    hold(
        site.begun() == 1,
        "the ticket is followed, the work not repeated",
    )?;
    nobody_works(site)
}

/// The ticket alone calls off an abandoned work, also a second time; a ticket that leads nowhere
/// counts as called off.
///
/// # Errors
/// The broken promise.
pub async fn calls_off_what_was_left(site: &impl Site) -> Check {
    let ticket = leave_at_work(site).await?;
    call_off(site, &ticket).await?;
    hold(site.cancelled() == 1, "what was left is told to stop")?;
    call_off(site, &ticket).await?;
    call_off(site, "half a frame").await?;
    site.turn(Fate::Silent);
    let told = in_time(site.engine().call_off(&ticket)).await?;
    hold(
        matches!(told, Err(EngineError::Told { .. })),
        "a call-off that reached nobody is an error",
    )
}

/// A cancel is answered in time even if the place does not answer.
///
/// # Errors
/// The broken promise.
pub async fn obeys_cancel_in_silence(site: &impl Site) -> Check {
    site.turn(Fate::Endless);
    let attempt = Attempt::at(site);
    let job = attempt.job();
    let mut making = site.engine().film(&job);
    at_work(site, &mut making).await?;
    site.turn(Fate::Silent);
    attempt.cancel.cancel();
    cancelled(&mut making).await?;
    absent(site)
}

/// A failure is returned by its code, and leaves no file.
///
/// # Errors
/// The broken promise.
pub async fn tells_failures(site: &impl Site) -> Check {
    site.turn(Fate::Badly);
    let ended = Attempt::at(site).end(site).await?;
    told(ended, site.failure())?;
    absent(site)
}

/// A work whose token cannot be saved is stopped.
///
/// # Errors
/// The broken promise.
pub async fn ends_what_it_cannot_keep(site: &impl Site) -> Check {
    site.turn(Fate::Endless);
    let mut attempt = Attempt::at(site);
    attempt.shelf.is_away = true;
    let ended = attempt.end(site).await?;
    told(ended, FailureCode::StorageFailed)?;
    absent(site)?;
    nobody_works(site)
}

/// Maximum time to answer a cancel.
const CANCEL_MAX: Duration = Duration::from_secs(2);
/// Maximum wait, reached only in a failing test.
const PATIENCE: Duration = Duration::from_secs(60);

/// Stores the last ticket in memory, or fails.
#[derive(Default)]
struct Shelf {
    ticket: Mutex<Option<String>>,
    is_away: bool,
}

#[async_trait]
impl TicketStore for Shelf {
    async fn store(&self, ticket: &str) -> Result<(), Box<dyn Error + Send + Sync>> {
        if self.is_away {
            return Err("the shelf is away".into());
        }
        let mut stored = self.ticket.lock().unwrap_or_else(PoisonError::into_inner);
        *stored = Some(ticket.to_owned());
        Ok(())
    }
}

/// The inputs of one attempt.
struct Attempt {
    spec: VideoSpec,
    to: PathBuf,
    ticket: Option<String>,
    control: Control,
    cancel: CancellationToken,
    shelf: Shelf,
}

type Ended = Result<(), EngineError>;
type Making<'a> = Pin<Box<dyn Future<Output = Ended> + Send + 'a>>;

impl Attempt {
    fn at(site: &impl Site) -> Self {
        Self {
            spec: site.spec(),
            to: site.to(),
            ticket: None,
            control: Control::default(),
            cancel: CancellationToken::new(),
            shelf: Shelf::default(),
        }
    }

    /// An attempt that gets the ticket of an earlier one.
    fn after(site: &impl Site, ticket: String) -> Self {
        Self {
            ticket: Some(ticket),
            ..Self::at(site)
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
    async fn end(&self, site: &impl Site) -> Result<Option<Ended>, CheckError> {
        let job = self.job();
        step(&mut site.engine().film(&job), &mut || false).await
    }
}

/// Polls `making`. After each poll that did not end it, `is_enough` may stop the polling without
/// dropping the future: `None`.
async fn step(
    making: &mut Making<'_>,
    is_enough: &mut (dyn FnMut() -> bool + Send),
) -> Result<Option<Ended>, CheckError> {
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
async fn at_work(site: &impl Site, making: &mut Making<'_>) -> Check {
    let before = site.looks();
    let ended = step(making, &mut || site.looks() > before).await?;
    hold(ended.is_none(), "a work that goes on is followed")
}

/// Starts a work and abandons it; returns its ticket.
async fn leave_at_work(site: &impl Site) -> Result<String, CheckError> {
    site.turn(Fate::Endless);
    let attempt = Attempt::at(site);
    let job = attempt.job();
    at_work(site, &mut site.engine().film(&job)).await?;
    let ticket = attempt.shelf.ticket.into_inner();
    let ticket = ticket.unwrap_or_else(PoisonError::into_inner);
    ticket.ok_or_else(|| CheckError::Broken("every work leaves a ticket".to_owned()))
}

async fn cancel_at_work(site: &impl Site, attempt: &Attempt) -> Check {
    let job = attempt.job();
    let mut making = site.engine().film(&job);
    at_work(site, &mut making).await?;
    attempt.cancel.cancel();
    cancelled(&mut making).await?;
    absent(site)
}

async fn call_off(site: &impl Site, ticket: &str) -> Check {
    let called = in_time(site.engine().call_off(ticket)).await?;
    called.map_err(|error| CheckError::Broken(format!("it is not called off: {error}")))
}

async fn in_time<T>(stopping: impl Future<Output = T>) -> Result<T, CheckError> {
    let stopped = timeout(CANCEL_MAX, stopping).await;
    stopped.map_err(|_| CheckError::Broken(format!("a cancel is obeyed within {CANCEL_MAX:?}")))
}

async fn cancelled(making: &mut Making<'_>) -> Check {
    let ended = in_time(making).await?;
    hold(
        matches!(ended, Err(EngineError::Cancelled)),
        "a cancel is answered as one",
    )
}

fn brought(site: &impl Site, ended: Option<Ended>) -> Check {
    if let Some(Err(error)) = ended {
        return Err(CheckError::Broken(format!("no film came: {error}")));
    }
    let film = std::fs::read(site.to());
    let film = film.map_err(|error| {
        CheckError::Broken(format!("a film is a file where it was asked: {error}"))
    })?;
    hold(film == site.film(), "the film is the whole one")
}

fn told(ended: Option<Ended>, expected: FailureCode) -> Check {
    match ended {
        Some(Err(EngineError::Told { code, .. } | EngineError::JobFailed { code, .. }))
            if code == expected =>
        {
            Ok(())
        }
        other => Err(CheckError::Broken(format!(
            "{expected} is told, and not {other:?}"
        ))),
    }
}

fn absent(site: &impl Site) -> Check {
    hold(!site.to().exists(), "there is no file without a film")
}

fn nobody_works(site: &impl Site) -> Check {
    hold(
        site.begun() == site.cancelled(),
        "every unwanted work is stopped",
    )
}

/// The key of every attempt.
pub const KEY: &str = "video_0001";

/// How the works of a [`Site`] behave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// They make progress and end with a film.
    Well,
    /// They make progress and never end.
    Endless,
    /// They begin and then fail.
    Badly,
    /// The site no longer answers.
    Silent,
}

/// An engine and the place where its films are made.
pub trait Site: Send + Sync {
    /// The engine.
    fn engine(&self) -> &dyn FilmEngine;

    /// The spec to request, without references.
    fn spec(&self) -> VideoSpec;

    /// The path of a nonexistent file, the same on every call.
    fn to(&self) -> PathBuf;

    /// Sets how all works behave from now on, including those already begun.
    fn turn(&self, fate: Fate);

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
}
