//! Whether writes work. After one that failed the writer writes by itself: at once, which overwrites what the
//! failed commit has left in the log, and then about once a second, so that the store is known to work again
//! although nobody asks it.

use std::sync::Arc;
use std::time::Duration;

use kinora_contract::{Clock, Stopwatch};
use rusqlite::{Connection, ErrorCode};
use tokio::sync::mpsc::Receiver;
use tokio::sync::mpsc::error::TryRecvError;

use super::fault::{Done, Fault};
use super::job::Job;
use super::memory::Memory;

/// How often a store whose writes fail tries one by itself.
const TRY_EVERY: Duration = Duration::from_secs(1);
/// How often it looks for requests in between.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Follows the writes of one writer.
pub(super) struct Writes {
    clock: Arc<dyn Clock>,
    /// While they fail, since one was tried last.
    tried: Option<Stopwatch>,
    /// Where readers see it.
    memory: Arc<Memory>,
}

impl Writes {
    pub(super) const fn new(clock: Arc<dyn Clock>, memory: Arc<Memory>) -> Self {
        Self {
            clock,
            tried: None,
            memory,
        }
    }

    /// Notes how a write went: a store that stays away is logged once.
    pub(super) fn note(&mut self, failure: Option<&Fault>) {
        match (failure, &self.tried) {
            (Some(error), None) => tracing::error!(%error, "store writes failing"),
            (None, Some(_)) => tracing::info!("store writes recovered"),
            _ => {}
        }
        self.tried = failure.map(|_| Stopwatch::start(&self.clock));
        self.memory.set_writable(failure.is_none());
    }

    /// Waits for a job, and tries to write meanwhile if writes fail; `None` when the door is closed.
    pub(super) fn next_job(
        &mut self,
        conn: &Connection,
        queue: &mut Receiver<Box<dyn Job>>,
    ) -> Option<Box<dyn Job>> {
        while let Some(tried) = &self.tried {
            match queue.try_recv() {
                Ok(job) => return Some(job),
                Err(TryRecvError::Disconnected) => return None,
                Err(TryRecvError::Empty) if tried.elapsed() < TRY_EVERY => {
                    std::thread::sleep(LOOK_EVERY);
                }
                // Not beside files that others have put there.
                Err(TryRecvError::Empty) if !self.memory.is_in_place() => {
                    std::thread::sleep(LOOK_EVERY);
                }
                Err(TryRecvError::Empty) => {
                    let tried = write_filler(conn);
                    self.note(tried.err().as_ref());
                }
            }
        }
        queue.blocking_recv()
    }
}

/// Takes the place of a failed commit in the log, before its callers learn that nothing was done: a restart would
/// find its records there.
///
/// A success does not show that the next commit will work: writes count as failing until a later one succeeds.
pub(super) fn overwrite_failed(conn: &Connection) {
    if let Err(fault) = write_filler(conn) {
        tracing::debug!(%fault, "failed commit not overwritten");
    }
}

/// Writes something of no meaning, about as large as a task, and removes it: no task finds less room for it.
fn write_filler(conn: &Connection) -> Done<()> {
    let written = conn.execute_batch(
        "BEGIN IMMEDIATE; \
         INSERT OR REPLACE INTO write_try (number, filler) VALUES (0, randomblob(32768)); \
         COMMIT",
    );
    if written.is_err() {
        roll_back(conn);
    } else if let Err(error) = conn.execute_batch("DELETE FROM write_try") {
        tracing::debug!(%error, "filler left until the next one");
        roll_back(conn);
    }
    Ok(written?)
}

/// Whether another process is writing: nothing of the transaction was.
pub(super) fn is_busy(fault: &Fault) -> bool {
    let Fault::Sql(error) = fault else {
        return false;
    };
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
    )
}

/// Begins, ends or undoes a transaction, or a part of one. Every commit does: these statements are prepared once.
pub(super) fn control(conn: &Connection, statement: &str) -> rusqlite::Result<()> {
    conn.prepare_cached(statement)?.execute([])?;
    Ok(())
}

/// Rolls an open transaction back.
pub(super) fn roll_back(conn: &Connection) {
    // Some errors have rolled back already.
    if !conn.is_autocommit()
        && let Err(error) = control(conn, "ROLLBACK")
    {
        tracing::error!(%error, "the store's transaction does not roll back");
    }
}
