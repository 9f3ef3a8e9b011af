//! The state of a store after opening: the queue and the cache of unfinished tasks. The lock on the
//! file proves that the former workers are dead, so their leases end immediately.

use std::sync::Arc;

use kinora_contract::ClockReading;
use kinora_contract::lifecycle::{DeathVerdict, TaskEvent, TaskRecord};
use rusqlite::Connection;

use super::fault::{SqliteFault, SqliteResult};
use super::memory::StoreMemory;
use super::rows;
use super::rows::{COLUMNS, to_sql_int};
use super::transaction::{UndoPoint, WriterState, WriterTransaction};
use crate::queue::RecordChange;
use crate::queue::claiming::WorkerRuns;
use crate::tasks::UsageSums;
use crate::{ReleasedAttempt, SqliteOptions};

/// Larger numbers are never reached by counting, so a damaged one is found before it is used.
const NUMBER_MAX: u64 = 1 << 62;

/// Reads the unfinished tasks, requeues those that were running, and publishes them to `memory`.
pub(super) fn recover(
    conn: &mut Connection,
    memory: &StoreMemory,
    options: &SqliteOptions,
    now: ClockReading,
) -> SqliteResult<WriterState> {
    let mut state = WriterState {
        usages: UsageSums::from_iter(rows::usages(conn)?),
        ..WriterState::default()
    };
    state.changes = plausible_counter(conn, "changes")?;
    state.seq = conn.query_row("SELECT coalesce(max(seq), 0) FROM tasks", [], |row| {
        row.get::<_, i64>(0).map(i64::unsigned_abs)
    })?;
    if state.seq > NUMBER_MAX {
        return Err(SqliteFault::Corrupt(
            "a task's place is out of its range".to_owned(),
        ));
    }
    let unfinished = unfinished(conn)?;
    state.token = first_token(conn, &unfinished, options.token_stride)?;
    let changes: Vec<RecordChange> = unfinished
        .into_iter()
        .map(|record| RecordChange {
            id: record.task.id,
            before: None,
            after: Some(record),
        })
        .collect();
    // Published twice: first as found, so that the requeued ones are changes of known tasks.
    changes.iter().for_each(|change| state.queue.apply(change));
    memory.publish(changes);
    memory.publish(requeue(conn, &mut state, options.attempts_max, now)?);
    Ok(state)
}

/// Past all tokens that this store has issued, by a stride that differs at each opening: copies of
/// a store never use the same ones, nor the same file keys.
fn first_token(
    conn: &Connection,
    unfinished: &[Arc<TaskRecord>],
    stride: u64,
) -> SqliteResult<u64> {
    let counted = plausible_counter(conn, "token")?;
    // Normally the counter is at least as high as every lease: both are written in one transaction.
    // If not, the file is damaged, and going on from the counter would repeat tokens.
    let held = unfinished.iter().filter_map(|record| record.token()).max();
    let held = held.unwrap_or(0);
    if held > counted {
        tracing::error!(
            counted,
            held,
            "token counter damaged: behind a lease; raised it"
        );
    }
    Ok(counted.max(held).saturating_add(stride))
}

/// One of the counters, if its value is plausible.
fn plausible_counter(conn: &Connection, name: &str) -> SqliteResult<u64> {
    let value = rows::counter(conn, name)?;
    if value > NUMBER_MAX {
        return Err(SqliteFault::Corrupt(format!(
            "the counter {name} is out of its range"
        )));
    }
    Ok(value)
}

fn unfinished(conn: &Connection) -> SqliteResult<Vec<Arc<TaskRecord>>> {
    let mut query = conn.prepare(&format!(
        "SELECT {COLUMNS} FROM tasks WHERE phase IN ('waiting', 'running') ORDER BY seq"
    ))?;
    let mut found = query.query([])?;
    let mut records = Vec::new();
    while let Some(row) = found.next()? {
        match rows::read(row) {
            Ok(record) => records.push(Arc::new(record)),
            Err(SqliteFault::Corrupt(error)) => {
                tracing::error!(error, "unreadable task skipped");
            }
            Err(fault) => return Err(fault),
        }
    }
    Ok(records)
}

fn requeue(
    conn: &mut Connection,
    state: &mut WriterState,
    attempts_max: u32,
    now: ClockReading,
) -> SqliteResult<Vec<RecordChange>> {
    let running: Vec<Arc<TaskRecord>> = state.queue.running().cloned().collect();
    conn.execute_batch("BEGIN IMMEDIATE")?;
    let is_copy = is_copy(conn);
    let mut batch = WriterTransaction::new(conn, state, now);
    // The number of tasks that ran together decides whose fault the death was. A task that ran alone in
    // its last attempt is the culprit; of several, any may be, so all get another attempt.
    let company = WorkerRuns::from_running(batch.queue().running().map(|record| &**record));
    let requeued = running
        .iter()
        .try_for_each(|record| {
            let verdict = company.evaluate(record, attempts_max);
            let requeued = batch.run_in_savepoint(|batch| {
                if is_copy {
                    batch.expect(record, release_event(record)).map(|_| ())
                } else {
                    requeue_one(batch, record, verdict)
                }
            });
            requeued.map(|_| ())
        })
        .and_then(|()| end_leases(batch.conn))
        .and_then(|()| batch.write_effects())
        .and_then(|()| Ok(batch.conn.execute_batch("COMMIT")?));
    let Err(fault) = requeued else {
        return Ok(batch.into_changes());
    };
    // A full disk must not prevent serving: leases of another process are over anyway.
    tracing::warn!(%fault, "tasks of a dead process not requeued yet; the first sweep will do it");
    batch.undo_to(UndoPoint::default());
    if !batch.conn.is_autocommit() {
        batch.conn.execute_batch("ROLLBACK")?;
    }
    Ok(Vec::new())
}

/// Ends the leases of earlier processes, which are dead, and the pauses of chores.
fn end_leases(conn: &Connection) -> SqliteResult<()> {
    let end = "UPDATE deliveries SET due_ms = 0, token = NULL WHERE token IS NOT NULL; \
               UPDATE chores SET due_ms = 0, token = NULL WHERE due_ms <> 0 OR token IS NOT NULL";
    Ok(conn.execute_batch(end)?)
}

/// The event for a running task in a copy of a store. The task continues elsewhere, or ended later: no
/// worker died, so the attempt does not count.
fn release_event(record: &TaskRecord) -> TaskEvent {
    TaskEvent::Released {
        token: record.token().unwrap_or(0),
        attempt: ReleasedAttempt::Forgiven,
    }
}

fn requeue_one(
    batch: &mut WriterTransaction<'_>,
    record: &Arc<TaskRecord>,
    verdict: DeathVerdict,
) -> SqliteResult<()> {
    if verdict == DeathVerdict::Lost {
        // The sweep, which knows the time, ends it.
        return batch.mark_lost(record);
    }
    let lost = TaskEvent::WorkerLost {
        verdict,
        now_ms: 0,
        retention_ms: 0,
    };
    batch.expect(record, lost).map(|_| ())
}

/// Values of the counter `in_use`, which is 0 after a clean stop.
const IN_USE: u64 = 1;
const COPIED: u64 = 2;

/// Marks the store as in use; returns how many starts in a row, including this one, followed a
/// death.
pub(super) fn record_start(conn: &Connection) -> u64 {
    // Unreadable counters count as a clean stop: they must not keep a service from starting.
    let unclean = match rows::counter(conn, "in_use") {
        Ok(IN_USE) => {
            let before = rows::counter(conn, "unclean_starts").unwrap_or(0);
            before.saturating_add(1)
        }
        _ => 0,
    };
    if let Err(fault) = write_start(conn, unclean) {
        tracing::warn!(%fault, "start not recorded in the store");
    }
    unclean
}

fn write_start(conn: &Connection, unclean: u64) -> SqliteResult<()> {
    let transaction = conn.unchecked_transaction()?;
    rows::set_counter(conn, "in_use", IN_USE)?;
    rows::set_counter(conn, "unclean_starts", unclean)?;
    Ok(transaction.commit()?)
}

/// Whether this is a copy of a store that was in use: its running tasks continue elsewhere, or
/// ended later. No worker died.
fn is_copy(conn: &Connection) -> bool {
    rows::counter(conn, "in_use").is_ok_and(|value| value == COPIED)
}

/// Marks a copy of a store as a copy.
pub(super) fn mark_copy(copy: &Connection) -> SqliteResult<()> {
    let mut query = copy.prepare("UPDATE counters SET value = ?1 WHERE name = 'in_use'")?;
    query.execute([to_sql_int(COPIED)])?;
    Ok(())
}

/// Records a clean end.
pub(super) fn record_clean_stop(conn: &Connection) {
    if let Err(fault) = rows::set_counter(conn, "in_use", 0) {
        tracing::warn!(%fault, "stop not recorded in the store; the next start will count as one after a crash");
    }
}
