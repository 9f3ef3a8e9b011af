//! Rows of the table `chores`, added in the transaction that makes them necessary.

use kinora_contract::lifecycle::CallOff;
use rusqlite::{Connection, params};

use super::fault::Done;

/// Adds files to remove.
pub(super) fn note_files(conn: &Connection, keys: &[String]) -> Done<()> {
    if keys.is_empty() {
        return Ok(());
    }
    let mut query = conn.prepare_cached(
        "INSERT OR IGNORE INTO chores (kind, subject) VALUES ('remove_file', ?1)",
    )?;
    for key in keys {
        query.execute([key])?;
    }
    Ok(())
}

/// Adds an upstream job to cancel.
pub(super) fn note_call_off(conn: &Connection, call_off: &CallOff) -> Done<()> {
    let mut query = conn.prepare_cached(
        "INSERT OR REPLACE INTO chores (kind, subject, model, ticket) VALUES ('call_off', ?1, ?2, ?3)",
    )?;
    let CallOff {
        task,
        model,
        ticket,
    } = call_off;
    query.execute(params![task.to_string(), model, ticket])?;
    Ok(())
}

/// Ends the leases of earlier processes, which are dead, and all pauses.
pub(super) fn end_leases(conn: &Connection) -> Done<()> {
    conn.execute(
        "UPDATE chores SET due_ms = 0, token = NULL WHERE due_ms <> 0 OR token IS NOT NULL",
        [],
    )?;
    Ok(())
}
