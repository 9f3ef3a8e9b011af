//! Operations on the registry of workers, one row for each. Their times come from the clock that
//! judges leases, so a step of another clock ends no announcement.

use std::collections::{BTreeSet, HashSet};

use async_trait::async_trait;
use kinora_contract::Reading;
use serde_json::{from_str, to_string};
use tokio_postgres::Row;

use super::PostgresStore;
use super::address::Address;
use super::batch::Batch;
use super::connect::Connector;
use super::fault::Done;
use super::lane::LaneStep;
use super::reads::Reader;
use super::schema;
use super::statement::{Statement, ask_present, read_present};
use crate::present::Present;
use crate::workers::served;
use crate::{Announcement, LivingWorker, OpenError, PostgresOptions, StoreError, Workers};

/// Announces a worker for this many milliseconds, and removes expired announcements.
#[derive(Debug)]
struct Announce(pub(super) Announcement, pub(super) u64);

impl LaneStep for Announce {
    type Output = ();

    async fn apply(&self, batch: &mut Batch<'_>) -> Done<()> {
        let Self(worker, for_ms) = self;
        let now_ms = batch.now.lease_ms;
        let note = "INSERT INTO workers (id, announced, seen_ms, until_ms) VALUES ($1, $2, $3, $4) \
                    ON CONFLICT (id) DO UPDATE SET announced = excluded.announced, seen_ms = excluded.seen_ms, \
                    until_ms = excluded.until_ms";
        let note = Statement::new(note).text(&*worker.id);
        let note = note.text(to_string(worker)?).int(now_ms);
        batch
            .change(note.int(now_ms.saturating_add(*for_ms)))
            .await?;
        let forget = "DELETE FROM workers WHERE until_ms <= $1";
        let over_ms = batch.now.earliest_ms(*for_ms);
        batch.change(Statement::new(forget).int(over_ms)).await?;
        Ok(())
    }
}

/// Ends an announcement.
#[derive(Debug)]
struct Withdraw(pub(super) String);

impl LaneStep for Withdraw {
    type Output = ();

    async fn apply(&self, batch: &mut Batch<'_>) -> Done<()> {
        let forget = "DELETE FROM workers WHERE id = $1";
        batch.change(Statement::new(forget).text(&*self.0)).await?;
        Ok(())
    }
}

/// Queries the announced workers, with the tasks that run under their leases.
fn ask() -> Statement {
    Statement::new(
        "SELECT seen_ms, until_ms, announced, \
         (SELECT count(*) FROM tasks t WHERE t.place = 4 AND t.worker = w.id) FROM workers w ORDER BY id",
    )
}

/// Those of them that live.
fn read(rows: &[Row], now: &Present) -> Done<Vec<LivingWorker>> {
    let mut living = Vec::with_capacity(rows.len());
    for row in rows {
        if !is_living(row, now)? {
            continue;
        }
        let (seen_ms, running): (i64, i64) = (row.try_get(0)?, row.try_get(3)?);
        living.push(LivingWorker {
            worker: from_str(row.try_get(2)?)?,
            seen_ms_ago: now.lease_ms.saturating_sub(seen_ms.unsigned_abs()),
            running: running.unsigned_abs(),
        });
    }
    Ok(living)
}

/// Whether an announcement from `seen_ms` to `until_ms`, the first two columns, lasts.
fn is_living(row: &Row, now: &Present) -> Done<bool> {
    let (seen_ms, until_ms): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
    let length_ms = until_ms.saturating_sub(seen_ms).unsigned_abs();
    Ok(!now.is_over(until_ms.unsigned_abs(), length_ms))
}

/// Names of the live workers.
pub(super) async fn living_names(batch: &Batch<'_>) -> Done<HashSet<String>> {
    let ask = Statement::new("SELECT seen_ms, until_ms, id FROM workers");
    let mut names = HashSet::new();
    for row in batch.query(ask).await? {
        if is_living(&row, &batch.now)? {
            names.insert(row.try_get(2)?);
        }
    }
    Ok(names)
}

/// The live workers.
pub(super) async fn living(
    reader: &Reader,
    now: &Present,
) -> Result<Vec<LivingWorker>, StoreError> {
    Ok(read(&reader.query(ask()).await?, now)?)
}

/// The live workers of the store in the database at `url`, for a command beside its processes.
pub(crate) async fn living_beside(url: &str) -> Result<Vec<LivingWorker>, OpenError> {
    let connector = Connector::of(Address::parse(url, &PostgresOptions::default())?)?;
    let client = connector.connect().await?;
    schema::check(&client).await?;
    let asked = async {
        let now = Reading {
            wall_ms: read_present(&ask_present().run(&client).await?)?,
            steady_ms: 0,
        };
        let now = Present::of_server(now, Vec::new());
        read(&ask().run(&client).await?, &now)
    };
    let living: Done<_> = asked.await;
    living.map_err(|fault| OpenError::Unavailable(StoreError::from(fault).into()))
}

/// The models of the workers that claim.
async fn served_models(reader: &Reader, now: &Present) -> Result<BTreeSet<String>, StoreError> {
    let living = living(reader, now).await?;
    Ok(served(living.iter().map(|one| &one.worker)))
}

#[async_trait]
impl Workers for PostgresStore {
    async fn announce(&self, worker: &Announcement, for_ms: u64) -> Result<(), StoreError> {
        self.acts.call(Announce(worker.clone(), for_ms)).await
    }

    async fn withdraw(&self, id: &str) -> Result<(), StoreError> {
        self.acts.call(Withdraw(id.to_owned())).await
    }

    async fn living(&self) -> Result<Vec<LivingWorker>, StoreError> {
        living(&self.reader, &self.reader.present().await?).await
    }

    async fn served_models(&self) -> Result<BTreeSet<String>, StoreError> {
        served_models(&self.reader, &self.reader.present().await?).await
    }
}
