//! Cleans up: lost leases, expired results, tombstones, old idempotency keys. Bounded work in one
//! transaction. Postpones the expiry of tasks whose end was stamped by a wrong clock.

use kinora_contract::lifecycle::TaskEvent;
use kinora_contract::{TaskPhase, UnixMs};

use crate::backend::{CommitChannel, StoreOperation, StoreTransaction, TransactionFault as _};
use crate::chores::SweepStep;
use crate::sql::SqlQuery;
use crate::tables::pauses;
use crate::{ExpiryCursor, PostponeRequest, SweepReport, SweepRequest};

impl StoreOperation for SweepRequest {
    type Output = SweepReport;

    fn channel(&self) -> CommitChannel<'_> {
        CommitChannel::Queue
    }

    async fn apply<T: StoreTransaction>(&self, tx: &mut T) -> Result<SweepReport, T::Fault> {
        let mut swept = SweepReport::default();
        for part in self.parts() {
            let rows = match part {
                SweepStep::Leases => requeue_lost(self, tx, &mut swept).await?,
                SweepStep::Waiting { now_ms } => fail_late(self, now_ms, tx).await?,
                SweepStep::Tombstones { until_ms } => remove_tombstones(self, until_ms, tx).await?,
                SweepStep::Results { phase, now_ms } => expire(self, now_ms, tx, phase).await?,
                SweepStep::Keys { until_ms } => free_keys(self, until_ms, tx).await?,
            };
            swept.add(part, rows, self.batch);
        }
        tx.sweep_own().await?;
        Ok(swept)
    }
}

/// Requeues or fails tasks whose leases have expired.
async fn requeue_lost<T: StoreTransaction>(
    request: &SweepRequest,
    tx: &mut T,
    swept: &mut SweepReport,
) -> Result<u64, T::Fault> {
    let running = tx.running(request.lease_ms).await?;
    // The verdicts come first, from all tasks that ran when the workers died. Example: a worker ran A and B
    // and died. Requeueing A first would make B look alone, and cost it its last attempt.
    let lost = request.lost(running.iter(), tx.now());
    let records = lost.iter().map(|(record, _)| record.clone());
    // Reading the running tasks locked nothing, so a lease may have been renewed since: only those
    // that are unchanged under the lock are lost.
    let still_lost = tx.reload_lost(records.collect()).await?;
    let mut taken_up = 0;
    for (judged, verdict) in lost {
        let Some(record) = still_lost.get(&judged.task.id) else {
            continue;
        };
        let event = request.worker_lost(verdict, tx.now().wall_ms);
        if tx.expect_unless_damaged(record, event)? {
            swept.add_lost(verdict);
            taken_up += 1;
        }
    }
    Ok(taken_up)
}

/// Fails tasks that have waited too long for their first worker. Tasks that have waited through a pause
/// wait anew from its end on, so those of a model with a recent one are spared.
async fn fail_late<T: StoreTransaction>(
    request: &SweepRequest,
    now_ms: UnixMs,
    tx: &mut T,
) -> Result<u64, T::Fault> {
    let Some(before_ms) = request.late_before_ms(now_ms) else {
        return Ok(0);
    };
    // Example: a limit of 24 h, and a model that was resumed 5 h ago. Its late tasks were created more
    // than 24 h ago, so all of them have waited through the pause, and none has waited 24 h since.
    let spared = tx.query(pauses::paused_since(before_ms)).await?;
    let spared = spared.iter().map(|row| row.get(0));
    let spared = spared.collect::<Result<Vec<String>, _>>()?;
    if spared.iter().any(String::is_empty) {
        return Ok(0);
    }
    let found = tx.late(request, &spared, now_ms).await?;
    let mut failed = 0;
    for record in request.late(found.iter(), &spared, now_ms) {
        let late = request.waited_too_long(now_ms);
        failed += u64::from(tx.expect_unless_damaged(&record, late)?);
    }
    Ok(failed)
}

/// Expires results. From now on their tasks answer 410, for the full time however late the sweep
/// is.
async fn expire<T: StoreTransaction>(
    request: &SweepRequest,
    now_ms: UnixMs,
    tx: &mut T,
    phase: TaskPhase,
) -> Result<u64, T::Fault> {
    let mut expired = 0;
    for id in tx.due(phase, now_ms, request.batch).await? {
        match tx.find(id) {
            Ok(None) => {}
            Ok(Some(before)) => {
                let event = TaskEvent::Expired { now_ms };
                expired += u64::from(tx.expect_unless_damaged(&before, event)?);
            }
            Err(fault) => {
                let Some(damage) = fault.damage() else {
                    return Err(fault);
                };
                // The damage may be in its expiry: keep the task for as long as any task could be kept.
                if id.created_at_ms().saturating_add(request.unreadable_ms) <= now_ms {
                    tracing::error!(%id, damage, "unreadable task expired by its age");
                    tx.expire_unreadable(id, now_ms).await?;
                    expired += 1;
                }
            }
        }
    }
    Ok(expired)
}

async fn remove_tombstones<T: StoreTransaction>(
    request: &SweepRequest,
    until_ms: UnixMs,
    tx: &mut T,
) -> Result<u64, T::Fault> {
    let now_ms = tx.now().wall_ms;
    let mut removed = 0;
    for id in tx.due(TaskPhase::Expired, until_ms, request.batch).await? {
        match tx.find(id) {
            Ok(None) => {}
            Ok(Some(before)) => {
                let event = TaskEvent::Deleted { now_ms };
                removed += u64::from(tx.expect_unless_damaged(&before, event)?);
            }
            // Nobody can read this tombstone, but its index entry is due: remove it as the readable
            // ones.
            Err(fault) if fault.damage().is_some() => {
                tx.remove_unreadable(id, None).await?;
                removed += 1;
            }
            Err(fault) => return Err(fault),
        }
    }
    Ok(removed)
}

async fn free_keys<T: StoreTransaction>(
    request: &SweepRequest,
    until_ms: UnixMs,
    tx: &mut T,
) -> Result<u64, T::Fault> {
    // Selected first, with a limit and skipping locked rows, since neither is part of a DELETE in
    // both databases.
    let free = format!(
        "DELETE FROM idempotency WHERE (project, key) IN (SELECT project, key FROM idempotency \
         WHERE expires_at_ms <= $1 ORDER BY expires_at_ms LIMIT $2 {}) RETURNING 1",
        T::DIALECT.skip_locked()
    );
    let free = SqlQuery::new(free)
        .bind(until_ms)
        .bind(request.batch as u64);
    Ok(tx.write(free).await?.len() as u64)
}

impl StoreOperation for PostponeRequest {
    type Output = Option<ExpiryCursor>;

    fn channel(&self) -> CommitChannel<'_> {
        CommitChannel::Queue
    }

    async fn apply<T: StoreTransaction>(
        &self,
        tx: &mut T,
    ) -> Result<Option<ExpiryCursor>, T::Fault> {
        // Those that expire last come first: a postponed task then lies behind the place where the next call
        // continues, and is not found twice. Tasks that the request does not concern count towards the
        // batch too, so that no call searches the whole store.
        let found = tx.postponable(self).await?;
        let is_full = found.len() == self.batch;
        let last = found.last().map(|(place, _)| *place);
        for (place, before) in found {
            let Some(before) = before else {
                continue;
            };
            let ended_at_ms = before.task.finished_at_ms;
            let expires_at_ms = self.new_expiry(place.expires_at_ms, ended_at_ms);
            tx.expect_unless_damaged(&before, TaskEvent::Postponed { expires_at_ms })?;
        }
        Ok(last.filter(|_| is_full))
    }
}
