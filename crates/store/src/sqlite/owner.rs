//! Operations of a task's owner: cancel and delete. Another project's task counts as missing.

use std::sync::Arc;

use kinora_contract::lifecycle::{Effects, Event, Record};
use kinora_contract::{Failure, TaskId};
use rusqlite::{OptionalExtension, params};

use super::batch::Batch;
use super::chore_rows;
use super::chores;
use super::fault::{Done, Fault};
use super::job::Operation;
use super::rows;
use crate::Deletion;
use crate::usages::Charge;

/// Fails an unfinished task.
#[derive(Debug)]
pub(super) struct Cancel {
    pub(super) project: String,
    pub(super) id: TaskId,
    pub(super) failure: Failure,
    pub(super) retention_ms: u64,
}

/// The result before it becomes an answer.
#[derive(Debug)]
pub(super) enum Outcome {
    Cancelled(Arc<Record>),
    AlreadyFinished(Arc<Record>),
    NotFound,
}

impl Operation for Cancel {
    type Output = Outcome;

    fn apply(&self, batch: &mut Batch<'_>) -> Done<Outcome> {
        let found = batch
            .find(self.id)?
            .filter(|record| record.task.project == self.project);
        let Some(before) = found else {
            return Ok(Outcome::NotFound);
        };
        let event = Event::Cancelled {
            failure: self.failure.clone(),
            now_ms: batch.now.wall_ms,
            retention_ms: self.retention_ms,
        };
        match batch.apply(&before, event)? {
            Ok(after) => Ok(Outcome::Cancelled(after)),
            Err(_) => Ok(Outcome::AlreadyFinished(before)),
        }
    }
}

/// Removes a task in any phase, even an unreadable one.
#[derive(Debug)]
pub(super) struct Delete {
    pub(super) project: String,
    pub(super) id: TaskId,
}

impl Operation for Delete {
    type Output = Deletion;

    fn apply(&self, batch: &mut Batch<'_>) -> Done<Deletion> {
        let mut query = batch
            .conn
            .prepare_cached("SELECT seq, artifact FROM tasks WHERE id = ?1 AND project = ?2")?;
        let found = query.query_row(params![self.id.to_string(), self.project], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, Option<String>>(1)?))
        });
        let Some((seq, artifact)) = found.optional()? else {
            return Ok(Deletion::NotFound);
        };
        let files = rows::files(artifact.as_deref());
        chore_rows::note_files(batch.conn, &files)?;
        // Only recorded, for the sweep: its worker may be storing them at this moment.
        match batch.find(self.id) {
            Ok(Some(record)) => {
                let effects = Effects::of_deletion(&record, batch.now.wall_ms);
                // The row contains its charge.
                let effects = Effects {
                    bytes: 0,
                    tasks: 0,
                    ..effects
                };
                batch.follow(&self.project, &effects)?;
            }
            Ok(None) | Err(Fault::Corrupt(_)) => {}
            Err(fault) => return Err(fault),
        }
        remove(batch, self.id, seq)?;
        let files = chores::take_files(batch, &files)?;
        Ok(Deletion::Deleted { files })
    }
}

/// Removes a row; its idempotency key goes with it.
pub(super) fn remove(batch: &mut Batch<'_>, id: TaskId, seq: i64) -> Done<()> {
    let removed = batch
        .conn
        .prepare_cached(
            "DELETE FROM tasks WHERE seq = ?1 RETURNING project, charged_bytes, phase <> 'expired'",
        )?
        .query_row([seq], |row| {
            let project: Option<String> = row.get(0).ok();
            let (bytes, tasks) = (row.get(1)?, row.get(2)?);
            // A damaged project is charged nothing.
            Ok(project.map(|project| Charge::of(&project, bytes, tasks)))
        })?;
    if let Some(removed) = removed {
        batch.charge(removed.reversed());
    }
    batch.erase();
    batch.note(id, None);
    Ok(())
}
