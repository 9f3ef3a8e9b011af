//! A task with what only the store knows of it: its place in the queue and its lease. Records
//! never change; a change is a new one.

use std::collections::BTreeMap;
use std::sync::Arc;

use kinora_contract::{Inputs, State, SteadyMs, Task, TaskId, UnixMs};

use crate::Lease;
use crate::files::{keeps_references, reference_allowance};

/// What a task takes besides its texts: its row with its place in the indexes, and its record in memory.
const ROW_BYTES: u64 = 1024;

/// A task as this store keeps it.
#[derive(Clone, Debug)]
pub(super) struct Record {
    /// Order of acceptance.
    pub(super) seq: u64,
    pub(super) task: Arc<Task>,
    /// While running; kept by a cancel, so that its worker can be told that it was withdrawn.
    pub(super) lease: Option<Held>,
    /// What an attempt wants a later one to know; while the task is unfinished.
    pub(super) kept: Option<Arc<str>>,
    /// What its fetched references take; an allowance until it is known.
    pub(super) reference_bytes: u64,
    /// What it is charged with in its project's usage.
    pub(super) charged_bytes: u64,
    /// What the run shows of its work; in memory alone, where every running task is.
    pub(super) preview: Option<Arc<[u8]>>,
    /// Whether it can be claimed, while it waits.
    pub(super) references: References,
    /// Deaths of its worker so far.
    pub(super) deaths: u32,
}

/// How far a task's references are. On disk it is only whether they are at hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum References {
    /// There are none, or all are stored.
    AtHand,
    /// They are to be fetched.
    Wanted {
        /// Fetches begun so far.
        tries: u32,
    },
    /// Nobody may take them before a time: they are being fetched, or the last try was our fault.
    Away {
        /// Fetches begun so far.
        tries: u32,
        /// They are wanted again from then on, by steady time.
        until_ms: SteadyMs,
        /// Who fetches them.
        token: Option<u64>,
    },
}

impl References {
    /// Of a task as it is stored.
    pub(super) fn stored(ready: bool, task: &Task) -> Self {
        if ready || task.spec.inputs == Inputs::Text {
            Self::AtHand
        } else {
            Self::Wanted { tries: 0 }
        }
    }

    /// Who fetches them now.
    pub(super) const fn fetch(self) -> Option<u64> {
        match self {
            Self::Away { token, .. } => token,
            _ => None,
        }
    }

    pub(super) const fn tries(self) -> u32 {
        match self {
            Self::AtHand => 0,
            Self::Wanted { tries } | Self::Away { tries, .. } => tries,
        }
    }
}

/// A lease as kept.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub(super) token: u64,
    pub(super) until_ms: UnixMs,
    /// What it is judged by; in memory alone. 0 of a lease that an earlier process gave: it is over.
    pub(super) until_steady_ms: SteadyMs,
    pub(super) worker: String,
}

impl Record {
    /// The record of a task that has just been accepted.
    pub(super) fn accepted(seq: u64, task: Task) -> Self {
        let reference_bytes = reference_allowance(&task);
        Self {
            seq,
            charged_bytes: cost(&task, reference_bytes),
            reference_bytes,
            references: References::stored(false, &task),
            task: Arc::new(task),
            lease: None,
            kept: None,
            preview: None,
            deaths: 0,
        }
    }

    /// What it takes in memory, about.
    pub(super) fn memory_bytes(&self) -> u64 {
        let failure = match &self.task.state {
            State::Failed(failure) => failure.message.len() as u64,
            _ => 0,
        };
        ROW_BYTES + text_bytes(&self.task) + failure
    }

    pub(super) fn is_waiting(&self) -> bool {
        matches!(self.task.state, State::Waiting)
    }

    /// Whether a worker may claim it.
    pub(super) fn is_claimable(&self) -> bool {
        self.is_waiting() && self.references == References::AtHand
    }

    pub(super) fn is_running(&self) -> bool {
        matches!(self.task.state, State::Running)
    }

    pub(super) fn is_unfinished(&self) -> bool {
        !self.task.state.phase().is_terminal()
    }

    pub(super) fn token(&self) -> Option<u64> {
        self.lease.as_ref().map(|held| held.token)
    }

    /// The lease under which the task runs now.
    pub(super) fn running_lease(&self) -> Option<Lease> {
        let token = self.token().filter(|_| self.is_running())?;
        let task = self.task.id;
        Some(Lease { task, token })
    }

    /// The successor of this record with a changed task and the lease given. An ended task keeps only
    /// what can still be asked for.
    pub(super) fn with(&self, lease: Option<Held>, change: impl FnOnce(&mut Task)) -> Arc<Self> {
        let mut task = Task::clone(&self.task);
        change(&mut task);
        shed(&mut task);
        let before = cost(&self.task, self.reference_bytes);
        let after = cost(&task, self.reference_bytes);
        let kept = self.kept.clone();
        Arc::new(Self {
            seq: self.seq,
            reference_bytes: self.reference_bytes,
            charged_bytes: self
                .charged_bytes
                .saturating_add(after)
                .saturating_sub(before),
            kept: kept.filter(|_| !task.state.phase().is_terminal()),
            preview: self
                .preview
                .clone()
                .filter(|_| matches!(task.state, State::Running)),
            task: Arc::new(task),
            lease,
            references: self.references,
            deaths: self.deaths,
        })
    }

    /// The successor of this record whose references are so far.
    pub(super) fn with_references(&self, references: References) -> Arc<Self> {
        Arc::new(Self {
            references,
            ..self.clone()
        })
    }
}

/// Drops what nobody can ask for any more: of an ended task its inputs, unless it is a draft whose final
/// may be made of them; of an expired one, which only answers that it is gone, all texts.
fn shed(task: &mut Task) {
    if keeps_references(task) {
        return;
    }
    task.spec.inputs = Inputs::Text;
    task.spec.negative_prompt = None;
    if matches!(task.state, State::Expired) {
        task.spec.prompt = String::new();
        task.metadata = BTreeMap::new();
    }
}

/// What a task takes on disk.
pub(super) fn cost(task: &Task, reference_bytes: u64) -> u64 {
    let result = match &task.state {
        State::Completed(artifact) => artifact.files().iter().map(|file| file.bytes).sum(),
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

/// One record's way through a transaction; applied backwards it is undone. `before` is known
/// only of unfinished tasks: what is finished has no place in the queue.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) id: TaskId,
    pub(super) before: Option<Arc<Record>>,
    pub(super) after: Option<Arc<Record>>,
}

impl Change {
    /// Whether a worker might want to know: there is new work, or its own was taken away.
    pub(super) fn concerns_workers(&self) -> bool {
        let before = self.before.as_ref();
        let was_running = before.is_some_and(|record| record.is_running());
        let was_fetched = before.is_some_and(|record| record.references.fetch().is_some());
        match &self.after {
            None => was_running || was_fetched,
            // That a fetch begins is news to nobody.
            Some(after) if after.is_waiting() => after.references.fetch().is_none(),
            Some(_) if was_fetched => true,
            // Only a cancel keeps the lease of a task that it ends.
            Some(after) => was_running && !after.is_unfinished() && after.lease.is_some(),
        }
    }
}
