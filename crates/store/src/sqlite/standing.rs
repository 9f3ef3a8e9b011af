//! The writer's memory of the database, which saves it queries: the queue, the sums, and the issued
//! numbers. Only the writer uses it; it is read when the store is opened.

use std::collections::HashMap;

use kinora_contract::TaskId;

use crate::queue::Index;
use crate::usages::Usages;

/// The remembered state.
#[derive(Debug, Default)]
pub(super) struct Standing {
    /// Unfinished tasks.
    pub(super) queue: Index,
    /// Stored bytes and tasks of all projects.
    pub(super) usages: Usages,
    /// Ids of the last accepted tasks of projects; read again after a transaction that failed.
    pub(super) newest: HashMap<String, TaskId>,
    /// Largest issued place.
    pub(super) seq: u64,
    /// Largest issued fencing token.
    pub(super) token: u64,
    /// Largest issued token of a fetch.
    pub(super) fetch_token: u64,
    /// Largest issued token of a chore.
    pub(super) chore_token: u64,
    /// Number of changes ever committed.
    pub(super) changes: u64,
}
