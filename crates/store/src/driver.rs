//! What each kind of store does with its address. [`mod@crate::open`] finds the driver of an address; the driver
//! lies in the folder of its kind. What a kind lacks is [`OpenError::NotHere`], said by the driver.

use std::error::Error;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use kinora_contract::{Clock, UnixMs};

use crate::{
    BackupSource, Export, Import, Inspection, KeyStore, LivingWorker, Operations, PostgresOptions,
    SqliteOptions, Stores, Webhooks,
};

/// A kind of store. Each method is the public function of the same name in [`mod@crate::open`], for addresses of this
/// kind.
#[async_trait]
pub(crate) trait Driver: Sync {
    /// Whether an address is one of this kind.
    fn knows(&self, url: &str) -> bool;

    async fn open(&self, url: &str, options: &OpenOptions) -> Result<Stores, OpenError>;

    async fn migrate(&self, url: &str) -> Result<Option<(u32, u32)>, OpenError>;

    fn open_keys(&self, url: &str) -> Result<Arc<dyn KeyStore>, OpenError>;

    fn open_webhooks(&self, url: &str) -> Result<Arc<dyn Webhooks>, OpenError>;

    async fn living_workers(
        &self,
        url: &str,
        clock: &dyn Clock,
    ) -> Result<Vec<LivingWorker>, OpenError>;

    async fn unsafe_settings(&self, url: &str) -> Result<Vec<String>, OpenError>;

    async fn open_operations(
        &self,
        url: &str,
        clock: Arc<dyn Clock>,
    ) -> Result<Arc<dyn Operations>, OpenError>;

    fn is_shared(&self) -> bool;

    fn inspect(&self, url: &str) -> Result<Option<Inspection>, OpenError>;

    fn open_source(&self, url: &str) -> Result<Box<dyn BackupSource>, OpenError>;

    async fn open_export(&self, url: &str) -> Result<Box<dyn Export>, OpenError>;

    async fn open_import(&self, url: &str, export: &str) -> Result<Box<dyn Import>, OpenError>;
}

/// Options for opening a store. Each implementation reads its own part.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// Determines all times of a store that serves one process.
    pub clock: Arc<dyn Clock>,
    /// For SQLite.
    pub sqlite: SqliteOptions,
    /// For PostgreSQL.
    pub postgres: PostgresOptions,
}

impl OpenOptions {
    /// The default options with this clock.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            sqlite: SqliteOptions::default(),
            postgres: PostgresOptions::default(),
        }
    }
}

/// Changes that a store lacks, according to its high-water mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// Number of missing acknowledged changes.
    pub changes: u64,
    /// When the newest remaining task was accepted; `None` if there is none.
    pub newest_ms: Option<UnixMs>,
    /// When the newest change was committed.
    pub noted_ms: UnixMs,
    /// Whether the mark belongs to another store.
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
    /// No implementation has this URL scheme.
    #[error(
        "unknown store {0:?}: an address such as `sqlite:data/kinora.db` or `postgres://host/database` is expected"
    )]
    UnknownScheme(String),
    /// The store is in a PostgreSQL database, but the command needs a file.
    #[error(
        "this command works on a database file only: back up a PostgreSQL store with `pg_dump`, and open it \
         with the commands that talk to the server"
    )]
    NotHere,
    /// There is no store, and the caller did not ask to create one.
    #[error("there is no store at {}", .0.display())]
    Missing(PathBuf),
    /// Another process serves this store.
    #[error("{} is in use by another serving process", .0.display())]
    InUse(PathBuf),
    /// A later version of the program has written this store.
    #[error(
        "the store's schema has version {found}, this program knows {known}: \
         run the newer program, or restore the copy from before the upgrade"
    )]
    NewerSchema {
        /// Schema version of the store.
        found: u32,
        /// Newest version that this program knows.
        known: u32,
    },
    /// An earlier version of the program has written this store, and this command does not update
    /// it.
    #[error(
        "the store's schema has version {found}, this program knows {known}: `kinora serve` brings it up \
         to date"
    )]
    OlderSchema {
        /// Schema version of the store.
        found: u32,
        /// Version that this program needs.
        known: u32,
    },
    /// The schema is from an earlier version, or missing, in a database that several programs may
    /// use.
    #[error(
        "the database's schema has version {found}, this program needs {known}: run `kinora migrate`"
    )]
    Unmigrated {
        /// Schema version of the store; 0 if there is none.
        found: u32,
        /// Version that this program needs.
        known: u32,
    },
    /// An import into the store has not ended.
    #[error(
        "an import into this store was started but has not ended: run `kinora import` again with the same folder"
    )]
    UnfinishedImport,
    /// An import of another export has not ended.
    #[error(
        "an import of another export into this store was started but has not ended: finish that one, or name an empty store"
    )]
    OtherImport,
    /// A store for an import must be empty.
    #[error(
        "the store is not empty: it has tasks, API keys, webhooks or a signing key; an import takes an empty store only"
    )]
    NotEmpty,
    /// A store for an import has workers.
    #[error("workers are connected to the store: stop all processes that use it first")]
    Served,
    /// Stored data was damaged.
    #[error("the database is damaged: {0}")]
    Damaged(String),
    /// Acknowledged changes are missing.
    #[error("{0}")]
    Lost(Loss),
    /// The file system or the database refused access.
    #[error("{0}")]
    Unavailable(#[source] Box<dyn Error + Send + Sync>),
}
