//! The schema: its versions, and what an opening expects of it. `migrations` makes and changes it.

use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use super::fault::told;
use super::statement::Statement;
use crate::OpenError;

/// In order; the version of a schema is how many of them it has seen.
pub(super) const MIGRATIONS: &[&str] = &[
    include_str!("../../../../migrations/postgres/0001_tasks.sql"),
    include_str!("../../../../migrations/postgres/0002_ended.sql"),
    include_str!("../../../../migrations/postgres/0003_webhooks.sql"),
    include_str!("../../../../migrations/postgres/0004_operations.sql"),
    include_str!("../../../../migrations/postgres/0005_priority.sql"),
    include_str!("../../../../migrations/postgres/0006_trace.sql"),
    include_str!("../../../../migrations/postgres/0007_vacuum.sql"),
    include_str!("../../../../migrations/postgres/0009_deliveries.sql"),
];
/// Programs that know this version or a later one can use the schema that [`MIGRATIONS`] make: migrations after it have
/// only added what earlier programs need not know (tables, columns that may be null or have a default), or changed indexes.
/// A migration that earlier programs cannot work with raises it to its own version.
pub(super) const USABLE_FROM: u32 = 1;
/// The schema that this program knows.
pub(super) fn known_version() -> u32 {
    u32::try_from(MIGRATIONS.len()).unwrap_or(u32::MAX)
}

/// Refuses a schema that this program cannot use, and a store that holds a part of another.
pub(super) async fn check(client: &Client) -> Result<(), OpenError> {
    check_version(client).await?;
    match unfinished_import(client).await? {
        Some(_) => Err(OpenError::UnfinishedImport),
        None => Ok(()),
    }
}

/// The name of the unfinished import into the store, if any.
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

/// Refuses a schema that this program cannot use: an earlier one, or a later one that requires a
/// later program.
pub(super) async fn check_version(client: &Client) -> Result<(), OpenError> {
    let Schema { found, usable_from } = read(client).await?;
    judge(found, usable_from, known_version())
}

pub(super) fn judge(found: u32, usable_from: u32, known: u32) -> Result<(), OpenError> {
    match found {
        found if found < known => Err(OpenError::Unmigrated { found, known }),
        found if found > known && usable_from > known => {
            Err(OpenError::NewerSchema { found, known })
        }
        _ => Ok(()),
    }
}

/// The version of a database's schema.
#[derive(Default)]
pub(super) struct Schema {
    /// Its version; 0 where there is none.
    pub(super) found: u32,
    /// The first version whose programs can use it.
    pub(super) usable_from: u32,
}

pub(super) async fn read(client: &Client) -> Result<Schema, OpenError> {
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
