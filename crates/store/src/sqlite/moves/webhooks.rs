//! Moved webhooks and deliveries.

use rusqlite::{Connection, Row, params};

use crate::sqlite::columns::int;
use crate::sqlite::fault::{Done, Fault};
use crate::sqlite::webhooks;
use crate::{DeliveryState, MovedDelivery, MovedStore};

/// Deliveries that are still due, without their leases, oldest first.
pub(super) fn deliveries(conn: &Connection) -> Done<Vec<MovedDelivery>> {
    let mut query = conn.prepare(
        "SELECT event, task, webhook, url, state, attempts, CASE WHEN token IS NULL THEN due_ms ELSE 0 END \
         FROM deliveries WHERE state IN ('waiting', 'pending') ORDER BY number",
    )?;
    let found = query.query_map([], |row| Ok(read(row)))?;
    found.map(|delivery| delivery?).collect()
}

fn read(row: &Row<'_>) -> Done<MovedDelivery> {
    let state: String = row.get(4)?;
    let unknown = || Fault::Corrupt(format!("unknown state {state:?} of a delivery"));
    Ok(MovedDelivery {
        event: row.get(0)?,
        task: row.get(1)?,
        webhook: row.get(2)?,
        url: row.get(3)?,
        state: DeliveryState::named(&state).ok_or_else(unknown)?,
        attempts: row.get(5)?,
        due_ms: row.get::<_, i64>(6)?.unsigned_abs(),
    })
}

/// Replaces all webhooks and deliveries by those of `store`.
pub(super) fn write(conn: &Connection, store: &MovedStore) -> Done<()> {
    conn.execute_batch("DELETE FROM deliveries; DELETE FROM webhooks")?;
    for webhook in &store.webhooks {
        webhooks::add(conn, &webhook.into())?;
    }
    let mut query = conn.prepare(
        "INSERT INTO deliveries (event, task, webhook, url, state, attempts, due_ms) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    for one in &store.deliveries {
        query.execute(params![
            one.event,
            one.task,
            one.webhook,
            one.url,
            one.state.name(),
            one.attempts,
            int(one.due_ms),
        ])?;
    }
    Ok(())
}
