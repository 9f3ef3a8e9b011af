//! Fills a SQLite store in its final place, locked like one that is being served. A table that
//! exists only during the import keeps everybody else away.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use kinora_contract::{Clock, ManualClock};
use rusqlite::{Connection, params};

use super::export::SqliteExport;
use super::rows;
use crate::SecretKey;
use crate::sqlite::columns::int;
use crate::sqlite::fault::{Done, Fault};
use crate::sqlite::{carrying, locks, opening, rows as stored, schema, script};
use crate::tables::{keys, secrets, tallies, webhooks};
use crate::{
    ApiKey, Export, Import, MovedChore, MovedKey, MovedStore, MovedTask, OpenError, SqliteOptions,
    StoreError,
};

/// Data that the store must not contain.
const HELD: &str = "SELECT EXISTS (SELECT 1 FROM tasks) OR EXISTS (SELECT 1 FROM api_keys) \
     OR EXISTS (SELECT 1 FROM secrets) OR EXISTS (SELECT 1 FROM webhooks)";

/// A store being filled.
#[derive(Debug)]
pub(crate) struct SqliteImport {
    path: PathBuf,
    // Closed before the locks: see `locks::Locks`.
    conn: Connection,
    stored: u64,
    _locks: locks::Locks,
}

impl SqliteImport {
    /// Starts to fill the store in the file at `path`, creating it if necessary, with the export of
    /// this name, or resumes that.
    pub(crate) fn begin(path: &Path, export: &str) -> Result<Self, OpenError> {
        let options = SqliteOptions::default();
        let mut locks = locks::lock(path)?;
        // A clock that stands still: the check takes as long as it needs.
        let clock: Arc<dyn Clock> = Arc::new(ManualClock::default());
        let judged = opening::judge(path, &options, &clock)?;
        if let Some(conn) = &judged {
            refuse_older(conn)?;
        }
        let conn = schema::open_writer(path, &options)?;
        drop(judged);
        locks.database(path)?;
        match schema::unfinished_import(&conn)? {
            Some(found) if found == export => {}
            Some(_) => return Err(OpenError::OtherImport),
            None => mark(&conn, export)?,
        }
        let stored = "SELECT coalesce(max(seq), 0) FROM tasks";
        let stored = conn.query_row(stored, [], |row| row.get::<_, i64>(0));
        Ok(Self {
            path: path.to_owned(),
            stored: stored.map_err(schema::unavailable)?.unsigned_abs(),
            conn,
            _locks: locks,
        })
    }

    fn within<T>(&self, write: impl FnOnce(&Connection) -> Done<T>) -> Done<T> {
        // Undone when it is dropped.
        let transaction = self.conn.unchecked_transaction()?;
        let done = write(&transaction)?;
        transaction.commit()?;
        Ok(done)
    }
}

/// Refuses a non-empty store of an earlier version before updating it.
fn refuse_older(conn: &Connection) -> Result<(), OpenError> {
    match (schema::version(conn)?, schema::known_version()) {
        (found, known) if 0 < found && found < known => Err(OpenError::NotEmpty),
        _ => Ok(()),
    }
}

/// Marks an empty store as being filled.
fn mark(conn: &Connection, export: &str) -> Result<(), OpenError> {
    let holds = conn.query_row(HELD, [], |row| row.get::<_, bool>(0));
    if holds.map_err(schema::unavailable)? {
        return Err(OpenError::NotEmpty);
    }
    let mark = || -> rusqlite::Result<()> {
        let transaction = conn.unchecked_transaction()?;
        transaction
            .execute_batch("CREATE TABLE unfinished_import (export TEXT NOT NULL) STRICT")?;
        transaction.execute("INSERT INTO unfinished_import VALUES (?1)", [export])?;
        transaction.commit()
    };
    mark().map_err(schema::unavailable)
}

/// Writes the sums that follow from the tasks, and the store's other data.
fn write_store(conn: &Connection, store: &MovedStore) -> Done<()> {
    conn.execute_batch(
        "DELETE FROM usage; INSERT INTO usage (project, bytes, tasks) \
         SELECT project, sum(charged_bytes), count(*) FILTER (WHERE phase <> 'expired') FROM tasks GROUP BY project; \
         DELETE FROM gaps; DELETE FROM secrets; DELETE FROM api_keys; DELETE FROM tallies; DELETE FROM key_log; \
         DELETE FROM chores WHERE kind <> 'look_for_orphans'",
    )?;
    stored::set_counter(conn, "identity", store.identity)?;
    stored::set_counter(conn, "token", store.token)?;
    stored::set_counter(conn, "newest_ms", store.newest_ms)?;
    for gap in &store.gaps {
        let add = "INSERT INTO gaps (after_ms, before_ms) VALUES (?1, ?2)";
        conn.execute(add, [int(gap.after_ms), int(gap.before_ms)])?;
    }
    for row in &store.tallies {
        script::run(conn, &tallies::add(row))?;
    }
    for entry in &store.key_log {
        script::run(conn, &keys::log_entry(entry))?;
    }
    if let Some(key) = &store.signing_key {
        script::run(conn, &secrets::insert(&SecretKey(key.0)))?;
    }
    Ok(())
}

fn write_keys(conn: &Connection, moved: &[MovedKey]) -> Done<()> {
    for key in moved {
        let key = ApiKey::try_from(key).map_err(Fault::Corrupt)?;
        script::run(conn, &keys::insert(&key))?;
    }
    Ok(())
}

fn write_chores(conn: &Connection, chores: &[MovedChore]) -> Done<()> {
    let mut query =
        conn.prepare("INSERT INTO chores (kind, subject, model, ticket) VALUES (?1, ?2, ?3, ?4)")?;
    for one in chores {
        query.execute(params![one.kind, one.subject, one.model, one.ticket])?;
    }
    Ok(())
}

#[async_trait]
impl Import for SqliteImport {
    fn stored_up_to(&self) -> u64 {
        self.stored
    }

    async fn put_tasks(&mut self, tasks: &[MovedTask]) -> Result<(), StoreError> {
        self.within(|conn| tasks.iter().try_for_each(|task| rows::insert(conn, task)))?;
        self.stored = tasks.last().map_or(self.stored, |task| task.seq);
        Ok(())
    }

    async fn put_rest(
        &mut self,
        store: &MovedStore,
        keys: &[MovedKey],
        chores: &[MovedChore],
    ) -> Result<(), StoreError> {
        Ok(self.within(|conn| {
            write_store(conn, store)?;
            write_keys(conn, keys)?;
            write_chores(conn, chores)?;
            for query in webhooks::replace_all(store) {
                script::run(conn, &query)?;
            }
            Ok(())
        })?)
    }

    async fn read_back(&mut self) -> Result<Box<dyn Export>, OpenError> {
        Ok(Box::new(SqliteExport::begin(&self.path)?))
    }

    async fn finish(self: Box<Self>) -> Result<(), StoreError> {
        let dropped = self.conn.execute_batch("DROP TABLE unfinished_import");
        dropped.map_err(Fault::from)?;
        carrying::carry_over(&self.conn);
        Ok(())
    }
}
