//! What attempts kept of tasks that ended without a result, until somebody has called it off.

use kinora_contract::TaskId;
use rusqlite::{Connection, params};

use super::batch::Batch;
use super::fault::Done;
use super::record::Record;
use super::rows::int;
use super::writer::Operation;
use crate::Abandoned;

/// Notes what was kept of an unfinished task that ends now without a result.
pub(super) fn note(conn: &Connection, record: &Record) -> Done<()> {
    let Some(kept) = record.kept.as_deref() else {
        return Ok(());
    };
    let mut query = conn.prepare_cached(
        "INSERT OR REPLACE INTO abandoned (task, model, kept) VALUES (?1, ?2, ?3)",
    )?;
    let task = &record.task;
    query.execute(params![task.id.to_string(), task.spec.model, kept])?;
    Ok(())
}

/// Up to `limit` of them, those of older tasks first.
pub(super) fn list(conn: &Connection, limit: usize) -> Done<Vec<Abandoned>> {
    let mut query =
        conn.prepare_cached("SELECT task, model, kept FROM abandoned ORDER BY task LIMIT ?1")?;
    let mut rows = query.query([int(limit as u64)])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let id = row.get_ref(0)?.as_str().ok();
        let Some(task) = id.and_then(|id| id.parse().ok()) else {
            tracing::error!("a damaged row of abandoned work is left where it stands");
            continue;
        };
        let (Ok(model), Ok(kept)) = (row.get(1), row.get(2)) else {
            tracing::error!(%task, "a damaged row of abandoned work is left where it stands");
            continue;
        };
        found.push(Abandoned { task, model, kept });
    }
    Ok(found)
}

/// Confirms that they are called off.
#[derive(Debug)]
pub(super) struct Forget(pub(super) Vec<TaskId>);

impl Operation for Forget {
    type Output = ();

    fn apply(&self, batch: &mut Batch<'_>) -> Done<()> {
        let mut query = batch
            .conn
            .prepare_cached("DELETE FROM abandoned WHERE task = ?1")?;
        for task in &self.0 {
            query.execute([task.to_string()])?;
        }
        Ok(())
    }
}
