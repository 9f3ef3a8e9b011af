//! The queue as every store understands it: whose turn it is ([`turns`]), how many slots a project may have
//! ([`share`]), which tasks run alone ([`alone`]), where a claim stops ([`claiming`]), and what clients are told of all
//! that ([`forecasts`]). [`index`] holds the unfinished tasks in memory, for a store that does. Pure: it is handed records, requests and times, and knows no database.

pub(crate) mod alone;
mod change;
mod claiming;
mod forecasts;
mod index;
mod share;
mod turns;

pub(crate) use change::Change;
pub(crate) use claiming::Claiming;
pub(crate) use forecasts::Forecasts;
pub(crate) use index::Index;
pub(crate) use share::Share;
pub(crate) use turns::Turns;
