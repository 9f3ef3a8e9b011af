//! Reads that memory cannot answer: a few read-only connections. Callers bring a thread that may
//! block: a page of a slow disk takes longer than all other requests together.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use kinora_contract::TaskId;
use kinora_contract::lifecycle::Record;
use rusqlite::{Connection, OptionalExtension};

use super::fault::Done;
use super::insert::{self, Bound};
use super::memory::Memory;
use super::{pages, rows, schema, secrets, workers};
use crate::{Idempotency, OpenError, Page, PageRequest, SecretKey, SqliteOptions};

/// Reads at a time.
pub(super) const CONNECTIONS: usize = 4;

/// The readers.
#[derive(Debug)]
pub(super) struct Readers {
    connections: Vec<Mutex<Connection>>,
    turn: AtomicUsize,
}

impl Readers {
    pub(super) fn open(path: &Path, options: &SqliteOptions) -> Result<Self, OpenError> {
        let open = |_| schema::open_reader(path, options).map(Mutex::new);
        let connections = (0..CONNECTIONS).map(open).collect::<Result<_, _>>()?;
        Ok(Self {
            connections,
            turn: AtomicUsize::new(0),
        })
    }

    /// All connections, kept from all others: a disk that does not answer.
    #[cfg(test)]
    pub(super) fn keep_busy(&self) -> Vec<std::sync::MutexGuard<'_, Connection>> {
        let connections = self.connections.iter();
        let held = connections.map(|conn| conn.lock().unwrap_or_else(PoisonError::into_inner));
        held.collect()
    }

    /// The record, from memory where it is there.
    pub(super) fn find(&self, memory: &Memory, id: TaskId) -> Done<Option<Arc<Record>>> {
        let edition = match memory.cache.get(id) {
            Ok(record) => return Ok(Some(record)),
            Err(edition) => edition,
        };
        let found = self.with(|conn| rows::find(conn, id))?;
        if let Some(record) = &found {
            memory.cache.offer(id, record, edition);
        }
        Ok(found)
    }

    /// The record that the same request has made under its key.
    pub(super) fn find_twin(
        &self,
        memory: &Memory,
        project: &str,
        idempotency: &Idempotency,
    ) -> Done<Option<Arc<Record>>> {
        match self.with(|conn| insert::bound(conn, project, idempotency))? {
            // One that is deleted between the two looks has freed its key.
            Some(Bound::Same(id)) => self.find(memory, id),
            _ => Ok(None),
        }
    }

    /// The largest id below `bound`.
    pub(super) fn newest_below(&self, bound: TaskId) -> Done<Option<TaskId>> {
        self.with(|conn| {
            let mut query =
                conn.prepare_cached("SELECT id FROM tasks WHERE id < ?1 ORDER BY id DESC LIMIT 1")?;
            let found = query.query_row([bound.to_string()], |row| row.get::<_, String>(0));
            // One that cannot be read is nothing to follow.
            Ok(found.optional()?.and_then(|id| id.parse().ok()))
        })
    }

    /// A page: the index on disk says which, memory says how they stand.
    pub(super) fn list(&self, memory: &Memory, request: &PageRequest) -> Done<Page> {
        self.with(|conn| pages::read(conn, memory, request))
    }

    /// Running tasks by their worker.
    pub(super) fn running(&self) -> Done<BTreeMap<String, u64>> {
        self.with(workers::running)
    }

    /// The key that signs result addresses.
    pub(super) fn signing_key(&self) -> Done<Option<SecretKey>> {
        self.with(secrets::signing_key)
    }

    fn with<T>(&self, read: impl FnOnce(&Connection) -> Done<T>) -> Done<T> {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed) % self.connections.len();
        let conn = self.connections[turn]
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        read(&conn)
    }
}
