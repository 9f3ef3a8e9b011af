//! Opens a store by its URL. A new implementation is one arm here.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use kinora_contract::Clock;

use crate::postgres::{
    self, KeysBeside, PostgresOperations, PostgresStore, WebhooksBeside, is_postgres,
};
use crate::sqlite::{
    Inspector, Snapshot, SqliteExport, SqliteImport, SqliteKeys, SqliteOperations, SqliteOptions,
    SqliteSource, SqliteStore, SqliteWebhooks,
};
use crate::{
    BackupSource, Export, Import, KeyStore, LivingWorker, OpenError, OpenOptions, Operations,
    PostgresOptions, Stores, Webhooks,
};

/// Opens the store at `url` for serving. `sqlite:` with a path: updates its schema, requeues the
/// tasks that a dead process left running, and locks it against a second serving process.
/// `postgres://`: any number of processes may serve it, its schema must be current ([`migrate`]),
/// and a dead process's leases expire.
///
/// # Errors
/// [`OpenError`], with a message for operators.
pub async fn open(url: &str, options: &OpenOptions) -> Result<Stores, OpenError> {
    if is_postgres(url) {
        let store = PostgresStore::open(url, options).await?;
        return Ok(Stores::of(Arc::new(store)));
    }
    let (path, options) = (sqlite_path(url)?, options.clone());
    // Reads the queue, and so waits for the disk.
    let opened = tokio::task::spawn_blocking(move || SqliteStore::open(&path, &options));
    let store = opened
        .await
        .map_err(|error| OpenError::Unavailable(Box::new(error)))??;
    Ok(Stores::of(Arc::new(store)))
}

/// Updates the schema of the store at `url`. Returns the version before (0: there was none) and
/// after; `None` for a store that updates itself when it is opened.
///
/// # Errors
/// [`OpenError`], with a message for operators.
pub async fn migrate(
    url: &str,
    options: &PostgresOptions,
) -> Result<Option<(u32, u32)>, OpenError> {
    if is_postgres(url) {
        return postgres::migrate(url, options).await.map(Some);
    }
    sqlite_path(url).map(|_| None)
}

/// Opens the API keys of the store at `url` beside a process that may be serving it. That process
/// sees changes within a second. For a PostgreSQL database the first call makes the connection, and
/// reports errors.
///
/// # Errors
/// [`OpenError::Missing`] if there is no store: a command on keys never creates one. Otherwise
/// another [`OpenError`], with a message for operators.
pub fn open_keys(url: &str, options: &SqliteOptions) -> Result<Arc<dyn KeyStore>, OpenError> {
    if is_postgres(url) {
        return Ok(Arc::new(KeysBeside::of(url)?));
    }
    Ok(Arc::new(SqliteKeys::open(&sqlite_path(url)?, options)?))
}

/// Opens the webhooks of the store at `url`, like [`open_keys`].
///
/// # Errors
/// Those of [`open_keys`].
pub fn open_webhooks(url: &str, options: &SqliteOptions) -> Result<Arc<dyn Webhooks>, OpenError> {
    if is_postgres(url) {
        return Ok(Arc::new(WebhooksBeside::of(url)?));
    }
    let path = sqlite_path(url)?;
    Ok(Arc::new(SqliteWebhooks::open(&path, options)?))
}

/// The live workers of the store at `url`, beside the processes that use it.
///
/// # Errors
/// [`OpenError::Missing`] if there is no store; otherwise another [`OpenError`], with a message for
/// operators.
pub async fn living_workers(url: &str, clock: &dyn Clock) -> Result<Vec<LivingWorker>, OpenError> {
    if is_postgres(url) {
        return postgres::living_beside(url).await;
    }
    let path = sqlite_path(url)?;
    let inspector = Inspector::open(&path)?.ok_or(OpenError::Missing(path))?;
    let living = inspector.living_workers(clock.now_ms());
    living.map_err(|error| OpenError::Unavailable(Box::new(error)))
}

/// Opens the store at `url` for operators' queries, beside the processes that use it. Writes
/// nothing; the schema must be that of this program.
///
/// # Errors
/// [`OpenError::Missing`] if there is no store; otherwise another [`OpenError`], with a message for
/// operators.
pub async fn open_operations(
    url: &str,
    clock: Arc<dyn Clock>,
) -> Result<Arc<dyn Operations>, OpenError> {
    if is_postgres(url) {
        return Ok(Arc::new(PostgresOperations::open(url, &clock).await?));
    }
    let path = sqlite_path(url)?;
    Ok(Arc::new(SqliteOperations::open(&path, clock)?))
}

/// Whether the store at `url` serves several processes at a time.
pub fn is_shared(url: &str) -> bool {
    is_postgres(url)
}

/// Opens the store at `url` for a backup, beside a process that may be serving it. Its schema may
/// be older than this program's, and is not changed.
///
/// # Errors
/// [`OpenError::Missing`] if there is no store; otherwise another [`OpenError`], with a message for
/// operators.
pub fn open_source(url: &str, options: &SqliteOptions) -> Result<Box<dyn BackupSource>, OpenError> {
    Ok(Box::new(SqliteSource::open(&sqlite_path(url)?, options)?))
}

/// Opens the store at `url` for an export, as it is now, beside processes that may be serving it.
/// Its schema must be that of this program.
///
/// # Errors
/// [`OpenError::Missing`] if there is no store; otherwise another [`OpenError`], with a message for
/// operators.
pub async fn open_export(url: &str) -> Result<Box<dyn Export>, OpenError> {
    if is_postgres(url) {
        return Ok(Box::new(postgres::export(url).await?));
    }
    Ok(Box::new(SqliteExport::open(&sqlite_path(url)?)?))
}

/// Opens the empty store at `url` to fill it with the export of this name, or to resume that
/// import. Creates an embedded store that does not exist.
///
/// # Errors
/// [`OpenError::NotEmpty`], [`OpenError::OtherImport`], [`OpenError::Served`] or another
/// [`OpenError`], with a message for operators. The store is unchanged then.
pub async fn open_import(url: &str, export: &str) -> Result<Box<dyn Import>, OpenError> {
    if is_postgres(url) {
        return Ok(Box::new(postgres::import(url, export).await?));
    }
    Ok(Box::new(SqliteImport::begin(&sqlite_path(url)?, export)?))
}

/// Opens a snapshot made by a [`BackupSource`]. Writes nothing to it or beside it.
///
/// # Errors
/// [`OpenError`], with a message for operators.
pub fn open_snapshot(file: &Path) -> Result<Snapshot, OpenError> {
    Snapshot::open(file)
}

pub(crate) fn sqlite_path(url: &str) -> Result<PathBuf, OpenError> {
    match url.split_once(':') {
        Some(("sqlite", path)) if !path.is_empty() => {
            Ok(path.strip_prefix("//").unwrap_or(path).into())
        }
        Some(_) if is_postgres(url) => Err(OpenError::NotHere),
        // The URL may contain a password, so show only its scheme.
        other => Err(OpenError::UnknownScheme(
            other.map_or("", |(scheme, _)| scheme).to_owned(),
        )),
    }
}
