//! The schema: its migrations, and what an opening expects of it.

use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use super::connect::Connector;
use super::fault::told;
use super::statement::Statement;
use crate::OpenError;

/// In order; the version of a schema is how many of them it has seen.
const MIGRATIONS: &[&str] = &[
    include_str!("../../../../migrations/postgres/0001_tasks.sql"),
    include_str!("../../../../migrations/postgres/0002_ended.sql"),
    include_str!("../../../../migrations/postgres/0003_webhooks.sql"),
    include_str!("../../../../migrations/postgres/0004_operations.sql"),
    include_str!("../../../../migrations/postgres/0005_priority.sql"),
    include_str!("../../../../migrations/postgres/0006_trace.sql"),
];
/// Programs that know this version or a later one can use the schema that [`MIGRATIONS`] make: migrations after it have
/// only added what earlier programs need not know (tables, columns that may be null or have a default), or changed indexes.
/// A migration that earlier programs cannot work with raises it to its own version.
const USABLE_FROM: u32 = 1;
/// One process migrates at a time: a lock of the transaction with this number, which is ours.
const LOCK: i64 = 0x6b69_6e6f_7261;

/// The schema that this program knows.
pub(super) fn known_version() -> u32 {
    u32::try_from(MIGRATIONS.len()).unwrap_or(u32::MAX)
}

/// Brings the schema up to date, in one transaction. Returns the version before and after.
pub(super) async fn migrate(connector: &Connector) -> Result<(u32, u32), OpenError> {
    let client = connector.connect().await?;
    let begin = format!("BEGIN; SELECT pg_advisory_xact_lock({LOCK})");
    client.batch_execute(&begin).await.map_err(unavailable)?;
    let make = "CREATE TABLE IF NOT EXISTS schema_version (version bigint NOT NULL); \
                ALTER TABLE schema_version ADD COLUMN IF NOT EXISTS usable_from bigint NOT NULL DEFAULT 1";
    client.batch_execute(make).await.map_err(unavailable)?;
    let Schema { found, usable_from } = read(&client).await?;
    let known = known_version();
    if found > known {
        // By a later program: nothing is left to do.
        return judge(found, usable_from, known).map(|()| (found, found));
    }
    for migration in MIGRATIONS.iter().skip(found as usize) {
        client.batch_execute(migration).await.map_err(unavailable)?;
    }
    let note = format!(
        "DELETE FROM schema_version; \
         INSERT INTO schema_version (version, usable_from) VALUES ({known}, {USABLE_FROM}); COMMIT"
    );
    client.batch_execute(&note).await.map_err(unavailable)?;
    Ok((found, known))
}

/// Refuses a schema that this program cannot use, and a store that holds a part of another.
pub(super) async fn check(client: &Client) -> Result<(), OpenError> {
    check_version(client).await?;
    match unfinished_import(client).await? {
        Some(_) => Err(OpenError::UnfinishedImport),
        None => Ok(()),
    }
}

/// The name of the export that is being brought into the store, if that has not ended.
pub(super) async fn unfinished_import(client: &Client) -> Result<Option<String>, OpenError> {
    let there = Statement::new("SELECT 1 WHERE to_regclass('unfinished_import') IS NOT NULL");
    if there.run(client).await.map_err(unavailable)?.is_empty() {
        return Ok(None);
    }
    let found = Statement::new("SELECT export FROM unfinished_import");
    let found = found.run(client).await.map_err(unavailable)?;
    let name = found.first().map(|row| row.try_get(0)).transpose();
    name.map_err(unavailable)
}

/// Refuses a schema that this program cannot use: an earlier one, and a later one that says so.
pub(super) async fn check_version(client: &Client) -> Result<(), OpenError> {
    let Schema { found, usable_from } = read(client).await?;
    judge(found, usable_from, known_version())
}

fn judge(found: u32, usable_from: u32, known: u32) -> Result<(), OpenError> {
    match found {
        found if found < known => Err(OpenError::Unmigrated { found, known }),
        found if found > known && usable_from > known => {
            Err(OpenError::NewerSchema { found, known })
        }
        _ => Ok(()),
    }
}

/// What a database says of its schema.
#[derive(Default)]
struct Schema {
    /// Its version; 0 where there is none.
    found: u32,
    /// The first version whose programs can use it.
    usable_from: u32,
}

async fn read(client: &Client) -> Result<Schema, OpenError> {
    let found = Statement::new("SELECT version, usable_from FROM schema_version")
        .run(client)
        .await;
    let rows = match found {
        Err(error) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => {
            return Ok(Schema::default());
        }
        found => found.map_err(unavailable)?,
    };
    let Some(row) = rows.first() else {
        return Ok(Schema::default());
    };
    let number = |column: usize| {
        let number: i64 = row.try_get(column).map_err(unavailable)?;
        Ok::<_, OpenError>(u32::try_from(number).unwrap_or(u32::MAX))
    };
    Ok(Schema {
        found: number(0)?,
        usable_from: number(1)?,
    })
}

#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
pub(super) fn unavailable(error: tokio_postgres::Error) -> OpenError {
    OpenError::Unavailable(told(&error).into())
}
