//! Finds a store by its address. A new implementation is one arm here.

use std::error::Error;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kinora_contract::UnixMs;

use crate::sqlite::{Snapshot, SqliteKeys, SqliteSource, SqliteStore};
use crate::{BackupSource, KeyStore, Stores};

/// How a store is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenOptions {
    /// Tasks that a dead process of this store left running go back to the queue at once,
    /// unless one ran alone in its last attempt, of so many: the first sweep ends that one.
    pub attempts_max: u32,
    /// Memory for finished tasks that are polled or listed, in bytes. Unfinished ones are always there.
    pub finished_cached_bytes_max: u64,
    /// How long a change waits for another process (a key command, a backup) that is writing.
    pub busy_timeout_ms: u32,
    /// Bound on the database file, in pages of 4 KiB; `None` for none. Past it submits are
    /// refused as by a full disk.
    pub pages_max: Option<u32>,
    /// By so much the fencing tokens of this opening are past all earlier ones. Drawn at random (up to
    /// 2^40), so that copies of a store that both go on never use the same tokens.
    pub token_stride: u64,
    /// Whether to serve what is left of a store that is damaged or that lacks acknowledged changes.
    pub accepts_loss: bool,
    /// Whether reads of the disk are done by who asks, which is a thread of the runtime, so that a simulation
    /// does not depend on the order of threads.
    pub reads_on_the_spot: bool,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            attempts_max: 3,
            finished_cached_bytes_max: 64 << 20,
            busy_timeout_ms: 5_000,
            pages_max: None,
            token_stride: 0,
            accepts_loss: false,
            reads_on_the_spot: false,
        }
    }
}

/// Opens the store at `url` (`sqlite:` with a path) for serving: brings its schema up to date,
/// takes back what a dead process left running, and locks it against a second serving process.
/// Blocks: call it before serving.
///
/// # Errors
/// [`OpenError`], with a message that is fit for an operator.
pub fn open(url: &str, options: &OpenOptions) -> Result<Stores, OpenError> {
    let store = Arc::new(SqliteStore::open(&sqlite_path(url)?, options)?);
    Ok(Stores {
        holds: store.holds(),
        tasks: store.clone(),
        keys: store,
    })
}

/// Opens the API keys of the store at `url` beside a process that may be serving it. What is
/// changed here is seen there within a second.
///
/// # Errors
/// [`OpenError::Missing`] where there is no store: a command on keys never makes one. Otherwise
/// another [`OpenError`], with a message that is fit for an operator.
pub fn open_keys(url: &str, options: &OpenOptions) -> Result<Arc<dyn KeyStore>, OpenError> {
    Ok(Arc::new(SqliteKeys::open(&sqlite_path(url)?, options)?))
}

/// Opens the store at `url` to be backed up, beside a process that may be serving it. Its schema may be older
/// than this program's, and stays as it is.
///
/// # Errors
/// [`OpenError::Missing`] where there is no store; otherwise another [`OpenError`], with a message that is fit for an
/// operator.
pub fn open_source(url: &str, options: &OpenOptions) -> Result<Box<dyn BackupSource>, OpenError> {
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
        // The address may hold a password: only its scheme is shown.
        other => Err(OpenError::UnknownScheme(
            other.map_or("", |(scheme, _)| scheme).to_owned(),
        )),
    }
}

/// What a store lacks, by its high-water mark.
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
    #[error("unknown store {0:?}: an address such as `sqlite:data/kinora.db` is expected")]
    UnknownScheme(String),
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
    /// What is stored is not what was written.
    #[error("the database is damaged: {0}")]
    Damaged(String),
    /// Changes that were acknowledged are not there.
    #[error("{0}")]
    Lost(Loss),
    /// The file system or the database refuses.
    #[error("the store cannot be opened: {0}")]
    Unavailable(#[source] Box<dyn Error + Send + Sync>),
}
