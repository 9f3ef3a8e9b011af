//! The contract of every [`FilmEngine`](crate::FilmEngine), checked against a [`Site`] that the
//! engine's tests provide: a fake upstream that follows a script and counts requests. Only the
//! limit on a cancel (2 s) is measured; all other waits end with their event, and time out only in
//! a failing test.

mod attempt;
mod site;

use kinora_contract::FailureCode;

use self::attempt::{
    Attempt, absent, at_work, brought, call_off, cancel_at_work, cancelled, in_time, leave_at_work,
    nobody_works, step, told,
};
pub use self::site::{Fate, KEY, Site};
use super::{Check, hold};
use crate::EngineError;

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

/// The same for a work that an earlier attempt began.
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
