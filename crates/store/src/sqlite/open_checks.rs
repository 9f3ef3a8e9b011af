//! Checks before a store is opened, so that a refusal changes nothing: whether the database is
//! intact (for a limited time), and whether it has everything that its high-water mark counts.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use kinora_contract::{Clock, Stopwatch, TaskId};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension};

use super::{high_water_mark, schema};
use crate::{LostChanges, OpenError, SqliteOptions};

/// Time limit of the check at an opening; `kinora doctor` checks everything.
const CHECK_MAX: Duration = Duration::from_secs(1);
/// Number of SQLite steps between two looks at the clock.
const CHECK_STEPS: i32 = 1000;
/// Maximum number of reported findings of a check.
const FINDINGS_MAX: usize = 20;

/// Checks the store in the file at `path`. The returned connection changes nothing, not even when it
/// closes; it is `None` without a store, or if the operator accepted a loss.
pub(super) fn check_before_open(
    path: &Path,
    options: &SqliteOptions,
    clock: &Arc<dyn Clock>,
) -> Result<Option<Connection>, OpenError> {
    match refuse_emptied(path).and_then(|()| check_path(path, clock)) {
        Err(error @ (OpenError::Damaged(_) | OpenError::Lost(_))) if options.accepts_loss => {
            tracing::warn!(%error, "loss accepted; serving the remaining data");
            Ok(None)
        }
        judged => judged,
    }
}

fn check_path(path: &Path, clock: &Arc<dyn Clock>) -> Result<Option<Connection>, OpenError> {
    if !path.try_exists().map_err(schema::unavailable)? {
        return check_lost_changes(path, None).map(|()| None);
    }
    let mut conn = connect(path)?;
    check_existing(path, &mut conn, clock)?;
    Ok(Some(conn))
}

/// Refuses an empty database beside a log with data. SQLite would remove that log at its first read,
/// and with it all data that could be saved.
pub(super) fn refuse_emptied(path: &Path) -> Result<(), OpenError> {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    let is_empty = fs::metadata(path).is_ok_and(|found| found.len() == 0);
    if is_empty && fs::metadata(log).is_ok_and(|found| found.len() > 0) {
        return Err(OpenError::Damaged(
            "the database is empty, although its log is not".to_owned(),
        ));
    }
    Ok(())
}

fn check_existing(
    path: &Path,
    conn: &mut Connection,
    clock: &Arc<dyn Clock>,
) -> Result<(), OpenError> {
    let version = schema::schema_version(conn).map_err(classify_error)?;
    if version > schema::known_version() {
        // The migration refuses it with the right error.
        return Ok(());
    }
    let limit = CheckLimit {
        time: CHECK_MAX,
        since: Stopwatch::start(clock),
    };
    match check_database(conn, Some(limit))? {
        CheckOutcome::Whole => {}
        CheckOutcome::Partly => tracing::info!(
            seconds = CHECK_MAX.as_secs(),
            "database only partly checked, for lack of time; `kinora doctor` checks everything"
        ),
        CheckOutcome::Damaged(findings) => return Err(OpenError::Damaged(findings.join("; "))),
    }
    check_lost_changes(path, Some(conn))
}

/// A connection that leaves the log unchanged when it closes.
fn connect(path: &Path) -> Result<Connection, OpenError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = schema::open_hardened(path, flags)?;
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
        .map_err(schema::unavailable)?;
    Ok(conn)
}

/// Time limit of a check.
#[derive(Debug)]
pub(super) struct CheckLimit {
    time: Duration,
    since: Stopwatch,
}

/// Result of a database check.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum CheckOutcome {
    Whole,
    /// The checked part is intact; the time ran out.
    Partly,
    Damaged(Vec<String>),
}

/// Runs SQLite's check of pages, rows and indexes. `quick_check` would not compare indexes with
/// their tables, and a wrong index ends lists early; a limit bounds both alike.
pub(super) fn check_database(
    conn: &mut Connection,
    limit: Option<CheckLimit>,
) -> Result<CheckOutcome, OpenError> {
    // SQLite has no time limit for a statement. The handler runs every so many steps of its virtual
    // machine, and interrupts the check by returning true.
    if let Some(CheckLimit { time, since }) = limit {
        conn.progress_handler(CHECK_STEPS, Some(move || since.elapsed() >= time))
            .map_err(schema::unavailable)?;
    }
    let mut findings = Vec::new();
    let done = run_check(conn, &mut findings);
    conn.progress_handler(0, None::<fn() -> bool>)
        .map_err(schema::unavailable)?;
    match done {
        Err(error) if is_damage(&error) => {
            findings.push(error.to_string());
            Ok(CheckOutcome::Damaged(findings))
        }
        Ok(()) if findings.is_empty() => Ok(CheckOutcome::Whole),
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted) => {
            Ok(if findings.is_empty() {
                CheckOutcome::Partly
            } else {
                CheckOutcome::Damaged(findings)
            })
        }
        Ok(()) => Ok(CheckOutcome::Damaged(findings)),
        Err(error) => Err(schema::unavailable(error)),
    }
}

fn run_check(conn: &Connection, findings: &mut Vec<String>) -> rusqlite::Result<()> {
    let mut query = conn.prepare(&format!("PRAGMA integrity_check({FINDINGS_MAX})"))?;
    let mut rows = query.query([])?;
    while let Some(row) = rows.next()? {
        let finding: String = row.get(0)?;
        if finding != "ok" {
            findings.push(finding.lines().collect::<Vec<_>>().join(" "));
        }
    }
    Ok(())
}

fn is_damage(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)
    )
}

/// Turns SQLite's error about a damaged file into [`OpenError::Damaged`].
pub(super) fn classify_error(error: OpenError) -> OpenError {
    match error {
        OpenError::Unavailable(cause) if cause.downcast_ref().is_some_and(is_damage) => {
            OpenError::Damaged(cause.to_string())
        }
        error => error,
    }
}

/// Whether the database lacks changes that its high-water mark counts.
pub(super) fn check_lost_changes(path: &Path, conn: Option<&Connection>) -> Result<(), OpenError> {
    let noted = high_water_mark::read(path).map_err(schema::unavailable)?;
    let Some(noted) = noted.filter(|noted| noted.changes > 0) else {
        return Ok(());
    };
    let known = match conn {
        Some(conn) => {
            read_state(conn).map_err(|error| classify_error(schema::unavailable(error)))?
        }
        None => DatabaseState::default(),
    };
    // A database with another identity was put here, for example restored from the backup of another
    // store: none of the counted changes is in it. The same identity with fewer changes means an older
    // copy, or a log that was cut.
    let foreign = known.identity.is_some_and(|own| own != noted.identity);
    if !foreign && known.changes >= noted.changes {
        return Ok(());
    }
    Err(OpenError::Lost(LostChanges {
        changes: if foreign {
            noted.changes
        } else {
            noted.changes - known.changes
        },
        newest_ms: known.newest_ms,
        noted_ms: noted.written_ms,
        foreign,
    }))
}

/// Identity and age of a database, to compare with its high-water mark.
#[derive(Debug, Default)]
struct DatabaseState {
    identity: Option<u64>,
    changes: u64,
    newest_ms: Option<u64>,
}

fn read_state(conn: &Connection) -> rusqlite::Result<DatabaseState> {
    if !conn.table_exists(None, "counters")? {
        return Ok(DatabaseState::default());
    }
    let newest: Option<String> =
        conn.query_row("SELECT max(id) FROM tasks", [], |row| row.get(0))?;
    let newest = newest.and_then(|id| id.parse::<TaskId>().ok());
    Ok(DatabaseState {
        identity: counter(conn, "identity")?,
        changes: counter(conn, "changes")?.unwrap_or(0),
        newest_ms: newest.map(TaskId::created_at_ms),
    })
}

fn counter(conn: &Connection, name: &str) -> rusqlite::Result<Option<u64>> {
    let mut query = conn.prepare("SELECT value FROM counters WHERE name = ?1")?;
    let value = query.query_row([name], |row| row.get::<_, i64>(0));
    Ok(value.optional()?.map(i64::unsigned_abs))
}
