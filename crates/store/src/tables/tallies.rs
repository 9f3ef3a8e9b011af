//! Ended tasks: those of a project that ended last, and sums by day, project and model.

use kinora_contract::{Tally, TaskId, UnixMs};

use crate::sql::{Query, Question};
use crate::{EndedRequest, TallyRequest, TallyRow};

/// Asks for the tasks of a project that ended at `from_ms` or later, those that ended last first;
/// `None` for one with an unreadable id.
pub(crate) fn ended(request: &EndedRequest, from_ms: UnixMs) -> Question<Option<(UnixMs, TaskId)>> {
    let ask = "SELECT finished_at_ms, id FROM tasks WHERE project = $1 AND finished_at_ms >= $2 \
               AND phase IN ('completed', 'failed') ORDER BY finished_at_ms DESC, id DESC LIMIT $3";
    Question {
        query: Query::new(ask)
            .bind(&request.project)
            .bind(from_ms)
            .bind(request.limit as u64),
        read: |row| {
            let id = row.get(1).ok().and_then(|id: String| id.parse().ok());
            Ok(id.zip(row.get(0)?).map(|(id, at_ms)| (at_ms, id)))
        },
    }
}

/// Asks for sums, by day, project and model.
pub(crate) fn sums(request: &TallyRequest) -> Question<TallyRow> {
    let ask = "SELECT day, project, model, completed, failed, cancelled, video_ms, engine_ms FROM tallies \
               WHERE day BETWEEN $1 AND $2 AND ($3 IS NULL OR project = $3) AND ($4 IS NULL OR model = $4) \
               ORDER BY day, project, model";
    Question {
        query: Query::new(ask)
            .bind(request.since.unwrap_or(0))
            .bind(request.until.unwrap_or(u64::MAX))
            .bind(request.project.clone())
            .bind(request.model.clone()),
        read: |row| {
            Ok(TallyRow {
                day: row.get(0)?,
                project: row.get(1)?,
                model: row.get(2)?,
                tally: Tally {
                    completed: row.get(3)?,
                    failed: row.get(4)?,
                    cancelled: row.get(5)?,
                    video_ms: row.get(6)?,
                    engine_ms: row.get(7)?,
                },
            })
        },
    }
}

/// Adds to the sums of a day.
pub(crate) fn add(row: &TallyRow) -> Query {
    let add = "INSERT INTO tallies AS t (day, project, model, completed, failed, cancelled, video_ms, engine_ms) \
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (day, project, model) DO UPDATE SET \
               completed = t.completed + excluded.completed, failed = t.failed + excluded.failed, \
               cancelled = t.cancelled + excluded.cancelled, video_ms = t.video_ms + excluded.video_ms, \
               engine_ms = t.engine_ms + excluded.engine_ms";
    let tally = &row.tally;
    Query::new(add)
        .bind(row.day)
        .bind(&row.project)
        .bind(&row.model)
        .bind(tally.completed)
        .bind(tally.failed)
        .bind(tally.cancelled)
        .bind(tally.video_ms)
        .bind(tally.engine_ms)
}
