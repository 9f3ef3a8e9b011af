//! Finds a store by its address. A new implementation is one arm here.

use std::error::Error;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kinora_contract::{Clock, UnixMs};

use crate::postgres::{self, KeysBeside, PostgresStore, is_postgres};
use crate::sqlite::{Inspector, Snapshot, SqliteKeys, SqliteOptions, SqliteSource, SqliteStore};
use crate::{BackupSource, KeyStore, LivingWorker, PostgresOptions, Stores};

/// Options for opening a store. Each implementation reads its own part.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// Stamps and judges all times of a store that serves one process.
    pub clock: Arc<dyn Clock>,
    /// For SQLite.
    pub sqlite: SqliteOptions,
    /// For PostgreSQL.
    pub postgres: PostgresOptions,
}

impl OpenOptions {
    /// The usual options, with this clock.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            sqlite: SqliteOptions::default(),
            postgres: PostgresOptions::default(),
        }
    }
}

/// Opens the store at `url` for serving. `sqlite:` with a path: brings its schema up to date, takes back what a dead
/// process left running, and locks it against a second serving process. `postgres://`: any number of processes serve
/// it, its schema must be up to date ([`migrate`]), and a dead process's leases end with their time.
///
/// # Errors
/// [`OpenError`], with a message that is fit for an operator.
pub async fn open(url: &str, options: &OpenOptions) -> Result<Stores, OpenError> {
    if is_postgres(url) {
        let store = PostgresStore::open(url, options).await?;
        return Ok(Stores::of(Arc::new(store)));
    }
    let (path, options) = (sqlite_path(url)?, options.clone());
    // It reads the queue, and waits for the disk.
    let opened = tokio::task::spawn_blocking(move || SqliteStore::open(&path, &options));
    let store = opened
        .await
        .map_err(|error| OpenError::Unavailable(Box::new(error)))??;
    Ok(Stores::of(Arc::new(store)))
}

/// Brings the schema of the store at `url` up to date. Returns the version before (0: there was none) and after;
/// `None` for a store that does this itself when it is opened.
///
/// # Errors
/// [`OpenError`], with a message that is fit for an operator.
pub async fn migrate(
    url: &str,
    options: &PostgresOptions,
) -> Result<Option<(u32, u32)>, OpenError> {
    if is_postgres(url) {
        return postgres::migrate(url, options).await.map(Some);
    }
    sqlite_path(url).map(|_| None)
}

/// Opens the API keys of the store at `url` beside a process that may be serving it. What is
/// changed here is seen there within a second. Of a PostgreSQL database the connection is made by the first call, which
/// says where that fails.
///
/// # Errors
/// [`OpenError::Missing`] where there is no store: a command on keys never makes one. Otherwise
/// another [`OpenError`], with a message that is fit for an operator.
pub fn open_keys(url: &str, options: &SqliteOptions) -> Result<Arc<dyn KeyStore>, OpenError> {
    if is_postgres(url) {
        return Ok(Arc::new(KeysBeside::of(url)?));
    }
    Ok(Arc::new(SqliteKeys::open(&sqlite_path(url)?, options)?))
}

/// The living workers of the store at `url`, beside the processes that use it.
///
/// # Errors
/// [`OpenError::Missing`] where there is no store; otherwise another [`OpenError`], with a message that is fit for an
/// operator.
pub async fn living_workers(url: &str, clock: &dyn Clock) -> Result<Vec<LivingWorker>, OpenError> {
    if is_postgres(url) {
        return postgres::living_beside(url).await;
    }
    let path = sqlite_path(url)?;
    let inspector = Inspector::open(&path)?.ok_or(OpenError::Missing(path))?;
    let living = inspector.living_workers(clock.now_ms());
    living.map_err(|error| OpenError::Unavailable(Box::new(error)))
}

/// Whether the store at `url` serves several processes at a time.
pub fn is_shared(url: &str) -> bool {
    is_postgres(url)
}

/// Opens the store at `url` to be backed up, beside a process that may be serving it. Its schema may be older
/// than this program's, and stays as it is.
///
/// # Errors
/// [`OpenError::Missing`] where there is no store; otherwise another [`OpenError`], with a message that is fit for an
/// operator.
pub fn open_source(url: &str, options: &SqliteOptions) -> Result<Box<dyn BackupSource>, OpenError> {
    Ok(Box::new(SqliteSource::open(&sqlite_path(url)?, options)?))
}

/// Opens a snapshot that a [`BackupSource`] made. Nothing is written to it or beside it.
///
/// # Errors
/// [`OpenError`], with a message that is fit for an operator.
pub fn open_snapshot(file: &Path) -> Result<Snapshot, OpenError> {
    Snapshot::open(file)
}

pub(crate) fn sqlite_path(url: &str) -> Result<PathBuf, OpenError> {
    match url.split_once(':') {
        Some(("sqlite", path)) if !path.is_empty() => {
            Ok(path.strip_prefix("//").unwrap_or(path).into())
        }
        Some(_) if is_postgres(url) => Err(OpenError::NotHere),
        // The address may hold a password: only its scheme is shown.
        other => Err(OpenError::UnknownScheme(
            other.map_or("", |(scheme, _)| scheme).to_owned(),
        )),
    }
}

/// Changes that a store lacks, by its high-water mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// Acknowledged changes that are missing.
    pub changes: u64,
    /// When the newest task that is there was accepted; `None` where there is none.
    pub newest_ms: Option<UnixMs>,
    /// When the newest change was committed.
    pub noted_ms: UnixMs,
    /// Whether the mark is that of another store.
    pub foreign: bool,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { changes, .. } = self;
        if self.foreign {
            return write!(
                f,
                "the high-water mark beside the database is that of another store, with {changes} \
                 acknowledged changes"
            );
        }
        write!(
            f,
            "the last {changes} acknowledged changes are missing: the database or its log is torn or gone, \
             or an older copy was put back"
        )
    }
}

/// Why a store cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The address names no implementation.
    #[error(
        "unknown store {0:?}: an address such as `sqlite:data/kinora.db` or `postgres://host/database` is expected"
    )]
    UnknownScheme(String),
    /// The store is in a PostgreSQL database, and this is for files only.
    #[error(
        "this command works on a database file only: back up a PostgreSQL store with `pg_dump`, and open it \
         with the commands that talk to the server"
    )]
    NotHere,
    /// There is no store, and the caller did not ask to make one.
    #[error("there is no store at {}", .0.display())]
    Missing(PathBuf),
    /// Another process serves this store.
    #[error("{} is in use by another serving process", .0.display())]
    InUse(PathBuf),
    /// A later version of the program has written here.
    #[error(
        "the store's schema has version {found}, this program knows {known}: \
         run the newer program, or restore the copy from before the upgrade"
    )]
    NewerSchema {
        /// Version of the store.
        found: u32,
        /// Newest version that this program knows.
        known: u32,
    },
    /// An earlier version of the program has written here, and this command does not change that.
    #[error(
        "the store's schema has version {found}, this program knows {known}: `kinora serve` brings it up \
         to date"
    )]
    OlderSchema {
        /// Version of the store.
        found: u32,
        /// Version that this program needs.
        known: u32,
    },
    /// A schema of an earlier version, or none, in a database that several programs may be using.
    #[error(
        "the database's schema has version {found}, this program needs {known}: run `kinora migrate`"
    )]
    Unmigrated {
        /// Version of the store; 0 where there is none.
        found: u32,
        /// Version that this program needs.
        known: u32,
    },
    /// Stored data differs from what was written.
    #[error("the database is damaged: {0}")]
    Damaged(String),
    /// Changes that were acknowledged are not there.
    #[error("{0}")]
    Lost(Loss),
    /// The file system or the database refuses.
    #[error("the store cannot be opened: {0}")]
    Unavailable(#[source] Box<dyn Error + Send + Sync>),
}
