//! Deliveries in SQLite as the delivering process uses them: leases, outcomes, and the limits of a
//! webhook's rows.

use kinora_contract::UnixMs;
use kinora_contract::limits::{WEBHOOK_LOG_MAX, WEBHOOK_PENDING_MAX};
use rusqlite::{Connection, Row, params};

use super::batch::Batch;
use super::fault::Done;
use super::job::WriterStep;
use super::rows::int;
use crate::DeliveryRequest;
use crate::webhooks::{AHEAD_MS_MAX, TRIM_STEP};

/// Numbers of the deliveries to lease. Each webhook is read by index, as far as its free places go, so
/// the work does not grow with its backlog.
pub(super) fn due(conn: &Connection, request: &DeliveryRequest, now_ms: UnixMs) -> Done<Vec<u64>> {
    let ahead_ms = now_ms.saturating_add(AHEAD_MS_MAX);
    let mut webhooks = conn.prepare_cached(
        "SELECT id FROM webhooks w WHERE disabled_at_ms IS NULL \
         AND EXISTS (SELECT 1 FROM deliveries WHERE webhook = w.id AND state = 'pending')",
    )?;
    let mut leased = conn.prepare_cached(
        "SELECT count(*) FROM deliveries \
         WHERE webhook = ?1 AND token IS NOT NULL AND due_ms > ?2 AND due_ms <= ?3",
    )?;
    let mut due = Vec::new();
    let found = webhooks.query_map([], |row| row.get::<_, String>(0))?;
    for webhook in found {
        let webhook = webhook?;
        let taken: u32 = leased.query_row(params![webhook, int(now_ms), int(ahead_ms)], |row| {
            row.get(0)
        })?;
        let taken = taken as usize;
        let free = request.each.saturating_sub(taken);
        let mut own = next_due(conn, &webhook, (0, now_ms), free)?;
        own.extend(next_due(
            conn,
            &webhook,
            (ahead_ms.saturating_add(1), UnixMs::MAX),
            free - own.len(),
        )?);
        due.extend((taken..).zip(own));
    }
    due.sort_unstable();
    due.truncate(request.count);
    let numbers = due.into_iter().map(|(_, (_, number))| number);
    Ok(numbers.map(i64::unsigned_abs).collect())
}

/// The first pending deliveries of a webhook that are due in this time: when, and their numbers.
fn next_due(
    conn: &Connection,
    webhook: &str,
    (from_ms, until_ms): (UnixMs, UnixMs),
    count: usize,
) -> Done<Vec<(i64, i64)>> {
    let mut query = conn.prepare_cached(
        "SELECT due_ms, number FROM deliveries WHERE webhook = ?1 AND state = 'pending' \
         AND due_ms >= ?2 AND due_ms <= ?3 ORDER BY due_ms, number LIMIT ?4",
    )?;
    let found = query.query_map(
        params![webhook, int(from_ms), int(until_ms), int(count as u64)],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    Ok(found.collect::<Result<_, _>>()?)
}

/// Deliveries beyond the limits of their webhooks, to remove.
#[derive(Debug, Default)]
pub(super) struct Excess {
    /// Numbers of finished ones.
    finished: Vec<i64>,
    /// Pending ones, with their webhooks.
    pending: Vec<(i64, String)>,
}

impl Excess {
    pub(super) const fn is_empty(&self) -> bool {
        self.finished.is_empty() && self.pending.is_empty()
    }
}

/// Ends the leases of earlier processes, which are dead.
pub(super) fn end_leases(conn: &Connection) -> Done<()> {
    conn.execute(
        "UPDATE deliveries SET due_ms = 0, token = NULL WHERE token IS NOT NULL",
        [],
    )?;
    // Pauses of chores end too.
    conn.execute(
        "UPDATE chores SET due_ms = 0, token = NULL WHERE due_ms <> 0 OR token IS NOT NULL",
        [],
    )?;
    Ok(())
}

/// Finds what to remove, a limited number for each webhook.
pub(super) fn excess(conn: &Connection) -> Done<Excess> {
    let mut webhooks = conn.prepare_cached("SELECT id FROM webhooks")?;
    let mut finished = conn.prepare_cached(
        "SELECT number FROM deliveries WHERE webhook = ?1 AND state IN ('delivered', 'failed') AND number <= (\
           SELECT number FROM deliveries WHERE webhook = ?1 ORDER BY number DESC LIMIT 1 OFFSET ?2) \
         ORDER BY number LIMIT ?3",
    )?;
    let mut pending = conn.prepare_cached(
        "SELECT number FROM deliveries WHERE webhook = ?1 AND state = 'pending' \
         ORDER BY due_ms DESC, number DESC LIMIT ?3 OFFSET ?2",
    )?;
    let step = int(TRIM_STEP);
    let mut excess = Excess::default();
    let found = webhooks.query_map([], |row| row.get::<_, String>(0))?;
    for webhook in found {
        let webhook = webhook?;
        let first = |row: &Row<'_>| row.get::<_, i64>(0);
        let old = finished.query_map(params![webhook, int(WEBHOOK_LOG_MAX), step], first)?;
        excess.finished.extend(old.collect::<Result<Vec<_>, _>>()?);
        let old = pending.query_map(params![webhook, int(WEBHOOK_PENDING_MAX), step], first)?;
        for number in old {
            excess.pending.push((number?, webhook.clone()));
        }
    }
    Ok(excess)
}

impl WriterStep for Excess {
    type Output = u64;

    fn apply(&self, batch: &mut Batch<'_>) -> Done<u64> {
        let mut delete = batch.conn.prepare_cached(
            "DELETE FROM deliveries WHERE number = ?1 AND state IN ('delivered', 'failed')",
        )?;
        for number in &self.finished {
            delete.execute([number])?;
        }
        // One that is being delivered stays.
        let mut drop = batch.conn.prepare_cached(
            "DELETE FROM deliveries WHERE number = ?1 AND state = 'pending' AND token IS NULL",
        )?;
        let mut count = batch
            .conn
            .prepare_cached("UPDATE webhooks SET dropped = dropped + 1 WHERE id = ?1")?;
        let mut dropped = 0;
        for (number, webhook) in &self.pending {
            if drop.execute([number])? > 0 {
                dropped += 1;
                count.execute([webhook])?;
            }
        }
        Ok(dropped)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crate::SqliteOptions;
    use crate::sqlite::schema;

    /// The steps of SQLite's machine to find what is due, beside a backlog that was never tried and
    /// one that waits for its next attempt.
    fn steps(backlog: u64) -> u64 {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.db");
        let mut conn = schema::open_writer(&path, &SqliteOptions::default()).unwrap();
        let fill = format!(
            "INSERT INTO webhooks (id, project, url, secret, created_at_ms) VALUES \
               ('a', 'one', 'http://a', zeroblob(32), 0), ('b', 'two', 'http://b', zeroblob(32), 0);
             INSERT INTO deliveries (event, webhook, state, due_ms) \
               SELECT 'evt_' || value, iif(value % 2, 'a', 'b'), 'pending', iif(value % 3, 0, 5000) \
               FROM (WITH RECURSIVE n(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n WHERE value < {backlog}) \
                     SELECT value FROM n);"
        );
        conn.execute_batch(&fill).unwrap();
        let counted = Arc::new(AtomicU64::new(0));
        let counter = counted.clone();
        let count = move || {
            counter.fetch_add(1, Ordering::Relaxed);
            false
        };
        conn.progress_handler(1, Some(count)).unwrap();
        let request = DeliveryRequest {
            count: 64,
            each: 4,
            lease_ms: 1,
        };
        assert_eq!(due(&conn, &request, 1_000).unwrap().len(), 8);
        counted.load(Ordering::Relaxed)
    }

    #[test]
    fn p08_a_take_costs_no_more_for_a_backlog() {
        let (few, many) = (steps(100), steps(20_000));
        assert!(many < 2 * few, "{few} steps, {many} beside a backlog");
    }
}
