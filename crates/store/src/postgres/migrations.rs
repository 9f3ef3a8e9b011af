//! Migrations: `kinora migrate` applies them while processes of earlier versions work on the tables. Nobody waits for
//! longer than a moment: a lock that is not to be had at once is given up and asked for again, and indexes of tables
//! that may be full are built after the other changes, beside the work.

use std::time::Duration;

use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Error, SimpleQueryMessage};

use super::connect::Connector;
use super::durability::SYNCED;
use super::schema::{MIGRATIONS, Schema, USABLE_FROM, judge, known_version, read, unavailable};
use super::statement::{BEGIN, Statement};
use crate::OpenError;

/// The changes of a migration are made under a lock with this number, which is ours.
const LOCK: i64 = 0x6b69_6e6f_7261;
/// One process migrates at a time, from the first change to the last index: another lock, since earlier programs wait
/// for the first one in a statement, and an index waits for the statements of others.
const GUARD: i64 = LOCK + 1;
/// Maximum time that a change waits for a lock. Other users of the table wait behind it.
const LOCK_WAIT_MS: u64 = 1_000;
/// How often the changes are tried, with a pause after each: for two minutes.
const ATTEMPTS_MAX: u32 = 60;
const PAUSE: Duration = Duration::from_secs(1);
/// How often to look whether another process has ended its migration.
const LOOK: Duration = Duration::from_millis(200);

/// Brings the schema up to date. Returns the version before and after.
pub(super) async fn migrate(connector: &Connector) -> Result<(u32, u32), OpenError> {
    let guard = connector.connect().await?;
    take_guard(&guard).await?;
    let client = connector.connect().await?;
    let versions = change(&client).await?;
    build(&client).await?;
    Ok(versions)
}

/// Waits until no other process migrates. The guard is given back when its connection ends.
async fn take_guard(client: &Client) -> Result<(), OpenError> {
    // Between its statements such a transaction holds nobody up, nor does a pooler give its connection to others.
    let begin = format!("{BEGIN}; SET LOCAL idle_in_transaction_session_timeout = 0");
    let ask = format!("SELECT pg_try_advisory_xact_lock({GUARD})");
    client.batch_execute(&begin).await.map_err(unavailable)?;
    loop {
        // A simple query: one with parameters would keep its snapshot, for which an index waits.
        let answer = client.simple_query(&ask).await.map_err(unavailable)?;
        let is_taken = |message: &SimpleQueryMessage| match message {
            SimpleQueryMessage::Row(row) => row.get(0) == Some("t"),
            _ => false,
        };
        if answer.iter().any(is_taken) {
            return Ok(());
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Why an attempt to change the schema came to nothing.
enum Missed {
    /// Others hold a lock.
    Locked(Error),
    Failed(OpenError),
}

impl From<Error> for Missed {
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

/// All changes but the indexes, as soon as their locks are to be had.
async fn change(client: &Client) -> Result<(u32, u32), OpenError> {
    let mut attempts = 0;
    loop {
        attempts += 1;
        match try_change(client).await {
            Ok(versions) => return Ok(versions),
            Err(Missed::Failed(error)) => return Err(error),
            Err(Missed::Locked(error)) if attempts == ATTEMPTS_MAX => {
                return Err(unavailable(error));
            }
            Err(Missed::Locked(_)) => {
                client
                    .batch_execute("ROLLBACK")
                    .await
                    .map_err(unavailable)?;
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// The same in one transaction. What a migration notes: the version, the first version whose programs can use it, and
/// the version whose indexes are built (null: by a program that built them at once).
async fn try_change(client: &Client) -> Result<(u32, u32), Missed> {
    let begin = format!(
        "{BEGIN}; SELECT {SYNCED}, pg_advisory_xact_lock({LOCK}); SET LOCAL lock_timeout = {LOCK_WAIT_MS}"
    );
    client.batch_execute(&begin).await?;
    let make = "CREATE TABLE IF NOT EXISTS schema_version (version bigint NOT NULL); \
                ALTER TABLE schema_version ADD COLUMN IF NOT EXISTS usable_from bigint NOT NULL DEFAULT 1, \
                ADD COLUMN IF NOT EXISTS indexed bigint";
    client.batch_execute(make).await?;
    let Schema { found, usable_from } = read(client).await.map_err(Missed::Failed)?;
    let known = known_version();
    if found > known {
        // By a later program: nothing is left to do.
        client.batch_execute("ROLLBACK").await?;
        let usable = judge(found, usable_from, known).map_err(Missed::Failed);
        return usable.map(|()| (found, found));
    }
    for migration in MIGRATIONS.iter().skip(found as usize) {
        client
            .batch_execute(&at_once(migration, found == 0))
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

/// Builds and removes the indexes that are still to be, each by itself: what an interrupted migration has left, too.
async fn build(client: &Client) -> Result<(), OpenError> {
    let indexed = Statement::new("SELECT coalesce(indexed, version) FROM schema_version");
    let rows = indexed.run(client).await.map_err(unavailable)?;
    let indexed = rows.first().map(|row| row.try_get::<_, i64>(0));
    let indexed = indexed.transpose().map_err(unavailable)?.unwrap_or(0);
    for (version, migration) in (1_i64..).zip(MIGRATIONS) {
        if version <= indexed {
            continue;
        }
        for statement in migration.lines().filter(|line| is_beside(line)) {
            run_beside(client, statement).await.map_err(unavailable)?;
        }
        let note = format!("UPDATE schema_version SET indexed = {version}");
        client.batch_execute(&note).await.map_err(unavailable)?;
    }
    Ok(())
}

/// Whether this line of a migration is a statement about an index, which is built beside the work of others.
fn is_beside(line: &str) -> bool {
    ["CREATE INDEX CONCURRENTLY ", "DROP INDEX CONCURRENTLY "]
        .iter()
        .any(|begin| line.starts_with(begin))
}

/// What of a migration is done in its transaction: all of it where the tables are new.
fn at_once(migration: &str, is_first: bool) -> String {
    let lines = migration.lines();
    let lines = lines.filter(|line| is_first || !is_beside(line));
    let lines = lines.map(|line| match is_beside(line) {
        true => line.replacen(" CONCURRENTLY", "", 1),
        false => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Builds or removes one index, unless that is done.
async fn run_beside(client: &Client, statement: &str) -> Result<(), Error> {
    let name = statement.split([' ', ';']).nth(3).unwrap_or_default();
    let found = format!("SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass('{name}')");
    let rows = Statement::new(&found).run(client).await?;
    let is_valid = rows
        .first()
        .map(|row| row.try_get::<_, bool>(0))
        .transpose()?;
    let creates = statement.starts_with("CREATE");
    match is_valid {
        Some(true) if creates => return Ok(()),
        None if !creates => return Ok(()),
        // What a build that was interrupted has left is no use to anybody.
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
                assert!(is_beside(line) && line.ends_with(';'), "{line}");
            }
            assert!(!at_once(migration, true).contains("CONCURRENTLY"));
            assert!(!at_once(migration, false).contains("CONCURRENTLY"));
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
                    assert!(is_beside(line), "{line}");
                    built += 1;
                }
            }
            made.extend(new);
        }
        assert!(built > 0);
    }
}
