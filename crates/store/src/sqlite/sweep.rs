//! What was left behind: lost leases, results past their time, tombstones, old idempotency
//! keys. Bounded work, in one transaction.

use kinora_contract::lifecycle::{Event, Verdict};
use kinora_contract::{TaskId, UnixMs};
use rusqlite::params;

use super::batch::Batch;
use super::chores;
use super::fault::{Done, Fault};
use super::owner::remove;
use super::rows::{self, int};
use super::usage::Charge;
use super::writer::Operation;
use crate::queue::alone::Company;
use crate::{SweepRequest, Swept};

impl Operation for SweepRequest {
    type Output = Swept;

    fn apply(&self, batch: &mut Batch<'_>) -> Done<Swept> {
        let mut swept = Swept::default();
        // As it was at the deaths, before any of the tasks is taken up.
        let company = Company::of(batch.index().running().map(|record| &**record));
        for record in self.lost(batch.index().running(), batch.now.steady_ms) {
            let verdict = company.judge(&record, self.attempts_max);
            let lost = Event::WorkerLost {
                verdict,
                now_ms: batch.now.wall_ms,
                retention_ms: self.retention_ms,
            };
            let ended = batch.apart(|batch| batch.expect(&record, lost))?;
            let count = match verdict {
                Verdict::Lost => &mut swept.lost,
                Verdict::Again | Verdict::Spared => &mut swept.requeued,
            };
            *count += u64::from(ended.is_some());
        }
        swept.more = swept.requeued + swept.lost >= self.batch as u64;
        if let Some(due_ms) = self.due_ms {
            end_by_time(self, due_ms, batch, &mut swept)?;
        }
        Ok(swept)
    }
}

/// Decisions of the wall clock alone.
fn end_by_time(
    request: &SweepRequest,
    due_ms: UnixMs,
    batch: &mut Batch<'_>,
    swept: &mut Swept,
) -> Done<()> {
    let is_full = |count: u64| count >= request.batch as u64;
    for record in request.late(batch.index().records(), due_ms) {
        let late = Event::WaitedTooLong {
            now_ms: due_ms,
            retention_ms: request.retention_ms,
        };
        let ended = batch.apart(|batch| batch.expect(&record, late))?;
        swept.waited += u64::from(ended.is_some());
    }
    swept.more |= is_full(swept.waited);
    // Before the expiry: nothing goes both ways in one sweep.
    swept.forgotten = forget(request, due_ms, batch)?;
    swept.more |= is_full(swept.forgotten);
    for phase in ["completed", "failed"] {
        let expired = expire(request, due_ms, batch, phase)?;
        swept.expired += expired;
        swept.more |= is_full(expired);
    }
    swept.more |= is_full(free_keys(request, due_ms, batch)?);
    Ok(())
}

fn expire(request: &SweepRequest, due_ms: UnixMs, batch: &mut Batch<'_>, phase: &str) -> Done<u64> {
    let mut expired = 0;
    for (id, seq) in due(batch, phase, due_ms, request.batch)? {
        let one = batch.apart(|batch| expire_one(request, due_ms, batch, id, seq))?;
        expired += u64::from(one == Some(true));
    }
    Ok(expired)
}

/// The task answers 410 from now on, and for as long as any other, however late the sweep is. Whether it has
/// expired: what cannot be read may have another expiry than it seems, and is left for as long as any task is kept.
fn expire_one(
    request: &SweepRequest,
    now_ms: UnixMs,
    batch: &mut Batch<'_>,
    id: TaskId,
    seq: i64,
) -> Done<bool> {
    let found = rows::find(batch.conn, id);
    let kept_until_ms = id.created_at_ms().saturating_add(request.retention_ms);
    if matches!(found, Ok(None) | Err(Fault::Corrupt(_))) && kept_until_ms > now_ms {
        return Ok(false);
    }
    match found {
        Ok(Some(before)) => {
            batch.expect(&before, Event::Expired { now_ms })?;
        }
        Ok(None) => discard_result(batch, seq)?,
        // One that this version cannot read ages like all others. It stays charged.
        Err(Fault::Corrupt(error)) => {
            tracing::error!(%id, error, "a task that cannot be read has expired by its age");
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

/// Notes as garbage the files of a result whose task cannot be read as a whole.
fn discard_result(batch: &mut Batch<'_>, seq: i64) -> Done<()> {
    let artifact: Option<String> = batch
        .conn
        .prepare_cached("SELECT artifact FROM tasks WHERE seq = ?1")?
        // A damaged text must not keep the tasks behind it; the look for orphans finds its files.
        .query_row([seq], |row| Ok(row.get(0).unwrap_or_default()))?;
    batch.erase();
    chores::note_files(batch.conn, &rows::files(artifact.as_deref()))
}

fn forget(request: &SweepRequest, due_ms: UnixMs, batch: &mut Batch<'_>) -> Done<u64> {
    let Some(before_ms) = due_ms.checked_sub(request.tombstone_ms) else {
        return Ok(0);
    };
    let mut forgotten = 0;
    for (id, seq) in due(batch, "expired", before_ms, request.batch)? {
        let removed = batch.apart(|batch| remove(batch, id, seq))?;
        forgotten += u64::from(removed.is_some());
    }
    Ok(forgotten)
}

/// Tasks of a phase whose expiry lies at or before `until_ms`, oldest first.
fn due(batch: &Batch<'_>, phase: &str, until_ms: UnixMs, limit: usize) -> Done<Vec<(TaskId, i64)>> {
    let mut query = batch.conn.prepare_cached(
        "SELECT id, seq FROM tasks WHERE phase = ?1 AND expires_at_ms <= ?2 \
         ORDER BY expires_at_ms LIMIT ?3",
    )?;
    let mut rows = query.query(params![phase, int(until_ms), int(limit as u64)])?;
    let mut due = Vec::new();
    while let Some(row) = rows.next()? {
        let id = row.get_ref(0)?;
        let Some(id) = id.as_str().ok().and_then(|id| id.parse().ok()) else {
            // It must not keep those behind it.
            tracing::error!(?id, "a damaged task id is left where it stands");
            continue;
        };
        due.push((id, row.get(1)?));
    }
    Ok(due)
}

fn free_keys(request: &SweepRequest, due_ms: UnixMs, batch: &Batch<'_>) -> Done<u64> {
    let Some(before_ms) = due_ms.checked_sub(request.keys_kept_ms) else {
        return Ok(0);
    };
    let mut query = batch.conn.prepare_cached(
        "DELETE FROM idempotency WHERE (project, key) IN \
         (SELECT project, key FROM idempotency WHERE expires_at_ms <= ?1 LIMIT ?2)",
    )?;
    let freed = query.execute(params![int(before_ms), int(request.batch as u64)])?;
    Ok(freed as u64)
}
