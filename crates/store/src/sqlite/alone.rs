//! Tasks that run alone ([`judge_death`]): nothing is claimed beside one, and while one waits for its worker
//! to have nothing else, that worker claims nothing else either. In a process that may be in a crash loop none
//! of them is claimed.

use std::collections::HashMap;

use kinora_contract::lifecycle::{Held, Record, Verdict, judge_death, runs_alone};
use kinora_contract::{SteadyMs, TaskId, UnixMs};

use super::index::Index;
use crate::ClaimRequest;

/// The end of a lease whose task is lost: it was judged when the store was opened, and the next sweep, which
/// knows the time, ends it.
const JUDGED_MS: UnixMs = 0;

/// A task that waits for a worker to have nothing else: only a hint, which claims check.
#[derive(Clone, Debug)]
pub(super) struct Next {
    worker: String,
    task: TaskId,
}

impl Next {
    pub(super) fn of(request: &ClaimRequest, record: &Record) -> Self {
        Self {
            worker: request.worker.clone(),
            task: record.task.id,
        }
    }
}

/// Whether this worker may claim nothing for now.
pub(super) fn is_held_back(index: &Index, request: &ClaimRequest, steady_ms: SteadyMs) -> bool {
    let is_alone = |record: &Record| {
        // Its attempt counts this run.
        let before = record.task.attempt.saturating_sub(1);
        runs_alone(record.deaths, before, request.attempts_max)
    };
    let waits = |next: &Next| {
        let record = index.get(next.task).filter(|record| record.is_claimable());
        next.worker == request.worker && record.is_some_and(|record| must_wait(record, request))
    };
    let waiting = index.alone.as_ref().is_some_and(waits);
    running(index, request, steady_ms).any(|record| waiting || is_alone(record))
}

/// Whether this waiting task's next attempt is made alone.
pub(super) fn must_wait(record: &Record, request: &ClaimRequest) -> bool {
    runs_alone(record.deaths, record.task.attempt, request.attempts_max)
}

/// Whether the worker runs something.
pub(super) fn works(index: &Index, request: &ClaimRequest, steady_ms: SteadyMs) -> bool {
    running(index, request, steady_ms).next().is_some()
}

/// What the worker runs.
fn running<'a>(
    index: &'a Index,
    request: &'a ClaimRequest,
    steady_ms: SteadyMs,
) -> impl Iterator<Item = &'a Record> {
    let held = move |record: &&Record| {
        let lease = record.lease.as_ref();
        lease.is_some_and(|lease| {
            lease.worker == request.worker && lease.until_steady_ms > steady_ms
        })
    };
    index.running().map(|record| &**record).filter(held)
}

/// How many tasks each worker runs.
pub(super) struct Company(HashMap<String, usize>);

impl Company {
    pub(super) fn of(index: &Index) -> Self {
        let mut workers = HashMap::new();
        for lease in index.running().filter_map(|record| record.lease.as_ref()) {
            *workers.entry(lease.worker.clone()).or_default() += 1;
        }
        Self(workers)
    }

    /// What the death of the worker of this running task means for it.
    pub(super) fn judge(&self, record: &Record, attempts_max: u32) -> Verdict {
        let lease = record.lease.as_ref();
        let alone = lease.is_none_or(|lease| {
            let running = self.0.get(&lease.worker).copied().unwrap_or(0);
            lease.until_ms == JUDGED_MS || running <= 1
        });
        judge_death(record.task.attempt, attempts_max, alone)
    }
}

/// The lease of a task that is lost, until the next sweep.
pub(super) fn judged(lease: &Held) -> Held {
    Held {
        until_ms: JUDGED_MS,
        ..lease.clone()
    }
}
