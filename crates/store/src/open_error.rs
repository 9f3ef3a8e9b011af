//! Why a store cannot be opened, in messages for operators that name the next step. Passwords of
//! addresses never enter them.

use std::error::Error;
use std::fmt;
use std::path::PathBuf;

use kinora_contract::UnixMs;

/// Changes that a store lacks, according to its high-water mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostChanges {
    /// Number of missing acknowledged changes.
    pub changes: u64,
    /// When the newest remaining task was accepted; `None` if there is none.
    pub newest_ms: Option<UnixMs>,
    /// When the newest change was committed.
    pub noted_ms: UnixMs,
    /// Whether the mark belongs to another store.
    pub foreign: bool,
}

impl fmt::Display for LostChanges {
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
    Lost(LostChanges),
    /// The file system or the database refused access.
    #[error("{0}")]
    Unavailable(#[source] Box<dyn Error + Send + Sync>),
}
