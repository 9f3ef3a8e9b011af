//! The queue as every store understands it: whose turn it is ([`turns`]), which of a project's tasks go first ([`place`]),
//! how many slots a project may have ([`share`]), which tasks run alone ([`alone`]), where a claim stops ([`claiming`]), and the
//! waiting times that clients see ([`forecasts`]). A store that keeps its unfinished tasks in memory does so in
//! [`index`]. Pure: it takes records, requests and times, and knows no database.

pub(crate) mod alone;
mod change;
mod claiming;
mod forecasts;
mod index;
mod place;
mod share;
mod turns;

pub(crate) use change::Change;
pub(crate) use claiming::Claiming;
pub(crate) use forecasts::{Forecasts, Picture, Runs, Waits};
pub(crate) use index::Index;
pub(crate) use place::Place;
pub(crate) use share::Share;
pub(crate) use turns::Turns;
