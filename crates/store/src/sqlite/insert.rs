//! Accepts a task: idempotency key, limits and insert in one transaction.

use std::sync::Arc;

use kinora_contract::TaskId;
use kinora_contract::lifecycle::Record;
use rusqlite::{Connection, OptionalExtension, params};

use super::batch::Batch;
use super::columns::int;
use super::fault::{Done, Fault};
use super::job::Operation;
use super::script;
use crate::tables::webhooks;
use crate::task::{Full, Load};
use crate::{Idempotency, NewTask};

/// The result before it becomes an answer.
#[derive(Debug)]
pub(super) enum Outcome {
    Inserted(Arc<Record>),
    Replayed(Arc<Record>),
    KeyReused,
    Refused(Full),
}

/// Accepts a task.
#[derive(Debug)]
pub(super) struct Insert {
    pub(super) new: NewTask,
    /// Number of places in the queue that are promised to other projects.
    pub(super) reserved: u64,
}

impl Operation for Insert {
    type Output = Outcome;

    fn apply(&self, batch: &mut Batch<'_>) -> Done<Outcome> {
        let new = &self.new;
        if let Some(idempotency) = &new.idempotency
            && let Some(earlier) = find_twin(new, idempotency, batch)?
        {
            return Ok(earlier);
        }
        let id = batch.next_id(&new.project, new.id)?;
        let record = Arc::new(Record::accepted(
            batch.next_seq(),
            new.accepted(id, batch.now.wall_ms),
        ));
        let (queue, usages) = (batch.queue(), &batch.standing().usages);
        let load = Load {
            waiting: queue.waiting().saturating_add(self.reserved),
            unfinished: queue.unfinished(&new.project),
            own: usages.of(&new.project),
            bytes: usages.bytes(),
        };
        if let Some(full) = new.bounds.refusal(record.charged_bytes, load) {
            return Ok(Outcome::Refused(full));
        }
        batch.insert(record.clone())?;
        if let Some(idempotency) = &new.idempotency {
            remember(new, idempotency, record.seq, batch)?;
        }
        if let Some(callback) = &new.callback {
            script::run(batch.conn, &webhooks::note_callback(id, callback))?;
        }
        Ok(Outcome::Inserted(record))
    }
}

/// The outcome of an earlier request under this key. Only a sweep, or the deletion of its task,
/// frees a key: a clock that is wrong for a moment must not cause a second video.
fn find_twin(new: &NewTask, idempotency: &Idempotency, batch: &Batch<'_>) -> Done<Option<Outcome>> {
    match bound(batch.conn, &new.project, idempotency)? {
        None => Ok(None),
        Some(Bound::Same(id)) => Ok(batch.find(id)?.map(Outcome::Replayed)),
        Some(Bound::Other) => Ok(Some(Outcome::KeyReused)),
    }
}

/// The binding of a stored key.
#[derive(Debug)]
pub(super) enum Bound {
    /// The task of the same request.
    Same(TaskId),
    /// Another request.
    Other,
}

/// The binding of a request's key, if it is stored.
pub(super) fn bound(
    conn: &Connection,
    project: &str,
    idempotency: &Idempotency,
) -> Done<Option<Bound>> {
    let mut query = conn.prepare_cached(
        "SELECT tasks.id, fingerprint FROM idempotency JOIN tasks ON seq = task_seq \
         WHERE idempotency.project = ?1 AND key = ?2",
    )?;
    let found = query.query_row(params![project, idempotency.key], |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, Vec<u8>>(1)?))
    });
    let Some((id, fingerprint)) = found.optional()? else {
        return Ok(None);
    };
    if fingerprint != idempotency.fingerprint {
        return Ok(Some(Bound::Other));
    }
    let id = id
        .parse()
        .map_err(|_| Fault::Corrupt(format!("{id} is no task id")))?;
    Ok(Some(Bound::Same(id)))
}

fn remember(new: &NewTask, idempotency: &Idempotency, seq: u64, batch: &Batch<'_>) -> Done<()> {
    let mut query = batch.conn.prepare_cached(
        "INSERT INTO idempotency (project, key, fingerprint, expires_at_ms, task_seq) \
         VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    query.execute(params![
        new.project,
        idempotency.key,
        idempotency.fingerprint,
        int(batch.now.wall_ms.saturating_add(idempotency.bound_ms)),
        int(seq),
    ])?;
    Ok(())
}
