//! The embedded store: one SQLite file, served by one process at a time. The thread in `writer` runs
//! all queued operations in one `transaction` over the `rows`, commits it and publishes the changes
//! to `memory` (with its `cache`), from which `backend` answers. Reads that memory cannot answer go to
//! the file (`reads`). Commands beside the serving process open the file for themselves.

mod backend;
mod backup;
mod cache;
mod checkpoint;
mod commands;
mod driver;
#[cfg(feature = "conformance")]
mod embedded;
mod fault;
mod files;
mod high_water_mark;
mod key_reader;
mod locks;
mod memory;
mod moves;
mod open_checks;
mod options;
mod reads;
mod recovery;
mod rows;
mod schema;
mod script;
#[cfg(test)]
mod tests;
mod thread_join;
mod transaction;
#[cfg(test)]
mod upload_work;
mod worker_registry;
mod writer;

pub use backup::{BackupSnapshot, SqliteSource};
pub(crate) use commands::{SqliteInspector, SqliteOperations, SqliteTables};
pub(crate) use driver::SqliteDriver;
#[cfg(feature = "conformance")]
pub use embedded::EmbeddedStore;
pub(crate) use moves::{SqliteExport, SqliteImport};
pub use options::SqliteOptions;

use std::path::Path;
use std::sync::Arc;

use kinora_contract::{Clock, ClockReading};

use crate::present_time::PresentTime;
use crate::sql::SqlDialect;
use crate::tables::operators::ReadOverview;
use crate::{OpenError, OpenOptions, Store, StoreContents, StoreError};
use checkpoint::{CheckpointRequests, CheckpointThread};
use fault::{SqliteFault, SqliteResult};
use files::StoreFiles;
use high_water_mark::HighWaterMark;
use key_reader::KeyReader;
use kinora_system::pool::BlockingPool;
use memory::StoreMemory;
use reads::ProjectShares;
use reads::ReaderPool;
use worker_registry::WorkerRegistry;
use writer::{WriterHandle, WriterResources};

/// Maximum number of runtime threads for a store's reads, without pages of lists.
pub const THREADS: usize = reads::READ_CONNECTIONS + 2;

/// Tasks and keys in one SQLite file, served by this process alone.
#[derive(Debug)]
pub struct SqliteStore {
    memory: Arc<StoreMemory>,
    clock: Arc<dyn Clock>,
    identity: u64,
    holds: StoreContents,
    // Fields drop in this order. The readers close first, so that none of them holds a page of the
    // log during the writer's last checkpoint; SQLite removes the log with the last connection.
    readers: Arc<ReaderPool>,
    /// Threads for reads that memory cannot answer, shared among the projects.
    reading: ProjectShares,
    keys: Arc<KeyReader>,
    workers: WorkerRegistry,
    /// Places at the single connection for keys: one for recently known keys, and one for all
    /// others, so that unknown keys do not delay known ones.
    key_reading: [BlockingPool; 2],
    unclean_starts: u64,
    _checkpointer: CheckpointThread,
    writer: WriterHandle,
    /// Unlocks the store; last, since another process may write from then on. The writer's thread
    /// also has it, in case the store stops waiting for that thread.
    _locks: Arc<locks::StoreLocks>,
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
        let checked = open_checks::check_before_open(path, options, clock)?;
        if let Some(conn) = &checked {
            schema::refuse_unfinished_import(conn)?;
        }
        let mut conn = schema::open_writer(path, options)?;
        drop(checked);
        // The log of a killed process may have filled the disk. Empty it before the recovery, whose
        // own writes need space in it.
        checkpoint::run_checkpoint(&conn);
        let memory = Arc::new(StoreMemory::new(
            options.finished_cached_bytes_max,
            clock.clone(),
        ));
        let state = recovery::recover(&mut conn, &memory, options, clock.read())
            .map_err(unavailable_store)?;
        let unclean_starts = recovery::record_start(&conn);
        worker_registry::delete_rows(&conn);
        let identity = rows::counter(&conn, "identity").map_err(unavailable_store)?;
        let log = CheckpointRequests::default();
        // Counts as a commit, so that what the recovery has written leaves the log once it is idle.
        log.record_commit();
        let database = locks.open_database(path)?;
        let files = StoreFiles::open(path, database, log.clone()).map_err(schema::unavailable)?;
        let locks = Arc::new(locks);
        let resources = WriterResources {
            files,
            mark: HighWaterMark::create(path, identity, state.changes),
            _locks: locks.clone(),
        };
        Ok(Self {
            identity,
            unclean_starts,
            holds: rows::holds(&conn).map_err(unavailable_store)?,
            readers: Arc::new(ReaderPool::open(path, options, clock.clone())?),
            reading: ProjectShares::new(
                reads::pool(reads::READ_CONNECTIONS, options),
                reads::READ_CONNECTIONS,
            ),
            keys: Arc::new(KeyReader::open(path, options, clock.clone())?),
            key_reading: [reads::pool(1, options), reads::pool(1, options)],
            _checkpointer: CheckpointThread::start(
                schema::open_checkpointer(path, options)?,
                log,
                locks.clone(),
            )
            .map_err(schema::unavailable)?,
            writer: WriterHandle::start(
                conn,
                state,
                memory.clone(),
                resources,
                clock.clone(),
                options,
            )
            .map_err(schema::unavailable)?,
            workers: WorkerRegistry::default(),
            memory,
            clock: clock.clone(),
            _locks: locks,
        })
    }

    /// Runs `read` on a thread that may block.
    async fn read<T: Send + 'static>(
        &self,
        project: Option<&str>,
        read: impl FnOnce(&ReaderPool, &StoreMemory) -> SqliteResult<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (readers, memory) = (self.readers.clone(), self.memory.clone());
        let read = self.reading.run(project, move || read(&readers, &memory));
        Ok(read.await.map_err(stopped)??)
    }
}

impl Store for SqliteStore {
    fn holds(&self) -> StoreContents {
        self.holds.clone()
    }
}

/// Reads the state of a store, in whose rows workers are announced by wall time.
const fn read_overview(now: ClockReading) -> ReadOverview {
    ReadOverview {
        dialect: SqlDialect::Sqlite,
        now: PresentTime::from_server(now, Vec::new()),
    }
}

fn unavailable_store(fault: SqliteFault) -> OpenError {
    schema::unavailable(StoreError::from(fault))
}

/// The error of a thread that stopped before it answered.
fn stopped(error: impl std::error::Error + Send + Sync + 'static) -> StoreError {
    StoreError::Unavailable(Box::new(error))
}
