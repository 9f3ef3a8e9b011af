//! Carries the write-ahead log into the database: who does it when is decided elsewhere.

use std::time::Duration;

use rusqlite::Connection;

/// How long writers may be held up by readers that are being waited for.
const BUSY: Duration = Duration::from_millis(200);

/// Carries the log into the database and truncates it. Returns whether that was done: not while another
/// connection reads what the log holds. Waits for others for [`BUSY`] alone, whatever `conn` usually does.
pub(super) fn carry_over(conn: &Connection) -> bool {
    let carried = with_timeout(conn, || carry_over_now(conn));
    carried.unwrap_or_else(|error| {
        tracing::debug!(%error, "log not carried over yet");
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
    // The bulk is carried over beside the writer, which waits for the rest alone; and it does not wait at
    // all where a long reader is in the way.
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
