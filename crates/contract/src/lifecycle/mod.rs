//! A task's life as values: the events that may happen to it ([`TaskEvent`]), the state afterwards, and
//! the effects on files, upstream jobs, usage and waiting workers ([`TaskEffects`]). [`TaskRecord::apply`]
//! is pure and total: a store calls it in its own transaction and stores the result; stores have no
//! rules of their own.

mod deaths;
mod effects;
mod event;
mod files;
mod record;
mod tally;
#[cfg(test)]
mod tests;
mod transition;

pub use deaths::{DeathVerdict, evaluate_death, runs_alone};
pub use effects::{CallOff, SpendingChange, TaskEffects, WakeHints};
pub use event::{EventRefusal, FetchOutcome, LeaseRenewal, RunOutcome, TaskEvent};
pub use event::{Lease, LeaseLost, ReleasedAttempt, StoredLease};
pub use files::{
    FileKind, MARKS, TASK_FILES, UPLOADS, kept_reference_keys, mark_key, owns_file, reference_keys,
    reference_keys_for, task_of_file, upload_key, upload_of_key,
};
pub use record::{ReferenceState, TaskRecord};
pub use tally::{TallyEntry, TaskTally};
pub use transition::TaskTransition;
