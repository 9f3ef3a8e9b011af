//! The queue, common to all stores: turns ([`turns`]), the order of a project's tasks ([`place`]),
//! a project's share of the slots ([`share`]), tasks that run alone ([`alone`]), the end of a claim
//! ([`claiming`]), and the waiting times that clients see ([`estimates`]). A store that keeps its
//! unfinished tasks in memory uses [`index`]. Pure: it takes records, requests and times, and knows
//! no database.

pub(crate) mod alone;
mod change;
mod claiming;
mod estimates;
mod index;
mod place;
mod share;
mod turns;

pub(crate) use change::Change;
pub(crate) use claiming::Claiming;
pub(crate) use estimates::{
    POSITIONS_MAX, QueueEstimates, QueueSnapshot, RunningEntry, WaitingEntry,
};
pub(crate) use index::Index;
pub(crate) use place::QueuePlace;
pub(crate) use share::Share;
pub(crate) use turns::Turns;
