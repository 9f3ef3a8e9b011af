//! A task with the fields that only stores know: its place in the queue, its lease, its charge.
//! Records are immutable; a change makes a new one.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::event::{Lease, LeaseLost, StoredLease};
use super::files::{keeps_references, reference_allowance};
use crate::money::Amount;
use crate::spec::VideoInputs;
use crate::task::{Task, TaskState};
use crate::time::LeaseMs;

/// Size of a task without its texts, in bytes: its row with its index entries, and its record in
/// memory.
const ROW_BYTES: u64 = 1024;

/// A task as a store keeps it.
#[derive(Clone, Debug)]
pub struct TaskRecord {
    /// Order of acceptance.
    pub seq: u64,
    /// The task.
    pub task: Arc<Task>,
    /// Set while running. A cancel keeps it, so that a worker can distinguish a withdrawal from an
    /// expired lease.
    pub lease: Option<StoredLease>,
    /// The engine's own text for a later attempt, while the task is unfinished.
    pub ticket: Option<Arc<str>>,
    /// Size of the stored references; an allowance until it is known.
    pub reference_bytes: u64,
    /// Bytes charged to the project.
    pub charged_bytes: u64,
    /// State of the references, while the task waits.
    pub references: ReferenceState,
    /// Number of deaths of its workers.
    pub deaths: u32,
}

/// The state of a task's references. An embedded store records only whether they are stored: its
/// fetches end with its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReferenceState {
    /// The task has none, or all are stored.
    AtHand,
    /// They must be fetched.
    Wanted {
        /// Number of fetches begun.
        tries: u32,
    },
    /// Not available until a time: a fetch is in progress, or the next one waits for the end of a
    /// pause, because of this service or of a host.
    Away {
        /// Number of fetches begun.
        tries: u32,
        /// The end of that time, by the clock of leases.
        until_ms: LeaseMs,
        /// Token of the fetch in progress.
        token: Option<u64>,
    },
}

impl ReferenceState {
    /// The state for a stored task.
    #[must_use]
    pub fn from_stored(ready: bool, task: &Task) -> Self {
        if ready || task.spec.inputs == VideoInputs::Text {
            Self::AtHand
        } else {
            Self::Wanted { tries: 0 }
        }
    }

    /// Token of the fetch in progress.
    #[must_use]
    pub const fn fetch_token(self) -> Option<u64> {
        match self {
            Self::Away { token, .. } => token,
            _ => None,
        }
    }

    /// Number of fetches begun since the references were last complete.
    #[must_use]
    pub const fn tries(self) -> u32 {
        match self {
            Self::AtHand => 0,
            Self::Wanted { tries } | Self::Away { tries, .. } => tries,
        }
    }
}

impl TaskRecord {
    /// The record of a task that has just been accepted.
    #[must_use]
    pub fn accepted(seq: u64, task: Task) -> Self {
        let reference_bytes = reference_allowance(&task);
        Self {
            seq,
            charged_bytes: cost(&task, reference_bytes),
            reference_bytes,
            references: ReferenceState::from_stored(false, &task),
            task: Arc::new(task),
            lease: None,
            ticket: None,
            deaths: 0,
        }
    }

    /// Its approximate size in memory, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        let failure = match &self.task.state {
            TaskState::Failed(failure) => failure.message.len() as u64,
            _ => 0,
        };
        ROW_BYTES + text_bytes(&self.task) + failure
    }

    /// Whether the task waits for its references or for a worker.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        matches!(self.task.state, TaskState::Waiting)
    }

    /// Whether the task waits and no worker has claimed it yet.
    #[must_use]
    pub fn awaits_first_worker(&self) -> bool {
        self.is_waiting() && self.task.started_at_ms.is_none()
    }

    /// Whether a worker may claim the task.
    #[must_use]
    pub fn is_claimable(&self) -> bool {
        self.is_waiting() && self.references == ReferenceState::AtHand
    }

    /// Whether a worker runs it.
    #[must_use]
    pub fn is_running(&self) -> bool {
        matches!(self.task.state, TaskState::Running)
    }

    /// Whether the task has ended.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        self.task.state.phase().is_terminal()
    }

    /// What the unfinished task costs if its client ends it now; `None` without prices.
    pub(super) fn cost_if_withdrawn(&self) -> Option<Amount> {
        let cost = self.task.cost.as_ref()?;
        Some(cost.if_withdrawn(self.ticket.is_some()))
    }

    /// Token of the last lease, while it is known.
    #[must_use]
    pub fn token(&self) -> Option<u64> {
        self.lease.as_ref().map(|held| held.token)
    }

    /// The lease under which the task runs now.
    #[must_use]
    pub fn running_lease(&self) -> Option<Lease> {
        let token = self.token().filter(|_| self.is_running())?;
        let task = self.task.id;
        Some(Lease { task, token })
    }

    /// Checks that the run with this token holds the task.
    ///
    /// # Errors
    /// [`LeaseLost`] with the way in which that run lost it.
    pub fn check_token(&self, token: u64) -> Result<(), LeaseLost> {
        if self.token() != Some(token) {
            // Another run has the task, or none: the token is not the last one, or a finish cleared
            // it.
            Err(LeaseLost::Superseded)
        } else if self.is_running() {
            Ok(())
        } else {
            // Only a cancel keeps the token of a task that it ends.
            Err(LeaseLost::Withdrawn)
        }
    }

    /// Checks that a lease still holds, given the record of its task, if there is one.
    ///
    /// # Errors
    /// [`LeaseLost`] with the way in which it was lost.
    pub fn check_lease(record: Option<&Self>, lease: &Lease) -> Result<(), LeaseLost> {
        record.map_or(Err(LeaseLost::Withdrawn), |record| {
            record.check_token(lease.token)
        })
    }

    /// A copy of this record with a changed task and the given lease. An ended task keeps only data
    /// that clients can still request.
    pub(super) fn with_task(
        &self,
        lease: Option<StoredLease>,
        change: impl FnOnce(&mut Task),
    ) -> Self {
        let mut task = Task::clone(&self.task);
        change(&mut task);
        drop_unneeded(&mut task);
        // The charge moves by the difference instead of being set: the stored charge may differ
        // from today's formula, because an earlier version computed it, and the project's sum must
        // stay equal to the sum of its rows.
        let before = cost(&self.task, self.reference_bytes);
        let after = cost(&task, self.reference_bytes);
        let ticket = self.ticket.clone();
        Self {
            charged_bytes: self
                .charged_bytes
                .saturating_add(after)
                .saturating_sub(before),
            // Dropped in the record, and handed to the effects as a job to cancel unless there is a
            // result.
            ticket: ticket.filter(|_| !task.state.phase().is_terminal()),
            task: Arc::new(task),
            lease,
            ..*self
        }
    }

    /// A copy of this record with another state of its references.
    pub(super) fn with_references(&self, references: ReferenceState) -> Self {
        Self {
            references,
            ..self.clone()
        }
    }
}

/// Drops data that nobody can request any more: the addresses of an ended task's references, unless
/// it is a draft whose final may need them; and all texts of an expired one, which only answers 410.
/// The kinds and the number of references stay: an edit of the video depends on what it was made
/// from.
fn drop_unneeded(task: &mut Task) {
    if keeps_references(task) {
        return;
    }
    task.spec.inputs.clear_urls();
    if matches!(task.state, TaskState::Expired) {
        task.spec.prompt = String::new();
        task.spec.negative_prompt = None;
        task.metadata = BTreeMap::new();
    }
}

/// Size of a task on disk, in bytes, by which projects are charged: its row, texts, references while they
/// are kept, and result files.
fn cost(task: &Task, reference_bytes: u64) -> u64 {
    let result = match &task.state {
        TaskState::Completed(artifact) => artifact.files().map(|file| file.bytes).sum(),
        _ => 0,
    };
    let references = if keeps_references(task) {
        reference_bytes
    } else {
        0
    };
    ROW_BYTES + text_bytes(task) + references + result
}

fn text_bytes(task: &Task) -> u64 {
    let spec = &task.spec;
    let own = spec.prompt.len() + spec.negative_prompt.as_ref().map_or(0, String::len);
    let urls: usize = spec
        .inputs
        .references()
        .iter()
        .map(|one| one.url().len())
        .sum();
    let notes: usize = task
        .metadata
        .iter()
        .map(|(key, value)| key.len() + value.len())
        .sum();
    (own + urls + notes) as u64
}
