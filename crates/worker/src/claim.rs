//! Claims tasks while there is a free slot, and a free seat at an engine with a limit, and starts a
//! run for each claim. The store's change counter only shortens the wait; polling does not depend
//! on it.

use std::sync::Arc;
use std::time::Duration;

use kinora_contract::Standstill;
use kinora_store::{Claim, ClaimRequest, Outage};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;

use crate::backoff::Turn;
use crate::drain::Shutdown;
use crate::keeper::LeaseKeeper;
use crate::run::{Claimed, run_task};
use crate::slot::EnginePermits;
use crate::worker::Worker;

/// How often to poll the store without a hint.
const POLL_EVERY: Duration = Duration::from_secs(1);

/// Claims and runs tasks until a drain, then waits for the running ones; returns how many there
/// were.
pub(crate) async fn claim_until_drain(
    worker: Arc<Worker>,
    keeper: Arc<LeaseKeeper>,
    shutdown: Shutdown,
) -> usize {
    let slots = Arc::new(Semaphore::new(worker.settings.slots.max(1)));
    let mut queues = worker.lineup.queues();
    let freed = Arc::new(Notify::new());
    let leftovers = Arc::new(Semaphore::new(worker.settings.slots.max(1)));
    let mut hints = worker.work.work_hints();
    let mut runs = JoinSet::new();
    let outage = Outage::of("claims", &worker.clock);
    let is_alive = || worker.backoff.readiness().standstill() != Some(Standstill::Worker);
    while !shutdown.is_draining() && is_alive() {
        let first = tokio::select! {
            biased;
            () = shutdown.draining() => break,
            permit = slots.clone().acquire_owned() => permit,
        };
        // The semaphore is never closed, so a permit always comes eventually.
        let Ok(first) = first else { break };
        hints.mark_unchanged();
        let mut permits = match worker.backoff.turn() {
            Turn::All => with_free_slots(first, &slots),
            Turn::One => vec![first],
            Turn::Wait(pause) => {
                drop(first);
                tokio::select! {
                    biased;
                    () = tokio::time::sleep(pause) => continue,
                    () = shutdown.draining() => break,
                }
            }
        };
        let mut idle = true;
        for queue in &queues {
            let seats = queue.free_seats(permits.len());
            if seats.is_empty() {
                continue;
            }
            let asked_ms = worker.clock.steady_ms();
            let claims = ask(&worker, &queue.models, seats.len(), &outage).await;
            idle &= claims.is_empty();
            for (claim, seat) in claims.into_iter().zip(seats) {
                let Some(slot) = permits.pop() else { break };
                let permits = EnginePermits::new(slot, seat, &leftovers, &freed);
                runs.spawn(run_task(
                    worker.clone(),
                    Claimed { claim, asked_ms },
                    keeper.clone(),
                    permits,
                    shutdown.clone(),
                ));
            }
        }
        drop(permits);
        // With few slots, each queue gets its turn to be first.
        if queues.len() > 1 {
            queues.rotate_left(1);
        }
        while runs.try_join_next().is_some() {}
        if idle {
            wait_for_work(&mut hints, &freed, &shutdown).await;
        }
    }
    while runs.try_join_next().is_some() {}
    let running = runs.len();
    finish_runs(&worker, runs, &shutdown).await;
    running
}

/// Waits until there may be a task to claim and a slot for it.
async fn wait_for_work(hints: &mut watch::Receiver<u64>, freed: &Notify, shutdown: &Shutdown) {
    tokio::select! {
        biased;
        // Without hints, rely on polling.
        Ok(()) = hints.changed() => {}
        () = freed.notified() => {}
        () = tokio::time::sleep(POLL_EVERY) => {}
        () = shutdown.draining() => {}
    }
}

/// `first`, and a permit for every other slot that is free now.
fn with_free_slots(
    first: OwnedSemaphorePermit,
    slots: &Arc<Semaphore>,
) -> Vec<OwnedSemaphorePermit> {
    let others = std::iter::from_fn(|| slots.clone().try_acquire_owned().ok());
    std::iter::once(first).chain(others).collect()
}

async fn ask(worker: &Worker, models: &[String], count: usize, outage: &Outage) -> Vec<Claim> {
    let request = ClaimRequest {
        worker: worker.settings.name.clone(),
        models: models.to_vec(),
        count,
        slots: worker.settings.slots.max(1),
        project_slots_max: worker.settings.project_slots_max,
        attempts_max: worker.settings.attempts_max,
        lease_ms: worker.settings.lease_ms,
    };
    match worker.work.claim(request).await {
        Ok(claims) => {
            outage.note_success();
            claims
        }
        Err(error) => {
            outage.note_failure(&error);
            Vec::new()
        }
    }
}

/// Waits for the runs up to the drain limit, then tells them to give their tasks back.
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
            biased;
            joined = runs.join_next() => {
                if joined.is_none() {
                    return;
                }
            }
            () = &mut limit, if !limit.is_elapsed() => shutdown.now(),
        }
    }
}
