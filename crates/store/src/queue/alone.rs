//! Tasks that run alone ([`judge_death`]): nothing is claimed beside one, and while one waits for
//! its worker to finish everything else, that worker claims nothing. A process that may be in a
//! crash loop claims none of them. A task whose job runs at another server is never the cause of a death.

use std::collections::HashMap;

use kinora_contract::lifecycle::{Held, Record, Verdict, judge_death, runs_alone};
use kinora_contract::{TaskId, UnixMs};

use crate::ClaimRequest;
use crate::present::Present;

/// The lease end of a lost task: it was judged when the store was opened, and the next sweep, which
/// knows the time, ends it.
const JUDGED_MS: UnixMs = 0;

/// A task that waits for its worker to be empty: only a hint, which claims check.
#[derive(Clone, Debug)]
pub(crate) struct Next {
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

    /// As stored.
    pub(crate) const fn stored(worker: String, task: TaskId) -> Self {
        Self { worker, task }
    }

    /// The worker and the task, to store.
    pub(crate) fn parts(self) -> (String, TaskId) {
        (self.worker, self.task)
    }

    /// The task, if it waits for the requesting worker.
    pub(crate) fn awaits(&self, request: &ClaimRequest) -> Option<TaskId> {
        (self.worker == request.worker).then_some(self.task)
    }
}

/// The running tasks of the requesting worker, among all running tasks.
pub(super) fn runs_of<'a>(
    running: impl Iterator<Item = &'a Record>,
    request: &ClaimRequest,
    now: &Present,
) -> Vec<&'a Record> {
    let is_held = |record: &&Record| {
        let lease = record.lease.as_ref();
        lease.is_some_and(|lease| {
            lease.worker == request.worker && !now.is_over(lease.ends_ms, request.lease_ms)
        })
    };
    running.filter(is_held).collect()
}

/// Whether a worker with these `runs`, which `next` waits for ([`Next::awaits`]), may claim nothing
/// for now.
pub(super) fn is_held_back(
    runs: &[&Record],
    next: Option<&Record>,
    request: &ClaimRequest,
) -> bool {
    let is_alone = |record: &Record| {
        // Its attempt includes this run.
        let before = record.task.attempt.saturating_sub(1);
        runs_alone(record.deaths, before, request.attempts_max)
    };
    let is_awaited = next.is_some_and(|next| next.is_claimable() && must_wait(next, request));
    runs.iter().any(|record| is_awaited || is_alone(record))
}

/// Whether this waiting task's next attempt runs alone.
pub(crate) fn must_wait(record: &Record, request: &ClaimRequest) -> bool {
    runs_alone(record.deaths, record.task.attempt, request.attempts_max)
}

/// Whether this waiting task's next attempt must wait until the worker's process is known to be in no crash loop.
pub(crate) fn is_too_early(record: &Record, request: &ClaimRequest) -> bool {
    !request.is_settled && must_wait(record, request)
}

/// Number of running tasks per worker.
pub(crate) struct Company(HashMap<String, usize>);

impl Company {
    /// Counts all running tasks.
    pub(crate) fn of<'a>(running: impl Iterator<Item = &'a Record>) -> Self {
        let mut workers = HashMap::new();
        for lease in running.filter_map(|record| record.lease.as_ref()) {
            *workers.entry(lease.worker.clone()).or_default() += 1;
        }
        Self(workers)
    }

    /// The consequence of its worker's death for this running task.
    pub(crate) fn judge(&self, record: &Record, attempts_max: u32) -> Verdict {
        if record.ticket.is_some() {
            return Verdict::Spared;
        }
        let lease = record.lease.as_ref();
        let alone = lease.is_none_or(|lease| {
            let running = self.0.get(&lease.worker).copied().unwrap_or(0);
            lease.until_ms == JUDGED_MS || running <= 1
        });
        judge_death(record.task.attempt, attempts_max, alone)
    }
}

/// The lease of a lost task, until the next sweep.
pub(crate) fn judged(lease: &Held) -> Held {
    Held {
        until_ms: JUDGED_MS,
        ..lease.clone()
    }
}
