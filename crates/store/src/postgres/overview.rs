//! Waiting, running and recently ended tasks, from the rows of a store.

use kinora_contract::limits::OVERVIEW_RUNNING_MAX;
use tokio_postgres::Row;

use super::fault::Done;
use super::reads::Reader;
use super::rows;
use super::statement::Statement;
use super::workers;
use crate::operators::LATELY_MS;
use crate::present::Present;
use crate::{Overview, RunningTask, StoreError};

/// The store as it stands.
pub(super) async fn read(reader: &Reader, now: &Present) -> Result<Overview, StoreError> {
    let mut overview = Overview {
        now_ms: now.wall_ms,
        ..Overview::default()
    };
    read_queue(&reader.query(ask_queue()).await?, &mut overview)?;
    read_running(&reader.query(ask_running()).await?, &mut overview)?;
    read_ended(&reader.query(ask_ended(now)).await?, &mut overview)?;
    overview.workers = workers::living(reader, now).await?;
    Ok(overview)
}

/// By the index of each place in the queue.
fn ask_queue() -> Statement {
    let part = |place: i16| {
        format!(
            "SELECT model, {place} = 4, count(*), min(created_at_ms) FROM tasks \
             WHERE place = {place} GROUP BY model"
        )
    };
    Statement::new([1, 2, 3, 4].map(part).join(" UNION ALL "))
}

fn read_queue(found: &[Row], overview: &mut Overview) -> Done<()> {
    for row in found {
        let number = |at: usize| -> Done<u64> { Ok(row.try_get::<_, i64>(at)?.unsigned_abs()) };
        overview.count(row.try_get(0)?, row.try_get(1)?, number(2)?, number(3)?);
    }
    Ok(())
}

fn ask_running() -> Statement {
    let ask = "SELECT id, project, model, progress, attempt, coalesce(started_at_ms, created_at_ms), \
               coalesce(worker, '') FROM tasks WHERE place = 4 ORDER BY 6, seq LIMIT $1";
    Statement::new(ask).int(OVERVIEW_RUNNING_MAX as u64)
}

fn read_running(found: &[Row], overview: &mut Overview) -> Done<()> {
    for row in found {
        let (progress, attempt): (i16, i64) = (row.try_get(3)?, row.try_get(4)?);
        let begun_ms = row.try_get::<_, i64>(5)?.unsigned_abs();
        overview.running.push(RunningTask {
            id: rows::id(row)?,
            project: row.try_get(1)?,
            model: row.try_get(2)?,
            progress: u8::try_from(progress).unwrap_or(0),
            attempt: u32::try_from(attempt).unwrap_or(0),
            since_ms: overview.now_ms.saturating_sub(begun_ms),
            worker: row.try_get(6)?,
        });
    }
    Ok(())
}

/// By the index of each project's ended tasks.
fn ask_ended(now: &Present) -> Statement {
    let ask = "SELECT coalesce(sum(e.completed), 0)::bigint, coalesce(sum(e.failed), 0)::bigint \
               FROM projects p CROSS JOIN LATERAL \
               (SELECT count(*) FILTER (WHERE phase = 'completed') AS completed, \
               count(*) FILTER (WHERE phase = 'failed') AS failed FROM tasks t \
               WHERE t.project = p.name AND t.finished_at_ms > $1) e";
    Statement::new(ask).int(now.wall_ms.saturating_sub(LATELY_MS))
}

fn read_ended(found: &[Row], overview: &mut Overview) -> Done<()> {
    if let Some(row) = found.first() {
        overview.completed_lately = row.try_get::<_, i64>(0)?.unsigned_abs();
        overview.failed_lately = row.try_get::<_, i64>(1)?.unsigned_abs();
    }
    Ok(())
}
