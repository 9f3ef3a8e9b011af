//! Leased chores outside the store: files to remove and upstream jobs to cancel. Any process may
//! take them, and the process that does the work settles them. Each kind is a service of its own:
//! a result store that does not answer delays neither a sweep nor a cancel. A stop abandons the
//! chores in progress, and another process takes them after their lease.

use std::sync::Arc;

use futures_util::future::join_all;
use futures_util::{StreamExt, stream};
use kinora_contract::Stopwatch;
use kinora_store::{
    CallOff, Chore, ChoreDone, ChoreKind, ChoreRequest, ChoreWork, OutageLog, StoreError,
};

use crate::any_engine::AnyEngine;
use crate::shutdown::Shutdown;
use crate::task_run::FailedRuns;
use crate::worker::Worker;

/// Maximum number of files removed in one round.
const FILES: usize = 200;
/// Maximum number of concurrent removals: each waits for a sync.
const REMOVALS: usize = 4;
/// Maximum number of upstream jobs cancelled at a time; each takes at most two seconds.
const CALL_OFFS: usize = 16;
/// How long the chores of a worker that died or stopped wait for another one. A slow batch may take longer: doing a chore
/// twice does no harm.
const LEASE_MS: u64 = 60 * 1000;
/// Pause after the first failure; it doubles up to the longest.
const FIRST_PAUSE_MS: u64 = 5_000;
const LONGEST_PAUSE_MS: u64 = 5 * 60 * 1000;
/// After this many failures, over more than an hour, give up on an upstream job: it has long ended.
const CALL_OFF_ATTEMPTS_MAX: u32 = 20;

/// Removes files at the interval of sweeps, until a drain begins.
pub(crate) async fn remove_files_until_drain(worker: Arc<Worker>, shutdown: Shutdown) {
    tokio::select! {
        biased;
        () = shutdown.draining() => {}
        () = remove_files_repeatedly(&worker) => {}
    }
}

/// While there is more to do, it pauses for as long as the last round took: clients can create files to
/// remove faster than the interval allows, and half of the store's time belongs to others.
async fn remove_files_repeatedly(worker: &Worker) {
    let every = worker.settings.sweep_every;
    let outage = OutageLog::new("removals of files", &worker.clock);
    loop {
        let begun = Stopwatch::start(&worker.patience);
        let more = record_round(&outage, remove_files(worker).await).unwrap_or(false);
        let pause = if more {
            begun.elapsed().min(every)
        } else {
            every
        };
        tokio::time::sleep(pause).await;
    }
}

/// Cancels upstream jobs at the interval of sweeps, until a drain begins.
pub(crate) async fn cancel_jobs_until_drain(worker: Arc<Worker>, shutdown: Shutdown) {
    tokio::select! {
        biased;
        () = shutdown.draining() => {}
        () = cancel_jobs_repeatedly(&worker) => {}
    }
}

async fn cancel_jobs_repeatedly(worker: &Worker) {
    let outage = OutageLog::new("cancels of upstream jobs", &worker.clock);
    loop {
        record_round(&outage, cancel_jobs(worker).await);
        tokio::time::sleep(worker.settings.sweep_every).await;
    }
}

/// The outcome of a round, unless the store failed it: then the next round retries.
fn record_round<T>(outage: &OutageLog, done: Result<T, StoreError>) -> Option<T> {
    match &done {
        Ok(_) => outage.record_success(),
        Err(error) => outage.record_failure(error),
    }
    done.ok()
}

/// Removes files that are no longer needed; returns whether more are due now.
async fn remove_files(worker: &Worker) -> Result<bool, StoreError> {
    let chores = lease_chores(worker, ChoreKind::RemoveFile, FILES).await?;
    let is_full = chores.len() == FILES;
    let removals = stream::iter(chores).map(|chore| remove_file(worker, chore));
    let done: Vec<ChoreDone> = removals.buffer_unordered(REMOVALS).collect().await;
    let all_gone = done.iter().all(|one| one.again_after_ms.is_none());
    record_done(worker, done).await?;
    // A full batch suggests that there are more. After a failure the next round waits for the
    // interval all the same: a result store that refuses must not be asked without a pause.
    Ok(is_full && all_gone)
}

async fn remove_file(worker: &Worker, chore: Chore) -> ChoreDone {
    let ChoreWork::RemoveFile(key) = &chore.work else {
        return chore.again(LONGEST_PAUSE_MS);
    };
    match worker.blobs.delete(key).await {
        Ok(()) => {
            kinora_system::crash::point("worker.swept_file");
            chore.done()
        }
        Err(error) => {
            tracing::warn!(%error, %key, "unneeded file not removed yet");
            let pause_ms = pause_ms(chore.attempts);
            chore.again(pause_ms)
        }
    }
}

/// Cancels upstream jobs of tasks that ended without a result: nobody needs them and they may cost
/// money. The run of a cancelled task does this itself; this covers tasks that had no run at that
/// moment, and servers that did not answer.
async fn cancel_jobs(worker: &Worker) -> Result<(), StoreError> {
    // A worker whose engine makes frames began nothing elsewhere: it must not use up the attempts of one that did.
    let models = worker.lineup.film_models();
    if models.is_empty() {
        return Ok(());
    }
    let kind = ChoreKind::CallOff { models };
    let chores = lease_chores(worker, kind, CALL_OFFS).await?;
    let done = join_all(chores.into_iter().map(|chore| cancel_job(worker, chore))).await;
    record_done(worker, done).await
}

async fn cancel_job(worker: &Worker, chore: Chore) -> ChoreDone {
    let ChoreWork::CallOff(CallOff {
        task,
        model,
        ticket,
    }) = &chore.work
    else {
        return chore.again(LONGEST_PAUSE_MS);
    };
    let Some(AnyEngine::Film(engine)) = worker.lineup.find(model).map(|served| &served.engine)
    else {
        // Not asked for.
        return chore.again(LONGEST_PAUSE_MS);
    };
    if FailedRuns::from_ticket(ticket).is_some() {
        // Its last run has ended where it was.
        return chore.done();
    }
    match engine.call_off(ticket).await {
        Ok(()) => {
            tracing::info!(%task, "upstream job cancelled");
            chore.done()
        }
        Err(error) if chore.attempts >= CALL_OFF_ATTEMPTS_MAX => {
            tracing::warn!(%task, %error, "upstream job not cancelled; giving up");
            chore.done()
        }
        Err(error) => {
            tracing::debug!(%task, %error, "upstream job not cancelled yet");
            let pause_ms = pause_ms(chore.attempts);
            chore.again(pause_ms)
        }
    }
}

async fn lease_chores(
    worker: &Worker,
    kind: ChoreKind,
    count: usize,
) -> Result<Vec<Chore>, StoreError> {
    let request = ChoreRequest {
        kind,
        count,
        lease_ms: LEASE_MS,
    };
    worker.chores.lease_chores(request).await
}

async fn record_done(worker: &Worker, done: Vec<ChoreDone>) -> Result<(), StoreError> {
    if done.is_empty() {
        return Ok(());
    }
    worker.chores.complete_chores(done).await
}

/// The pause after `attempts` attempts, in milliseconds.
fn pause_ms(attempts: u32) -> u64 {
    let doubled = FIRST_PAUSE_MS << attempts.saturating_sub(1).min(16);
    doubled.min(LONGEST_PAUSE_MS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest_and_an_upstream_job_is_tried_for_an_hour() {
        assert_eq!(
            [1, 2, 3, 7, 40].map(pause_ms),
            [5_000, 10_000, 20_000, 300_000, 300_000]
        );
        let tried_ms: u64 = (1..CALL_OFF_ATTEMPTS_MAX).map(pause_ms).sum();
        assert!(tried_ms >= 60 * 60 * 1000, "{tried_ms}");
    }
}
