//! Cleaning up: lost leases, expired results, tombstones, old idempotency keys. Bounded work in one
//! transaction, which skips rows that others are changing.

use std::sync::Arc;

use kinora_contract::lifecycle::{Event, Held, Record, Verdict};
use kinora_contract::{Phase, TaskId, UnixMs};

use super::acts::remove_unread;
use super::batch::Batch;
use super::claims::read_or_skip;
use super::fault::{Done, Fault};
use super::job::Operation;
use super::rows;
use super::statement::Statement;
use super::workers::living_names;
use crate::stored::{files, phase_name};
use crate::sweep::Part;
use crate::{ExpiryCursor, Postpone, StoreError, SweepRequest, Swept};

/// Maximum time without a write by a lane's process; then the sweep forgets the lane's row.
const LANES_KEPT_MS: u64 = 7 * 24 * 60 * 60 * 1000;

impl Operation for SweepRequest {
    type Output = Swept;

    async fn apply(&self, batch: &mut Batch<'_>) -> Done<Swept> {
        let mut swept = Swept::default();
        for part in self.parts() {
            let rows = match part {
                Part::Leases => take_up(self, batch, &mut swept).await?,
                Part::Waiting { now_ms } => give_up(self, now_ms, batch).await?,
                Part::Tombstones { until_ms } => {
                    let due = due(batch, Phase::Expired, until_ms, self.batch).await?;
                    forget(due, batch).await?
                }
                Part::Results { phase, now_ms } => {
                    let due = due(batch, phase, now_ms, self.batch).await?;
                    expire(self, due, now_ms, batch).await?
                }
                Part::Keys { until_ms } => free_keys(self, until_ms, batch).await?,
            };
            swept.add(part, rows, self.batch);
        }
        forget_lanes(batch).await?;
        Ok(swept)
    }
}

/// Locks these rows, except those that others are changing.
async fn lock(ids: Vec<String>, batch: &mut Batch<'_>) -> Done<Vec<TaskId>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let text = format!(
        "SELECT {} FROM tasks t WHERE id = ANY($1) ORDER BY id FOR UPDATE SKIP LOCKED",
        rows::columns("t")
    );
    batch.load(Statement::new(text).texts(ids)).await
}

async fn take_up(request: &SweepRequest, batch: &mut Batch<'_>, swept: &mut Swept) -> Done<u64> {
    // All running tasks, if any lease may be over: the cause shows in the tasks that ran beside
    // them.
    let text = format!(
        "SELECT {} FROM tasks t WHERE place = 4 \
         AND EXISTS (SELECT 1 FROM tasks WHERE place = 4 \
         AND (lease_until_steady_ms <= $1 OR lease_until_steady_ms > $2))",
        rows::columns("t")
    );
    let now_ms = batch.now.lease_ms;
    let ahead_ms = now_ms.saturating_add(request.lease_ms.saturating_mul(2));
    let found = batch
        .query(Statement::new(text).int(now_ms).int(ahead_ms))
        .await?;
    let mut running = Vec::with_capacity(found.len());
    for row in &found {
        running.extend(read_or_skip(row)?);
    }
    let lost = request.lost(running.iter(), &batch.now);
    let lost = without_longer(lost, batch).await?;
    let ids = lost.iter().map(|(record, _)| record.task.id.to_string());
    let locked = lock(ids.collect(), batch).await?;
    let mut taken_up = 0;
    for (judged, verdict) in lost {
        let id = judged.task.id;
        let now = match locked.contains(&id) {
            true => batch.find(id)?,
            false => None,
        };
        // The lease may have been renewed since it was read.
        let Some(now) = now.filter(|now| now.lease == judged.lease && now.is_running()) else {
            continue;
        };
        batch.expect(&now, request.worker_lost(verdict, batch.now.wall_ms))?;
        swept.add_lost(verdict);
        taken_up += 1;
    }
    Ok(taken_up)
}

/// Without those of live workers whose leases seem too long: these workers have longer ones, as while an operator changes
/// `worker.lease_seconds`.
async fn without_longer(
    mut lost: Vec<(Arc<Record>, Verdict)>,
    batch: &Batch<'_>,
) -> Done<Vec<(Arc<Record>, Verdict)>> {
    let now_ms = batch.now.lease_ms;
    let is_ahead = |lease: &&Held| lease.ends_ms > now_ms;
    let lease_ahead = |record: &Record| record.lease.as_ref().filter(is_ahead).cloned();
    if lost.iter().any(|(record, _)| lease_ahead(record).is_some()) {
        let living = living_names(batch).await?;
        lost.retain(|(record, _)| {
            lease_ahead(record).is_none_or(|lease| !living.contains(&lease.worker))
        });
    }
    Ok(lost)
}

async fn give_up(request: &SweepRequest, now_ms: UnixMs, batch: &mut Batch<'_>) -> Done<u64> {
    let Some([early, usual]) = request.late_creations(now_ms) else {
        return Ok(0);
    };
    let text = format!(
        "SELECT {} FROM tasks t WHERE place IN (1, 2, 3) AND started_at_ms IS NULL \
         AND (created_at_ms >= $1 AND created_at_ms < $2 OR created_at_ms >= $3 AND created_at_ms < $4) \
         ORDER BY seq LIMIT $5 FOR UPDATE SKIP LOCKED",
        rows::columns("t")
    );
    let statement = Statement::new(text)
        .int(early.start)
        .int(early.end)
        .int(usual.start)
        .int(usual.end)
        .int(request.batch as u64);
    let mut found = Vec::new();
    for id in batch.load(statement).await? {
        found.extend(batch.find(id).ok().flatten());
    }
    let late = request.late(found.iter(), now_ms);
    for record in &late {
        batch.expect(record, request.waited_too_long(now_ms))?;
    }
    Ok(late.len() as u64)
}

/// Locks tasks of a phase that expire at or before `until_ms`, oldest first.
async fn due(
    batch: &mut Batch<'_>,
    phase: Phase,
    until_ms: UnixMs,
    limit: usize,
) -> Done<Vec<TaskId>> {
    let text = format!(
        "SELECT {} FROM tasks t WHERE phase = $1 AND expires_at_ms <= $2 \
         ORDER BY expires_at_ms LIMIT $3 FOR UPDATE SKIP LOCKED",
        rows::columns("t")
    );
    let statement = Statement::new(text).text(phase_name(phase)).int(until_ms);
    batch.load(statement.int(limit as u64)).await
}

async fn forget(due: Vec<TaskId>, batch: &mut Batch<'_>) -> Done<u64> {
    let mut forgotten = 0;
    let now_ms = batch.now.wall_ms;
    let deleted = Event::Deleted { now_ms };
    for id in due {
        match batch.find(id) {
            Ok(Some(record)) => drop(batch.expect(&record, deleted.clone())?),
            Ok(None) => continue,
            Err(Fault::Job(StoreError::Corrupt(_))) => remove_unread(batch, id).await?,
            Err(fault) => return Err(fault),
        }
        forgotten += 1;
    }
    Ok(forgotten)
}

async fn expire(
    request: &SweepRequest,
    due: Vec<TaskId>,
    now_ms: UnixMs,
    batch: &mut Batch<'_>,
) -> Done<u64> {
    let mut expired = 0;
    for id in due {
        match batch.find(id) {
            Ok(Some(record)) => drop(batch.expect(&record, Event::Expired { now_ms })?),
            Ok(None) => continue,
            Err(Fault::Job(StoreError::Corrupt(text))) => {
                let kept_until_ms = id.created_at_ms().saturating_add(request.unreadable_ms);
                if kept_until_ms > now_ms {
                    continue;
                }
                tracing::error!(%id, text, "unreadable task expired by its age");
                expire_unread(id, now_ms, batch).await?;
            }
            Err(fault) => return Err(fault),
        }
        expired += 1;
    }
    Ok(expired)
}

/// Expires a task that this version cannot read, by age like all others. It stays charged.
async fn expire_unread(id: TaskId, now_ms: UnixMs, batch: &mut Batch<'_>) -> Done<()> {
    let expire = "UPDATE tasks t SET phase = 'expired', artifact = NULL, failure = NULL, \
                  expires_at_ms = greatest(t.expires_at_ms, $2) FROM tasks was \
                  WHERE t.id = $1 AND was.id = t.id RETURNING t.project, was.artifact";
    let expire = Statement::new(expire).text(id.to_string()).int(now_ms);
    for row in batch.change(expire).await? {
        let sums = super::batch::Sums {
            tasks: -1,
            ..Default::default()
        };
        batch.add_sums(row.try_get(0)?, sums);
        batch.new.files.extend(files(row.try_get(1)?));
    }
    Ok(())
}

async fn free_keys(request: &SweepRequest, until_ms: UnixMs, batch: &mut Batch<'_>) -> Done<u64> {
    let free = "DELETE FROM idempotency WHERE (project, key) IN (SELECT project, key FROM idempotency \
                WHERE expires_at_ms <= $1 ORDER BY expires_at_ms LIMIT $2 FOR UPDATE SKIP LOCKED) RETURNING 1";
    let free = Statement::new(free).int(until_ms).int(request.batch as u64);
    let freed = batch.query(free).await?.len();
    batch.wrote |= freed > 0;
    Ok(freed as u64)
}

/// Uses the server's clock, which stamps them.
async fn forget_lanes(batch: &mut Batch<'_>) -> Done<()> {
    let forget = "DELETE FROM lanes WHERE id IN (SELECT id FROM lanes \
                  WHERE at_ms < (extract(epoch FROM clock_timestamp()) * 1000)::bigint - $1 LIMIT 100 \
                  FOR UPDATE SKIP LOCKED) RETURNING 1";
    let forgotten = batch
        .query(Statement::new(forget).int(LANES_KEPT_MS))
        .await?;
    batch.wrote |= !forgotten.is_empty();
    Ok(())
}

impl Operation for Postpone {
    type Output = Option<ExpiryCursor>;

    async fn apply(&self, batch: &mut Batch<'_>) -> Done<Option<ExpiryCursor>> {
        // Last ones first: moved rows land behind the place at which the next call continues. A row
        // that ended at another time counts as well: a call must not search a whole store for the
        // last one.
        let text = format!(
            "SELECT {} FROM tasks t WHERE phase IN ('completed', 'failed') AND expires_at_ms >= $1 \
             AND expires_at_ms <= $2 AND (expires_at_ms, seq) < ($3, $4) \
             ORDER BY expires_at_ms DESC, seq DESC LIMIT $5 FOR UPDATE",
            rows::columns("t")
        );
        let statement = Statement::new(text)
            .int(self.from_ms)
            .int(self.expires_before_ms().saturating_sub(1))
            .int(self.below.expires_at_ms)
            .int(self.below.number)
            .int(self.batch as u64);
        let found = batch.load(statement).await?;
        let mut last = None;
        for id in &found {
            let Ok(Some(before)) = batch.find(*id) else {
                continue;
            };
            let Some(until_ms) = before.task.expires_at_ms else {
                continue;
            };
            last = Some(ExpiryCursor {
                expires_at_ms: until_ms,
                number: before.seq,
            });
            let ended_at_ms = before.task.finished_at_ms;
            if ended_at_ms.is_some_and(|at_ms| self.is_meant(at_ms)) {
                let expires_at_ms = self.moved(until_ms, ended_at_ms);
                batch.expect(&before, Event::Postponed { expires_at_ms })?;
            }
        }
        Ok(last.filter(|_| found.len() == self.batch))
    }
}
