//! What was left behind: lost leases, results past their time, tombstones, old idempotency
//! keys, files to be removed. Bounded work, in one transaction.

use std::sync::Arc;

use kinora_contract::{FailureCode, State, SteadyMs, TaskId, UnixMs};
use rusqlite::params;

use super::abandoned;
use super::alone::Company;
use super::batch::Batch;
use super::fault::{Done, Fault};
use super::owner::remove;
use super::record::Record;
use super::rows::{self, int};
use super::times;
use super::usage::Charge;
use super::writer::Operation;
use crate::deaths::Verdict;
use crate::{SweepRequest, Swept};

impl Operation for SweepRequest {
    type Output = Swept;

    fn apply(&self, batch: &mut Batch<'_>) -> Done<Swept> {
        let mut swept = Swept::default();
        // As it was at the deaths, before any of the tasks is taken up.
        let company = Company::of(batch.index());
        for record in expired_leases(self, batch) {
            let verdict = company.judge(&record, self.attempts_max);
            let (after, count) = match verdict {
                Verdict::Lost => (
                    failed(&record, FailureCode::WorkerLost, self),
                    &mut swept.lost,
                ),
                verdict => (requeued(&record, verdict), &mut swept.requeued),
            };
            let updated = batch.apart(|batch| batch.update(&record, after))?;
            *count += u64::from(updated.is_some());
        }
        swept.more = swept.requeued + swept.lost >= self.batch as u64;
        if self.trusts_wall {
            end_by_time(self, batch, &mut swept)?;
        }
        swept.files = garbage(self, batch)?;
        swept.abandoned = abandoned::list(batch.conn, self.batch)?;
        Ok(swept)
    }
}

/// What the wall clock alone decides.
fn end_by_time(request: &SweepRequest, batch: &mut Batch<'_>, swept: &mut Swept) -> Done<()> {
    let is_full = |count: u64| count >= request.batch as u64;
    for record in too_long_waiting(request, batch) {
        let after = failed(&record, FailureCode::TaskExpired, request);
        let updated = batch.apart(|batch| batch.update(&record, after))?;
        swept.waited += u64::from(updated.is_some());
    }
    swept.more |= is_full(swept.waited);
    // Before the expiry: nothing goes both ways in one sweep.
    swept.forgotten = forget(request, batch)?;
    swept.more |= is_full(swept.forgotten);
    for phase in ["completed", "failed"] {
        let expired = expire(request, batch, phase)?;
        swept.expired += expired;
        swept.more |= is_full(expired);
    }
    swept.more |= is_full(free_keys(request, batch)?);
    Ok(())
}

/// The record back in its old place as if it had not been claimed.
pub(super) fn spared(record: &Record) -> Arc<Record> {
    record.with(None, |task| {
        task.state = State::Waiting;
        task.attempt = task.attempt.saturating_sub(1);
    })
}

/// The record back in its old place after a death of its worker.
pub(super) fn requeued(record: &Record, verdict: Verdict) -> Arc<Record> {
    let mut after = match verdict {
        Verdict::Spared => spared(record),
        _ => record.with(None, |task| task.state = State::Waiting),
    };
    let record = Arc::make_mut(&mut after);
    record.deaths = record.deaths.saturating_add(1);
    after
}

fn failed(record: &Record, code: FailureCode, request: &SweepRequest) -> Arc<Record> {
    record.with(None, |task| {
        task.state = State::Failed(code.into());
        let expires_at_ms = request.now_ms.saturating_add(request.retention_ms);
        times::end(task, request.now_ms, expires_at_ms);
    })
}

/// Those that have waited longest come first.
fn too_long_waiting(request: &SweepRequest, batch: &Batch<'_>) -> Vec<Arc<Record>> {
    let bound = request
        .waiting_ms_max
        .and_then(|max| request.now_ms.checked_sub(max));
    let Some(before_ms) = bound else {
        return Vec::new();
    };
    let from = request.waiting_from;
    let since_ms = |record: &Record| match record.task.created_at_ms {
        created_ms if created_ms < from.created_before_ms => created_ms.max(from.from_ms),
        created_ms => created_ms,
    };
    let waiting = batch.index().never_started();
    let mut late: Vec<_> = waiting
        .filter(|record| since_ms(record) <= before_ms)
        .cloned()
        .collect();
    late.sort_by_key(|record| record.seq);
    late.truncate(request.batch);
    late
}

/// Those that ran out first come first.
fn expired_leases(request: &SweepRequest, batch: &Batch<'_>) -> Vec<Arc<Record>> {
    if request.spares_leases {
        return Vec::new();
    }
    let until = |record: &Record| -> SteadyMs {
        let held = record.lease.as_ref();
        held.map_or(0, |held| held.until_steady_ms)
    };
    let running = batch.index().running().cloned();
    let mut expired: Vec<_> = running
        .filter(|record| until(record) <= request.steady_ms)
        .collect();
    expired.sort_by_key(|record| (until(record), record.seq));
    expired.truncate(request.batch);
    expired
}

fn expire(request: &SweepRequest, batch: &mut Batch<'_>, phase: &str) -> Done<u64> {
    let mut expired = 0;
    for (id, seq) in due(batch, phase, request.now_ms, request.batch)? {
        let one = batch.apart(|batch| expire_one(request, batch, id, seq))?;
        expired += u64::from(one == Some(true));
    }
    Ok(expired)
}

/// The task answers 410 from now on, and for as long as any other, however late the sweep is. Whether it has
/// expired: what cannot be read may have another expiry than it seems, and is left for as long as any task is kept.
fn expire_one(request: &SweepRequest, batch: &mut Batch<'_>, id: TaskId, seq: i64) -> Done<bool> {
    let now_ms = request.now_ms;
    let found = rows::find(batch.conn, id);
    let kept_until_ms = id.created_at_ms().saturating_add(request.retention_ms);
    if matches!(found, Ok(None) | Err(Fault::Corrupt(_))) && kept_until_ms > now_ms {
        return Ok(false);
    }
    let artifact: Option<String> = batch
        .conn
        .prepare_cached("SELECT artifact FROM tasks WHERE seq = ?1")?
        // A damaged text must not keep the tasks behind it; what it named are orphans.
        .query_row([seq], |row| Ok(row.get(0).unwrap_or_default()))?;
    rows::add_garbage(batch.conn, &rows::files(artifact.as_deref()))?;
    batch.erase();
    match found {
        Ok(Some(before)) => {
            let after = before.with(before.lease.clone(), |task| {
                task.state = State::Expired;
                task.expires_at_ms = task.expires_at_ms.max(Some(now_ms));
            });
            rows::update(batch.conn, &before, &after)?;
            if before.task.spec.draft {
                batch.discard_references(&before)?;
            }
            batch.charge(Charge::changed(&before, &after));
            batch.note(id, Some(after));
        }
        Ok(None) => {}
        // One that this version cannot read ages like all others. It stays charged.
        Err(Fault::Corrupt(error)) => {
            tracing::error!(%id, error, "a task that cannot be read has expired by its age");
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

fn forget(request: &SweepRequest, batch: &mut Batch<'_>) -> Done<u64> {
    let Some(before_ms) = request.now_ms.checked_sub(request.tombstone_ms) else {
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

fn free_keys(request: &SweepRequest, batch: &Batch<'_>) -> Done<u64> {
    let Some(before_ms) = request.now_ms.checked_sub(request.keys_kept_ms) else {
        return Ok(0);
    };
    let mut query = batch.conn.prepare_cached(
        "DELETE FROM idempotency WHERE (project, key) IN \
         (SELECT project, key FROM idempotency WHERE expires_at_ms <= ?1 LIMIT ?2)",
    )?;
    let freed = query.execute(params![int(before_ms), int(request.batch as u64)])?;
    Ok(freed as u64)
}

fn garbage(request: &SweepRequest, batch: &Batch<'_>) -> Done<Vec<String>> {
    let mut query = batch
        .conn
        .prepare_cached("SELECT key FROM garbage ORDER BY number LIMIT ?1")?;
    let mut rows = query.query([int(request.batch as u64)])?;
    let mut keys = Vec::new();
    while let Some(row) = rows.next()? {
        // One that cannot be read names no file: the look for orphans finds it.
        keys.extend(row.get::<_, String>(0));
    }
    Ok(keys)
}
