//! A SQLite store, read in one transaction while writers continue.

use std::path::Path;

use async_trait::async_trait;
use rusqlite::{Connection, Row};

use super::rows;
use crate::sqlite::columns::{COLUMNS, int};
use crate::sqlite::fault::{Done, Fault};
use crate::sqlite::{rows as stored, schema, script};
use crate::tables::{keys, secrets, tallies, webhooks};
use crate::{
    Export, Gap, Hex, MOVED_AT_ONCE, MovedChore, MovedKey, MovedStore, MovedTask, OpenError,
    SqliteOptions, StoreError, TallyRequest,
};

/// A store being read.
#[derive(Debug)]
pub(crate) struct SqliteExport {
    conn: Connection,
    /// Place of the last task read.
    after: u64,
}

impl SqliteExport {
    /// Opens the store in the file at `path`, as it is now.
    pub(crate) fn open(path: &Path) -> Result<Self, OpenError> {
        let export = Self::begin(path)?;
        schema::refuse_unfinished_import(&export.conn)?;
        Ok(export)
    }

    /// The same for a store with an unfinished import.
    pub(super) fn begin(path: &Path) -> Result<Self, OpenError> {
        let conn = schema::open_source(path, &SqliteOptions::default())?;
        let (found, known) = (schema::version(&conn)?, schema::known_version());
        if found < known {
            return Err(OpenError::OlderSchema { found, known });
        }
        conn.execute_batch("BEGIN").map_err(schema::unavailable)?;
        Ok(Self { conn, after: 0 })
    }

    fn read_store(&self) -> Done<MovedStore> {
        let conn = &self.conn;
        let held = "SELECT coalesce(max(lease_token), 0) FROM tasks";
        let held: i64 = conn.query_row(held, [], |row| row.get(0))?;
        let mut gaps = conn.prepare("SELECT after_ms, before_ms FROM gaps ORDER BY after_ms")?;
        let gaps = gaps.query_map([], |row| {
            Ok(Gap {
                after_ms: row.get::<_, i64>(0)?.unsigned_abs(),
                before_ms: row.get::<_, i64>(1)?.unsigned_abs(),
            })
        })?;
        let mut key_log = script::ask(conn, &keys::log(None))?;
        key_log.reverse();
        Ok(MovedStore {
            identity: stored::counter(conn, "identity")?,
            token: stored::counter(conn, "token")?.max(held.unsigned_abs()),
            newest_ms: stored::counter(conn, "newest_ms")?,
            gaps: gaps.collect::<Result<_, _>>()?,
            signing_key: script::ask(conn, &secrets::signing_key())?
                .pop()
                .map(|key| Hex(key.0)),
            tallies: script::ask(conn, &tallies::sums(&TallyRequest::default()))?,
            key_log,
            webhooks: script::ask(conn, &webhooks::all())?
                .into_iter()
                .map(Into::into)
                .collect(),
            deliveries: script::ask(conn, &webhooks::unsettled())?,
        })
    }

    fn read_tasks(&mut self) -> Done<Vec<Result<MovedTask, StoreError>>> {
        let page = format!("SELECT {COLUMNS} FROM tasks WHERE seq > ?1 ORDER BY seq LIMIT ?2");
        let mut query = self.conn.prepare_cached(&page)?;
        let mut found = query.query([int(self.after), int(MOVED_AT_ONCE as u64)])?;
        let mut tasks = Vec::new();
        while let Some(row) = found.next()? {
            self.after = row.get::<_, i64>("seq")?.unsigned_abs();
            match self.read_task(row) {
                Ok(task) => tasks.push(Ok(task)),
                Err(Fault::Corrupt(error)) => tasks.push(Err(StoreError::Corrupt(error))),
                Err(fault) => return Err(fault),
            }
        }
        Ok(tasks)
    }

    fn read_task(&self, row: &Row<'_>) -> Done<MovedTask> {
        let task = rows::read(row)?;
        let idempotency = rows::bindings(&self.conn, task.seq)?;
        Ok(MovedTask {
            idempotency,
            ..task
        })
    }

    fn read_chores(&self) -> Done<Vec<MovedChore>> {
        let mut query = self.conn.prepare(
            "SELECT kind, subject, model, ticket FROM chores WHERE kind <> 'look_for_orphans' ORDER BY number",
        )?;
        let found = query.query_map([], |row| {
            Ok(MovedChore {
                kind: row.get(0)?,
                subject: row.get(1)?,
                model: row.get(2)?,
                ticket: row.get(3)?,
            })
        })?;
        Ok(found.collect::<Result<_, _>>()?)
    }
}

#[async_trait]
impl Export for SqliteExport {
    async fn store(&mut self) -> Result<MovedStore, StoreError> {
        Ok(self.read_store()?)
    }

    async fn tasks(&mut self) -> Result<Vec<Result<MovedTask, StoreError>>, StoreError> {
        Ok(self.read_tasks()?)
    }

    async fn keys(&mut self) -> Result<Vec<MovedKey>, StoreError> {
        let newest_first = script::ask(&self.conn, &keys::all("rowid"))?;
        Ok(newest_first.into_iter().rev().map(Into::into).collect())
    }

    async fn chores(&mut self) -> Result<Vec<MovedChore>, StoreError> {
        Ok(self.read_chores()?)
    }
}
