//! Checkpoints: copies the write-ahead log into the database. Others decide who does it and when.

use std::time::Duration;

use rusqlite::Connection;

/// Maximum delay of writers by readers that a checkpoint waits for.
const BUSY: Duration = Duration::from_millis(200);

/// Copies the log into the database and truncates it. Returns whether that was possible: not while
/// another connection reads from the log. Waits for others only for [`BUSY`], whatever the usual
/// timeout of `conn` is.
pub(super) fn carry_over(conn: &Connection) -> bool {
    let carried = with_timeout(conn, || carry_over_now(conn));
    carried.unwrap_or_else(|error| {
        tracing::debug!(%error, "checkpoint not done yet");
        false
    })
}

fn with_timeout<T>(
    conn: &Connection,
    run: impl FnOnce() -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    let usual_ms: u32 = conn.pragma_query_value(None, "busy_timeout", |row| row.get(0))?;
    conn.busy_timeout(BUSY)?;
    let done = run();
    conn.busy_timeout(Duration::from_millis(usual_ms.into()))?;
    done
}

fn carry_over_now(conn: &Connection) -> rusqlite::Result<bool> {
    // The bulk is copied concurrently with the writer, which waits only for the rest, and not at
    // all if a long reader is in the way.
    let passive = checkpoint(conn, "PASSIVE")?;
    let whole = passive.frames == passive.carried;
    Ok(whole && !checkpoint(conn, "TRUNCATE")?.blocked)
}

/// The answer of `PRAGMA wal_checkpoint` (<https://sqlite.org/pragma.html#pragma_wal_checkpoint>).
struct Checkpoint {
    blocked: bool,
    frames: i64,
    carried: i64,
}

fn checkpoint(conn: &Connection, mode: &str) -> rusqlite::Result<Checkpoint> {
    conn.query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], |row| {
        Ok(Checkpoint {
            blocked: row.get::<_, i64>(0)? != 0,
            frames: row.get(1)?,
            carried: row.get(2)?,
        })
    })
}
