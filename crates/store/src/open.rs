//! Opens stores by their addresses. A new kind of store is one type that implements [`StoreDriver`], and
//! its entry in [`DRIVERS`].

use std::path::Path;
use std::sync::Arc;

use kinora_contract::Clock;

use crate::driver::StoreDriver;
use crate::postgres::PostgresDriver;
use crate::sqlite::{BackupSnapshot, SqliteDriver};
use crate::{
    BackupSource, KeyStore, LivingWorker, OpenError, OpenOptions, OperatorStore, PauseStore,
    StoreExport, StoreHandles, StoreImport, StoreInspection, WebhookStore,
};

/// The kinds of stores.
const DRIVERS: [&dyn StoreDriver; 2] = [&SqliteDriver, &PostgresDriver];

/// The driver of an address.
fn driver(url: &str) -> Result<&'static dyn StoreDriver, OpenError> {
    let found = DRIVERS.into_iter().find(|driver| driver.knows(url));
    found.ok_or_else(|| {
        // The address may hold a password: only its scheme is shown.
        let scheme = url.split_once(':').map_or("", |(scheme, _)| scheme);
        OpenError::UnknownScheme(scheme.to_owned())
    })
}

/// Opens the store at `url` for serving.
///
/// - `sqlite:PATH`: updates the schema, requeues the tasks that a dead process left running, and locks
///   the store against a second serving process.
/// - `postgres://`: any number of processes may serve it. Its schema must be up to date ([`migrate`]).
///   The leases of a dead process end by time.
///
/// # Errors
/// [`OpenError`], with a message for operators.
pub async fn open(url: &str, options: &OpenOptions) -> Result<StoreHandles, OpenError> {
    driver(url)?.open(url, options).await
}

/// Updates the schema of the store at `url`. Returns the version before (0: there was none) and
/// after; `None` for a store that updates itself when it is opened.
///
/// # Errors
/// [`OpenError`], with a message for operators.
pub async fn migrate(url: &str) -> Result<Option<(u32, u32)>, OpenError> {
    driver(url)?.migrate(url).await
}

/// Opens the API keys of the store at `url` beside a process that may be serving it. That process
/// sees changes within a second. For a PostgreSQL database the first call makes the connection, and
/// reports errors.
///
/// # Errors
/// [`OpenError::Missing`] if there is no store: a command on keys never creates one. Otherwise
/// another [`OpenError`], with a message for operators.
pub fn open_keys(url: &str) -> Result<Arc<dyn KeyStore>, OpenError> {
    driver(url)?.open_keys(url)
}

/// Opens the webhooks of the store at `url`, like [`open_keys`].
///
/// # Errors
/// As [`open_keys`].
pub fn open_webhooks(url: &str) -> Result<Arc<dyn WebhookStore>, OpenError> {
    driver(url)?.open_webhooks(url)
}

/// Opens the pauses of the store at `url`, like [`open_keys`].
///
/// # Errors
/// As [`open_keys`].
pub fn open_pauses(url: &str) -> Result<Arc<dyn PauseStore>, OpenError> {
    driver(url)?.open_pauses(url)
}

/// The live workers of the store at `url`, beside the processes that use it.
///
/// # Errors
/// [`OpenError::Missing`] if there is no store; otherwise another [`OpenError`], with a message for
/// operators.
pub async fn living_workers(
    url: &str,
    clock: Arc<dyn Clock>,
) -> Result<Vec<LivingWorker>, OpenError> {
    let overview = open_operations(url, clock).await?.overview().await;
    let overview = overview.map_err(|error| OpenError::Unavailable(error.into()))?;
    Ok(overview.workers)
}

/// The settings of the server behind the store at `url` with which a power loss may lose acknowledged
/// tasks.
///
/// # Errors
/// [`OpenError`], with a message for operators.
pub async fn unsafe_settings(url: &str) -> Result<Vec<String>, OpenError> {
    driver(url)?.unsafe_settings(url).await
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
) -> Result<Arc<dyn OperatorStore>, OpenError> {
    driver(url)?.open_operations(url, clock).await
}

/// Whether the store at `url` serves several processes at a time.
pub fn is_shared(url: &str) -> bool {
    driver(url).is_ok_and(StoreDriver::is_shared)
}

/// Opens the store at `url` for a backup, beside a process that may be serving it. Its schema may
/// be older than this program's, and is not changed.
///
/// # Errors
/// [`OpenError::Missing`] if there is no store; otherwise another [`OpenError`], with a message for
/// operators.
pub fn open_source(url: &str) -> Result<Box<dyn BackupSource>, OpenError> {
    driver(url)?.open_source(url)
}

/// Opens the store at `url` for an export, as it is now, beside processes that may be serving it.
/// Its schema must be that of this program.
///
/// # Errors
/// [`OpenError::Missing`] if there is no store; otherwise another [`OpenError`], with a message for
/// operators.
pub async fn open_export(url: &str) -> Result<Box<dyn StoreExport>, OpenError> {
    driver(url)?.open_export(url).await
}

/// Opens the empty store at `url` to fill it with the export of this name, or to resume that
/// import. Creates an embedded store that does not exist.
///
/// # Errors
/// [`OpenError::NotEmpty`], [`OpenError::OtherImport`], [`OpenError::Served`] or another
/// [`OpenError`], with a message for operators. The store is unchanged then.
pub async fn open_import(url: &str, export: &str) -> Result<Box<dyn StoreImport>, OpenError> {
    driver(url)?.open_import(url, export).await
}

/// Opens a snapshot made by a [`BackupSource`]. Writes nothing to it or beside it.
///
/// # Errors
/// [`OpenError`], with a message for operators.
pub fn open_snapshot(file: &Path) -> Result<BackupSnapshot, OpenError> {
    BackupSnapshot::open(file)
}

/// Opens the store at `url` for inspection: read-only, beside a process that may be serving it;
/// `None` if there is no store.
///
/// # Errors
/// [`OpenError`], with a message for operators.
pub fn inspect(url: &str) -> Result<Option<StoreInspection>, OpenError> {
    driver(url)?.inspect(url)
}
