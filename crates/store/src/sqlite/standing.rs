//! What the writer remembers of the database, so that it need not ask for it: the queue, the sums, and the numbers that
//! were given out. It belongs to the writer alone and is read when the store is opened.

use crate::gap::Gaps;
use crate::queue::Index;
use crate::usages::Usages;

/// How the store stands.
#[derive(Debug, Default)]
pub(super) struct Standing {
    /// Unfinished tasks.
    pub(super) queue: Index,
    /// Stored bytes and tasks of all projects.
    pub(super) usages: Usages,
    /// Whether this process follows one that died, and may be next.
    pub(super) unsettled: bool,
    /// Largest place given out.
    pub(super) seq: u64,
    /// Largest fencing token given out.
    pub(super) token: u64,
    /// Largest token of a fetch given out.
    pub(super) fetch_token: u64,
    /// Largest token of a chore given out.
    pub(super) chore_token: u64,
    /// Changes that were ever committed.
    pub(super) changes: u64,
    /// Times in which other tasks may have been accepted by a copy.
    pub(super) gaps: Gaps,
}
