//! Reads that memory cannot answer, on a few read-only connections, and pages of lists. Callers
//! provide a thread that may block: a page from a slow disk takes longer than all other requests
//! together. Unreadable rows are left out of a page and do not end it.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use kinora_contract::lifecycle::TaskRecord;
use kinora_contract::{Clock, Stopwatch, TaskId};
use kinora_system::pool::BlockingPool;
use rusqlite::{Connection, Row, params};
use tokio::sync::Semaphore;

use super::cache::CacheEditions;
use super::fault::{SqliteFault, SqliteResult};
use super::memory::StoreMemory;
use super::rows::{COLUMNS, column_index, to_sql_int};
use super::transaction::find_key_binding;
use super::{rows, schema, script};
use crate::sql::{SqlScript, TypedQuery};
use crate::tasks::PageBuilder;
use crate::{
    IdempotencyKey, ListOrder, OpenError, PageRequest, SqliteOptions, TaskPage, commit_metrics,
};

/// Maximum number of concurrent reads.
pub(super) const READ_CONNECTIONS: usize = 4;

/// The readers.
#[derive(Debug)]
pub(super) struct ReaderPool {
    connections: Vec<Mutex<Connection>>,
    turn: AtomicUsize,
    clock: Arc<dyn Clock>,
}

impl ReaderPool {
    pub(super) fn open(
        path: &Path,
        options: &SqliteOptions,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, OpenError> {
        let connections = (0..READ_CONNECTIONS)
            .map(|_| schema::open_reader(path, options).map(Mutex::new))
            .collect::<Result<_, _>>()?;
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
    pub(super) fn find(
        &self,
        memory: &StoreMemory,
        id: TaskId,
    ) -> SqliteResult<Option<Arc<TaskRecord>>> {
        let edition = match memory.cache.get(id) {
            Ok(record) => return Ok(Some(record)),
            Err(edition) => edition,
        };
        let found = self.with_connection(|conn| rows::find(conn, id))?;
        if let Some(record) = &found {
            memory.cache.offer(id, record, edition);
        }
        Ok(found)
    }

    /// The record that the same request created under its key.
    pub(super) fn find_twin(
        &self,
        memory: &StoreMemory,
        project: &str,
        idempotency: &IdempotencyKey,
    ) -> SqliteResult<Option<Arc<TaskRecord>>> {
        match self.with_connection(|conn| find_key_binding(conn, project, &idempotency.key))? {
            // The two reads see different moments. If the task is deleted in between, `find`
            // returns nothing, as is right: its key is free again.
            Some(bound) if bound.fingerprint == idempotency.fingerprint => {
                self.find(memory, bound.task)
            }
            _ => Ok(None),
        }
    }

    /// A page: the index on disk selects the tasks, memory supplies their states.
    pub(super) fn list(
        &self,
        memory: &StoreMemory,
        request: &PageRequest,
    ) -> SqliteResult<PageReading> {
        self.with_connection(|conn| read_page(conn, memory, request))
    }

    /// The answer to a question.
    pub(super) fn ask<T>(&self, question: &TypedQuery<T>) -> SqliteResult<Vec<T>> {
        self.with_connection(|conn| script::ask(conn, question))
    }

    /// The outcome of a script that only reads.
    pub(super) fn read_all<S: SqlScript>(&self, script: &S) -> SqliteResult<S::Output> {
        self.with_connection(|conn| script::read_all(conn, script))
    }

    fn with_connection<T>(
        &self,
        read: impl FnOnce(&Connection) -> SqliteResult<T>,
    ) -> SqliteResult<T> {
        let watch = Stopwatch::start(&self.clock);
        // Connections in turn, without a search for a free one: a read may wait although another
        // connection is free, but nothing has to keep a list of them.
        let turn = self.turn.fetch_add(1, Ordering::Relaxed) % self.connections.len();
        let conn = self.connections[turn]
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let found = read(&conn);
        commit_metrics::read_took(watch.elapsed());
        found
    }
}

/// Number of projects from which the shares of idle ones are removed.
const IDLE_SHARES_MAX: usize = 256;

/// A pool of threads and the projects' shares of it.
#[derive(Debug)]
pub(super) struct ProjectShares {
    threads: BlockingPool,
    each: usize,
    of_projects: Mutex<HashMap<Arc<str>, Arc<Semaphore>>>,
    /// Reads that belong to no project.
    others: Arc<Semaphore>,
}

/// The threads for reads.
pub(super) fn pool(threads: usize, options: &SqliteOptions) -> BlockingPool {
    if options.on_the_spot {
        BlockingPool::on_the_spot()
    } else {
        BlockingPool::new(threads)
    }
}

impl ProjectShares {
    /// Shares of a pool with this many places.
    pub(super) fn new(pool: BlockingPool, places: usize) -> Self {
        // Half of the places, rounded up: two projects whose reads hang could take all of them, one
        // cannot. With one place each project may use it.
        let each = places.div_ceil(2);
        Self {
            threads: pool,
            each,
            of_projects: Mutex::default(),
            others: Arc::new(Semaphore::new(each)),
        }
    }

    /// Waits for a place of `project`, and runs `read` there. The read keeps its place until it
    /// ends, even if the caller has gone: hanging up gains a client nothing.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        project: Option<&str>,
        read: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<T> {
        let share = project.map_or_else(|| self.others.clone(), |project| self.share_of(project));
        let own = share.acquire_owned().await.map_err(io::Error::other)?;
        self.threads
            .run(move || {
                let _own = own;
                read()
            })
            .await
    }

    fn share_of(&self, project: &str) -> Arc<Semaphore> {
        let shares = self.of_projects.lock();
        let mut shares = shares.unwrap_or_else(PoisonError::into_inner);
        if let Some(share) = shares.get(project) {
            return share.clone();
        }
        if shares.len() >= IDLE_SHARES_MAX {
            // A share without another owner has no read that runs or waits.
            shares.retain(|_, share| Arc::strong_count(share) > 1);
        }
        let share = Arc::new(Semaphore::new(self.each));
        shares.insert(project.into(), share.clone());
        share
    }
}

/// Maximum number of unreadable rows that one page skips.
const UNREADABLE_MAX: usize = 1_000;

/// A page, and the rows that it leaves out. The caller logs them: it knows which request asked.
pub(super) struct PageReading {
    pub(super) page: TaskPage,
    pub(super) unreadable: Vec<UnreadableRow>,
}

/// A row that cannot be read.
pub(super) struct UnreadableRow {
    pub(super) seq: Option<i64>,
    pub(super) error: String,
}

/// Reads a page.
fn read_page(
    conn: &Connection,
    memory: &StoreMemory,
    request: &PageRequest,
) -> SqliteResult<PageReading> {
    // Taken before the rows are read: a record that is published in the meantime is newer than its
    // row, and must not be replaced by it. Only first pages are cached. A walk through all tasks
    // would push out the records in use.
    let editions = request.after.is_none().then(|| memory.cache.editions());
    let after = match (request.after, request.order) {
        (Some(id), _) => id.to_string(),
        (None, ListOrder::Ascending) => String::new(),
        // Sorts after every id.
        (None, ListOrder::Descending) => "~".to_owned(),
    };
    let mut query = conn.prepare_cached(&page_sql(request.order))?;
    let limit = to_sql_int((request.limit + UNREADABLE_MAX) as u64).saturating_add(1);
    let mut rows = query.query(params![request.project, after, limit])?;
    let mut filling = PageBuilder::with_limit(request.limit);
    let (mut seen, mut unreadable) = (0, Vec::new());
    while let Some(row) = rows.next()? {
        seen += 1;
        let record = match read_or_cached(row, memory, editions.as_ref()) {
            Err(SqliteFault::Corrupt(error)) => {
                let seq = row.get(const { column_index("seq") }).ok();
                unreadable.push(UnreadableRow { seq, error });
                continue;
            }
            known => known?,
        };
        // It may have expired since the row was read.
        if request.lists(&record.task) && !filling.add(&record.task) {
            break;
        }
    }
    let mut page = filling.page();
    page.has_more |= seen == limit;
    Ok(PageReading { page, unreadable })
}

fn page_sql(order: ListOrder) -> String {
    let (compare, direction) = match order {
        ListOrder::Ascending => (">", "ASC"),
        ListOrder::Descending => ("<", "DESC"),
    };
    format!(
        "SELECT {COLUMNS} FROM tasks WHERE project = ?1 AND phase <> 'expired' AND id {compare} ?2 \
         ORDER BY id {direction} LIMIT ?3"
    )
}

/// The record of a row, from memory or from the row itself.
fn read_or_cached(
    row: &Row<'_>,
    memory: &StoreMemory,
    editions: Option<&CacheEditions>,
) -> SqliteResult<Arc<TaskRecord>> {
    let id = rows::id(row)?;
    if let Ok(record) = memory.cache.get(id) {
        return Ok(record);
    }
    let record = Arc::new(rows::read(row)?);
    if let Some(editions) = editions {
        let edition = memory.cache.edition_of(editions, id);
        memory.cache.offer(id, &record, edition);
    }
    Ok(record)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn p15_a_project_whose_reads_hang_leaves_places_to_others() {
        let shares = Arc::new(ProjectShares::new(BlockingPool::new(4), 4));
        let (release, held) = mpsc::channel::<()>();
        let held = Arc::new(Mutex::new(held));
        let greedy: Vec<_> = (0..10)
            .map(|_| {
                let (shares, held) = (shares.clone(), held.clone());
                tokio::spawn(async move {
                    let hang = move || held.lock().unwrap().recv().unwrap_err();
                    shares.run(Some("greedy"), hang).await
                })
            })
            .collect();
        // They have come first.
        tokio::task::yield_now().await;
        for project in [Some("polite"), None] {
            assert_eq!(shares.run(project, || 7).await.unwrap(), 7);
        }
        drop(release);
        for one in greedy {
            one.await.unwrap().unwrap();
        }
    }

    #[tokio::test]
    async fn p08_projects_that_read_nothing_are_forgotten() {
        let shares = ProjectShares::new(BlockingPool::new(4), 4);
        for number in 0..10 * IDLE_SHARES_MAX {
            shares
                .run(Some(&format!("project {number}")), || ())
                .await
                .unwrap();
            assert!(shares.of_projects.lock().unwrap().len() <= IDLE_SHARES_MAX);
        }
    }
}
