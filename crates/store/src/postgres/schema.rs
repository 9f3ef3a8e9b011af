//! The schema and its migrations. Opening a store only checks the version; `kinora migrate` changes the
//! tables while processes of earlier versions use them. It never waits long for a lock: it gives up,
//! lets the others pass and tries again, and builds indexes of large tables concurrently.

use std::time::Duration;

use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Error, SimpleQueryMessage};

use super::connect::ServerConnector;
use super::fault::message_of;
use super::session::{BEGIN, SYNCED, SqlStatement};
use crate::OpenError;

/// The migrations in order; the version of a schema is the number of those applied.
const MIGRATIONS: &[&str] = &[
    include_str!("../../../../migrations/postgres/0001_tasks.sql"),
    include_str!("../../../../migrations/postgres/0002_ended.sql"),
    include_str!("../../../../migrations/postgres/0003_webhooks.sql"),
    include_str!("../../../../migrations/postgres/0004_operations.sql"),
    include_str!("../../../../migrations/postgres/0005_priority.sql"),
    include_str!("../../../../migrations/postgres/0006_trace.sql"),
    include_str!("../../../../migrations/postgres/0007_vacuum.sql"),
    include_str!("../../../../migrations/postgres/0009_deliveries.sql"),
    include_str!("../../../../migrations/postgres/0010_uploads.sql"),
    include_str!("../../../../migrations/postgres/0011_pauses.sql"),
    include_str!("../../../../migrations/postgres/0012_money.sql"),
];
/// The first version whose programs can use the schema that [`MIGRATIONS`] make. Later migrations have only
/// changed indexes, or added tables and columns (nullable or with a default) that earlier programs need not
/// know. A migration that earlier programs cannot work with raises this to its own version.
const USABLE_FROM: u32 = 1;
/// The schema that this program knows.
fn known_version() -> u32 {
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
    let there = SqlStatement::new("SELECT 1 WHERE to_regclass('unfinished_import') IS NOT NULL");
    if there.run(client).await.map_err(unavailable)?.is_empty() {
        return Ok(None);
    }
    let found = SqlStatement::new("SELECT export FROM unfinished_import");
    let found = found.run(client).await.map_err(unavailable)?;
    let name = found.first().map(|row| row.try_get(0)).transpose();
    name.map_err(unavailable)
}

/// Refuses a schema that this program cannot use: an earlier one, or a later one that requires a
/// later program.
pub(super) async fn check_version(client: &Client) -> Result<(), OpenError> {
    let SchemaState { found, usable_from } = read(client).await?;
    check_usable(found, usable_from, known_version())
}

fn check_usable(found: u32, usable_from: u32, known: u32) -> Result<(), OpenError> {
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
struct SchemaState {
    /// The version; 0 without a schema.
    found: u32,
    /// The first version whose programs can use it.
    usable_from: u32,
}

async fn read(client: &Client) -> Result<SchemaState, OpenError> {
    let found = SqlStatement::new("SELECT version, usable_from FROM schema_version")
        .run(client)
        .await;
    let rows = match found {
        Err(error) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => {
            return Ok(SchemaState::default());
        }
        found => found.map_err(unavailable)?,
    };
    let Some(row) = rows.first() else {
        return Ok(SchemaState::default());
    };
    let found: i64 = row.try_get(0).map_err(unavailable)?;
    let usable_from: i64 = row.try_get(1).map_err(unavailable)?;
    Ok(SchemaState {
        found: u32::try_from(found).unwrap_or(u32::MAX),
        usable_from: u32::try_from(usable_from).unwrap_or(u32::MAX),
    })
}

#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
pub(super) fn unavailable(error: tokio_postgres::Error) -> OpenError {
    OpenError::Unavailable(message_of(&error).into())
}

/// Advisory lock under which the changes of a migration are made: the bytes of "kinora".
const LOCK: i64 = 0x6b69_6e6f_7261;
/// Advisory lock of the one process that migrates, from the first change to the last index. It cannot be
/// [`LOCK`]: earlier programs wait for that one inside a statement, and building an index waits for the
/// statements of others to end.
const GUARD: i64 = LOCK + 1;
/// Maximum time that a change waits for a lock. Other users of the table wait behind it.
const LOCK_WAIT_MS: u64 = 1_000;
/// Maximum number of attempts at the changes, each a second apart and up to a second long: two minutes.
const ATTEMPTS_MAX: u32 = 60;
const PAUSE: Duration = Duration::from_secs(1);
/// Interval of checks whether another process has ended its migration.
const LOOK: Duration = Duration::from_millis(200);

/// Brings the schema up to date. Returns the version before and after.
pub(super) async fn migrate(connector: &ServerConnector) -> Result<(u32, u32), OpenError> {
    let guard = connector.connect().await?;
    acquire_guard(&guard).await?;
    let client = connector.connect().await?;
    let versions = apply_changes(&client).await?;
    build_indexes(&client).await?;
    Ok(versions)
}

/// Waits until no other process migrates. Closing the connection releases the guard.
async fn acquire_guard(client: &Client) -> Result<(), OpenError> {
    // A lock of the transaction, not of the session: a pooler could give the session's connection to
    // others between two statements. An open READ COMMITTED transaction holds no snapshot in between, so it
    // delays neither vacuum nor the building of indexes.
    let begin = format!("{BEGIN}; SET LOCAL idle_in_transaction_session_timeout = 0");
    let ask = format!("SELECT pg_try_advisory_xact_lock({GUARD})");
    client.batch_execute(&begin).await.map_err(unavailable)?;
    loop {
        // The simple protocol: the extended one would keep its snapshot until the next statement, and
        // CREATE INDEX CONCURRENTLY of the other process waits for old snapshots.
        let answer = client.simple_query(&ask).await.map_err(unavailable)?;
        for message in &answer {
            if let SimpleQueryMessage::Row(row) = message
                && row.get(0) == Some("t")
            {
                return Ok(());
            }
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Why an attempt to change the schema failed.
enum MigrationFailure {
    /// Others hold a lock.
    Locked(Error),
    Failed(OpenError),
}

impl From<Error> for MigrationFailure {
    fn from(error: Error) -> Self {
        let locked = [
            SqlState::LOCK_NOT_AVAILABLE,
            SqlState::T_R_DEADLOCK_DETECTED,
        ];
        match error.code() {
            Some(code) if locked.contains(code) => Self::Locked(error),
            _ => Self::Failed(unavailable(error)),
        }
    }
}

/// Makes all changes except indexes, once their locks are free.
async fn apply_changes(client: &Client) -> Result<(u32, u32), OpenError> {
    let mut attempts = 0;
    loop {
        attempts += 1;
        match try_apply_changes(client).await {
            Ok(versions) => return Ok(versions),
            Err(MigrationFailure::Failed(error)) => return Err(error),
            Err(MigrationFailure::Locked(error)) if attempts == ATTEMPTS_MAX => {
                return Err(unavailable(error));
            }
            Err(MigrationFailure::Locked(_)) => {
                client
                    .batch_execute("ROLLBACK")
                    .await
                    .map_err(unavailable)?;
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// Makes them in one transaction. It records the version, the first version whose programs can use the
/// schema, and the version up to which indexes are built (null: by a program that built them at once).
async fn try_apply_changes(client: &Client) -> Result<(u32, u32), MigrationFailure> {
    let begin = format!(
        "{BEGIN}; SELECT {SYNCED}, pg_advisory_xact_lock({LOCK}); SET LOCAL lock_timeout = {LOCK_WAIT_MS}"
    );
    client.batch_execute(&begin).await?;
    let make = "CREATE TABLE IF NOT EXISTS schema_version (version bigint NOT NULL); \
                ALTER TABLE schema_version ADD COLUMN IF NOT EXISTS usable_from bigint NOT NULL DEFAULT 1, \
                ADD COLUMN IF NOT EXISTS indexed bigint";
    client.batch_execute(make).await?;
    let SchemaState { found, usable_from } =
        read(client).await.map_err(MigrationFailure::Failed)?;
    let known = known_version();
    if found > known {
        // A later program has migrated it: nothing to do, if that left it usable for this one.
        client.batch_execute("ROLLBACK").await?;
        let usable = check_usable(found, usable_from, known).map_err(MigrationFailure::Failed);
        return usable.map(|()| (found, found));
    }
    for migration in MIGRATIONS.iter().skip(found as usize) {
        client
            .batch_execute(&transaction_part(migration, found == 0))
            .await?;
    }
    let indexed = match found {
        0 => known.to_string(),
        found => format!("coalesce((SELECT min(indexed) FROM before), {found})"),
    };
    let note = format!(
        "WITH before AS (DELETE FROM schema_version RETURNING indexed) \
         INSERT INTO schema_version (version, usable_from, indexed) VALUES ({known}, {USABLE_FROM}, {indexed}); COMMIT"
    );
    client.batch_execute(&note).await?;
    Ok((found, known))
}

/// Builds and removes indexes that are due, each in a statement of its own, including those that an
/// interrupted migration has left.
async fn build_indexes(client: &Client) -> Result<(), OpenError> {
    let indexed = SqlStatement::new("SELECT coalesce(indexed, version) FROM schema_version");
    let rows = indexed.run(client).await.map_err(unavailable)?;
    let indexed = rows.first().map(|row| row.try_get::<_, i64>(0));
    let indexed = indexed.transpose().map_err(unavailable)?.unwrap_or(0);
    for (version, migration) in (1_i64..).zip(MIGRATIONS) {
        if version <= indexed {
            continue;
        }
        for statement in migration.lines().filter(|line| is_concurrent(line)) {
            run_concurrently(client, statement)
                .await
                .map_err(unavailable)?;
        }
        let note = format!("UPDATE schema_version SET indexed = {version}");
        client.batch_execute(&note).await.map_err(unavailable)?;
    }
    Ok(())
}

/// Whether this line of a migration builds or removes an index concurrently.
fn is_concurrent(line: &str) -> bool {
    ["CREATE INDEX CONCURRENTLY ", "DROP INDEX CONCURRENTLY "]
        .iter()
        .any(|begin| line.starts_with(begin))
}

/// The part of a migration for its transaction: for new tables all of it, with indexes built at once.
fn transaction_part(migration: &str, is_first: bool) -> String {
    let lines = migration.lines();
    let lines = lines.filter(|line| is_first || !is_concurrent(line));
    let lines = lines.map(|line| {
        if is_concurrent(line) {
            line.replacen(" CONCURRENTLY", "", 1)
        } else {
            line.to_owned()
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Builds or removes one index, unless that is done already.
async fn run_concurrently(client: &Client, statement: &str) -> Result<(), Error> {
    let name = statement.split([' ', ';']).nth(3).unwrap_or_default();
    let found = format!("SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass('{name}')");
    let rows = SqlStatement::new(&found).run(client).await?;
    let is_valid = rows
        .first()
        .map(|row| row.try_get::<_, bool>(0))
        .transpose()?;
    let creates = statement.starts_with("CREATE");
    match is_valid {
        Some(true) if creates => return Ok(()),
        None if !creates => return Ok(()),
        // An interrupted concurrent build leaves an invalid index, which costs writes and serves no query.
        Some(false) if creates => {
            let remove = format!("DROP INDEX CONCURRENTLY {name}");
            client.batch_execute(&remove).await?;
        }
        _ => {}
    }
    client.batch_execute(statement).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_built_beside_is_a_line_of_its_own() {
        for migration in MIGRATIONS {
            for line in migration
                .lines()
                .filter(|line| line.contains("CONCURRENTLY"))
            {
                assert!(is_concurrent(line) && line.ends_with(';'), "{line}");
            }
            assert!(!transaction_part(migration, true).contains("CONCURRENTLY"));
            assert!(!transaction_part(migration, false).contains("CONCURRENTLY"));
        }
    }

    #[test]
    fn an_index_of_an_earlier_table_is_built_beside() {
        let (mut made, mut built) = (Vec::new(), 0);
        for migration in MIGRATIONS {
            let mut new = Vec::new();
            for line in migration.lines() {
                let words: Vec<&str> = line.split_whitespace().collect();
                if let ["CREATE", "TABLE", name, ..] | ["CREATE", "UNLOGGED", "TABLE", name, ..] =
                    words[..]
                {
                    new.push(name);
                }
                let on = words.iter().position(|word| *word == "ON");
                if let Some(table) = on.and_then(|on| words.get(on + 1))
                    && line.starts_with("CREATE")
                    && made.contains(table)
                {
                    assert!(is_concurrent(line), "{line}");
                    built += 1;
                }
            }
            made.extend(new);
        }
        assert!(built > 0);
    }
}
