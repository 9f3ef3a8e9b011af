//! Cleans up: lost leases, expired results, tombstones, old idempotency keys. Bounded work in one
//! transaction.

use kinora_contract::lifecycle::Event;
use kinora_contract::{Phase, UnixMs};

use crate::backend::{Channel, Operation, Transaction, TransactionFault as _};
use crate::sql::Query;
use crate::sweep::Part;
use crate::{SweepRequest, Swept};

impl Operation for SweepRequest {
    type Output = Swept;

    fn channel(&self) -> Channel<'_> {
        Channel::Queue
    }

    async fn apply<T: Transaction>(&self, tx: &mut T) -> Result<Swept, T::Fault> {
        let mut swept = Swept::default();
        for part in self.parts() {
            let rows = match part {
                Part::Leases => requeue_lost(self, tx, &mut swept).await?,
                Part::Waiting { now_ms } => fail_late(self, now_ms, tx).await?,
                Part::Tombstones { until_ms } => remove_tombstones(self, until_ms, tx).await?,
                Part::Results { phase, now_ms } => expire(self, now_ms, tx, phase).await?,
                Part::Keys { until_ms } => free_keys(self, until_ms, tx).await?,
            };
            swept.add(part, rows, self.batch);
        }
        tx.sweep_own().await?;
        Ok(swept)
    }
}

/// Requeues or fails tasks whose leases have expired.
async fn requeue_lost<T: Transaction>(
    request: &SweepRequest,
    tx: &mut T,
    swept: &mut Swept,
) -> Result<u64, T::Fault> {
    let running = tx.running(request.lease_ms).await?;
    // Judged by all that ran at the deaths, before any of them changes.
    let lost = request.lost(running.iter(), tx.now());
    let records = lost.iter().map(|(record, _)| record.clone());
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

/// Fails tasks that have waited too long for their first worker.
async fn fail_late<T: Transaction>(
    request: &SweepRequest,
    now_ms: UnixMs,
    tx: &mut T,
) -> Result<u64, T::Fault> {
    let found = tx.late(request, now_ms).await?;
    let mut failed = 0;
    for record in request.late(found.iter(), now_ms) {
        let late = request.waited_too_long(now_ms);
        failed += u64::from(tx.expect_unless_damaged(&record, late)?);
    }
    Ok(failed)
}

/// Expires results. From now on their tasks answer 410, for the full time however late the sweep
/// is.
async fn expire<T: Transaction>(
    request: &SweepRequest,
    now_ms: UnixMs,
    tx: &mut T,
    phase: Phase,
) -> Result<u64, T::Fault> {
    let mut expired = 0;
    for id in tx.due(phase, now_ms, request.batch).await? {
        match tx.find(id) {
            Ok(None) => {}
            Ok(Some(before)) => {
                let event = Event::Expired { now_ms };
                expired += u64::from(tx.expect_unless_damaged(&before, event)?);
            }
            Err(fault) => {
                let Some(damage) = fault.damage() else {
                    return Err(fault);
                };
                // Its expiry may be another than it seems: it is kept for as long as any task.
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

async fn remove_tombstones<T: Transaction>(
    request: &SweepRequest,
    until_ms: UnixMs,
    tx: &mut T,
) -> Result<u64, T::Fault> {
    let now_ms = tx.now().wall_ms;
    let mut removed = 0;
    for id in tx.due(Phase::Expired, until_ms, request.batch).await? {
        match tx.find(id) {
            Ok(None) => {}
            Ok(Some(before)) => {
                let event = Event::Deleted { now_ms };
                removed += u64::from(tx.expect_unless_damaged(&before, event)?);
            }
            Err(fault) if fault.damage().is_some() => {
                tx.remove_unreadable(id, None).await?;
                removed += 1;
            }
            Err(fault) => return Err(fault),
        }
    }
    Ok(removed)
}

async fn free_keys<T: Transaction>(
    request: &SweepRequest,
    until_ms: UnixMs,
    tx: &mut T,
) -> Result<u64, T::Fault> {
    let free = format!(
        "DELETE FROM idempotency WHERE (project, key) IN (SELECT project, key FROM idempotency \
         WHERE expires_at_ms <= $1 ORDER BY expires_at_ms LIMIT $2 {}) RETURNING 1",
        T::DIALECT.skip_locked()
    );
    let free = Query::new(free).bind(until_ms).bind(request.batch as u64);
    Ok(tx.write(free).await?.len() as u64)
}
