//! The schema: its migrations, and what an opening expects of it.

use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use super::connect::Connector;
use super::fault::told;
use super::statement::Statement;
use crate::OpenError;

/// In order; the version of a schema is how many of them it has seen.
const MIGRATIONS: &[&str] = &[include_str!(
    "../../../../migrations/postgres/0001_tasks.sql"
)];
/// One process migrates at a time: a lock of the transaction with this number, which is ours.
const LOCK: i64 = 0x6b69_6e6f_7261;

/// The schema that this program knows.
pub(super) fn known_version() -> u32 {
    u32::try_from(MIGRATIONS.len()).unwrap_or(u32::MAX)
}

/// Brings the schema up to date, in one transaction. Returns the version before and after.
pub(super) async fn migrate(connector: &Connector) -> Result<(u32, u32), OpenError> {
    let client = connector.connect().await.map_err(unavailable)?;
    let begin = format!("BEGIN; SELECT pg_advisory_xact_lock({LOCK})");
    client.batch_execute(&begin).await.map_err(unavailable)?;
    let make = "CREATE TABLE IF NOT EXISTS schema_version (version bigint NOT NULL)";
    client.batch_execute(make).await.map_err(unavailable)?;
    let (found, known) = (version(&client).await?.unwrap_or(0), known_version());
    if found > known {
        return Err(OpenError::NewerSchema { found, known });
    }
    for migration in MIGRATIONS.iter().skip(found as usize) {
        client.batch_execute(migration).await.map_err(unavailable)?;
    }
    let note =
        format!("DELETE FROM schema_version; INSERT INTO schema_version VALUES ({known}); COMMIT");
    client.batch_execute(&note).await.map_err(unavailable)?;
    Ok((found, known))
}

/// Refuses any schema but the known one.
pub(super) async fn check(client: &Client) -> Result<(), OpenError> {
    let known = known_version();
    match version(client).await?.unwrap_or(0) {
        found if found > known => Err(OpenError::NewerSchema { found, known }),
        found if found < known => Err(OpenError::Unmigrated { found, known }),
        _ => Ok(()),
    }
}

/// `None` where there is no schema at all.
async fn version(client: &Client) -> Result<Option<u32>, OpenError> {
    let found = Statement::new("SELECT version FROM schema_version")
        .run(client)
        .await;
    let rows = match found {
        Err(error) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => return Ok(None),
        found => found.map_err(unavailable)?,
    };
    let version = rows.first().map(|row| row.try_get::<_, i64>(0)).transpose();
    let version = version.map_err(unavailable)?;
    Ok(version.map(|version| u32::try_from(version).unwrap_or(u32::MAX)))
}

#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
pub(super) fn unavailable(error: tokio_postgres::Error) -> OpenError {
    OpenError::Unavailable(told(&error).into())
}
