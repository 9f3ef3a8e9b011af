//! Reads that memory cannot answer, on a few read-only connections. Callers provide a thread that
//! may block: a page from a slow disk takes longer than all other requests together.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use kinora_contract::lifecycle::Record;
use kinora_contract::{Clock, Stopwatch, TaskId, UnixMs};
use rusqlite::{Connection, params};

use super::fault::Done;
use super::memory::Memory;
use super::transaction::key_binding;
use super::{deliveries, overview, pages, rows, schema, script, workers};
use crate::metered;
use crate::sql::Question;
use crate::stored::int;
use crate::{EndedRequest, Idempotency, OpenError, Overview, PageRequest, SqliteOptions};

/// Maximum number of concurrent reads.
pub(super) const CONNECTIONS: usize = 4;

/// The readers.
#[derive(Debug)]
pub(super) struct Readers {
    connections: Vec<Mutex<Connection>>,
    turn: AtomicUsize,
    clock: Arc<dyn Clock>,
}

impl Readers {
    pub(super) fn open(
        path: &Path,
        options: &SqliteOptions,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, OpenError> {
        let open = |_| schema::open_reader(path, options).map(Mutex::new);
        let connections = (0..CONNECTIONS).map(open).collect::<Result<_, _>>()?;
        Ok(Self {
            connections,
            turn: AtomicUsize::new(0),
            clock,
        })
    }

    /// Occupies all connections, to simulate a disk that does not answer.
    #[cfg(test)]
    pub(super) fn keep_busy(&self) -> Vec<std::sync::MutexGuard<'_, Connection>> {
        let connections = self.connections.iter();
        let held = connections.map(|conn| conn.lock().unwrap_or_else(PoisonError::into_inner));
        held.collect()
    }

    /// The record, from memory if it is there.
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

    /// The record that the same request created under its key.
    pub(super) fn find_twin(
        &self,
        memory: &Memory,
        project: &str,
        idempotency: &Idempotency,
    ) -> Done<Option<Arc<Record>>> {
        match self.with(|conn| key_binding(conn, project, &idempotency.key))? {
            // If it was deleted between the two looks, its key is free.
            Some(bound) if bound.fingerprint == idempotency.fingerprint => {
                self.find(memory, bound.task)
            }
            _ => Ok(None),
        }
    }

    /// Tasks of a project that ended at `from_ms` or later: the last ones to end, in the order of
    /// their ends.
    pub(super) fn ended(
        &self,
        request: &EndedRequest,
        from_ms: u64,
    ) -> Done<Vec<(UnixMs, TaskId)>> {
        self.with(|conn| {
            let mut query = conn.prepare_cached(
                "SELECT finished_at_ms, id FROM tasks WHERE project = ?1 AND finished_at_ms >= ?2 \
                 AND phase IN ('completed', 'failed') ORDER BY finished_at_ms DESC, id DESC LIMIT ?3",
            )?;
            let limit = int(request.limit as u64);
            let mut rows = query.query(params![request.project, int(from_ms), limit])?;
            let mut ended = Vec::new();
            while let Some(row) = rows.next()? {
                let (at_ms, id): (i64, String) = (row.get(0)?, row.get(1)?);
                // An unreadable id is ignored.
                ended.extend(id.parse().ok().map(|id| (at_ms.unsigned_abs(), id)));
            }
            ended.reverse();
            Ok(ended)
        })
    }

    /// A page: the index on disk selects the tasks, memory supplies their states.
    pub(super) fn list(&self, memory: &Memory, request: &PageRequest) -> Done<pages::Reading> {
        self.with(|conn| pages::read(conn, memory, request))
    }

    /// Running tasks by their worker.
    pub(super) fn running(&self) -> Done<BTreeMap<String, u64>> {
        self.with(workers::running)
    }

    /// The answer to a question.
    pub(super) fn ask<T>(&self, question: &Question<T>) -> Done<Vec<T>> {
        self.with(|conn| script::ask(conn, question))
    }

    /// The queue, running tasks and recent ends.
    pub(super) fn overview(&self, now_ms: UnixMs) -> Done<Overview> {
        self.with(|conn| overview::read(conn, now_ms))
    }

    /// Deliveries beyond the limits of their webhooks.
    pub(super) fn excess_deliveries(&self) -> Done<deliveries::Excess> {
        self.with(deliveries::excess)
    }

    fn with<T>(&self, read: impl FnOnce(&Connection) -> Done<T>) -> Done<T> {
        let watch = Stopwatch::start(&self.clock);
        let turn = self.turn.fetch_add(1, Ordering::Relaxed) % self.connections.len();
        let conn = self.connections[turn]
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let found = read(&conn);
        metered::read_took(watch.elapsed());
        found
    }
}
