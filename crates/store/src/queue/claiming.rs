//! One claim: how many tasks a worker gets, and where the claim stops. The store supplies the
//! running tasks and, repeatedly, the task whose turn it is ([`super::ProjectTurns`], [`super::SlotShare`]),
//! and stores the claimed ones.
//!
//! A claim stops at a task that must run alone ([`evaluate_death`]): nothing is claimed beside one, and
//! while one waits for its worker to finish everything else, that worker claims nothing. A process that
//! may be in a crash loop claims none of them. A task whose job runs at another server is never the
//! cause of a death.

use std::collections::HashMap;

use kinora_contract::lifecycle::{
    DeathVerdict, StoredLease, TaskEvent, TaskRecord, evaluate_death, runs_alone,
};
use kinora_contract::{TaskId, UnixMs};

use crate::present_time::PresentTime;
use crate::{ClaimRequest, ClaimedTask, LongTasks};

/// A claim in progress.
#[derive(Debug)]
pub(crate) struct ClaimProgress<'a> {
    request: &'a ClaimRequest,
    now: PresentTime,
    /// Whether the worker ran anything before the claim.
    was_busy: bool,
    /// Whether nothing more may be claimed in addition to the worker's tasks.
    is_closed: bool,
    /// The long tasks that may still be claimed.
    long_tasks: Option<LongTasks>,
    claims: Vec<ClaimedTask>,
}

impl<'a> ClaimProgress<'a> {
    /// Begins a claim, given the `running` tasks of all workers; `awaited` is the task that waits
    /// for this worker to be empty ([`WaitingAlone::awaits`]).
    pub(crate) fn begin<'r>(
        request: &'a ClaimRequest,
        now: &PresentTime,
        running: impl Iterator<Item = &'r TaskRecord>,
        awaited: Option<&TaskRecord>,
    ) -> Self {
        let runs = worker_runs(running, request, now);
        Self {
            request,
            now: now.clone(),
            was_busy: !runs.is_empty(),
            is_closed: is_held_back(&runs, awaited, request),
            long_tasks: request.long_tasks,
            claims: Vec::new(),
        }
    }

    /// Whether a claim leads to the task whose turn it is (`has_next`): the worker gets it now, or is
    /// held back until it can get a task of its own models that must run alone.
    pub(crate) fn leads_to_task<'r>(
        request: &ClaimRequest,
        now: &PresentTime,
        running: impl Iterator<Item = &'r TaskRecord>,
        awaited: Option<&TaskRecord>,
        has_next: bool,
    ) -> bool {
        // A task of the caller's own models that waits for an idle worker is a task to come for.
        // One of other models only holds the worker back: a claim for these models would get
        // nothing.
        let awaited = awaited.filter(|one| !request.models.contains(&one.task.spec.model));
        has_next && ClaimProgress::begin(request, now, running, awaited).is_open()
    }

    /// Whether another task may be claimed.
    pub(crate) const fn is_open(&self) -> bool {
        !self.is_closed && self.claims.len() < self.request.count
    }

    /// The long tasks that may still be claimed, if they are limited.
    pub(crate) const fn long_tasks(&self) -> Option<LongTasks> {
        self.long_tasks
    }

    /// Decides on the task whose turn it is: either it is claimed now, or the claim ends here,
    /// since the task must run alone and the worker has others.
    ///
    /// # Errors
    /// The hint to store in the second case.
    pub(crate) fn admit(&mut self, next: &TaskRecord) -> Result<(), WaitingAlone> {
        // Closed in both cases: a task that runs alone is the last one of its claim, and one that
        // cannot run yet ends the claim, so that no later task takes the worker away from it.
        self.is_closed = must_run_alone(next, self.request);
        let is_busy = self.was_busy || !self.claims.is_empty();
        if self.is_closed && is_busy {
            return Err(WaitingAlone::new(self.request, next));
        }
        Ok(())
    }

    /// The event that claims one task under this token.
    pub(crate) fn event(&self, token: u64) -> TaskEvent {
        TaskEvent::Claimed {
            held: self.request.stored_lease(token, &self.now),
            now_ms: self.now.wall_ms,
        }
    }

    /// Records a claimed task.
    pub(crate) fn add(&mut self, claimed: &TaskRecord, token: u64) {
        // Each long task of this claim takes one of the slots that long tasks may fill.
        if let Some(long) = &mut self.long_tasks {
            long.charge(claimed);
        }
        self.claims.push(ClaimedTask::new(claimed, token));
    }

    /// The claimed tasks.
    pub(crate) fn claims(self) -> Vec<ClaimedTask> {
        self.claims
    }
}

/// The `until_ms` that marks the lease of a lost task: the verdict was reached when the store was
/// opened, and the next sweep, which knows the time, ends the lease.
const JUDGED_MS: UnixMs = 0;

/// A task that waits for its worker to be idle, so that it can run alone. Only a hint: claims check
/// whether it still holds.
#[derive(Clone, Debug)]
pub(crate) struct WaitingAlone {
    worker: String,
    task: TaskId,
}

impl WaitingAlone {
    fn new(request: &ClaimRequest, record: &TaskRecord) -> Self {
        Self {
            worker: request.worker.clone(),
            task: record.task.id,
        }
    }

    /// Restores a stored hint.
    pub(crate) const fn from_stored(worker: String, task: TaskId) -> Self {
        Self { worker, task }
    }

    /// The worker and the task, to store.
    pub(crate) fn into_parts(self) -> (String, TaskId) {
        (self.worker, self.task)
    }

    /// The task, if it waits for the requesting worker.
    pub(crate) fn awaits(&self, request: &ClaimRequest) -> Option<TaskId> {
        (self.worker == request.worker).then_some(self.task)
    }
}

/// The running tasks of the requesting worker, among all running tasks.
fn worker_runs<'a>(
    running: impl Iterator<Item = &'a TaskRecord>,
    request: &ClaimRequest,
    now: &PresentTime,
) -> Vec<&'a TaskRecord> {
    // A run whose lease has ended is lost already and waits for the sweep: it must not hold back the worker
    // that came back under the same name.
    running
        .filter(|record| {
            record.lease.as_ref().is_some_and(|lease| {
                lease.worker == request.worker && !now.is_over(lease.ends_ms, request.lease_ms)
            })
        })
        .collect()
}

/// Whether a worker with these `runs`, which `next` waits for ([`WaitingAlone::awaits`]), may claim nothing
/// for now.
fn is_held_back(runs: &[&TaskRecord], next: Option<&TaskRecord>, request: &ClaimRequest) -> bool {
    let is_awaited = next.is_some_and(|next| next.is_claimable() && must_run_alone(next, request));
    runs.iter().any(|record| {
        // `attempt` includes this run.
        let before = record.task.attempt.saturating_sub(1);
        is_awaited || runs_alone(record.deaths, before, request.attempts_max)
    })
}

/// Whether this waiting task's next attempt runs alone.
pub(crate) fn must_run_alone(record: &TaskRecord, request: &ClaimRequest) -> bool {
    runs_alone(record.deaths, record.task.attempt, request.attempts_max)
}

/// Whether this waiting task's next attempt must wait until the worker's process is known not to be in
/// a crash loop.
pub(crate) fn is_too_early(record: &TaskRecord, request: &ClaimRequest) -> bool {
    !request.is_settled && must_run_alone(record, request)
}

/// Number of running tasks per worker.
pub(crate) struct WorkerRuns(HashMap<String, usize>);

impl WorkerRuns {
    /// Counts all running tasks.
    pub(crate) fn from_running<'a>(running: impl Iterator<Item = &'a TaskRecord>) -> Self {
        let mut workers = HashMap::new();
        for lease in running.filter_map(|record| record.lease.as_ref()) {
            *workers.entry(lease.worker.clone()).or_default() += 1;
        }
        Self(workers)
    }

    /// The consequence of its worker's death for this running task.
    pub(crate) fn evaluate(&self, record: &TaskRecord, attempts_max: u32) -> DeathVerdict {
        // The work is done by another server, so this process did not die of it.
        if record.ticket.is_some() {
            return DeathVerdict::Spared;
        }
        let lease = record.lease.as_ref();
        let alone = lease.is_none_or(|lease| {
            let running = self.0.get(&lease.worker).copied().unwrap_or(0);
            // A mark from the opening means that the task ran alone: by now the other tasks of the
            // dead worker may have been requeued, so the count says nothing.
            lease.until_ms == JUDGED_MS || running <= 1
        });
        evaluate_death(record.task.attempt, attempts_max, alone)
    }
}

/// The lease of a lost task, until the next sweep.
pub(crate) fn mark_evaluated(lease: &StoredLease) -> StoredLease {
    StoredLease {
        until_ms: JUDGED_MS,
        ..lease.clone()
    }
}
