//! Sums over all projects: exact, or a second old, as configured.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kinora_contract::Clock;
use tokio_postgres::Row;

use super::statement::Statement;
use crate::Gap;

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

/// The last sums read, and the gap since the last opening.
#[derive(Debug)]
pub(super) struct Summed {
    clock: Arc<dyn Clock>,
    age_max: Duration,
    last: Mutex<Last>,
}

#[derive(Debug, Default)]
struct Last {
    totals: Totals,
    gap: Option<Gap>,
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

    /// The sums and the gap, if they are recent enough.
    pub(super) fn fresh(&self) -> Option<(Totals, Option<Gap>)> {
        let last = self.last();
        let is_fresh = |read: Duration| self.clock.steady().saturating_sub(read) < self.age_max;
        last.read
            .is_some_and(is_fresh)
            .then_some((last.totals, last.gap))
    }

    /// Queries both.
    pub(super) fn ask() -> Statement {
        Statement::new(
            "SELECT coalesce(sum(waiting), 0)::bigint, coalesce(sum(bytes), 0)::bigint, \
             (SELECT after_ms FROM gaps WHERE current), (SELECT before_ms FROM gaps WHERE current) FROM projects",
        )
    }

    /// Keeps the answer.
    pub(super) fn keep(&self, row: &Row) -> Result<(Totals, Option<Gap>), tokio_postgres::Error> {
        let number = |at: usize| -> Result<Option<u64>, tokio_postgres::Error> {
            let value: Option<i64> = row.try_get(at)?;
            Ok(value.map(i64::unsigned_abs))
        };
        let totals = Totals {
            waiting: number(0)?.unwrap_or(0),
            bytes: number(1)?.unwrap_or(0),
        };
        let gap = number(2)?.zip(number(3)?).map(|(after_ms, before_ms)| Gap {
            after_ms,
            before_ms,
        });
        *self.last() = Last {
            totals,
            gap,
            read: Some(self.clock.steady()),
        };
        Ok((totals, gap))
    }

    /// Adds a commit of this process.
    pub(super) fn follow(&self, waiting: i64, bytes: i64) {
        self.last().totals.add(waiting, bytes);
    }

    fn last(&self) -> MutexGuard<'_, Last> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
