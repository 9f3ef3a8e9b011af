//! Rows of the sums over ended tasks. A transaction adds to them while it holds the locks on the
//! rows of their projects, so the sums cause no extra waiting.

use super::statement::Statement;
use crate::TallyRow;
use crate::stored::int;

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
