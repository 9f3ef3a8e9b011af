//! Whether writes work. After a failed write the writer writes by itself: immediately, which
//! overwrites the remains of the failed commit in the log, and then about once a second, so that it
//! notices when the store works again even without requests.

use std::sync::Arc;
use std::time::Duration;

use kinora_contract::{Clock, Stopwatch};
use rusqlite::{Connection, ErrorCode};
use tokio::sync::mpsc::Receiver;
use tokio::sync::mpsc::error::TryRecvError;

use super::fault::{Done, Fault};
use super::job::Job;
use super::memory::Memory;

/// Interval of the writer's own attempts while writes fail.
const TRY_EVERY: Duration = Duration::from_secs(1);
/// Interval of checks for requests in between.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Tracks the writes of one writer.
pub(super) struct Writes {
    clock: Arc<dyn Clock>,
    /// While writes fail: time since the last attempt.
    tried: Option<Stopwatch>,
    /// Publishes the state to readers.
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

    /// Records the outcome of a write: a store that stays unavailable is logged once.
    pub(super) fn note(&mut self, failure: Option<&Fault>) {
        match (failure, &self.tried) {
            (Some(error), None) => tracing::error!(%error, "store writes failing"),
            (None, Some(_)) => tracing::info!("store writes recovered"),
            _ => {}
        }
        self.tried = failure.map(|_| Stopwatch::start(&self.clock));
        self.memory.set_writable(failure.is_none());
    }

    /// Waits for a job, and meanwhile tries to write if writes fail; `None` when the queue is
    /// closed.
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
                // Not if others have replaced the files.
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

/// Overwrites a failed commit in the log before its callers learn of the failure: a restart would
/// find its records there.
///
/// Success does not prove that the next commit will work: writes count as failing until a later one
/// succeeds.
pub(super) fn overwrite_failed(conn: &Connection) {
    if let Err(fault) = write_filler(conn) {
        tracing::debug!(%fault, "failed commit not overwritten");
    }
}

/// Writes a meaningless row about as large as a task, and removes it: it takes no space from any
/// task.
fn write_filler(conn: &Connection) -> Done<()> {
    let written = conn.execute_batch(
        "BEGIN IMMEDIATE; \
         INSERT OR REPLACE INTO write_try (number, filler) VALUES (0, randomblob(32768)); \
         COMMIT",
    );
    if written.is_err() {
        roll_back(conn);
    } else if let Err(error) = conn.execute_batch("DELETE FROM write_try") {
        tracing::debug!(%error, "filler row not removed; the next one replaces it");
        roll_back(conn);
    }
    Ok(written?)
}

/// Whether another process is writing, so that nothing of the transaction was written.
pub(super) fn is_busy(fault: &Fault) -> bool {
    let Fault::Sql(error) = fault else {
        return false;
    };
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
    )
}

/// Begins, ends or undoes a transaction or a part of one. Every commit runs these statements, so
/// they are prepared once.
pub(super) fn control(conn: &Connection, statement: &str) -> rusqlite::Result<()> {
    conn.prepare_cached(statement)?.execute([])?;
    Ok(())
}

/// Rolls an open transaction back.
pub(super) fn roll_back(conn: &Connection) {
    // Some errors have already rolled back.
    if !conn.is_autocommit()
        && let Err(error) = control(conn, "ROLLBACK")
    {
        tracing::error!(%error, "rollback of the store's transaction failed");
    }
}
