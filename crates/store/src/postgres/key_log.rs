//! Rows of the log of key changes.

use kinora_contract::UnixMs;
use kinora_contract::limits::KEY_LOG_ENTRIES_MAX;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::fault::{Done, corrupt};
use super::statement::Statement;
use crate::{Actor, KeyAction, KeyActionKind};

/// Adds an entry.
pub(super) fn add(entry: &KeyAction) -> Statement {
    let add = "INSERT INTO key_log (at_ms, kind, key, name, project, successor, \"user\", host) \
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
    Statement::new(add)
        .int(entry.at_ms)
        .text(entry.kind.name())
        .text(entry.key.clone())
        .text(entry.name.clone())
        .text(entry.project.clone())
        .bind(entry.successor.clone(), Type::TEXT)
        .text(entry.by.user.clone())
        .text(entry.by.host.clone())
}

/// Notes the change to the key with this id, before the change, so that revoking twice is one
/// action.
pub(super) fn note_end(id: &str, at_ms: UnixMs, successor: Option<&str>, by: &Actor) -> Statement {
    let kind = match successor {
        Some(_) => KeyActionKind::Rotated,
        None => KeyActionKind::Revoked,
    };
    // A concurrent transaction that ends the same key waits, then finds it ended.
    let note = "INSERT INTO key_log (at_ms, kind, key, name, project, successor, \"user\", host) \
                SELECT $2, $3, id, name, project, $4, $5, $6 FROM \
                (SELECT id, name, project FROM api_keys \
                WHERE id = $1 AND ($4 IS NOT NULL OR revoked_at_ms IS NULL) FOR UPDATE) k";
    Statement::new(note)
        .text(id)
        .int(at_ms)
        .text(kind.name())
        .bind(successor.map(str::to_owned), Type::TEXT)
        .text(by.user.clone())
        .text(by.host.clone())
}

/// Removes the oldest entries beyond the bound.
pub(super) fn trim() -> Statement {
    let trim = "DELETE FROM key_log WHERE number <= (SELECT max(number) FROM key_log) - $1";
    Statement::new(trim).int(KEY_LOG_ENTRIES_MAX as u64)
}

/// Asks for the entries of one project or of all, newest first.
pub(super) fn ask(project: Option<&str>) -> Statement {
    let ask = "SELECT at_ms, kind, key, name, project, successor, \"user\", host FROM key_log \
               WHERE $1 IS NULL OR project = $1 ORDER BY number DESC";
    Statement::new(ask).bind(project.map(str::to_owned), Type::TEXT)
}

pub(super) fn read(rows: &[Row]) -> Done<Vec<KeyAction>> {
    let read = |row: &Row| {
        let kind: &str = row.try_get(1)?;
        let unknown = || corrupt(format!("unknown change of a key {kind:?}"));
        Ok(KeyAction {
            at_ms: row.try_get::<_, i64>(0)?.unsigned_abs(),
            kind: KeyActionKind::from_name(kind).ok_or_else(unknown)?,
            key: row.try_get(2)?,
            name: row.try_get(3)?,
            project: row.try_get(4)?,
            successor: row.try_get(5)?,
            by: Actor {
                user: row.try_get(6)?,
                host: row.try_get(7)?,
            },
        })
    };
    rows.iter().map(read).collect()
}
