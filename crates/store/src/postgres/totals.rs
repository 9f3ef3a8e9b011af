//! Sums over all projects: exact, or a second old, as configured.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kinora_contract::Clock;
use tokio_postgres::Row;

use super::statement::Statement;

/// Waiting tasks and stored bytes, of all projects.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Totals {
    pub(super) waiting: u64,
    pub(super) bytes: u64,
}

impl Totals {
    pub(super) const fn add(&mut self, waiting: i64, bytes: i64) {
        self.waiting = self.waiting.saturating_add_signed(waiting);
        self.bytes = self.bytes.saturating_add_signed(bytes);
    }
}

/// The last sums read.
#[derive(Debug)]
pub(super) struct Summed {
    clock: Arc<dyn Clock>,
    age_max: Duration,
    last: Mutex<Last>,
}

#[derive(Debug, Default)]
struct Last {
    totals: Totals,
    /// Time of the reading, by the process's steady clock.
    read: Option<Duration>,
}

impl Summed {
    pub(super) fn new(clock: Arc<dyn Clock>, age_ms_max: u64) -> Self {
        Self {
            clock,
            age_max: Duration::from_millis(age_ms_max),
            last: Mutex::default(),
        }
    }

    /// The sums, if they are recent enough.
    pub(super) fn fresh(&self) -> Option<Totals> {
        let last = self.last();
        let is_fresh = |read: Duration| self.clock.steady().saturating_sub(read) < self.age_max;
        last.read.is_some_and(is_fresh).then_some(last.totals)
    }

    /// Queries them.
    pub(super) fn ask() -> Statement {
        Statement::new(
            "SELECT coalesce(sum(waiting), 0)::bigint, coalesce(sum(bytes), 0)::bigint FROM projects",
        )
    }

    /// Keeps the answer.
    pub(super) fn keep(&self, row: &Row) -> Result<Totals, tokio_postgres::Error> {
        let totals = Totals {
            waiting: row.try_get::<_, i64>(0)?.unsigned_abs(),
            bytes: row.try_get::<_, i64>(1)?.unsigned_abs(),
        };
        *self.last() = Last {
            totals,
            read: Some(self.clock.steady()),
        };
        Ok(totals)
    }

    /// Adds a commit of this process.
    pub(super) fn follow(&self, waiting: i64, bytes: i64) {
        self.last().totals.add(waiting, bytes);
    }

    fn last(&self) -> MutexGuard<'_, Last> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
