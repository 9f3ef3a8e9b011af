//! Starts and ends of the serving process: how often in a row it has died, so that a crash loop is slowed
//! down. None of it is a reason not to serve.

use rusqlite::Connection;

use super::batch::Batch;
use super::fault::Done;
use super::rows;
use super::writer::Operation;

/// Notes that the store is in use; returns how many starts in a row, this one included, followed a death.
pub(super) fn begin(conn: &Connection) -> Done<u64> {
    let died = rows::counter(conn, "in_use")? == 1;
    let unclean = match died {
        true => rows::counter(conn, "unclean_starts")?.saturating_add(1),
        false => 0,
    };
    let note = || -> Done<()> {
        let transaction = conn.unchecked_transaction()?;
        rows::set_counter(conn, "in_use", 1)?;
        rows::set_counter(conn, "unclean_starts", unclean)?;
        Ok(transaction.commit()?)
    };
    if let Err(fault) = note() {
        tracing::warn!(%fault, "start not noted in the store");
    }
    Ok(unclean)
}

/// Notes the clean end.
pub(super) fn end(conn: &Connection) {
    if let Err(fault) = rows::set_counter(conn, "in_use", 0) {
        tracing::warn!(%fault, "stop not noted in the store; the next start counts as one after a crash");
    }
}

/// Forgets the unclean starts up to now.
#[derive(Debug)]
pub(super) struct Settle;

impl Operation for Settle {
    type Output = ();

    fn apply(&self, batch: &mut Batch<'_>) -> Done<()> {
        let mut query = batch.conn.prepare_cached(
            "UPDATE counters SET value = 0 WHERE name = 'unclean_starts' AND value > 0",
        )?;
        query.execute([])?;
        Ok(())
    }
}
