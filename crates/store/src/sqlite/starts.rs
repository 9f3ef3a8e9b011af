//! Starts and ends of the serving process: the number of deaths in a row, so that a crash loop is
//! slowed down. None of it ever prevents serving.

use rusqlite::Connection;

use super::batch::Batch;
use super::columns::int;
use super::fault::Done;
use super::job::WriterStep;
use super::rows;

/// Values of the counter `in_use`, which is 0 after a clean stop.
const IN_USE: u64 = 1;
const COPIED: u64 = 2;

/// Marks the store as in use; returns how many starts in a row, including this one, followed a
/// death.
pub(super) fn begin(conn: &Connection) -> u64 {
    let counter = |name| rows::counter(conn, name).unwrap_or(0);
    let unclean = match counter("in_use") {
        IN_USE => counter("unclean_starts").saturating_add(1),
        _ => 0,
    };
    let note = || -> Done<()> {
        let transaction = conn.unchecked_transaction()?;
        rows::set_counter(conn, "in_use", IN_USE)?;
        rows::set_counter(conn, "unclean_starts", unclean)?;
        Ok(transaction.commit()?)
    };
    if let Err(fault) = note() {
        tracing::warn!(%fault, "start not recorded in the store");
    }
    unclean
}

/// Whether this is a copy of a store that was in use: its running tasks continue elsewhere, or
/// ended later. No worker died.
pub(super) fn is_copy(conn: &Connection) -> bool {
    rows::counter(conn, "in_use").is_ok_and(|value| value == COPIED)
}

/// Marks a copy of a store as a copy.
pub(super) fn note_copy(copy: &Connection) -> Done<()> {
    let mut query = copy.prepare("UPDATE counters SET value = ?1 WHERE name = 'in_use'")?;
    query.execute([int(COPIED)])?;
    Ok(())
}

/// Records a clean end.
pub(super) fn end(conn: &Connection) {
    if let Err(fault) = rows::set_counter(conn, "in_use", 0) {
        tracing::warn!(%fault, "stop not recorded in the store; the next start will count as one after a crash");
    }
}

/// Resets the count of unclean starts.
#[derive(Debug)]
pub(super) struct Settle;

impl WriterStep for Settle {
    type Output = ();

    fn apply(&self, batch: &mut Batch<'_>) -> Done<()> {
        let mut query = batch.conn.prepare_cached(
            "UPDATE counters SET value = 0 WHERE name = 'unclean_starts' AND value > 0",
        )?;
        query.execute([])?;
        Ok(())
    }
}
