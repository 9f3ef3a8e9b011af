//! Asks the store for work while there is a free slot, and starts a run for each claim.
//! The store's change counter saves waiting; the poll is the truth.

use std::sync::Arc;
use std::time::Duration;

use kinora_store::{Claim, ClaimRequest};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

use crate::drain::Shutdown;
use crate::{Worker, run};

/// How often the store is asked although it gave no hint.
const POLL_EVERY: Duration = Duration::from_secs(1);

/// Claims and runs until a drain is asked for, then waits for what runs.
pub(crate) async fn claim_until_drain(worker: Arc<Worker>, shutdown: Shutdown) {
    let slots = Arc::new(Semaphore::new(worker.settings.slots.max(1)));
    let mut hints = worker.tasks.changes();
    let mut runs = JoinSet::new();
    while !shutdown.is_draining() {
        let first = tokio::select! {
            permit = slots.clone().acquire_owned() => permit,
            () = shutdown.draining() => break,
        };
        // The semaphore is never closed, so there is always a permit in the end.
        let Ok(first) = first else { break };
        hints.mark_unchanged();
        let permits = with_free_slots(first, &slots);
        let claims = ask(&worker, permits.len()).await;
        let idle = claims.is_empty();
        for (claim, slot) in claims.into_iter().zip(permits) {
            runs.spawn(run::run_task(worker.clone(), claim, slot, shutdown.clone()));
        }
        while runs.try_join_next().is_some() {}
        if idle {
            tokio::select! {
                // Without hints the poll alone must do.
                Ok(()) = hints.changed() => {}
                () = tokio::time::sleep(POLL_EVERY) => {}
                () = shutdown.draining() => {}
            }
        }
    }
    finish_runs(&worker, runs, &shutdown).await;
}

/// `first` and a permit for every other slot that is free at the moment.
fn with_free_slots(
    first: OwnedSemaphorePermit,
    slots: &Arc<Semaphore>,
) -> Vec<OwnedSemaphorePermit> {
    let others = std::iter::from_fn(|| slots.clone().try_acquire_owned().ok());
    std::iter::once(first).chain(others).collect()
}

async fn ask(worker: &Worker, count: usize) -> Vec<Claim> {
    let request = ClaimRequest {
        worker: worker.settings.name.clone(),
        models: worker.lineup.models(),
        count,
        now_ms: worker.clock.now_ms(),
        lease_ms: worker.settings.lease_ms,
    };
    match worker.tasks.claim(request).await {
        Ok(claims) => claims,
        Err(error) => {
            tracing::warn!(%error, "no work could be claimed; trying again");
            Vec::new()
        }
    }
}

/// Waits for the runs, up to the drain limit; then they are told to give back what they hold.
async fn finish_runs(worker: &Worker, mut runs: JoinSet<()>, shutdown: &Shutdown) {
    if !runs.is_empty() {
        let limit = worker.settings.drain_limit;
        tracing::info!(
            tasks = runs.len(),
            ?limit,
            "finishing running tasks before the stop"
        );
    }
    let limit = tokio::time::sleep(worker.settings.drain_limit);
    tokio::pin!(limit);
    loop {
        tokio::select! {
            joined = runs.join_next() => {
                if joined.is_none() {
                    return;
                }
            }
            () = &mut limit, if !limit.is_elapsed() => shutdown.now(),
        }
    }
}
