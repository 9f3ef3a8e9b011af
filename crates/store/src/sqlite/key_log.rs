//! Rows of the log of key changes.

use kinora_contract::UnixMs;
use kinora_contract::limits::KEY_LOG_ENTRIES_MAX;
use rusqlite::{Connection, Row, params};

use super::columns::int;
use super::fault::{Done, Fault};
use crate::{Actor, KeyAction, KeyActionKind};

/// Adds an entry, and removes the oldest ones beyond the limit.
pub(super) fn add(conn: &Connection, entry: &KeyAction) -> Done<()> {
    let mut query = conn.prepare_cached(
        "INSERT INTO key_log (at_ms, kind, key, name, project, successor, user, host) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    )?;
    query.execute(params![
        int(entry.at_ms),
        entry.kind.name(),
        entry.key,
        entry.name,
        entry.project,
        entry.successor,
        entry.by.user,
        entry.by.host,
    ])?;
    trim(conn)
}

/// Records the end of the key with this id; before the change, so that revoking twice adds one
/// entry.
pub(super) fn note_end(
    conn: &Connection,
    id: &str,
    at_ms: UnixMs,
    successor: Option<&str>,
    by: &Actor,
) -> Done<()> {
    let kind = match successor {
        Some(_) => KeyActionKind::Rotated,
        None => KeyActionKind::Revoked,
    };
    let mut query = conn.prepare_cached(
        "INSERT INTO key_log (at_ms, kind, key, name, project, successor, user, host) \
         SELECT ?2, ?3, id, name, project, ?4, ?5, ?6 FROM api_keys \
         WHERE id = ?1 AND (?4 IS NOT NULL OR revoked_at_ms IS NULL)",
    )?;
    query.execute(params![
        id,
        int(at_ms),
        kind.name(),
        successor,
        by.user,
        by.host
    ])?;
    trim(conn)
}

fn trim(conn: &Connection) -> Done<()> {
    let mut query = conn.prepare_cached(
        "DELETE FROM key_log WHERE number <= (SELECT max(number) FROM key_log) - ?1",
    )?;
    query.execute([int(KEY_LOG_ENTRIES_MAX as u64)])?;
    Ok(())
}

/// The entries of one project or of all, newest first.
pub(super) fn read(conn: &Connection, project: Option<&str>) -> Done<Vec<KeyAction>> {
    let mut query = conn.prepare_cached(
        "SELECT at_ms, kind, key, name, project, successor, user, host FROM key_log \
         WHERE ?1 IS NULL OR project = ?1 ORDER BY number DESC",
    )?;
    let mut rows = query.query([project])?;
    let mut entries = Vec::new();
    while let Some(row) = rows.next()? {
        entries.push(entry(row)?);
    }
    Ok(entries)
}

fn entry(row: &Row<'_>) -> Done<KeyAction> {
    let kind: String = row.get(1)?;
    let unknown = || Fault::Corrupt(format!("unknown change of a key {kind:?}"));
    Ok(KeyAction {
        at_ms: row.get::<_, i64>(0)?.unsigned_abs(),
        kind: KeyActionKind::from_name(&kind).ok_or_else(unknown)?,
        key: row.get(2)?,
        name: row.get(3)?,
        project: row.get(4)?,
        successor: row.get(5)?,
        by: Actor {
            user: row.get(6)?,
            host: row.get(7)?,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::super::schema;
    use super::*;
    use crate::SqliteOptions;

    #[test]
    fn the_newest_entries_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.db");
        let conn = schema::open_writer(&path, &SqliteOptions::default()).unwrap();
        let entry = |number: u64| KeyAction {
            at_ms: number,
            kind: KeyActionKind::Created,
            key: format!("key_{number}"),
            name: String::new(),
            project: "one".to_owned(),
            successor: None,
            by: Actor {
                user: "alice".to_owned(),
                host: "host".to_owned(),
            },
        };
        let most = KEY_LOG_ENTRIES_MAX as u64;
        let together = conn.unchecked_transaction().unwrap();
        for number in 0..most + 3 {
            add(&together, &entry(number)).unwrap();
        }
        together.commit().unwrap();
        let kept = read(&conn, None).unwrap();
        assert_eq!(kept.len(), KEY_LOG_ENTRIES_MAX);
        assert_eq!(kept.first(), Some(&entry(most + 2)));
        assert_eq!(kept.last(), Some(&entry(3)));
    }
}
