//! Removed texts leave the disk: SQLite zeroes what is deleted in the database (`secure_delete`), and the
//! write-ahead log, which still holds it, is carried over and cut off a moment later. A thread with a
//! connection of its own does that, at a bounded rate, so that submits hardly wait for it.

use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::Connection;

use super::schema;
use crate::{OpenError, OpenOptions};

/// After the first removal, so that several are carried over together.
const AFTER: Duration = Duration::from_secs(1);
/// Between two times.
const EVERY: Duration = Duration::from_secs(10);
/// How long writers may be held up by readers that are being waited for.
const BUSY: Duration = Duration::from_millis(200);

/// Where removals are told.
#[derive(Clone, Debug, Default)]
pub(super) struct Scrub(Arc<(Mutex<State>, Condvar)>);

#[derive(Debug, Default)]
struct State {
    wanted: bool,
    closing: bool,
}

impl Scrub {
    /// Asks for the log to be cut off soon.
    pub(super) fn request(&self) {
        self.state().wanted = true;
        self.0.1.notify_all();
    }

    /// Waits for a request; `false` when the store closes.
    fn requested(&self) -> bool {
        let state = self
            .0
            .1
            .wait_while(self.state(), |state| !state.wanted && !state.closing);
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        state.wanted = false;
        !state.closing
    }

    /// Waits for so long; `false` when the store closes.
    fn rest(&self, pause: Duration) -> bool {
        let waited = self
            .0
            .1
            .wait_timeout_while(self.state(), pause, |state| !state.closing);
        !waited.unwrap_or_else(PoisonError::into_inner).0.closing
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The thread; it ends when this is dropped.
#[derive(Debug)]
pub(super) struct Scrubber {
    scrub: Scrub,
    thread: Option<JoinHandle<()>>,
}

impl Scrubber {
    pub(super) fn start(
        path: &Path,
        options: &OpenOptions,
        scrub: Scrub,
    ) -> Result<Self, OpenError> {
        let conn = schema::open_scrubber(path, options)?;
        conn.busy_timeout(BUSY).map_err(schema::unavailable)?;
        let own = scrub.clone();
        let thread = std::thread::Builder::new().name("store-scrubber".to_owned());
        let thread = thread
            .spawn(move || serve(&own, &conn))
            .map_err(schema::unavailable)?;
        Ok(Self {
            scrub,
            thread: Some(thread),
        })
    }
}

impl Drop for Scrubber {
    fn drop(&mut self) {
        self.scrub.state().closing = true;
        self.scrub.0.1.notify_all();
        if self
            .thread
            .take()
            .is_some_and(|thread| thread.join().is_err())
        {
            tracing::error!("store scrubber panicked");
        }
    }
}

fn serve(scrub: &Scrub, conn: &Connection) {
    while scrub.requested() && scrub.rest(AFTER) {
        // The bulk is carried over beside the writer, which waits for the rest alone.
        let _ = checkpoint(conn, "PASSIVE");
        if !truncate_log(conn) {
            scrub.request();
        }
        if !scrub.rest(EVERY) {
            return;
        }
    }
}

/// Carries the log into the database and cuts it off. Returns whether that was done.
pub(super) fn truncate_log(conn: &Connection) -> bool {
    match checkpoint(conn, "TRUNCATE") {
        Ok(0) => true,
        Ok(_) => false,
        Err(error) => {
            tracing::debug!(%error, "log not cut off yet");
            false
        }
    }
}

/// Returns 0, or 1 when somebody was in the way (<https://sqlite.org/pragma.html#pragma_wal_checkpoint>).
fn checkpoint(conn: &Connection, mode: &str) -> rusqlite::Result<i64> {
    conn.query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], |row| {
        row.get(0)
    })
}
