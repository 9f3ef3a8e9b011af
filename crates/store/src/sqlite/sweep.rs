//! Cleans up: lost leases, expired results, tombstones, old idempotency keys. Bounded work, in one
//! transaction.

use kinora_contract::lifecycle::Event;
use kinora_contract::{Phase, TaskId, UnixMs};
use rusqlite::params;

use super::batch::Batch;
use super::chore_rows;
use super::columns::{int, phase_name};
use super::fault::{Done, Fault};
use super::job::Operation;
use super::owner::remove;
use super::rows;
use crate::sweep::Part;
use crate::usages::Charge;
use crate::{SweepRequest, Swept};

impl Operation for SweepRequest {
    type Output = Swept;

    fn apply(&self, batch: &mut Batch<'_>) -> Done<Swept> {
        let mut swept = Swept::default();
        for part in self.parts() {
            let rows = match part {
                Part::Leases => take_up(self, batch, &mut swept)?,
                Part::Waiting { now_ms } => give_up(self, now_ms, batch)?,
                Part::Tombstones { until_ms } => forget(self, until_ms, batch)?,
                Part::Results { phase, now_ms } => expire(self, now_ms, batch, phase)?,
                Part::Keys { until_ms } => free_keys(self, until_ms, batch)?,
            };
            swept.add(part, rows, self.batch);
        }
        Ok(swept)
    }
}

fn take_up(request: &SweepRequest, batch: &mut Batch<'_>, swept: &mut Swept) -> Done<u64> {
    let mut taken_up = 0;
    for (record, verdict) in request.lost(batch.queue().running(), &batch.now) {
        let lost = request.worker_lost(verdict, batch.now.wall_ms);
        if batch.apart(|batch| batch.expect(&record, lost))?.is_some() {
            swept.add_lost(verdict);
            taken_up += 1;
        }
    }
    Ok(taken_up)
}

fn give_up(request: &SweepRequest, now_ms: UnixMs, batch: &mut Batch<'_>) -> Done<u64> {
    let mut given_up = 0;
    for record in request.late(batch.queue().records(), now_ms) {
        let late = request.waited_too_long(now_ms);
        let ended = batch.apart(|batch| batch.expect(&record, late))?;
        given_up += u64::from(ended.is_some());
    }
    Ok(given_up)
}

fn expire(
    request: &SweepRequest,
    now_ms: UnixMs,
    batch: &mut Batch<'_>,
    phase: Phase,
) -> Done<u64> {
    let mut expired = 0;
    for (id, seq) in due(batch, phase, now_ms, request.batch)? {
        let one = batch.apart(|batch| expire_one(request, now_ms, batch, id, seq))?;
        expired += u64::from(one == Some(true));
    }
    Ok(expired)
}

/// From now on the task answers 410, for the full time however late the sweep is. Returns whether
/// it expired: an unreadable task may have another expiry than it seems, and is kept for as long as
/// any task.
fn expire_one(
    request: &SweepRequest,
    now_ms: UnixMs,
    batch: &mut Batch<'_>,
    id: TaskId,
    seq: i64,
) -> Done<bool> {
    let found = rows::find(batch.conn, id);
    let kept_until_ms = id.created_at_ms().saturating_add(request.unreadable_ms);
    if matches!(found, Ok(None) | Err(Fault::Corrupt(_))) && kept_until_ms > now_ms {
        return Ok(false);
    }
    match found {
        Ok(Some(before)) => {
            batch.expect(&before, Event::Expired { now_ms })?;
        }
        Ok(None) => discard_result(batch, seq)?,
        // A task that this version cannot read ages like all others. It stays charged.
        Err(Fault::Corrupt(error)) => {
            tracing::error!(%id, error, "unreadable task expired by its age");
            discard_result(batch, seq)?;
            let mut query = batch.conn.prepare_cached(
                "UPDATE tasks SET phase = 'expired', artifact = NULL, failure = NULL, state_sum = NULL, \
                 expires_at_ms = max(expires_at_ms, ?2) WHERE seq = ?1 RETURNING project",
            )?;
            let project: Option<String> =
                query.query_row([seq, int(now_ms)], |row| Ok(row.get(0).ok()))?;
            if let Some(project) = project {
                batch.charge(Charge::of(&project, 0, -1));
            }
            batch.note(id, None);
        }
        Err(fault) => return Err(fault),
    }
    Ok(true)
}

/// Records the files of a result as garbage when its task cannot be read as a whole.
fn discard_result(batch: &mut Batch<'_>, seq: i64) -> Done<()> {
    let artifact: Option<String> = batch
        .conn
        .prepare_cached("SELECT artifact FROM tasks WHERE seq = ?1")?
        // A damaged text must not block the tasks after it; the search for orphans finds its files.
        .query_row([seq], |row| Ok(row.get(0).unwrap_or_default()))?;
    batch.erase();
    chore_rows::note_files(batch.conn, &rows::files(artifact.as_deref()))
}

fn forget(request: &SweepRequest, until_ms: UnixMs, batch: &mut Batch<'_>) -> Done<u64> {
    let mut forgotten = 0;
    for (id, seq) in due(batch, Phase::Expired, until_ms, request.batch)? {
        let removed = batch.apart(|batch| remove(batch, id, seq))?;
        forgotten += u64::from(removed.is_some());
    }
    Ok(forgotten)
}

/// Tasks in a phase that expire at or before `until_ms`, oldest first.
fn due(
    batch: &Batch<'_>,
    phase: Phase,
    until_ms: UnixMs,
    limit: usize,
) -> Done<Vec<(TaskId, i64)>> {
    let mut query = batch.conn.prepare_cached(
        "SELECT id, seq FROM tasks WHERE phase = ?1 AND expires_at_ms <= ?2 \
         ORDER BY expires_at_ms LIMIT ?3",
    )?;
    let phase = phase_name(phase);
    let mut rows = query.query(params![phase, int(until_ms), int(limit as u64)])?;
    let mut due = Vec::new();
    while let Some(row) = rows.next()? {
        let id = row.get_ref(0)?;
        let Some(id) = id.as_str().ok().and_then(|id| id.parse().ok()) else {
            // It must not block those after it.
            tracing::error!(?id, "damaged task id skipped");
            continue;
        };
        due.push((id, row.get(1)?));
    }
    Ok(due)
}

fn free_keys(request: &SweepRequest, until_ms: UnixMs, batch: &Batch<'_>) -> Done<u64> {
    let mut query = batch.conn.prepare_cached(
        "DELETE FROM idempotency WHERE (project, key) IN \
         (SELECT project, key FROM idempotency WHERE expires_at_ms <= ?1 LIMIT ?2)",
    )?;
    let freed = query.execute(params![int(until_ms), int(request.batch as u64)])?;
    Ok(freed as u64)
}
