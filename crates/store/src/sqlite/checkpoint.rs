//! Checkpoints: they copy the write-ahead log into the database and truncate it, so that the database
//! file alone soon contains the whole store again. A thread with its own connection does this at a
//! limited rate: after removals (`secure_delete` zeroes deleted texts in the database, but the log
//! still has them), once the store is idle, and when the log takes up the remaining disk space.

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::Connection;

use super::thread_join;

/// Delay after the first removal, so that several share one checkpoint.
const ERASE_AFTER: Duration = Duration::from_secs(1);
/// Without a commit for this long the store counts as idle.
const IDLE_AFTER: Duration = Duration::from_secs(5);
/// Interval without a commit of this process, since key commands commit beside it.
const OTHERS_EVERY: Duration = Duration::from_secs(60);
/// Minimum interval between checkpoints.
const CHECKPOINT_EVERY: Duration = Duration::from_secs(10);
/// Minimum interval on a full disk, where each failed change requests one.
const URGENT_EVERY: Duration = Duration::from_millis(100);
/// Minimum interval after a checkpoint that could not truncate the log.
const URGENT_AGAIN: Duration = Duration::from_secs(1);

/// The writer's reports about the log.
#[derive(Clone, Debug, Default)]
pub(super) struct CheckpointRequests(Arc<(Mutex<LogState>, Condvar)>);

#[derive(Debug, Default)]
struct LogState {
    /// Whether there was a commit since the log was last truncated.
    filled: bool,
    commits: u64,
    /// Whether texts were removed that must leave the disk.
    erased: bool,
    /// Whether the log takes up the remaining space.
    crowded: bool,
    closing: bool,
}

/// Why to truncate the log now.
struct CheckpointReason {
    /// Number of commits so far.
    commits: u64,
    erased: bool,
}

impl CheckpointRequests {
    /// Records a commit.
    pub(super) fn record_commit(&self) {
        let mut state = self.state();
        state.commits += 1;
        if !state.filled {
            state.filled = true;
            drop(state);
            self.0.1.notify_all();
        }
    }

    /// Requests a truncation of the log soon, because of deleted texts in it.
    pub(super) fn request_erasure(&self) {
        self.state().erased = true;
        self.0.1.notify_all();
    }

    /// Requests a truncation of the log now, because of the space that it takes.
    pub(super) fn request_space(&self) {
        self.state().crowded = true;
        self.0.1.notify_all();
    }

    /// Waits until the log must be truncated; `None` when the store closes.
    fn wait_until_due(&self) -> Option<CheckpointReason> {
        let mut state = self.state();
        loop {
            if state.closing {
                return None;
            }
            if state.crowded {
                break;
            }
            if state.erased {
                state = self.wait(state, ERASE_AFTER, |state| !state.crowded).0;
                break;
            }
            if !state.filled {
                // Nothing of ours is in the log. Commands beside this process may have written to
                // it, and nothing tells us, so it is emptied once a minute in any case.
                let (after, timed_out) = self.wait(state, OTHERS_EVERY, |state| {
                    !state.filled && !state.crowded && !state.erased
                });
                state = after;
                if timed_out {
                    break;
                }
                continue;
            }
            // Idle: no commit during the whole wait. A busy store's log is left to SQLite's own
            // automatic checkpoint, which bounds it by pages.
            let commits = state.commits;
            let (after, timed_out) =
                self.wait(state, IDLE_AFTER, |state| !state.crowded && !state.erased);
            state = after;
            if timed_out && state.commits == commits {
                break;
            }
        }
        // Before touching the log: later commits may not be included.
        state.crowded = false;
        let due = CheckpointReason {
            commits: state.commits,
            erased: std::mem::take(&mut state.erased),
        };
        (!state.closing).then_some(due)
    }

    /// Records the outcome, and pauses; `false` when the store closes.
    fn pause_after(&self, due: &CheckpointReason, truncated: bool) -> bool {
        let mut state = self.state();
        let least = if truncated {
            state.filled = state.commits != due.commits;
            URGENT_EVERY
        } else {
            // The texts are still in the log: try again, as if they had been removed now.
            state.erased |= due.erased;
            URGENT_AGAIN
        };
        let (state, _) = self.wait(state, least, |_| true);
        let rest = CHECKPOINT_EVERY.saturating_sub(least);
        !self.wait(state, rest, |state| !state.crowded).0.closing
    }

    /// Waits for at most this long, while `idle` holds and the store is open; returns whether the
    /// time ran out.
    fn wait<'s>(
        &'s self,
        state: MutexGuard<'s, LogState>,
        time: Duration,
        idle: impl Fn(&LogState) -> bool,
    ) -> (MutexGuard<'s, LogState>, bool) {
        let waited = self
            .0
            .1
            .wait_timeout_while(state, time, |state| !state.closing && idle(state));
        let (state, result) = waited.unwrap_or_else(PoisonError::into_inner);
        (state, result.timed_out())
    }

    fn state(&self) -> MutexGuard<'_, LogState> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The thread; it ends when this is dropped.
#[derive(Debug)]
pub(super) struct CheckpointThread {
    log: CheckpointRequests,
    thread: Option<JoinHandle<()>>,
}

impl CheckpointThread {
    /// Starts the thread, which owns `conn`. It holds `locks` as long as it may write, even after the
    /// closing store has stopped waiting for it.
    pub(super) fn start(
        conn: Connection,
        log: CheckpointRequests,
        locks: impl Send + 'static,
    ) -> io::Result<Self> {
        let own = log.clone();
        let thread = std::thread::Builder::new().name("store-checkpoint".to_owned());
        let thread = thread.spawn(move || {
            run_checkpoints(&own, &conn);
            // In this order: the store is unlocked only once this connection is closed.
            drop((conn, locks));
        })?;
        Ok(Self {
            log,
            thread: Some(thread),
        })
    }
}

impl Drop for CheckpointThread {
    fn drop(&mut self) {
        self.log.state().closing = true;
        self.log.0.1.notify_all();
        thread_join::join(self.thread.take(), "store checkpointer");
    }
}

fn run_checkpoints(log: &CheckpointRequests, conn: &Connection) {
    while let Some(due) = log.wait_until_due() {
        let truncated = run_checkpoint(conn);
        if !log.pause_after(&due, truncated) {
            return;
        }
    }
}

/// Maximum delay of writers by readers that a checkpoint waits for.
const BUSY_MAX: Duration = Duration::from_millis(200);

/// Copies the log into the database and truncates it. Returns whether that was possible: not while
/// another connection reads from the log. Waits for others only for [`BUSY_MAX`], whatever the usual
/// timeout of `conn` is.
pub(super) fn run_checkpoint(conn: &Connection) -> bool {
    let carried = with_timeout(conn, || checkpoint_now(conn));
    carried.unwrap_or_else(|error| {
        tracing::debug!(%error, "checkpoint not done yet");
        false
    })
}

fn with_timeout<T>(
    conn: &Connection,
    run: impl FnOnce() -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    // A checkpoint waits for readers by the busy handler, and keeps the writer out meanwhile: the
    // usual 5 seconds would stop all submits for that long.
    let usual_ms: u32 = conn.pragma_query_value(None, "busy_timeout", |row| row.get(0))?;
    conn.busy_timeout(BUSY_MAX)?;
    let done = run();
    conn.busy_timeout(Duration::from_millis(usual_ms.into()))?;
    done
}

fn checkpoint_now(conn: &Connection) -> rusqlite::Result<bool> {
    // Two steps. PASSIVE copies the bulk without locking the writer out, and stops at a page that a
    // reader still needs. TRUNCATE locks the writer out while it copies the rest; if a long reader is
    // in the way, it would only make the writer wait for nothing.
    let passive = checkpoint(conn, "PASSIVE")?;
    let whole = passive.frames == passive.copied;
    Ok(whole && !checkpoint(conn, "TRUNCATE")?.blocked)
}

/// The answer of `PRAGMA wal_checkpoint` (<https://sqlite.org/pragma.html#pragma_wal_checkpoint>).
struct CheckpointOutcome {
    blocked: bool,
    frames: i64,
    copied: i64,
}

fn checkpoint(conn: &Connection, mode: &str) -> rusqlite::Result<CheckpointOutcome> {
    conn.query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], |row| {
        Ok(CheckpointOutcome {
            blocked: row.get::<_, i64>(0)? != 0,
            frames: row.get(1)?,
            copied: row.get(2)?,
        })
    })
}
