//! Accepting a task: idempotency key, bounds and insert in one transaction.

use std::sync::Arc;

use kinora_contract::lifecycle::Record;
use kinora_contract::listed_bytes;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::batch::{Batch, Binding};
use super::fault::{Done, corrupt, unavailable};
use super::job::{Needs, Operation};
use super::rows;
use super::statement::Statement;
use crate::stored::int;
use crate::task::{Full, Load};
use crate::{Idempotency, NewTask, Usage};

/// The result, before it becomes an answer.
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
    /// Places in the queue that are reserved for other projects.
    pub(super) reserved: u64,
}

impl Operation for Insert {
    type Output = Outcome;

    fn needs(&self, needs: &mut Needs) {
        let new = &self.new;
        needs.projects.insert(new.project.clone());
        needs.places += 1;
        needs.totals = true;
        if let Some(idempotency) = &new.idempotency {
            needs.keys.insert(place(&new.project, idempotency));
        }
    }

    fn bytes(&self) -> usize {
        listed_bytes(&self.new.accepted(self.new.id, 0))
    }

    async fn apply(&self, batch: &mut Batch<'_>) -> Done<Outcome> {
        let new = &self.new;
        if let Some(idempotency) = &new.idempotency
            && let Some(earlier) = find_twin(new, idempotency, batch)?
        {
            return Ok(earlier);
        }
        let seq = batch.places.next();
        let seq = seq.ok_or_else(|| corrupt("no place for a task".to_owned()))?;
        let id = batch.next_id(&new.project, new.id);
        let record = Arc::new(Record::accepted(seq, new.accepted(id, batch.now.wall_ms)));
        let load = load(&new.project, self.reserved, batch);
        if let Some(full) = new.bounds.refusal(record.charged_bytes, load) {
            return Ok(Outcome::Refused(full));
        }
        if batch.find(id)?.is_some() {
            return Err(unavailable("the id is taken").into());
        }
        batch.insert(&record);
        if let Some(idempotency) = &new.idempotency {
            let until_ms = batch.now.wall_ms.saturating_add(idempotency.bound_ms);
            let binding = Binding {
                fingerprint: idempotency.fingerprint.to_vec(),
                expires_at_ms: until_ms,
                task: id,
            };
            let place = place(&new.project, idempotency);
            batch.bindings.insert(place.clone(), binding.clone());
            batch.new.bindings.push((place, binding));
        }
        let callback = new.callback.clone().map(|callback| (id, callback));
        batch.new.callbacks.extend(callback);
        Ok(Outcome::Inserted(record))
    }
}

fn place(project: &str, idempotency: &Idempotency) -> (String, String) {
    (project.to_owned(), idempotency.key.clone())
}

/// The outcome of the earlier request under this key. Only a sweep, or the deletion of its task,
/// frees a key: a clock that is wrong for a moment must not cause a second video.
fn find_twin(new: &NewTask, idempotency: &Idempotency, batch: &Batch<'_>) -> Done<Option<Outcome>> {
    let Some(binding) = batch.bindings.get(&place(&new.project, idempotency)) else {
        return Ok(None);
    };
    if binding.fingerprint != idempotency.fingerprint {
        return Ok(Some(Outcome::KeyReused));
    }
    Ok(batch.find(binding.task)?.map(Outcome::Replayed))
}

/// The current load, including the tasks that this transaction has accepted so far.
fn load(project: &str, reserved: u64, batch: &Batch<'_>) -> Load {
    let own = batch.projects.get(project).cloned().unwrap_or_default();
    let sum = |stored: i64, added: i64| u64::try_from(stored.saturating_add(added)).unwrap_or(0);
    let (stored, added) = (own.stored, own.added);
    Load {
        waiting: batch.totals.waiting.saturating_add(reserved),
        unfinished: sum(stored.unfinished, added.unfinished),
        own: Usage {
            bytes: sum(stored.bytes, added.bytes),
            tasks: sum(stored.tasks, added.tasks),
        },
        bytes: batch.totals.bytes,
    }
}

/// Reads project, key, fingerprint and task.
pub(super) fn read_binding(row: &Row) -> Done<((String, String), Binding)> {
    let binding = Binding {
        fingerprint: row.try_get(2)?,
        expires_at_ms: 0,
        task: rows::parse_id(row.try_get(3)?)?,
    };
    Ok(((row.try_get(0)?, row.try_get(1)?), binding))
}

/// Adds bindings.
pub(super) fn bind(bindings: Vec<((String, String), Binding)>) -> Statement {
    let mut columns = (vec![], vec![], vec![], vec![], vec![]);
    for ((project, key), binding) in bindings {
        columns.0.push(project);
        columns.1.push(key);
        columns.2.push(binding.fingerprint);
        columns.3.push(int(binding.expires_at_ms));
        columns.4.push(binding.task.to_string());
    }
    Statement::new(
        "INSERT INTO idempotency (project, key, fingerprint, expires_at_ms, task) \
         SELECT * FROM unnest($1, $2, $3, $4, $5)",
    )
    .texts(columns.0)
    .texts(columns.1)
    .bind(columns.2, Type::BYTEA_ARRAY)
    .ints(columns.3)
    .texts(columns.4)
}
