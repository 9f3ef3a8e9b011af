//! What every [`FilmEngine`] must keep to, over a [`Site`] that its tests set up: a place where films
//! are made, which does as it is told and counts what it is asked. Only the 2 s of a cancel are
//! measured; every other wait is for what it is about, and bounded for a test that fails.

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

use super::{Broken, Check, hold};
use crate::{Control, EngineError, FilmEngine, FilmJob, Keeper};

/// The key of every attempt.
pub const KEY: &str = "video_0001";
/// So soon a cancel must be answered.
const CANCEL_MAX: Duration = Duration::from_secs(2);
/// Only a failing test waits so long.
const PATIENCE: Duration = Duration::from_secs(60);

/// How the works of a [`Site`] fare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// They are seen at work, further than they were at first, and end with a film.
    Well,
    /// They are seen at work and never end.
    Endless,
    /// They are begun and then fail.
    Badly,
    /// Nothing is known: nobody answers any more.
    Silent,
}

/// An engine, and the place where its films are made.
pub trait Site: Send + Sync {
    /// The engine.
    fn engine(&self) -> &dyn FilmEngine;

    /// What is asked of it, without references.
    fn spec(&self) -> VideoSpec;

    /// The path of a file that is not there, the same at every call.
    fn to(&self) -> PathBuf;

    /// From now on all works fare so, those that were begun as well.
    fn turn(&self, fate: Fate);

    /// The bytes of the film that a work ends with.
    fn film(&self) -> Vec<u8>;

    /// What a client is told of a work that fails.
    fn failure(&self) -> FailureCode;

    /// Works that were begun.
    fn begun(&self) -> usize;

    /// How often the engine has looked at a work.
    fn looks(&self) -> usize;

    /// Works that were told to stop.
    fn cancelled(&self) -> usize;
}

/// Runs every check; `open` gives a site at which nothing was done yet.
///
/// # Errors
/// The first promise that did not hold.
pub async fn check<S: Site>(open: impl AsyncFn() -> S) -> Check {
    brings_a_film(&open().await).await?;
    leaves_what_it_follows_later(&open().await).await?;
    begins_anew_with_a_strangers_token(&open().await).await?;
    begins_nothing_after_a_cancel(&open().await).await?;
    obeys_cancel(&open().await).await?;
    passes_on_the_cancel_of_what_it_follows(&open().await).await?;
    calls_off_what_was_left(&open().await).await?;
    obeys_cancel_in_silence(&open().await).await?;
    tells_failures(&open().await).await?;
    ends_what_it_cannot_keep(&open().await).await
}

/// A film is brought, every look at it is a sign of life, and progress rises.
///
/// # Errors
/// What did not hold.
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

/// Dropping the future leaves the work alone, and the next attempt follows it.
///
/// # Errors
/// What did not hold.
pub async fn leaves_what_it_follows_later(site: &impl Site) -> Check {
    let kept = leave_at_work(site).await?;
    absent(site)?;
    site.turn(Fate::Well);
    let next = Attempt::after(site, kept);
    let ended = next.end(site).await?;
    brought(site, ended)?;
    hold(site.begun() == 1, "what was kept is followed, not repeated")?;
    // A cancel that the drop had sent would have come before the film.
    hold(site.cancelled() == 0, "a drop is passed on to nobody")
}

/// What another kind of engine kept is not followed.
///
/// # Errors
/// What did not hold.
pub async fn begins_anew_with_a_strangers_token(site: &impl Site) -> Check {
    site.turn(Fate::Well);
    let attempt = Attempt::after(site, "half a frame".to_owned());
    let ended = attempt.end(site).await?;
    brought(site, ended)?;
    hold(site.begun() == 1, "a stranger's token is not followed")
}

/// A cancel that came before the work leaves nobody at work.
///
/// # Errors
/// What did not hold.
pub async fn begins_nothing_after_a_cancel(site: &impl Site) -> Check {
    site.turn(Fate::Endless);
    let attempt = Attempt::at(site);
    attempt.cancel.cancel();
    let job = attempt.job();
    cancelled(&mut site.engine().film(&job)).await?;
    absent(site)?;
    nobody_works(site)
}

/// A cancel is answered as one in time, and passed on.
///
/// # Errors
/// What did not hold.
pub async fn obeys_cancel(site: &impl Site) -> Check {
    site.turn(Fate::Endless);
    let attempt = Attempt::at(site);
    cancel_at_work(site, &attempt).await?;
    hold(site.begun() == 1, "one work is begun for one film")?;
    nobody_works(site)
}

/// So is the cancel of a work that an earlier attempt had begun.
///
/// # Errors
/// What did not hold.
pub async fn passes_on_the_cancel_of_what_it_follows(site: &impl Site) -> Check {
    let kept = leave_at_work(site).await?;
    cancel_at_work(site, &Attempt::after(site, kept)).await?;
    hold(site.begun() == 1, "what was kept is followed, not repeated")?;
    nobody_works(site)
}

/// What an attempt has left is called off by its token alone, once and again; what leads nowhere is
/// called off already.
///
/// # Errors
/// What did not hold.
pub async fn calls_off_what_was_left(site: &impl Site) -> Check {
    let kept = leave_at_work(site).await?;
    call_off(site, &kept).await?;
    hold(site.cancelled() == 1, "what was left is told to stop")?;
    call_off(site, &kept).await?;
    call_off(site, "half a frame").await?;
    site.turn(Fate::Silent);
    let told = in_time(site.engine().call_off(&kept)).await?;
    hold(
        matches!(told, Err(EngineError::Told { .. })),
        "what nobody was told is not called off",
    )
}

/// A cancel is answered in time also when nobody answers there.
///
/// # Errors
/// What did not hold.
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

/// A failure is told by its code, and leaves no file.
///
/// # Errors
/// What did not hold.
pub async fn tells_failures(site: &impl Site) -> Check {
    site.turn(Fate::Badly);
    let ended = Attempt::at(site).end(site).await?;
    told(ended, site.failure())?;
    absent(site)
}

/// A work of which no later attempt could know is ended.
///
/// # Errors
/// What did not hold.
pub async fn ends_what_it_cannot_keep(site: &impl Site) -> Check {
    site.turn(Fate::Endless);
    let mut attempt = Attempt::at(site);
    attempt.shelf.is_away = true;
    let ended = attempt.end(site).await?;
    told(ended, FailureCode::StorageFailed)?;
    absent(site)?;
    nobody_works(site)
}

/// Keeps the last token in memory, or cannot.
#[derive(Default)]
struct Shelf {
    token: Mutex<Option<String>>,
    is_away: bool,
}

#[async_trait]
impl Keeper for Shelf {
    async fn keep(&self, token: &str) -> Result<(), Box<dyn Error + Send + Sync>> {
        if self.is_away {
            return Err("the shelf is away".into());
        }
        let mut kept = self.token.lock().unwrap_or_else(PoisonError::into_inner);
        *kept = Some(token.to_owned());
        Ok(())
    }
}

/// What one attempt is given.
struct Attempt {
    spec: VideoSpec,
    to: PathBuf,
    kept: Option<String>,
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
            kept: None,
            control: Control::default(),
            cancel: CancellationToken::new(),
            shelf: Shelf::default(),
        }
    }

    /// One that is given what an earlier one kept.
    fn after(site: &impl Site, kept: String) -> Self {
        Self {
            kept: Some(kept),
            ..Self::at(site)
        }
    }

    fn job(&self) -> FilmJob<'_> {
        FilmJob {
            key: KEY,
            spec: &self.spec,
            references: &[],
            kept: self.kept.as_deref(),
            to: &self.to,
            control: &self.control,
            cancel: &self.cancel,
            keeper: &self.shelf,
        }
    }

    /// Runs it to its end.
    async fn end(&self, site: &impl Site) -> Result<Option<Ended>, Broken> {
        let job = self.job();
        step(&mut site.engine().film(&job), &mut || false).await
    }
}

/// Goes on with `making`; `is_enough` is asked after each step that did not end it, and leaves it
/// as it is: `None`.
async fn step(
    making: &mut Making<'_>,
    is_enough: &mut (dyn FnMut() -> bool + Send),
) -> Result<Option<Ended>, Broken> {
    let stepping = poll_fn(|context| match making.as_mut().poll(context) {
        Poll::Ready(ended) => Poll::Ready(Some(ended)),
        Poll::Pending if is_enough() => Poll::Ready(None),
        Poll::Pending => Poll::Pending,
    });
    let stepped = timeout(PATIENCE, stepping).await;
    stepped.map_err(|_| Broken(format!("nothing came of a work within {PATIENCE:?}")))
}

/// Goes on until the engine has looked at the work once more.
async fn at_work(site: &impl Site, making: &mut Making<'_>) -> Check {
    let before = site.looks();
    let ended = step(making, &mut || site.looks() > before).await?;
    hold(ended.is_none(), "a work that goes on is followed")
}

/// Has a work begun and leaves it; returns what was kept.
async fn leave_at_work(site: &impl Site) -> Result<String, Broken> {
    site.turn(Fate::Endless);
    let attempt = Attempt::at(site);
    let job = attempt.job();
    at_work(site, &mut site.engine().film(&job)).await?;
    let kept = attempt.shelf.token.into_inner();
    let kept = kept.unwrap_or_else(PoisonError::into_inner);
    kept.ok_or_else(|| Broken("a token is kept of every work".to_owned()))
}

async fn cancel_at_work(site: &impl Site, attempt: &Attempt) -> Check {
    let job = attempt.job();
    let mut making = site.engine().film(&job);
    at_work(site, &mut making).await?;
    attempt.cancel.cancel();
    cancelled(&mut making).await?;
    absent(site)
}

async fn call_off(site: &impl Site, kept: &str) -> Check {
    let called = in_time(site.engine().call_off(kept)).await?;
    called.map_err(|error| Broken(format!("it is not called off: {error}")))
}

async fn in_time<T>(stopping: impl Future<Output = T>) -> Result<T, Broken> {
    let stopped = timeout(CANCEL_MAX, stopping).await;
    stopped.map_err(|_| Broken(format!("a cancel is obeyed within {CANCEL_MAX:?}")))
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
        return Err(Broken(format!("no film came: {error}")));
    }
    let film = std::fs::read(site.to());
    let film =
        film.map_err(|error| Broken(format!("a film is a file where it was asked: {error}")))?;
    hold(film == site.film(), "the film is the whole one")
}

fn told(ended: Option<Ended>, expected: FailureCode) -> Check {
    match ended {
        Some(Err(EngineError::Told { code, .. })) if code == expected => Ok(()),
        other => Err(Broken(format!("{expected} is told, and not {other:?}"))),
    }
}

fn absent(site: &impl Site) -> Check {
    hold(!site.to().exists(), "there is no file without a film")
}

fn nobody_works(site: &impl Site) -> Check {
    hold(
        site.begun() == site.cancelled(),
        "nobody works on what is not wanted",
    )
}
