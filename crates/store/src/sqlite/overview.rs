//! The queue, running tasks and recent ends, from the rows of a store.

use kinora_contract::UnixMs;
use kinora_contract::limits::OVERVIEW_RUNNING_MAX;
use rusqlite::{Connection, params};

use super::fault::Done;
use super::rows::int;
use super::workers;
use crate::operators::LATELY_MS;
use crate::{Overview, RunningTask};

/// The model of a task; empty if its spec cannot be read.
const MODEL: &str =
    "CASE WHEN json_valid(spec) THEN coalesce(json_extract(spec, '$.model'), '') ELSE '' END";

/// The state of the store, all at one moment.
pub(super) fn read(conn: &Connection, now_ms: UnixMs) -> Done<Overview> {
    let snapshot = conn.unchecked_transaction()?;
    let mut overview = Overview {
        now_ms,
        ..Overview::default()
    };
    read_queue(&snapshot, &mut overview)?;
    read_running(&snapshot, &mut overview)?;
    read_ended(&snapshot, &mut overview)?;
    overview.workers = workers::written(&snapshot, now_ms)?;
    Ok(overview)
}

fn read_queue(conn: &Connection, overview: &mut Overview) -> Done<()> {
    let mut query = conn.prepare_cached(&format!(
        "SELECT {MODEL}, phase = 'running', count(*), min(created_at_ms) FROM tasks \
         WHERE phase IN ('waiting', 'running') GROUP BY 1, 2"
    ))?;
    let mut rows = query.query([])?;
    while let Some(row) = rows.next()? {
        let model: String = row.get(0)?;
        let number = |at: usize| row.get::<_, i64>(at).map(i64::unsigned_abs);
        overview.count(&model, row.get(1)?, number(2)?, number(3)?);
    }
    Ok(())
}

fn read_running(conn: &Connection, overview: &mut Overview) -> Done<()> {
    // The first condition matches the index of unfinished tasks.
    let mut query = conn.prepare_cached(&format!(
        "SELECT id, project, {MODEL}, progress, attempt, coalesce(started_at_ms, created_at_ms), \
         coalesce(worker, '') FROM tasks \
         WHERE phase IN ('waiting', 'running') AND phase = 'running' ORDER BY 6, seq LIMIT ?1"
    ))?;
    let mut rows = query.query([int(OVERVIEW_RUNNING_MAX as u64)])?;
    while let Some(row) = rows.next()? {
        let id: String = row.get(0)?;
        // An unreadable id is ignored.
        let Ok(id) = id.parse() else { continue };
        let begun_ms = row.get::<_, i64>(5)?.unsigned_abs();
        overview.running.push(RunningTask {
            id,
            project: row.get(1)?,
            model: row.get(2)?,
            progress: row.get(3)?,
            attempt: row.get(4)?,
            since_ms: overview.now_ms.saturating_sub(begun_ms),
            worker: row.get(6)?,
        });
    }
    Ok(())
}

/// Uses the index of each project's ended tasks: a project has a usage row while it has any tasks.
fn read_ended(conn: &Connection, overview: &mut Overview) -> Done<()> {
    let mut query = conn.prepare_cached(
        "SELECT count(*) FILTER (WHERE t.phase = 'completed'), count(*) FILTER (WHERE t.phase = 'failed') \
         FROM usage u CROSS JOIN tasks t ON t.project = u.project AND t.finished_at_ms > ?1",
    )?;
    let since = int(overview.now_ms.saturating_sub(LATELY_MS));
    let (completed, failed) = query.query_row(params![since], |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))
    })?;
    overview.completed_lately = completed.unsigned_abs();
    overview.failed_lately = failed.unsigned_abs();
    Ok(())
}
