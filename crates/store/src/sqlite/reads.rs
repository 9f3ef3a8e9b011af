//! Reads that memory cannot answer: a few read-only connections. Callers bring a thread that may
//! block: a page of a slow disk takes longer than all other requests together.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use kinora_contract::limits::PAGE_BYTES_MAX;
use kinora_contract::{Task, TaskId, UnixMs, listed_bytes};
use rusqlite::{Connection, params};

use super::fault::{Done, Fault};
use super::insert::{self, Bound};
use super::memory::Memory;
use super::record::Record;
use super::rows::{self, int};
use super::schema;
use crate::{Idempotency, OpenError, OpenOptions, Order, Page, PageRequest, TaskView};

/// Reads at a time.
pub(super) const CONNECTIONS: usize = 4;

/// The readers.
#[derive(Debug)]
pub(super) struct Readers {
    connections: Vec<Mutex<Connection>>,
    turn: AtomicUsize,
}

impl Readers {
    pub(super) fn open(path: &Path, options: &OpenOptions) -> Result<Self, OpenError> {
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
        now_ms: UnixMs,
    ) -> Done<Option<Arc<Record>>> {
        match self.with(|conn| insert::bound(conn, project, idempotency, now_ms))? {
            // One that is deleted between the two looks has freed its key.
            Some(Bound::Same(id)) => self.find(memory, id),
            _ => Ok(None),
        }
    }

    /// A page: the index on disk says which, memory says how they stand.
    pub(super) fn list(&self, memory: &Memory, request: &PageRequest) -> Done<Page> {
        let mut ids = self.with(|conn| page_ids(conn, request))?;
        let mut has_more = ids.len() > request.limit;
        ids.truncate(request.limit);
        let mut tasks: Vec<TaskView> = Vec::with_capacity(ids.len());
        let mut bytes = 0;
        for id in ids {
            match self.find(memory, id) {
                Ok(None) => {}
                Ok(Some(record)) => {
                    bytes += listed_bytes(&record.task);
                    if bytes > PAGE_BYTES_MAX && !tasks.is_empty() {
                        has_more = true;
                        break;
                    }
                    tasks.push(memory.view(&record));
                }
                Err(Fault::Corrupt(error)) => {
                    tracing::error!(%id, error, "a task that cannot be read is left out of a list");
                }
                Err(fault) => return Err(fault),
            }
        }
        tasks.retain(|view| is_listed(&view.task, request));
        Ok(Page { tasks, has_more })
    }

    fn with<T>(&self, read: impl FnOnce(&Connection) -> Done<T>) -> Done<T> {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed) % self.connections.len();
        let conn = self.connections[turn]
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        read(&conn)
    }
}

/// One task may have expired between the two looks.
fn is_listed(task: &Task, request: &PageRequest) -> bool {
    task.project == request.project && task.status().is_some()
}

/// One more than the page holds, to know whether there is more.
fn page_ids(conn: &Connection, request: &PageRequest) -> Done<Vec<TaskId>> {
    let (compare, direction) = match request.order {
        Order::Ascending => (">", "ASC"),
        Order::Descending => ("<", "DESC"),
    };
    let after = match (request.after, request.order) {
        (Some(id), _) => id.to_string(),
        (None, Order::Ascending) => String::new(),
        // Sorts behind every id.
        (None, Order::Descending) => "~".to_owned(),
    };
    let mut query = conn.prepare_cached(&format!(
        "SELECT id FROM tasks WHERE project = ?1 AND phase <> 'expired' AND id {compare} ?2 \
         ORDER BY id {direction} LIMIT ?3"
    ))?;
    let limit = int(request.limit as u64).saturating_add(1);
    let mut rows = query.query(params![request.project, after, limit])?;
    let mut ids = Vec::new();
    while let Some(row) = rows.next()? {
        let id: String = row.get(0)?;
        ids.push(
            id.parse()
                .map_err(|_| Fault::Corrupt(format!("{id} is no task id")))?,
        );
    }
    Ok(ids)
}
