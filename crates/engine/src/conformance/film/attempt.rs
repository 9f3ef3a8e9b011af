//! One attempt at a film, and the steps of the checks. Every wait has a limit, in case an engine
//! breaks its promise.

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

use super::super::{Check, CheckError, hold};
use super::site::{Fate, KEY, Site};
use crate::{Control, EngineError, FilmJob, TicketStore};

/// Maximum time to answer a cancel.
const CANCEL_MAX: Duration = Duration::from_secs(2);
/// Maximum wait, reached only in a failing test.
const PATIENCE: Duration = Duration::from_secs(60);

/// Keeps the last ticket in memory, or fails to.
#[derive(Default)]
pub(super) struct Shelf {
    ticket: Mutex<Option<String>>,
    pub(super) is_away: bool,
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
pub(super) struct Attempt {
    spec: VideoSpec,
    to: PathBuf,
    ticket: Option<String>,
    pub(super) control: Control,
    pub(super) cancel: CancellationToken,
    pub(super) shelf: Shelf,
}

pub(super) type Ended = Result<(), EngineError>;
pub(super) type Making<'a> = Pin<Box<dyn Future<Output = Ended> + Send + 'a>>;

impl Attempt {
    pub(super) fn at(site: &impl Site) -> Self {
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
    pub(super) fn after(site: &impl Site, ticket: String) -> Self {
        Self {
            ticket: Some(ticket),
            ..Self::at(site)
        }
    }

    pub(super) fn job(&self) -> FilmJob<'_> {
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
    pub(super) async fn end(&self, site: &impl Site) -> Result<Option<Ended>, CheckError> {
        let job = self.job();
        step(&mut site.engine().film(&job), &mut || false).await
    }
}

/// Polls `making`. After each poll that did not end it, `is_enough` may stop the polling without
/// dropping the future: `None`.
pub(super) async fn step(
    making: &mut Making<'_>,
    is_enough: &mut (dyn FnMut() -> bool + Send),
) -> Result<Option<Ended>, CheckError> {
    let stepping = poll_fn(|context| match making.as_mut().poll(context) {
        Poll::Ready(ended) => Poll::Ready(Some(ended)),
        Poll::Pending if is_enough() => Poll::Ready(None),
        Poll::Pending => Poll::Pending,
    });
    let stepped = timeout(PATIENCE, stepping).await;
    stepped.map_err(|_| CheckError::Broken(format!("nothing came of a work within {PATIENCE:?}")))
}

/// Polls until the engine has checked the work once more.
pub(super) async fn at_work(site: &impl Site, making: &mut Making<'_>) -> Check {
    let before = site.looks();
    let ended = step(making, &mut || site.looks() > before).await?;
    hold(ended.is_none(), "a work that goes on is followed")
}

/// Starts a work and abandons it; returns its ticket.
pub(super) async fn leave_at_work(site: &impl Site) -> Result<String, CheckError> {
    site.turn(Fate::Endless);
    let attempt = Attempt::at(site);
    let job = attempt.job();
    at_work(site, &mut site.engine().film(&job)).await?;
    let ticket = attempt.shelf.ticket.into_inner();
    let ticket = ticket.unwrap_or_else(PoisonError::into_inner);
    ticket.ok_or_else(|| CheckError::Broken("every work leaves a ticket".to_owned()))
}

pub(super) async fn cancel_at_work(site: &impl Site, attempt: &Attempt) -> Check {
    let job = attempt.job();
    let mut making = site.engine().film(&job);
    at_work(site, &mut making).await?;
    attempt.cancel.cancel();
    cancelled(&mut making).await?;
    absent(site)
}

pub(super) async fn call_off(site: &impl Site, ticket: &str) -> Check {
    let called = in_time(site.engine().call_off(ticket)).await?;
    called.map_err(|error| CheckError::Broken(format!("it is not called off: {error}")))
}

pub(super) async fn in_time<T>(stopping: impl Future<Output = T>) -> Result<T, CheckError> {
    let stopped = timeout(CANCEL_MAX, stopping).await;
    stopped.map_err(|_| CheckError::Broken(format!("a cancel is obeyed within {CANCEL_MAX:?}")))
}

pub(super) async fn cancelled(making: &mut Making<'_>) -> Check {
    let ended = in_time(making).await?;
    hold(
        matches!(ended, Err(EngineError::Cancelled)),
        "a cancel is answered as one",
    )
}

pub(super) fn brought(site: &impl Site, ended: Option<Ended>) -> Check {
    if let Some(Err(error)) = ended {
        return Err(CheckError::Broken(format!("no film came: {error}")));
    }
    let film = std::fs::read(site.to());
    let film = film.map_err(|error| {
        CheckError::Broken(format!("a film is a file where it was asked: {error}"))
    })?;
    hold(film == site.film(), "the film is the whole one")
}

pub(super) fn told(ended: Option<Ended>, expected: FailureCode) -> Check {
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

pub(super) fn absent(site: &impl Site) -> Check {
    hold(!site.to().exists(), "there is no file without a film")
}

pub(super) fn nobody_works(site: &impl Site) -> Check {
    hold(
        site.begun() == site.cancelled(),
        "every unwanted work is stopped",
    )
}
