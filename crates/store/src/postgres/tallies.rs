//! Rows of the sums over ended tasks. A transaction adds to them while it holds the locks on the
//! rows of their projects, so the sums cause no extra waiting.

use kinora_contract::Tally;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::fault::Done;
use super::statement::Statement;
use crate::stored::int;
use crate::{TallyRequest, TallyRow};

/// Adds to the sums, in the order of these rows.
pub(super) fn add(rows: &[TallyRow]) -> Option<Statement> {
    if rows.is_empty() {
        return None;
    }
    let numbers = |of: fn(&TallyRow) -> u64| rows.iter().map(|row| int(of(row))).collect();
    let texts = |of: fn(&TallyRow) -> &String| rows.iter().map(|row| of(row).clone()).collect();
    let add = Statement::new(
        "INSERT INTO tallies AS t (day, project, model, completed, failed, cancelled, video_ms, engine_ms) \
         SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8) \
         ON CONFLICT (day, project, model) DO UPDATE SET completed = t.completed + excluded.completed, \
         failed = t.failed + excluded.failed, cancelled = t.cancelled + excluded.cancelled, \
         video_ms = t.video_ms + excluded.video_ms, engine_ms = t.engine_ms + excluded.engine_ms",
    );
    Some(
        add.ints(numbers(|row| row.day))
            .texts(texts(|row| &row.project))
            .texts(texts(|row| &row.model))
            .ints(numbers(|row| row.tally.completed))
            .ints(numbers(|row| row.tally.failed))
            .ints(numbers(|row| row.tally.cancelled))
            .ints(numbers(|row| row.tally.video_ms))
            .ints(numbers(|row| row.tally.engine_ms)),
    )
}

/// Asks for sums, by day, project and model.
pub(super) fn ask(request: &TallyRequest) -> Statement {
    let ask = Statement::new(
        "SELECT day, project, model, completed, failed, cancelled, video_ms, engine_ms FROM tallies \
         WHERE day BETWEEN $1 AND $2 AND ($3 IS NULL OR project = $3) AND ($4 IS NULL OR model = $4) \
         ORDER BY day, project, model",
    );
    ask.int(request.since.unwrap_or(0))
        .int(request.until.unwrap_or(u64::MAX))
        .bind(request.project.clone(), Type::TEXT)
        .bind(request.model.clone(), Type::TEXT)
}

pub(super) fn read(rows: &[Row]) -> Done<Vec<TallyRow>> {
    let read = |row: &Row| {
        let number = |at: usize| -> Done<u64> { Ok(row.try_get::<_, i64>(at)?.unsigned_abs()) };
        Ok(TallyRow {
            day: number(0)?,
            project: row.try_get(1)?,
            model: row.try_get(2)?,
            tally: Tally {
                completed: number(3)?,
                failed: number(4)?,
                cancelled: number(5)?,
                video_ms: number(6)?,
                engine_ms: number(7)?,
            },
        })
    };
    rows.iter().map(read).collect()
}
