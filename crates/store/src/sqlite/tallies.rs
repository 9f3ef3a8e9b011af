//! Rows of the sums over ended tasks.

use kinora_contract::Tally;
use rusqlite::{Connection, params};

use super::columns::int;
use super::fault::Done;
use crate::{TallyRequest, TallyRow};

/// Adds to the sums of a day.
pub(super) fn add(conn: &Connection, row: &TallyRow) -> Done<()> {
    let mut query = conn.prepare_cached(
        "INSERT INTO tallies (day, project, model, completed, failed, cancelled, video_ms, engine_ms) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT DO UPDATE SET \
         completed = completed + excluded.completed, failed = failed + excluded.failed, \
         cancelled = cancelled + excluded.cancelled, video_ms = video_ms + excluded.video_ms, \
         engine_ms = engine_ms + excluded.engine_ms",
    )?;
    let tally = &row.tally;
    query.execute(params![
        int(row.day),
        row.project,
        row.model,
        int(tally.completed),
        int(tally.failed),
        int(tally.cancelled),
        int(tally.video_ms),
        int(tally.engine_ms),
    ])?;
    Ok(())
}

/// The requested sums, by day, project and model.
pub(super) fn read(conn: &Connection, request: &TallyRequest) -> Done<Vec<TallyRow>> {
    let mut query = conn.prepare_cached(
        "SELECT day, project, model, completed, failed, cancelled, video_ms, engine_ms FROM tallies \
         WHERE day BETWEEN ?1 AND ?2 AND (?3 IS NULL OR project = ?3) AND (?4 IS NULL OR model = ?4) \
         ORDER BY day, project, model",
    )?;
    let since = int(request.since.unwrap_or(0));
    let until = int(request.until.unwrap_or(u64::MAX));
    let rows = query.query_map(
        params![since, until, request.project, request.model],
        |row| {
            let number = |at: usize| row.get::<_, i64>(at).map(i64::unsigned_abs);
            Ok(TallyRow {
                day: number(0)?,
                project: row.get(1)?,
                model: row.get(2)?,
                tally: Tally {
                    completed: number(3)?,
                    failed: number(4)?,
                    cancelled: number(5)?,
                    video_ms: number(6)?,
                    engine_ms: number(7)?,
                },
            })
        },
    )?;
    Ok(rows.collect::<Result<_, _>>()?)
}
