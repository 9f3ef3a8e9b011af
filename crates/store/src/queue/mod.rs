//! The queue: the rules between tasks, common to all databases. Projects take turns ([`turns`]), the
//! tasks of a project wait in an order ([`change`]), and a claim ends where a task must run alone
//! ([`claiming`]). [`estimates`] predicts waiting times for clients. A store that keeps its unfinished
//! tasks in memory uses [`index`]. Pure: it takes records, requests and times, and knows no database.

mod change;
pub(crate) mod claiming;
mod estimates;
mod index;
mod turns;

pub(crate) use change::{QueuePlace, RecordChange};
pub(crate) use claiming::ClaimProgress;
pub(crate) use estimates::{
    POSITIONS_MAX, QueueEstimates, QueueSnapshot, RunningEntry, WaitingEntry,
};
pub(crate) use index::QueueIndex;
pub(crate) use turns::ProjectTurns;
