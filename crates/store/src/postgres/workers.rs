//! Operations on the registry of workers, one row for each. Their times come from the clock that
//! judges leases, so a step of another clock ends no announcement.

use std::collections::BTreeSet;

use kinora_contract::Reading;
use serde_json::{from_str, to_string};
use tokio_postgres::Row;

use super::address::Address;
use super::batch::Batch;
use super::connect::Connector;
use super::fault::Done;
use super::job::Operation;
use super::reads::Reader;
use super::schema;
use super::statement::{Statement, ask_present, read_present};
use crate::workers::served;
use crate::{Announcement, LivingWorker, OpenError, PostgresOptions, StoreError};

/// Announces a worker for this many milliseconds, and removes expired announcements.
#[derive(Debug)]
pub(super) struct Announce(pub(super) Announcement, pub(super) u64);

impl Operation for Announce {
    type Output = ();

    async fn apply(&self, batch: &mut Batch<'_>) -> Done<()> {
        let Self(worker, for_ms) = self;
        let now_ms = batch.now.steady_ms;
        let note = "INSERT INTO workers (id, announced, seen_ms, until_ms) VALUES ($1, $2, $3, $4) \
                    ON CONFLICT (id) DO UPDATE SET announced = excluded.announced, seen_ms = excluded.seen_ms, \
                    until_ms = excluded.until_ms";
        let note = Statement::new(note).text(&*worker.id);
        let note = note.text(to_string(worker)?).int(now_ms);
        batch
            .change(note.int(now_ms.saturating_add(*for_ms)))
            .await?;
        let forget = "DELETE FROM workers WHERE until_ms <= $1";
        batch.change(Statement::new(forget).int(now_ms)).await?;
        Ok(())
    }
}

/// Ends an announcement.
#[derive(Debug)]
pub(super) struct Withdraw(pub(super) String);

impl Operation for Withdraw {
    type Output = ();

    async fn apply(&self, batch: &mut Batch<'_>) -> Done<()> {
        let forget = "DELETE FROM workers WHERE id = $1";
        batch.change(Statement::new(forget).text(&*self.0)).await?;
        Ok(())
    }
}

/// Queries the live workers, with the tasks that run under their leases.
fn ask(now: Reading) -> Statement {
    let ask = "SELECT announced, seen_ms, (SELECT count(*) FROM tasks t WHERE t.place = 4 AND t.worker = w.id) \
               FROM workers w WHERE until_ms > $1 ORDER BY id";
    Statement::new(ask).int(now.steady_ms)
}

fn read(rows: &[Row], now: Reading) -> Done<Vec<LivingWorker>> {
    let mut living = Vec::with_capacity(rows.len());
    for row in rows {
        let (seen_ms, running): (i64, i64) = (row.try_get(1)?, row.try_get(2)?);
        living.push(LivingWorker {
            worker: from_str(row.try_get(0)?)?,
            seen_ms_ago: now.steady_ms.saturating_sub(seen_ms.unsigned_abs()),
            running: running.unsigned_abs(),
        });
    }
    Ok(living)
}

/// The live workers.
pub(super) async fn living(reader: &Reader, now: Reading) -> Result<Vec<LivingWorker>, StoreError> {
    Ok(read(&reader.query(ask(now)).await?, now)?)
}

/// The live workers of the store in the database at `url`, for a command beside its processes.
pub(crate) async fn living_beside(url: &str) -> Result<Vec<LivingWorker>, OpenError> {
    let connector = Connector::of(Address::parse(url, &PostgresOptions::default())?)?;
    let client = connector.connect().await?;
    schema::check(&client).await?;
    let asked = async {
        let now = read_present(&ask_present().run(&client).await?)?;
        read(&ask(now).run(&client).await?, now)
    };
    let living: Done<_> = asked.await;
    living.map_err(|fault| OpenError::Unavailable(StoreError::from(fault).into()))
}

/// The models of the workers that claim.
pub(super) async fn served_models(
    reader: &Reader,
    now: Reading,
) -> Result<BTreeSet<String>, StoreError> {
    let living = living(reader, now).await?;
    Ok(served(living.iter().map(|one| &one.worker)))
}
