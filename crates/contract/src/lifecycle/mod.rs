//! A task's life as values: the events that may happen to it ([`Event`]), the state afterwards, and
//! the effects on files, upstream jobs, usage and waiting workers ([`Effects`]). [`Record::apply`]
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

pub use deaths::{Verdict, judge_death, runs_alone};
pub use effects::{CallOff, Effects, Hints};
pub use event::{Attempt, Held, Lease, LeaseLost};
pub use event::{Event, FetchOutcome, Outcome, Refused, Renewal};
pub use files::{
    MARKS, TASK_FILES, kept_reference_keys, mark_key, names_file, reference_keys,
    reference_keys_of, task_of_file,
};
pub use record::{Record, References};
pub use tally::{Ending, Tally};
pub use transition::Transition;
