//! The registry of workers. The serving process answers from memory; rows are for commands beside
//! it, and are written only when an announcement has changed or the row is old, so that an idle
//! service rarely writes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kinora_contract::UnixMs;
use rusqlite::{Connection, params};
use serde_json::{from_str, to_string};

use super::batch::Batch;
use super::fault::Done;
use super::job::WriterStep;
use super::rows::int;
use crate::workers::served;
use crate::{Announcement, LivingWorker};

/// The next renewal rewrites a row older than this.
const ROW_AGE_MAX: Duration = Duration::from_secs(10);

/// The workers known to the serving process.
#[derive(Debug, Default)]
pub(super) struct Registry {
    workers: Mutex<BTreeMap<String, Announced>>,
}

/// A worker, with times of the store's steady clock.
#[derive(Debug)]
struct Announced {
    worker: Announcement,
    seen: Duration,
    until: Duration,
    /// When this announcement was written to its row.
    written: Option<Duration>,
}

impl Registry {
    /// Records an announcement; returns whether to write its row.
    pub(super) fn announce(&self, worker: &Announcement, length: Duration, now: Duration) -> bool {
        let mut workers = self.lock();
        workers.retain(|_, one| now < one.until);
        let before = workers.remove(&worker.id);
        let unchanged = before.filter(|before| before.worker == *worker);
        let written = unchanged
            .and_then(|before| before.written)
            .filter(|written| now.saturating_sub(*written) < ROW_AGE_MAX);
        let announced = Announced {
            worker: worker.clone(),
            seen: now,
            until: now.saturating_add(length),
            written,
        };
        workers.insert(worker.id.clone(), announced);
        written.is_none()
    }

    /// Records that the row was written.
    pub(super) fn note_written(&self, id: &str, now: Duration) {
        if let Some(one) = self.lock().get_mut(id) {
            one.written = Some(now);
        }
    }

    pub(super) fn withdraw(&self, id: &str) {
        self.lock().remove(id);
    }

    pub(super) fn living(
        &self,
        now: Duration,
        running: &BTreeMap<String, u64>,
    ) -> Vec<LivingWorker> {
        let workers = self.lock();
        let living = workers.values().filter(|one| now < one.until);
        let living = living.map(|one| LivingWorker {
            worker: one.worker.clone(),
            seen_ms_ago: millis(now.saturating_sub(one.seen)),
            running: running.get(&one.worker.id).copied().unwrap_or(0),
        });
        living.collect()
    }

    pub(super) fn served_models(&self, now: Duration) -> BTreeSet<String> {
        let workers = self.lock();
        let living = workers.values().filter(|one| now < one.until);
        served(living.map(|one| &one.worker))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Announced>> {
        self.workers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// Writes the row of a worker.
#[derive(Debug)]
pub(super) struct WriteRow {
    pub(super) worker: Announcement,
    pub(super) for_ms: u64,
}

impl WriterStep for WriteRow {
    type Output = ();

    fn apply(&self, batch: &mut Batch<'_>) -> Done<()> {
        let seen_ms = batch.now.wall_ms;
        // The row is rewritten only when it is old.
        let until_ms = seen_ms
            .saturating_add(self.for_ms)
            .saturating_add(millis(ROW_AGE_MAX));
        let mut query = batch.conn.prepare_cached(
            "INSERT OR REPLACE INTO workers (id, announced, seen_ms, until_ms) VALUES (?1, ?2, ?3, ?4)",
        )?;
        let announced = to_string(&self.worker)?;
        query.execute(params![
            self.worker.id,
            announced,
            int(seen_ms),
            int(until_ms)
        ])?;
        Ok(())
    }
}

/// Removes the row of a worker.
#[derive(Debug)]
pub(super) struct RemoveRow(pub(super) String);

impl WriterStep for RemoveRow {
    type Output = ();

    fn apply(&self, batch: &mut Batch<'_>) -> Done<()> {
        let mut query = batch
            .conn
            .prepare_cached("DELETE FROM workers WHERE id = ?1")?;
        query.execute([&self.0])?;
        Ok(())
    }
}

/// Removes the rows of an earlier serving process. A full disk must not prevent opening: the rows
/// expire.
pub(super) fn forget(conn: &Connection) {
    if let Err(error) = conn.execute("DELETE FROM workers", []) {
        tracing::debug!(%error, "rows of earlier workers not removed yet");
    }
}

/// Running tasks by their worker.
pub(super) fn running(conn: &Connection) -> Done<BTreeMap<String, u64>> {
    // The first condition matches the index of unfinished tasks.
    let mut query = conn.prepare_cached(
        "SELECT worker, count(*) FROM tasks \
         WHERE phase IN ('waiting', 'running') AND phase = 'running' AND worker IS NOT NULL GROUP BY worker",
    )?;
    let counted = query.query_map([], |row| {
        Ok((row.get(0)?, row.get::<_, i64>(1)?.unsigned_abs()))
    })?;
    Ok(counted.collect::<Result<_, _>>()?)
}

/// The live workers according to their rows.
pub(super) fn written(conn: &Connection, now_ms: UnixMs) -> Done<Vec<LivingWorker>> {
    let running = running(conn)?;
    let mut query = conn
        .prepare_cached("SELECT announced, seen_ms FROM workers WHERE until_ms > ?1 ORDER BY id")?;
    let rows = query.query_map([int(now_ms)], |row| {
        Ok((
            row.get::<_, String>(0)?,
            row.get::<_, i64>(1)?.unsigned_abs(),
        ))
    })?;
    let mut living = Vec::new();
    for row in rows {
        let (announced, seen_ms) = row?;
        let worker: Announcement = from_str(&announced)?;
        living.push(LivingWorker {
            seen_ms_ago: now_ms.saturating_sub(seen_ms),
            running: running.get(&worker.id).copied().unwrap_or(0),
            worker,
        });
    }
    Ok(living)
}
