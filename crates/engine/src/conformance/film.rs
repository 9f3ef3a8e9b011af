//! What every [`FilmEngine`] must keep to, over a [`Site`] that its tests set up: a place where films
//! are made, which does as it is told and counts what it is asked. Only the 2 s of a cancel are
//! measured; every other wait is for what it is about, and bounded for a test that fails.

mod attempt;

use std::path::PathBuf;

use kinora_contract::{FailureCode, VideoSpec};

use self::attempt::{
    Attempt, absent, at_work, brought, call_off, cancel_at_work, cancelled, in_time, leave_at_work,
    nobody_works, step, told,
};
use super::{Check, hold};
use crate::{EngineError, FilmEngine};

/// The key of every attempt.
pub const KEY: &str = "video_0001";

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
    begins_anew_with_a_strangers_ticket(&open().await).await?;
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
    // A cancel that the drop had sent would have come before the film.
    hold(site.cancelled() == 0, "a drop is passed on to nobody")
}

/// The ticket of another kind of engine is not followed.
///
/// # Errors
/// What did not hold.
pub async fn begins_anew_with_a_strangers_ticket(site: &impl Site) -> Check {
    site.turn(Fate::Well);
    let attempt = Attempt::after(site, "half a frame".to_owned());
    let ended = attempt.end(site).await?;
    brought(site, ended)?;
    hold(site.begun() == 1, "a stranger's ticket is not followed")
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
    let ticket = leave_at_work(site).await?;
    cancel_at_work(site, &Attempt::after(site, ticket)).await?;
    hold(
        site.begun() == 1,
        "the ticket is followed, the work not repeated",
    )?;
    nobody_works(site)
}

/// What an attempt has left is called off by its ticket alone, once and again; what leads nowhere is
/// called off already.
///
/// # Errors
/// What did not hold.
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
