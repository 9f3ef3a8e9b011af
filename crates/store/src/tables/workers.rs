//! The table of announced workers, one row for each. In PostgreSQL their times are those of the clock
//! of leases, so a step of another clock ends no announcement. In SQLite they are wall times: the
//! rows are for commands beside the serving process, which do not know its steady clock.

use kinora_contract::UnixMs;
use serde_json::{from_str, to_string};

use crate::backend::{StoreOperation, StoreTransaction};
use crate::present_time::PresentTime;
use crate::sql::{SqlDialect, SqlQuery, SqlRow, SqlScript, TypedQuery, UnreadableValue};
use crate::{LivingWorker, WorkerAnnouncement};

/// Announces a worker for this many milliseconds, and removes expired announcements.
#[derive(Debug)]
pub(crate) struct AnnounceWorker(pub(crate) WorkerAnnouncement, pub(crate) u64);

impl StoreOperation for AnnounceWorker {
    type Output = ();

    async fn apply<T: StoreTransaction>(&self, tx: &mut T) -> Result<(), T::Fault> {
        let Self(worker, for_ms) = self;
        let now = tx.now();
        let (now_ms, over_ms) = match T::DIALECT {
            SqlDialect::Sqlite => (now.wall_ms, now.wall_ms),
            // Removed only if over by every clock that may have stamped it: after a step of the
            // server's clock, the announcements from before it would look expired or years ahead.
            SqlDialect::Postgres => (now.lease_ms, now.earliest_ms(*for_ms)),
        };
        let write = "INSERT INTO workers (id, announced, seen_ms, until_ms) VALUES ($1, $2, $3, $4) \
                     ON CONFLICT (id) DO UPDATE SET announced = excluded.announced, seen_ms = excluded.seen_ms, \
                     until_ms = excluded.until_ms RETURNING 1";
        let write = SqlQuery::new(write)
            .bind(&worker.id)
            .bind(to_string(worker)?);
        let until_ms = now_ms.saturating_add(*for_ms);
        tx.write(write.bind(now_ms).bind(until_ms)).await?;
        // Any announcement clears up: a worker that was killed withdraws nothing.
        let remove = "DELETE FROM workers WHERE until_ms <= $1 RETURNING 1";
        tx.write(SqlQuery::new(remove).bind(over_ms)).await?;
        Ok(())
    }
}

/// Ends an announcement.
#[derive(Debug)]
pub(crate) struct WithdrawWorker(pub(crate) String);

impl SqlScript for WithdrawWorker {
    type Output = ();

    fn statements(&self, _: UnixMs) -> Vec<SqlQuery> {
        vec![SqlQuery::new("DELETE FROM workers WHERE id = $1 RETURNING 1").bind(&self.0)]
    }

    fn output(&self, _: &[Vec<SqlRow>]) -> Result<(), UnreadableValue> {
        Ok(())
    }
}

/// An announcement, as it is stored.
pub(crate) struct AnnouncedWorker {
    pub(crate) id: String,
    announced: String,
    seen_ms: u64,
    until_ms: u64,
    running: u64,
}

impl AnnouncedWorker {
    /// Whether it lasts.
    pub(crate) fn is_living(&self, now: &PresentTime) -> bool {
        // Each worker announces itself for a time of its own; the row says for how long.
        let length_ms = self.until_ms.saturating_sub(self.seen_ms);
        !now.is_over(self.until_ms, length_ms)
    }
}

/// Asks for the announced workers, with the number of tasks that run under their leases.
pub(crate) fn announced(dialect: SqlDialect) -> TypedQuery<AnnouncedWorker> {
    let ask = format!(
        "SELECT w.id, w.announced, w.seen_ms, w.until_ms, coalesce(r.tasks, 0) FROM workers w \
         LEFT JOIN ({}) r ON r.worker = w.id ORDER BY w.id",
        running(dialect).query.text
    );
    TypedQuery {
        query: SqlQuery::new(ask),
        read: |row| {
            Ok(AnnouncedWorker {
                id: row.get(0)?,
                announced: row.get(1)?,
                seen_ms: row.get(2)?,
                until_ms: row.get(3)?,
                running: row.get(4)?,
            })
        },
    }
}

/// Asks for the number of running tasks of each worker.
pub(crate) fn running(dialect: SqlDialect) -> TypedQuery<(String, u64)> {
    let ask = format!(
        "SELECT worker, count(*) AS tasks FROM tasks WHERE {} AND worker IS NOT NULL GROUP BY worker",
        dialect.is_running()
    );
    TypedQuery {
        query: SqlQuery::new(ask),
        read: |row| Ok((row.get(0)?, row.get(1)?)),
    }
}

/// The live workers among those announced.
pub(crate) fn living(
    announced: Vec<AnnouncedWorker>,
    now: &PresentTime,
) -> Result<Vec<LivingWorker>, UnreadableValue> {
    let living = announced.into_iter().filter(|one| one.is_living(now));
    let living = living.map(|one| {
        Ok(LivingWorker {
            worker: from_str(&one.announced)?,
            seen_ms_ago: now.lease_ms.saturating_sub(one.seen_ms),
            running: one.running,
        })
    });
    living.collect()
}
