//! The database file: the settings of every connection, and the migrations.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::checkpoint;
use crate::{OpenError, SqliteOptions};

/// The migrations in order; the version of a schema is the number of those applied.
const MIGRATIONS: &[&str] = &[
    include_str!("../../../../migrations/sqlite/0001_tasks.sql"),
    include_str!("../../../../migrations/sqlite/0002_identity.sql"),
    include_str!("../../../../migrations/sqlite/0003_kept.sql"),
    include_str!("../../../../migrations/sqlite/0004_abandoned.sql"),
    include_str!("../../../../migrations/sqlite/0005_references_ready.sql"),
    include_str!("../../../../migrations/sqlite/0006_usage.sql"),
    include_str!("../../../../migrations/sqlite/0007_warnings.sql"),
    include_str!("../../../../migrations/sqlite/0008_key_use.sql"),
    include_str!("../../../../migrations/sqlite/0009_deaths.sql"),
    include_str!("../../../../migrations/sqlite/0012_damage.sql"),
    include_str!("../../../../migrations/sqlite/0013_chores.sql"),
    include_str!("../../../../migrations/sqlite/0014_workers.sql"),
    include_str!("../../../../migrations/sqlite/0015_ended.sql"),
    include_str!("../../../../migrations/sqlite/0016_webhooks.sql"),
    include_str!("../../../../migrations/sqlite/0017_operations.sql"),
    include_str!("../../../../migrations/sqlite/0018_priority.sql"),
    include_str!("../../../../migrations/sqlite/0019_trace.sql"),
    include_str!("../../../../migrations/sqlite/0020_checks.sql"),
    include_str!("../../../../migrations/sqlite/0022_deliveries.sql"),
    include_str!("../../../../migrations/sqlite/0023_gaps.sql"),
    include_str!("../../../../migrations/sqlite/0024_uploads.sql"),
    include_str!("../../../../migrations/sqlite/0025_pauses.sql"),
    include_str!("../../../../migrations/sqlite/0026_money.sql"),
];

/// The schema version of this program.
pub(super) fn known_version() -> u32 {
    u32::try_from(MIGRATIONS.len()).unwrap_or(u32::MAX)
}

/// Number of log pages per checkpoint (64 MiB): submits wait meanwhile, and a quarter of it made
/// their 99th percentile half as long again.
pub(super) const CHECKPOINT_PAGES: u32 = 16_000;
/// A log that has grown past this, because of a long reader, shrinks again.
const LOG_BYTES_MAX: u32 = 128 << 20;

/// A connection that writes; the schema is up to date after it.
pub(super) fn open_writer(path: &Path, options: &SqliteOptions) -> Result<Connection, OpenError> {
    make_folder(path)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags).map_err(unavailable)?;
    configure(&conn, options).map_err(unavailable)?;
    migrate(&conn)?;
    // Only now: defensive mode forbids some statements that migrations need to rewrite the schema.
    harden(&conn).map_err(unavailable)?;
    // A new database's name must survive a crash like its contents.
    kinora_system::durable::sync_name(path).map_err(unavailable)?;
    Ok(conn)
}

/// A connection for checkpoints.
pub(super) fn open_checkpointer(
    path: &Path,
    options: &SqliteOptions,
) -> Result<Connection, OpenError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = open_hardened(path, flags)?;
    configure(&conn, options).map_err(unavailable)?;
    Ok(conn)
}

/// A connection to an existing store, for a backup; it leaves the schema unchanged.
pub(super) fn open_source(path: &Path, options: &SqliteOptions) -> Result<Connection, OpenError> {
    if !path.try_exists().map_err(unavailable)? {
        return Err(OpenError::Missing(path.to_owned()));
    }
    // Not read-only, since the log's index may have to be created.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = open_hardened(path, flags)?;
    // The last connection to close runs a checkpoint. A backup of a crashed store must not: the
    // next opening checks whether the log is intact.
    let mut log = fs::canonicalize(path)
        .map_err(unavailable)?
        .into_os_string();
    log.push("-wal");
    let holds_changes = fs::metadata(log).is_ok_and(|found| found.len() > 0);
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, holds_changes)
        .map_err(unavailable)?;
    conn.busy_timeout(busy_timeout(options))
        .map_err(unavailable)?;
    conn.pragma_update(None, "synchronous", "FULL")
        .map_err(unavailable)?;
    if readable_version(&conn)? == 0 {
        return Err(OpenError::Missing(path.to_owned()));
    }
    Ok(conn)
}

/// A connection to a snapshot, which never changes it.
pub(super) fn open_snapshot(path: &Path) -> Result<Connection, OpenError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = open_hardened(path, flags)?;
    readable_version(&conn)?;
    Ok(conn)
}

/// Opens the file so that nothing in it can act by itself ([`harden`]).
pub(super) fn open_hardened(path: &Path, flags: OpenFlags) -> Result<Connection, OpenError> {
    let conn = Connection::open_with_flags(path, flags).map_err(unavailable)?;
    harden(&conn).map_err(unavailable)?;
    Ok(conn)
}

/// Functions and virtual tables in a strange schema do not run, and no statement can damage the file
/// (<https://sqlite.org/security.html>).
fn harden(conn: &Connection) -> rusqlite::Result<()> {
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    Ok(())
}

/// Lists the triggers, views and virtual tables of `conn`, which run code of their own when ordinary
/// tables are used.
fn active_parts(conn: &Connection) -> rusqlite::Result<BTreeSet<String>> {
    let mut query = conn.prepare(
        "SELECT type || ' ' || name || ': ' || sql FROM sqlite_schema \
         WHERE type IN ('trigger', 'view') OR sql LIKE 'CREATE VIRTUAL%'",
    )?;
    let rows = query.query_map([], |row| row.get(0))?;
    rows.collect()
}

/// Whether `conn` has a trigger, view or virtual table that no migration has made.
pub(super) fn has_unknown_parts(conn: &Connection) -> Result<bool, OpenError> {
    // Compared with what the migrations make in an empty database, so that no list of our own parts
    // has to be kept by hand.
    let own = Connection::open_in_memory().map_err(unavailable)?;
    let version = readable_version(conn)?;
    for migration in MIGRATIONS.iter().take(version as usize) {
        own.execute_batch(migration).map_err(unavailable)?;
    }
    let own = active_parts(&own).map_err(unavailable)?;
    let found = active_parts(conn).map_err(unavailable)?;
    Ok(!found.is_subset(&own))
}

/// The version of a schema, if this program can read it.
pub(super) fn readable_version(conn: &Connection) -> Result<u32, OpenError> {
    let known = u32::try_from(MIGRATIONS.len()).unwrap_or(u32::MAX);
    match schema_version(conn)? {
        found if found > known => Err(OpenError::NewerSchema { found, known }),
        found => Ok(found),
    }
}

/// A read-only connection. The schema must exist.
pub(super) fn open_reader(path: &Path, options: &SqliteOptions) -> Result<Connection, OpenError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = open_hardened(path, flags)?;
    conn.busy_timeout(busy_timeout(options))
        .map_err(unavailable)?;
    keep_prepared(&conn, 32).map_err(unavailable)?;
    Ok(conn)
}

pub(super) fn unavailable(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> OpenError {
    OpenError::Unavailable(error.into())
}

pub(super) fn make_folder(path: &Path) -> Result<(), OpenError> {
    path.parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .map_or(Ok(()), kinora_system::durable::make_folder)
        .map_err(unavailable)
}

fn busy_timeout(options: &SqliteOptions) -> Duration {
    Duration::from_millis(options.busy_timeout_ms.into())
}

/// Prepares each statement once. Without the planner's stability guarantee, SQLite plans a
/// statement again whenever a bound value changes that might select another index
/// (<https://sqlite.org/queryplanner-ng.html#qpstab>).
fn keep_prepared(conn: &Connection, statements: usize) -> rusqlite::Result<()> {
    conn.set_prepared_statement_cache_capacity(statements);
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(())
}

fn configure(conn: &Connection, options: &SqliteOptions) -> rusqlite::Result<()> {
    conn.busy_timeout(busy_timeout(options))?;
    keep_prepared(conn, 64)?;
    enable_log(conn, options)?;
    // In WAL mode, NORMAL would not sync before the reply: a power cut could lose an accepted task.
    conn.pragma_update(None, "synchronous", "FULL")?;
    conn.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
    conn.pragma_update(None, "journal_size_limit", LOG_BYTES_MAX)?;
    // Off by default in SQLite, for each connection anew. Removing a task relies on it.
    conn.pragma_update(None, "foreign_keys", true)?;
    // Overwrites deleted rows; for the log see `checkpoint`.
    conn.pragma_update(None, "secure_delete", true)?;
    // Negative: KiB instead of pages (<https://sqlite.org/pragma.html#pragma_cache_size>).
    conn.pragma_update(None, "cache_size", -16_384)?;
    if let Some(pages) = options.pages_max {
        conn.pragma_update(None, "max_page_count", pages)?;
    }
    Ok(())
}

/// Turns on the write-ahead log. SQLite does not wait for its turn here, as it does elsewhere, when
/// several processes open a new database concurrently.
fn enable_log(conn: &Connection, options: &SqliteOptions) -> rusqlite::Result<()> {
    const PAUSE: Duration = Duration::from_millis(10);
    let mut waited = Duration::ZERO;
    loop {
        match conn.pragma_update(None, "journal_mode", "WAL") {
            Err(error)
                if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy)
                    && waited < busy_timeout(options) =>
            {
                std::thread::sleep(PAUSE);
                waited += PAUSE;
            }
            done => return done,
        }
    }
}

/// Updates the schema in one transaction, so that processes that open the store concurrently do it
/// once.
fn migrate(conn: &Connection) -> Result<(), OpenError> {
    let (found, known) = (schema_version(conn)?, known_version());
    if found == known {
        return Ok(());
    }
    if found > 0 && found < known {
        // The log may occupy the space that the migration needs.
        checkpoint::run_checkpoint(conn);
    }
    conn.execute_batch("BEGIN IMMEDIATE").map_err(unavailable)?;
    // The version is read again under the lock: another process may have migrated meanwhile.
    let migrated = migrate_from(conn, schema_version(conn)?, known);
    let end = if migrated.is_ok() {
        "COMMIT"
    } else {
        "ROLLBACK"
    };
    conn.execute_batch(end).map_err(unavailable)?;
    migrated
}

fn migrate_from(conn: &Connection, found: u32, known: u32) -> Result<(), OpenError> {
    if found > known {
        return Err(OpenError::NewerSchema { found, known });
    }
    for migration in MIGRATIONS.iter().skip(found as usize) {
        conn.execute_batch(migration).map_err(unavailable)?;
    }
    conn.pragma_update(None, "user_version", known)
        .map_err(unavailable)
}

/// The name of an unfinished import's export, if there is one.
pub(super) fn unfinished_import(conn: &Connection) -> Result<Option<String>, OpenError> {
    if !conn
        .table_exists(None, "unfinished_import")
        .map_err(unavailable)?
    {
        return Ok(None);
    }
    let found = conn.query_row("SELECT export FROM unfinished_import", [], |row| row.get(0));
    found.map(Some).map_err(unavailable)
}

/// Refuses a store with an unfinished import.
pub(super) fn refuse_unfinished_import(conn: &Connection) -> Result<(), OpenError> {
    match unfinished_import(conn)? {
        Some(_) => Err(OpenError::UnfinishedImport),
        None => Ok(()),
    }
}

pub(super) fn schema_version(conn: &Connection) -> Result<u32, OpenError> {
    conn.pragma_query_value(None, "user_version", |row| row.get(0))
        .map_err(unavailable)
}

#[cfg(test)]
mod tests;
