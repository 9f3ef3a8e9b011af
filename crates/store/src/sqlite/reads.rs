//! Reads that memory cannot answer: a few read-only connections. Single tasks are read in place,
//! since a read of a cached page costs less than handing it to another thread; lists are not.

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
use super::rows;
use super::schema;
use crate::{Idempotency, OpenError, OpenOptions, Order, Page, PageRequest, TaskView};

const CONNECTIONS: usize = 4;

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
        self.with(|conn| page(conn, memory, request))
    }

    fn with<T>(&self, read: impl FnOnce(&Connection) -> Done<T>) -> Done<T> {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed) % self.connections.len();
        let conn = self.connections[turn]
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        read(&conn)
    }
}

/// Reads a page in one pass over the index. What cannot be read is passed over, so that it ends no list; and
/// more is promised only where more can be read, so that every page but the last has a place to go on from.
fn page(conn: &Connection, memory: &Memory, request: &PageRequest) -> Done<Page> {
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
         ORDER BY id {direction}"
    ))?;
    let mut rows = query.query(params![request.project, after])?;
    let mut page = Page {
        tasks: Vec::new(),
        has_more: false,
    };
    let mut bytes = 0;
    while let Some(row) = rows.next()? {
        let text = row.get_ref(0)?;
        let Some(id) = text.as_str().ok().and_then(|id| id.parse::<TaskId>().ok()) else {
            tracing::error!(?text, "damaged task id left out of a list");
            continue;
        };
        let Some(view) = listed(conn, memory, request, id)? else {
            continue;
        };
        bytes += listed_bytes(&view.task);
        let over = bytes > PAGE_BYTES_MAX && !page.tasks.is_empty();
        if over || page.tasks.len() == request.limit {
            page.has_more = true;
            break;
        }
        page.tasks.push(view);
    }
    Ok(page)
}

/// A task of a page, unless it has gone since, or cannot be read.
fn listed(
    conn: &Connection,
    memory: &Memory,
    request: &PageRequest,
    id: TaskId,
) -> Done<Option<TaskView>> {
    // Not offered to the cache: the pass sees the moment at which it began.
    let found = memory
        .cache
        .get(id)
        .map_or_else(|_| rows::find(conn, id), |record| Ok(Some(record)));
    match found {
        Ok(Some(record)) => Ok(is_listed(&record.task, request).then(|| memory.view(&record))),
        Ok(None) => {
            tracing::error!(%id, "damaged index entry left out of a list");
            Ok(None)
        }
        Err(Fault::Corrupt(error)) => {
            tracing::error!(%id, error, "unreadable task left out of a list");
            Ok(None)
        }
        Err(fault) => Err(fault),
    }
}

/// One task may have expired between the two looks.
fn is_listed(task: &Task, request: &PageRequest) -> bool {
    task.project == request.project && task.status().is_some()
}
