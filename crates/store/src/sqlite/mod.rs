//! The embedded store: one SQLite file, served by one process at a time. The thread in `writer` runs
//! all queued operations in one `transaction` over the `rows`, commits it and publishes the changes
//! to `memory` (with its `cache`), from which `backend` answers. Reads that memory cannot answer go to
//! the file (`reads`). Commands beside the serving process open the file for themselves.

mod backend;
mod backup;
mod beside;
mod cache;
mod checkpoint;
mod driver;
#[cfg(feature = "conformance")]
mod embedded;
mod ending;
mod fault;
mod files;
mod key_reader;
mod locks;
mod mark;
mod memory;
mod moves;
mod opening;
mod options;
mod reads;
mod recover;
mod rows;
mod schema;
mod script;
#[cfg(test)]
mod tests;
mod transaction;
mod workers;
mod writer;

pub use backup::{Snapshot, SqliteSource};
pub(crate) use beside::{Inspector, SqliteBeside, SqliteOperations};
pub(crate) use driver::SqliteDriver;
#[cfg(feature = "conformance")]
pub use embedded::EmbeddedStore;
pub(crate) use moves::{SqliteExport, SqliteImport};
pub use options::SqliteOptions;

use std::path::Path;
use std::sync::Arc;

use kinora_contract::{Clock, Reading};

use crate::present::Present;
use crate::sql::Dialect;
use crate::tables::operators::ReadOverview;
use crate::{Holds, OpenError, OpenOptions, Store, StoreError};
use checkpoint::{Checkpointer, Log};
use fault::{Done, Fault};
use files::Files;
use key_reader::KeyReader;
use kinora_system::pool::Pool;
use mark::Mark;
use memory::Memory;
use reads::Readers;
use reads::Shares;
use workers::Registry;
use writer::{Kept, Writer};

/// Maximum number of runtime threads for a store's reads, without pages of lists.
pub const THREADS: usize = reads::CONNECTIONS + 2;

/// Tasks and keys in one SQLite file, served by this process alone.
#[derive(Debug)]
pub struct SqliteStore {
    memory: Arc<Memory>,
    clock: Arc<dyn Clock>,
    identity: u64,
    holds: Holds,
    // Fields drop in this order. The readers close first, so that none of them holds a page of the
    // log during the writer's last checkpoint; SQLite removes the log with the last connection.
    readers: Arc<Readers>,
    /// Threads for reads that memory cannot answer, shared among the projects.
    reading: Shares,
    keys: Arc<KeyReader>,
    workers: Registry,
    /// Places at the single connection for keys: one for recently known keys, and one for all
    /// others, so that unknown keys do not delay known ones.
    key_reading: [Pool; 2],
    unclean_starts: u64,
    _checkpointer: Checkpointer,
    writer: Writer,
    /// Unlocks the store; last, since another process may write from then on. The writer's thread
    /// also has it, in case the store stops waiting for that thread.
    _locks: Arc<locks::Locks>,
}

impl SqliteStore {
    /// Opens the store in the file at `path`, creating it if necessary.
    ///
    /// # Errors
    /// [`OpenError`], with a message for operators.
    pub fn open(path: &Path, options: &OpenOptions) -> Result<Self, OpenError> {
        let OpenOptions {
            clock,
            sqlite: options,
            ..
        } = options;
        let mut locks = locks::lock(path)?;
        // This connection stays open until the writer's works. If that one is refused, it is then not
        // the last to close: SQLite runs a checkpoint with the last one, and a refusal must change
        // nothing.
        let checked = opening::judge(path, options, clock)?;
        if let Some(conn) = &checked {
            schema::refuse_unfinished_import(conn)?;
        }
        let mut conn = schema::open_writer(path, options)?;
        drop(checked);
        // The log of a killed process may have filled the disk. Empty it before the recovery, whose
        // own writes need space in it.
        checkpoint::carry_over(&conn);
        let memory = Arc::new(Memory::new(
            options.finished_cached_bytes_max,
            clock.clone(),
        ));
        let state = recover::recover(&mut conn, &memory, options, clock.read())
            .map_err(unavailable_store)?;
        let unclean_starts = recover::begin(&conn);
        workers::forget(&conn);
        let identity = rows::counter(&conn, "identity").map_err(unavailable_store)?;
        let log = Log::default();
        // Counts as a commit, so that what the recovery has written leaves the log once it is idle.
        log.committed();
        let database = locks.database(path)?;
        let files = Files::of(path, database, log.clone()).map_err(schema::unavailable)?;
        let locks = Arc::new(locks);
        let resources = Kept {
            files,
            mark: Mark::begin(path, identity, state.changes),
            _locks: locks.clone(),
        };
        Ok(Self {
            identity,
            unclean_starts,
            holds: rows::holds(&conn).map_err(unavailable_store)?,
            readers: Arc::new(Readers::open(path, options, clock.clone())?),
            reading: Shares::of(reads::pool(reads::CONNECTIONS, options), reads::CONNECTIONS),
            keys: Arc::new(KeyReader::open(path, options, clock.clone())?),
            key_reading: [reads::pool(1, options), reads::pool(1, options)],
            _checkpointer: Checkpointer::start(
                schema::open_checkpointer(path, options)?,
                log,
                locks.clone(),
            )
            .map_err(schema::unavailable)?,
            writer: Writer::start(
                conn,
                state,
                memory.clone(),
                resources,
                clock.clone(),
                options,
            )
            .map_err(schema::unavailable)?,
            workers: Registry::default(),
            memory,
            clock: clock.clone(),
            _locks: locks,
        })
    }

    /// Runs `read` on a thread that may block.
    async fn read<T: Send + 'static>(
        &self,
        project: Option<&str>,
        read: impl FnOnce(&Readers, &Memory) -> Done<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (readers, memory) = (self.readers.clone(), self.memory.clone());
        let read = self.reading.run(project, move || read(&readers, &memory));
        Ok(read.await.map_err(stopped)??)
    }
}

impl Store for SqliteStore {
    fn holds(&self) -> Holds {
        self.holds.clone()
    }
}

/// Reads the state of a store, in whose rows workers are announced by wall time.
const fn read_overview(now: Reading) -> ReadOverview {
    ReadOverview {
        dialect: Dialect::Sqlite,
        now: Present::of_server(now, Vec::new()),
    }
}

fn unavailable_store(fault: Fault) -> OpenError {
    schema::unavailable(StoreError::from(fault))
}

/// The error of a thread that stopped before it answered.
fn stopped(error: impl std::error::Error + Send + Sync + 'static) -> StoreError {
    StoreError::Unavailable(Box::new(error))
}
