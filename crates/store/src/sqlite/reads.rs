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

    /// A page: the index on disk says which, memory says how they stand. What cannot be read is passed
    /// over, so that it ends no list.
    pub(super) fn list(&self, memory: &Memory, request: &PageRequest) -> Done<Page> {
        let mut tasks: Vec<TaskView> = Vec::new();
        let (mut bytes, mut after) = (0, request.after);
        loop {
            let wanted = request.limit - tasks.len();
            let ids = self.with(|conn| page_ids(conn, request, after, wanted))?;
            // A damaged entry sorts anywhere: the next look goes on from one that is good, if there is one.
            after = ids.ids.last().copied().or(after);
            for id in ids.ids {
                let Some(view) = self.listed(memory, request, id)? else {
                    continue;
                };
                after = Some(id);
                bytes += listed_bytes(&view.task);
                if bytes > PAGE_BYTES_MAX && !tasks.is_empty() {
                    return Ok(Page {
                        tasks,
                        has_more: true,
                    });
                }
                tasks.push(view);
            }
            // A page without a task would leave its reader no place to go on from.
            if !ids.has_more || tasks.len() == request.limit {
                return Ok(Page {
                    tasks,
                    has_more: ids.has_more,
                });
            }
        }
    }

    /// A task of a page, unless it has gone since, or cannot be read.
    fn listed(&self, memory: &Memory, request: &PageRequest, id: TaskId) -> Done<Option<TaskView>> {
        match self.find(memory, id) {
            Ok(Some(record)) => {
                let view = Some(memory.view(&record));
                Ok(view.filter(|view| is_listed(&view.task, request)))
            }
            Ok(None) => {
                if self.with(|conn| is_indexed(conn, &request.project, id))? {
                    tracing::error!(%id, "a damaged index entry is left out of a list");
                }
                Ok(None)
            }
            Err(Fault::Corrupt(error)) => {
                tracing::error!(%id, error, "a task that cannot be read is left out of a list");
                Ok(None)
            }
            Err(fault) => Err(fault),
        }
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

/// Tasks of a page, and whether there are more behind them.
struct Ids {
    ids: Vec<TaskId>,
    has_more: bool,
}

/// Up to `wanted` ids behind `after`. One more is read, to know whether there is more.
fn page_ids(
    conn: &Connection,
    request: &PageRequest,
    after: Option<TaskId>,
    wanted: usize,
) -> Done<Ids> {
    let (compare, direction) = match request.order {
        Order::Ascending => (">", "ASC"),
        Order::Descending => ("<", "DESC"),
    };
    let after = match (after, request.order) {
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
    let mut ids: Vec<TaskId> = Vec::new();
    while let Some(row) = rows.next()? {
        let text = row.get_ref(0)?;
        let Some(id) = text.as_str().ok().and_then(|id| id.parse::<TaskId>().ok()) else {
            tracing::error!(?text, "a damaged task id is left out of a list");
            continue;
        };
        if ids.len() == wanted {
            return Ok(Ids {
                ids,
                has_more: true,
            });
        }
        ids.push(id);
    }
    Ok(Ids {
        ids,
        has_more: false,
    })
}

/// Whether the index of pages has this id, of which there is no row by it.
fn is_indexed(conn: &Connection, project: &str, id: TaskId) -> Done<bool> {
    let mut query = conn.prepare_cached(
        "SELECT 1 FROM tasks INDEXED BY tasks_of_project \
         WHERE project = ?1 AND phase <> 'expired' AND id = ?2",
    )?;
    Ok(query.exists(params![project, id.to_string()])?)
}
