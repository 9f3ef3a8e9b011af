//! Rows of the table `deliveries`, added in the transaction that makes them necessary.

use kinora_contract::TaskId;
use kinora_contract::webhook::event_id;
use rusqlite::{Connection, params};

use super::fault::Done;
/// Records that a task has ended: its callback and the webhooks of its project must be notified.
pub(super) fn note_end(conn: &Connection, project: &str, task: TaskId) -> Done<()> {
    let event = event_id(task);
    let mut callback = conn.prepare_cached(
        "UPDATE deliveries SET state = 'pending' WHERE event = ?1 AND state = 'waiting'",
    )?;
    callback.execute([&event])?;
    let mut others = conn.prepare_cached(
        "INSERT OR IGNORE INTO deliveries (event, task, webhook, state) SELECT ?1, ?2, id, 'pending' FROM webhooks \
         WHERE project = ?3 AND url IS NOT NULL AND disabled_at_ms IS NULL",
    )?;
    others.execute(params![event, task.to_string(), project])?;
    Ok(())
}

/// Ends the leases of earlier processes, which are dead.
pub(super) fn end_leases(conn: &Connection) -> Done<()> {
    conn.execute(
        "UPDATE deliveries SET due_ms = 0, token = NULL WHERE token IS NOT NULL",
        [],
    )?;
    Ok(())
}
