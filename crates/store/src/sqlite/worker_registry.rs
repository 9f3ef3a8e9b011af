//! The registry of workers. The serving process answers from memory; rows are for commands beside
//! it, and are written only when an announcement has changed or the row is old, so that an idle
//! service rarely writes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::Connection;

use crate::workers::served;
use crate::{LivingWorker, WorkerAnnouncement};

/// The next renewal rewrites a row older than this, so that rows last this much longer than announcements.
pub(super) const ROW_AGE_MAX: Duration = Duration::from_secs(10);

/// The workers known to the serving process.
#[derive(Debug, Default)]
pub(super) struct WorkerRegistry {
    workers: Mutex<BTreeMap<String, RegisteredWorker>>,
}

/// A worker, with times of the store's steady clock.
#[derive(Debug)]
struct RegisteredWorker {
    worker: WorkerAnnouncement,
    seen: Duration,
    until: Duration,
    /// When this announcement was written to its row.
    written: Option<Duration>,
}

impl WorkerRegistry {
    /// Records an announcement; returns whether to write its row.
    pub(super) fn announce(
        &self,
        worker: &WorkerAnnouncement,
        length: Duration,
        now: Duration,
    ) -> bool {
        let mut workers = self.lock();
        // Here rather than in a sweep: only announcements make the registry grow.
        workers.retain(|_, one| now < one.until);
        let before = workers.remove(&worker.id);
        // A row of the same contents that is still young need not be written again. Example: a worker
        // announces itself every 5 s for 20 s each; its row lasts 30 s and is written every 10 s.
        let unchanged = before.filter(|before| before.worker == *worker);
        let written = unchanged
            .and_then(|before| before.written)
            .filter(|written| now.saturating_sub(*written) < ROW_AGE_MAX);
        let announced = RegisteredWorker {
            worker: worker.clone(),
            seen: now,
            until: now.saturating_add(length),
            written,
        };
        workers.insert(worker.id.clone(), announced);
        written.is_none()
    }

    /// Records that the row was written.
    pub(super) fn record_written(&self, id: &str, now: Duration) {
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

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, RegisteredWorker>> {
        self.workers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// Removes the rows of an earlier serving process. A full disk must not prevent opening: the rows
/// expire.
pub(super) fn delete_rows(conn: &Connection) {
    if let Err(error) = conn.execute("DELETE FROM workers", []) {
        tracing::debug!(%error, "rows of earlier workers not removed yet");
    }
}
