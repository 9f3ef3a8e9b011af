//! The effects of a task's change outside the task: files to remove, an upstream job to cancel, sums,
//! and the parties to wake. They follow from the records before and after, whatever the event was, so no
//! transition can forget one.

use std::sync::Arc;

use crate::id::TaskId;
use crate::lifecycle::files::{keeps_references, reference_keys};
use crate::lifecycle::record::TaskRecord;
use crate::lifecycle::tally::TallyEntry;
use crate::prices::CostReservation;
use crate::task::TaskState;
use crate::time::UnixMs;

/// Work for the store in the same transaction as the change, besides storing the task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskEffects {
    /// Blob keys of files that are no longer needed; some may not exist.
    pub garbage: Vec<String>,
    /// Work in progress elsewhere, for a task that ended without a result.
    pub call_off: Option<CallOff>,
    /// The task, if it has ended: webhooks must be notified.
    pub ended: Option<TaskId>,
    /// Change of the project's charged bytes.
    pub bytes: i64,
    /// Change of the project's number of unexpired tasks.
    pub tasks: i64,
    /// Whether clients' texts were removed that must leave the disk soon.
    pub erases: bool,
    /// The task's part in the sums over ended tasks, if it ends.
    pub ending: Option<TallyEntry>,
    /// The change of what the budgets of the task count, if it ends.
    pub spending: Option<SpendingChange>,
}

/// The difference between the final cost of a task and the reserved amount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpendingChange {
    /// The budgets.
    pub reserved: CostReservation,
    /// The difference in millionths; negative if the task cost less.
    pub micros: i64,
}

/// An upstream job to cancel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallOff {
    /// The task, which may no longer exist.
    pub task: TaskId,
    /// Its model, which determines the engine that understands the ticket.
    pub model: String,
    /// The engine's own name for the work ([`crate::lifecycle::LeaseRenewal::ticket`]).
    pub ticket: String,
}

/// The parties that a change may concern.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WakeHints {
    /// A task may be ready to claim or to fetch.
    pub work: bool,
    /// A lease of a run or a fetch was withdrawn.
    pub withdrawn: bool,
    /// A task has ended: webhook deliveries may be due.
    pub ended: bool,
}

impl TaskEffects {
    /// The effects of a change from `before` to `after`; `None` stands for a task that does not
    /// exist.
    #[must_use]
    pub fn between(before: Option<&TaskRecord>, after: Option<&TaskRecord>) -> Self {
        let [bytes_before, bytes_after] = [before, after].map(charged_bytes);
        let [tasks_before, tasks_after] = [before, after].map(listed_tasks);
        Self {
            garbage: before.map_or_else(Vec::new, |before| garbage(before, after)),
            call_off: before.and_then(|before| call_off(before, after)),
            ended: before
                .filter(|before| ends(before, after))
                .map(|before| before.task.id),
            bytes: bytes_after - bytes_before,
            tasks: tasks_after - tasks_before,
            erases: before.is_some()
                && after.is_none_or(|after| matches!(after.task.state, TaskState::Expired)),
            ending: before
                .zip(after)
                .and_then(|(before, after)| TallyEntry::from_change(before, after)),
            spending: before.and_then(|before| spending(before, after)),
        }
    }

    /// The effects of a deletion at `now_ms`.
    #[must_use]
    pub fn for_deletion(before: &TaskRecord, now_ms: UnixMs) -> Self {
        Self {
            ending: TallyEntry::from_deletion(before, now_ms),
            ..Self::between(Some(before), None)
        }
    }
}

impl WakeHints {
    /// Combines two hints.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self {
            work: self.work || other.work,
            withdrawn: self.withdrawn || other.withdrawn,
            ended: self.ended || other.ended,
        }
    }

    /// The parties concerned by a task's change from `before` to `after`.
    #[must_use]
    pub fn between(before: Option<&TaskRecord>, after: Option<&TaskRecord>) -> Self {
        // A task that waits may be ready to claim or to fetch. While a fetch is in progress it is neither, so the
        // start of one wakes nobody.
        let work = after
            .is_some_and(|after| after.is_waiting() && after.references.fetch_token().is_none());
        let was_held = before.is_some_and(|record| {
            record.is_running() || record.is_waiting() && record.references.fetch_token().is_some()
        });
        let is_withdrawn = match after {
            None => true,
            // Only a cancel keeps the lease of the run that it ends.
            Some(after) if after.is_terminal() => {
                after.lease.is_some() || before.is_some_and(TaskRecord::is_waiting)
            }
            Some(_) => false,
        };
        Self {
            work,
            withdrawn: was_held && is_withdrawn,
            ended: before.is_some_and(|before| ends(before, after)),
        }
    }
}

fn charged_bytes(record: Option<&TaskRecord>) -> i64 {
    record.map_or(0, |record| {
        i64::try_from(record.charged_bytes).unwrap_or(i64::MAX)
    })
}

/// 1 for a task that counts against its project's quota of tasks, otherwise 0.
fn listed_tasks(record: Option<&TaskRecord>) -> i64 {
    record.map_or(0, |record| i64::from(record.task.status().is_some()))
}

/// Whether the task ends with this change. A removal of an unfinished task is an end.
fn ends(before: &TaskRecord, after: Option<&TaskRecord>) -> bool {
    !before.is_terminal() && after.is_none_or(TaskRecord::is_terminal)
}

/// Keys of files that `before` needed or may have created, and `after` does not need.
fn garbage(before: &TaskRecord, after: Option<&TaskRecord>) -> Vec<String> {
    let mut keys = Vec::new();
    if let Some(lease) = before.running_lease() {
        let goes_on = after.and_then(TaskRecord::running_lease) == Some(lease.clone());
        let is_result =
            after.is_some_and(|after| matches!(after.task.state, TaskState::Completed(_)));
        // The run may be writing its files at this moment, under keys with its token. Recording
        // them is harmless: a later attempt has another token and other keys.
        if !goes_on && !is_result {
            keys.extend(lease.file_keys());
        }
    }
    if let TaskState::Completed(artifact) = &before.task.state
        && !after.is_some_and(|after| matches!(after.task.state, TaskState::Completed(_)))
    {
        keys.extend(artifact.files().map(|file| file.key.clone()));
    }
    if keeps_references(&before.task) && !after.is_some_and(|after| keeps_references(&after.task)) {
        keys.extend(reference_keys(&before.task));
    }
    keys
}

/// The part of a task in its budgets is reserved when it is accepted, and corrected once, when it ends. A deletion ends
/// an unfinished task.
fn spending(before: &TaskRecord, after: Option<&TaskRecord>) -> Option<SpendingChange> {
    let cost = before.task.cost.as_ref().filter(|_| ends(before, after))?;
    let last = match after {
        Some(after) => after.task.cost.as_ref().map(|cost| cost.amount),
        None => before.cost_if_withdrawn(),
    };
    let change =
        last.unwrap_or_default().micros().cast_signed() - cost.amount.micros().cast_signed();
    let reserved = cost.reserved.clone().filter(|_| change != 0)?;
    Some(SpendingChange {
        reserved,
        micros: change,
    })
}

fn call_off(before: &TaskRecord, after: Option<&TaskRecord>) -> Option<CallOff> {
    let has_result = after.is_some_and(|after| matches!(after.task.state, TaskState::Completed(_)));
    let goes_on = after.is_some_and(|after| !after.is_terminal());
    // An unfinished task keeps its ticket: the next attempt resumes the same job. A result means
    // that the job has ended by itself. In all other cases nobody will fetch its result, so the
    // server should stop.
    let ticket: &Arc<str> = before.ticket.as_ref().filter(|_| !has_result && !goes_on)?;
    Some(CallOff {
        task: before.task.id,
        model: before.task.spec.model.clone(),
        ticket: ticket.to_string(),
    })
}
