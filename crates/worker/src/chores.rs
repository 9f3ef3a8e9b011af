//! Leased chores outside the store: files to remove and upstream jobs to cancel. Any process may take them, and the
//! one that does settles them.

use futures_util::future::join_all;
use futures_util::{StreamExt, stream};
use kinora_store::{CallOff, Chore, ChoreDone, ChoreKind, ChoreRequest, ChoreWork, StoreError};

use crate::lineup::Maker;
use crate::worker::Worker;

/// Files that one look removes at most.
const FILES: usize = 200;
/// Files that are removed at a time: each waits for a sync.
const REMOVALS: usize = 4;
/// Upstream jobs that are called off at a time: each takes two seconds at most, and a sweep has other work.
const CALL_OFFS: usize = 16;
/// Long enough for a batch on a slow disk or network.
const LEASE_MS: u64 = 10 * 60 * 1000;
/// Pause after the first failure; it doubles up to the longest.
const FIRST_PAUSE_MS: u64 = 5_000;
const LONGEST_PAUSE_MS: u64 = 5 * 60 * 1000;
/// After so many failures, more than an hour, an upstream job is left alone: it has long ended.
const CALL_OFF_ATTEMPTS_MAX: u32 = 20;

/// Removes unneeded files; returns whether more are due at once.
pub(crate) async fn remove_files(worker: &Worker) -> Result<bool, StoreError> {
    let chores = take(worker, ChoreKind::RemoveFile, FILES).await?;
    let is_full = chores.len() == FILES;
    let removals = stream::iter(chores).map(|chore| remove_file(worker, chore));
    let done: Vec<ChoreDone> = removals.buffer_unordered(REMOVALS).collect().await;
    let all_gone = done.iter().all(|one| one.again_after_ms.is_none());
    settle(worker, done).await?;
    Ok(is_full && all_gone)
}

async fn remove_file(worker: &Worker, chore: Chore) -> ChoreDone {
    let ChoreWork::RemoveFile(key) = &chore.work else {
        return chore.again(LONGEST_PAUSE_MS);
    };
    match worker.blobs.delete(key).await {
        Ok(()) => {
            kinora_crash::point("worker.swept_file");
            chore.done()
        }
        Err(error) => {
            tracing::warn!(%error, %key, "unneeded file not removed yet");
            let pause_ms = pause_ms(chore.attempts);
            chore.again(pause_ms)
        }
    }
}

/// Cancels upstream jobs of tasks that ended without a result: they are unwanted and may cost money. The
/// run of a cancelled task does so at once; this is for tasks that had no run just then, and for servers that did
/// not hear.
pub(crate) async fn call_off_jobs(worker: &Worker) -> Result<(), StoreError> {
    let kind = ChoreKind::CallOff {
        models: worker.lineup.models(),
    };
    let chores = take(worker, kind, CALL_OFFS).await?;
    let done = join_all(chores.into_iter().map(|chore| call_off(worker, chore))).await;
    settle(worker, done).await
}

async fn call_off(worker: &Worker, chore: Chore) -> ChoreDone {
    let ChoreWork::CallOff(CallOff {
        task,
        model,
        ticket,
    }) = &chore.work
    else {
        return chore.again(LONGEST_PAUSE_MS);
    };
    let Some(Maker::Film(engine)) = worker.lineup.of(model).map(|served| &served.engine) else {
        // Its engine was changed: this one begins nothing elsewhere.
        return chore.done();
    };
    match engine.call_off(ticket).await {
        Ok(()) => {
            tracing::info!(%task, "upstream job called off");
            chore.done()
        }
        Err(error) if chore.attempts >= CALL_OFF_ATTEMPTS_MAX => {
            tracing::warn!(%task, %error, "upstream job could not be called off; given up");
            chore.done()
        }
        Err(error) => {
            tracing::debug!(%task, %error, "upstream job not called off yet");
            let pause_ms = pause_ms(chore.attempts);
            chore.again(pause_ms)
        }
    }
}

async fn take(worker: &Worker, kind: ChoreKind, count: usize) -> Result<Vec<Chore>, StoreError> {
    let request = ChoreRequest {
        kind,
        count,
        lease_ms: LEASE_MS,
    };
    worker.chores.take_chores(request).await
}

async fn settle(worker: &Worker, done: Vec<ChoreDone>) -> Result<(), StoreError> {
    if done.is_empty() {
        return Ok(());
    }
    worker.chores.settle_chores(done).await
}

/// How long to wait after so many attempts, in milliseconds.
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
