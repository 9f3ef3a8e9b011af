//! The fetch stage: fetches the references of waiting tasks before a worker may claim them. So a
//! slow host holds no slot, and short-lived URLs are still valid. Projects take turns, and none can
//! occupy all places. A reference that cannot be fetched fails its task immediately, unless its host failed
//! in a way that may pass ([`host_failures`](mod@crate::host_failures)).

use std::sync::Arc;
use std::time::Duration;

use kinora_contract::Stopwatch;
use kinora_contract::limits::{FETCHES_MAX, FETCHES_PER_PROJECT_MAX};
use kinora_store::{
    FETCH_PAUSE_MS_MAX, FetchReport, FetchRequest, OutageLog, ReferenceFetch, StoreError,
};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tracing::Instrument;

use crate::error::{GatherError, is_machine_fault, is_postponed, is_reference_fault};
use crate::host_failures::{AfterTry, HostFailures};
use crate::shutdown::Shutdown;
use crate::stage_metrics::{RunStage, StageTimer, count_fetch};
use crate::worker::Worker;

/// How often to poll the store without a hint.
const POLL_EVERY: Duration = Duration::from_secs(1);
/// Maximum time of a fetch, storing included; each reference has a shorter limit of its own, and
/// references that are already stored are not fetched again. If a process dies, its fetches block
/// their tasks for this long.
const LEASE: Duration = Duration::from_secs(180);
/// Longest pause that a host may ask for.
const ASKED_MAX: Duration = Duration::from_millis(FETCH_PAUSE_MS_MAX);
/// How long a stop waits for a fetch's result to be stored.
const STOP_GRACE: Duration = Duration::from_secs(1);
/// The first pause after a fault of this service; it doubles up to the longest.
const FIRST_PAUSE_MS: u64 = 500;
const LONGEST_PAUSE_MS: u64 = 60_000;

/// Fetches until a drain begins. Fetches in progress are then given back, and the next process
/// starts them again.
pub(crate) async fn fetch_until_drain(worker: Arc<Worker>, shutdown: Shutdown) {
    let mut hints = worker.work.work_hints();
    let places = Arc::new(Semaphore::new(FETCHES_MAX));
    let freed = Arc::new(Notify::new());
    let mut fetches = JoinSet::new();
    let outage = OutageLog::new("fetch leases", &worker.clock);
    let failures = Arc::new(HostFailures::new(worker.clock.clone(), LEASE));
    while !shutdown.is_draining() {
        // Before the leases are asked for, so that a task which arrives meanwhile ends the wait
        // below.
        hints.mark_unchanged();
        // Places are taken before the store is asked: it leases as many fetches as there are
        // places, and none waits here while its lease runs.
        let free = std::iter::from_fn(|| places.clone().try_acquire_owned().ok());
        let free: Vec<OwnedSemaphorePermit> = free.collect();
        let taken = lease_fetches(&worker, free.len(), &outage).await;
        let idle = taken.is_empty();
        for (fetch, place) in taken.into_iter().zip(free) {
            let (worker, shutdown) = (worker.clone(), shutdown.clone());
            let (freed, failures) = (freed.clone(), failures.clone());
            // Of the highest level, so that no setting of the log takes the task from its lines.
            let span = tracing::error_span!("fetch", task = %fetch.task.id);
            let fetching = async move {
                let fetched = tokio::select! {
                    biased;
                    fetched = fetch_references(&worker, &fetch, &failures) => fetched,
                    () = shutdown.draining() => Some(FetchReport::Back { pause_ms: 0 }),
                };
                if let Some(fetched) = fetched {
                    count_fetch(&fetched);
                    record_result(&worker, &fetch, fetched, &shutdown).await;
                }
                drop(place);
                freed.notify_one();
            };
            fetches.spawn(fetching.instrument(span));
        }
        while fetches.try_join_next().is_some() {}
        if idle {
            tokio::select! {
                biased;
                Ok(()) = hints.changed() => {}
                () = freed.notified() => {}
                () = tokio::time::sleep(POLL_EVERY) => {}
                () = shutdown.draining() => {}
            }
        }
    }
    while fetches.join_next().await.is_some() {}
}

async fn lease_fetches(worker: &Worker, count: usize, outage: &OutageLog) -> Vec<ReferenceFetch> {
    if count == 0 {
        return Vec::new();
    }
    let request = FetchRequest {
        models: worker.lineup.models(),
        count,
        project_max: FETCHES_PER_PROJECT_MAX,
        lease_ms: LEASE.as_millis() as u64,
    };
    match worker.work.lease_fetches(request).await {
        Ok(fetches) => {
            outage.record_success();
            fetches
        }
        Err(error) => {
            outage.record_failure(&error);
            Vec::new()
        }
    }
}

/// Fetches a task's references. `None` if the task has ended meanwhile.
async fn fetch_references(
    worker: &Worker,
    fetch: &ReferenceFetch,
    failures: &HostFailures,
) -> Option<FetchReport> {
    let (tasks, blobs) = (&*worker.work, &*worker.blobs);
    let files = &worker.pools.files;
    let watch = Stopwatch::start(&worker.clock);
    let trail = worker.tracer.trail(fetch.task.trace);
    let stage = StageTimer::begin(&worker.clock, &trail, RunStage::Fetch);
    let gathering = worker.references.gather(tasks, blobs, files, &fetch.task);
    let fetched = match tokio::time::timeout(LEASE, gathering).await {
        Ok(gathered) => match stage.end(gathered, |error| error.code(&fetch.task.spec)) {
            Ok(_) => Some(FetchReport::AtHand),
            Err(GatherError::Ended) => None,
            Err(error) => Some(after_error(worker, fetch, failures, error, watch.elapsed())),
        },
        Err(_) => {
            drop(stage);
            let pause_ms = pause_after(fetch, None);
            Some(FetchReport::Back { pause_ms })
        }
    };
    if !matches!(fetched, Some(FetchReport::Back { .. })) {
        failures.forget(fetch.task.id);
    }
    fetched
}

/// The outcome for a task whose fetch failed after `time`.
fn after_error(
    worker: &Worker,
    fetch: &ReferenceFetch,
    failures: &HostFailures,
    error: GatherError,
    time: Duration,
) -> FetchReport {
    let (id, spec) = (fetch.task.id, &fetch.task.spec);
    let failed = |failure| FetchReport::Failed {
        failure,
        retention_ms: worker.settings.failed_retention_ms,
    };
    if is_reference_fault(&error) {
        tracing::info!(%error, "reference unusable; task failed");
        return failed(error.failure(spec));
    }
    let pause_ms = match error.host_failure() {
        Some(failure) if !is_machine_fault(&error) => {
            match failures.record(id, failure, error.retry_after(), time) {
                AfterTry::Retry { pause } => {
                    tracing::info!(%error, ?pause, "reference not fetched; retrying");
                    pause.as_millis() as u64
                }
                AfterTry::GiveUp(tries) => {
                    tracing::info!(%error, %tries, "reference not fetched; task failed");
                    return failed(error.failure_after(tries, spec));
                }
            }
        }
        _ => {
            if error.is_of_this_disk() {
                worker.backoff.record_fault(&error);
            }
            pause_after(fetch, Some(error))
        }
    };
    FetchReport::Back { pause_ms }
}

/// The pause after a fetch that failed through no fault of the reference, in milliseconds; without
/// an error, the fetch took too long.
fn pause_after(fetch: &ReferenceFetch, error: Option<GatherError>) -> u64 {
    let pause_ms = pause_ms(fetch.tries);
    match error {
        // It waits for its turn at a host or for its project's share, and the error says when to
        // retry.
        Some(error) if is_postponed(&error) => {
            let asked = error.retry_after().unwrap_or_default();
            let pause_ms = pause_ms.max(asked.min(ASKED_MAX).as_millis() as u64);
            tracing::debug!(%error, pause_ms, "references not fetched yet");
            pause_ms
        }
        // The reserve logs its own state; many tasks may wait for space.
        Some(GatherError::NoRoom) => pause_ms,
        Some(error) => {
            tracing::warn!(%error, pause_ms, "references could not be stored; retrying");
            pause_ms
        }
        None => {
            tracing::warn!(pause_ms, "reference fetch timed out; retrying");
            pause_ms
        }
    }
}

/// Stores the result of a fetch; retries while the store is unavailable and the lease may still
/// hold. A stop does not wait for the store: the next process repeats the fetch anyway.
async fn record_result(
    worker: &Worker,
    fetch: &ReferenceFetch,
    fetched: FetchReport,
    shutdown: &Shutdown,
) {
    let settled = async {
        let mut pause = Duration::from_millis(FIRST_PAUSE_MS);
        while let Err(error @ StoreError::Unavailable(_)) =
            worker.work.complete_fetch(fetch, fetched.clone()).await
        {
            tracing::warn!(%error, ?pause, "fetch result not stored; retrying");
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(LONGEST_PAUSE_MS));
        }
    };
    let stopped = async {
        shutdown.draining().await;
        tokio::time::sleep(STOP_GRACE).await;
    };
    tokio::select! {
        biased;
        () = settled => {}
        () = stopped => {}
        () = tokio::time::sleep(LEASE) => {}
    }
}

/// The pause after `tries` tries, in milliseconds.
fn pause_ms(tries: u32) -> u64 {
    let doubled = FIRST_PAUSE_MS << tries.saturating_sub(1).min(16);
    doubled.min(LONGEST_PAUSE_MS)
}
