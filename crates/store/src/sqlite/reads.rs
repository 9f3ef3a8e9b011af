//! Reads that memory cannot answer, on a few read-only connections, and pages of lists. Callers
//! provide a thread that may block: a page from a slow disk takes longer than all other requests
//! together. Unreadable rows are left out of a page and do not end it.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use kinora_contract::lifecycle::Record;
use kinora_contract::{Clock, Stopwatch, TaskId};
use kinora_system::pool::Pool;
use rusqlite::{Connection, Row, params};
use tokio::sync::Semaphore;

use super::cache::Editions;
use super::fault::{Done, Fault};
use super::memory::Memory;
use super::rows::{COLUMNS, at, int};
use super::transaction::key_binding;
use super::{rows, schema, script};
use crate::sql::{Question, Script};
use crate::tasks::Filling;
use crate::{Idempotency, OpenError, Order, Page, PageRequest, SqliteOptions, metered};

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
        let connections = (0..CONNECTIONS)
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
            // The two reads see different moments. If the task is deleted in between, `find`
            // returns nothing, as is right: its key is free again.
            Some(bound) if bound.fingerprint == idempotency.fingerprint => {
                self.find(memory, bound.task)
            }
            _ => Ok(None),
        }
    }

    /// A page: the index on disk selects the tasks, memory supplies their states.
    pub(super) fn list(&self, memory: &Memory, request: &PageRequest) -> Done<Reading> {
        self.with(|conn| read(conn, memory, request))
    }

    /// The answer to a question.
    pub(super) fn ask<T>(&self, question: &Question<T>) -> Done<Vec<T>> {
        self.with(|conn| script::ask(conn, question))
    }

    /// The outcome of a script that only reads.
    pub(super) fn read_all<S: Script>(&self, script: &S) -> Done<S::Output> {
        self.with(|conn| script::read_all(conn, script))
    }

    fn with<T>(&self, read: impl FnOnce(&Connection) -> Done<T>) -> Done<T> {
        let watch = Stopwatch::start(&self.clock);
        // Connections in turn, without a search for a free one: a read may wait although another
        // connection is free, but nothing has to keep a list of them.
        let turn = self.turn.fetch_add(1, Ordering::Relaxed) % self.connections.len();
        let conn = self.connections[turn]
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let found = read(&conn);
        metered::read_took(watch.elapsed());
        found
    }
}

/// Number of projects from which the shares of idle ones are removed.
const FORGET_FROM: usize = 256;

/// A pool of threads and the projects' shares of it.
#[derive(Debug)]
pub(super) struct Shares {
    threads: Pool,
    each: usize,
    of_projects: Mutex<HashMap<Arc<str>, Arc<Semaphore>>>,
    /// Reads that belong to no project.
    others: Arc<Semaphore>,
}

/// The threads for reads.
pub(super) fn pool(threads: usize, options: &SqliteOptions) -> Pool {
    if options.on_the_spot {
        Pool::on_the_spot()
    } else {
        Pool::new(threads)
    }
}

impl Shares {
    /// Shares of a pool with this many places.
    pub(super) fn of(pool: Pool, places: usize) -> Self {
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
        let share = project.map_or_else(|| self.others.clone(), |project| self.share(project));
        let own = share.acquire_owned().await.map_err(io::Error::other)?;
        self.threads
            .run(move || {
                let _own = own;
                read()
            })
            .await
    }

    fn share(&self, project: &str) -> Arc<Semaphore> {
        let shares = self.of_projects.lock();
        let mut shares = shares.unwrap_or_else(PoisonError::into_inner);
        if let Some(share) = shares.get(project) {
            return share.clone();
        }
        if shares.len() >= FORGET_FROM {
            // A share without another owner has no read that runs or waits.
            shares.retain(|_, share| Arc::strong_count(share) > 1);
        }
        let share = Arc::new(Semaphore::new(self.each));
        shares.insert(project.into(), share.clone());
        share
    }
}

/// Maximum number of unreadable rows that one page skips.
const LEFT_OUT_MAX: usize = 1_000;

/// A page, and the rows that it leaves out. The caller logs them: it knows which request asked.
pub(super) struct Reading {
    pub(super) page: Page,
    pub(super) unreadable: Vec<Unreadable>,
}

/// A row that cannot be read.
pub(super) struct Unreadable {
    pub(super) seq: Option<i64>,
    pub(super) error: String,
}

/// Reads a page.
fn read(conn: &Connection, memory: &Memory, request: &PageRequest) -> Done<Reading> {
    // Taken before the rows are read: a record that is published in the meantime is newer than its
    // row, and must not be replaced by it. Only first pages are cached. A walk through all tasks
    // would push out the records in use.
    let editions = request.after.is_none().then(|| memory.cache.editions());
    let after = match (request.after, request.order) {
        (Some(id), _) => id.to_string(),
        (None, Order::Ascending) => String::new(),
        // Sorts after every id.
        (None, Order::Descending) => "~".to_owned(),
    };
    let mut query = conn.prepare_cached(&sql(request.order))?;
    let limit = int((request.limit + LEFT_OUT_MAX) as u64).saturating_add(1);
    let mut rows = query.query(params![request.project, after, limit])?;
    let mut filling = Filling::up_to(request.limit);
    let (mut seen, mut unreadable) = (0, Vec::new());
    while let Some(row) = rows.next()? {
        seen += 1;
        let record = match known(row, memory, editions.as_ref()) {
            Err(Fault::Corrupt(error)) => {
                let seq = row.get(const { at("seq") }).ok();
                unreadable.push(Unreadable { seq, error });
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
    Ok(Reading { page, unreadable })
}

fn sql(order: Order) -> String {
    let (compare, direction) = match order {
        Order::Ascending => (">", "ASC"),
        Order::Descending => ("<", "DESC"),
    };
    format!(
        "SELECT {COLUMNS} FROM tasks WHERE project = ?1 AND phase <> 'expired' AND id {compare} ?2 \
         ORDER BY id {direction} LIMIT ?3"
    )
}

/// The record of a row, from memory or from the row itself.
fn known(row: &Row<'_>, memory: &Memory, editions: Option<&Editions>) -> Done<Arc<Record>> {
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
        let shares = Arc::new(Shares::of(Pool::new(4), 4));
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
        let shares = Shares::of(Pool::new(4), 4);
        for number in 0..10 * FORGET_FROM {
            shares
                .run(Some(&format!("project {number}")), || ())
                .await
                .unwrap();
            assert!(shares.of_projects.lock().unwrap().len() <= FORGET_FROM);
        }
    }
}
