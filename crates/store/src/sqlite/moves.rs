//! Export and import. An export reads a store in one transaction while writers continue. An import
//! fills a new store in its final place, locked like one that is being served; a table that exists
//! only meanwhile keeps all other programs out.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use kinora_contract::{Clock, ManualClock};
use rusqlite::types::Value as Key;
use rusqlite::{Connection, params_from_iter};

use super::fault::{SqliteFault, SqliteResult};
use super::rows::StateTexts;
use super::{checkpoint, locks, open_checks, rows, schema, script};
use crate::sql::SqlDialect;
use crate::tables::copied::{COPIED_AT_ONCE, HAS_CONTENTS, RowCheck};
use crate::{
    CopiedRow, CopiedTable, OpenError, SqliteOptions, StoreError, StoreExport, StoreImport,
};

/// A store being read.
#[derive(Debug)]
pub(crate) struct SqliteExport {
    conn: Connection,
    /// The table being read, and the key of its last row.
    after: (&'static str, Vec<Key>),
    check: RowCheck,
}

impl SqliteExport {
    /// Opens the store in the file at `path`, as it is now.
    pub(crate) fn open(path: &Path) -> Result<Self, OpenError> {
        let export = Self::begin(path)?;
        schema::refuse_unfinished_import(&export.conn)?;
        Ok(export)
    }

    /// Opens a store that may have an unfinished import.
    fn begin(path: &Path) -> Result<Self, OpenError> {
        let conn = schema::open_source(path, &SqliteOptions::default())?;
        let (found, known) = (schema::schema_version(&conn)?, schema::known_version());
        if found < known {
            return Err(OpenError::OlderSchema { found, known });
        }
        // One read transaction for all tables, so that they fit together. It takes its snapshot at the
        // first read, and keeps checkpoints from truncating the log while it lasts.
        conn.execute_batch("BEGIN").map_err(schema::unavailable)?;
        Ok(Self {
            conn,
            after: ("", Vec::new()),
            check: RowCheck::default(),
        })
    }

    fn read(
        &mut self,
        table: &'static CopiedTable,
    ) -> SqliteResult<Vec<Result<CopiedRow, StoreError>>> {
        if self.after.0 != table.name {
            self.after = (table.name, Vec::new());
        }
        let key = table.key(SqlDialect::Sqlite);
        let keys = key.split(", ").count();
        let mut page = table.select(SqlDialect::Sqlite, &format!("{key}, "));
        // Pages by key instead of OFFSET, which would read all earlier rows again for each page.
        if !self.after.1.is_empty() {
            let places = vec!["?"; keys].join(", ");
            page = format!("{page} AND ({key}) > ({places})");
        }
        let page = format!("{page} ORDER BY {key} LIMIT {COPIED_AT_ONCE}");
        let mut query = self.conn.prepare_cached(&page)?;
        let mut found = query.query(params_from_iter(&self.after.1))?;
        let mut copied = Vec::new();
        while let Some(row) = found.next()? {
            self.after.1 = (0..keys).map(|at| row.get(at)).collect::<Result<_, _>>()?;
            let values = (keys..keys + table.width()).map(|at| Ok(script::value(row.get_ref(at)?)));
            let values = values.collect::<SqliteResult<_>>()?;
            let checked = self
                .check
                .check(table, values, |row| Ok(read_task(&self.conn, row)?));
            match checked {
                Err(error @ StoreError::Unavailable(_)) => {
                    return Err(SqliteFault::GivenUp(error.to_string()));
                }
                checked => copied.push(checked),
            }
        }
        Ok(copied)
    }
}

/// Reads a task as it was stored, with its checksums.
fn read_task(conn: &Connection, row: &CopiedRow) -> SqliteResult<()> {
    let id: String = row.task_column("id")?;
    let found = match id.parse() {
        Ok(id) => rows::find(conn, id)?,
        Err(_) => None,
    };
    found
        .map(drop)
        .ok_or_else(|| SqliteFault::Corrupt("its id is damaged".to_owned()))
}

#[async_trait]
impl StoreExport for SqliteExport {
    async fn rows(
        &mut self,
        table: &'static CopiedTable,
    ) -> Result<Vec<Result<CopiedRow, StoreError>>, StoreError> {
        Ok(self.read(table)?)
    }
}

/// A store being filled.
#[derive(Debug)]
pub(crate) struct SqliteImport {
    path: PathBuf,
    // Closed before the locks: see `locks::StoreLocks`.
    conn: Connection,
    _locks: locks::StoreLocks,
}

impl SqliteImport {
    /// Starts to fill the store in the file at `path`, creating it if necessary, with the export of
    /// this name, or resumes that.
    pub(crate) fn begin(path: &Path, export: &str) -> Result<Self, OpenError> {
        let options = SqliteOptions::default();
        let mut locks = locks::lock(path)?;
        // A clock that stands still never reaches the time limit of the check: an import may check the
        // whole database.
        let clock: Arc<dyn Clock> = Arc::new(ManualClock::default());
        let judged = open_checks::check_before_open(path, &options, &clock)?;
        if let Some(conn) = &judged {
            refuse_older(conn)?;
        }
        let conn = schema::open_writer(path, &options)?;
        drop(judged);
        locks.open_database(path)?;
        match schema::unfinished_import(&conn)? {
            Some(found) if found == export => {}
            Some(_) => return Err(OpenError::OtherImport),
            None => mark_import(&conn, export)?,
        }
        Ok(Self {
            path: path.to_owned(),
            conn,
            _locks: locks,
        })
    }

    fn write(&self, table: &CopiedTable, rows: &[CopiedRow]) -> SqliteResult<()> {
        // Rolls back when it is dropped: after an error all rows of this call are missing, so the
        // caller may put them again.
        let transaction = self.conn.unchecked_transaction()?;
        for row in rows {
            script::run(&transaction, &table.write(SqlDialect::Sqlite, &row.0, &[]))?;
            if table.is_tasks() {
                write_checksums(&transaction, row)?;
            }
        }
        Ok(transaction.commit()?)
    }
}

/// Writes the checksums of a task. They stay unknown for a newer version, as for rows from before
/// checksums existed.
fn write_checksums(conn: &Connection, row: &CopiedRow) -> SqliteResult<()> {
    let (id, spec): (String, String) = (row.task_column("id")?, row.task_column("spec")?);
    if row.spec()?.is_none() {
        return Ok(());
    }
    let missing = || SqliteFault::Corrupt(format!("{id} is no task's id"));
    let record = rows::find(conn, id.parse().map_err(|_| missing())?)?.ok_or_else(missing)?;
    let text = |name| row.task_column::<Option<String>>(name);
    let texts = StateTexts {
        artifact: text("artifact")?.map(Into::into),
        failure: text("failure")?.map(Into::into),
        warnings: text("warnings")?.map(Into::into),
        price: text("price")?.map(Into::into),
    };
    let of_texts =
        rows::request_checksum(&record.task, &spec, &row.task_column::<String>("metadata")?);
    let set = "UPDATE tasks SET texts_sum = ?1, state_sum = ?2 WHERE id = ?3";
    let mut set = conn.prepare_cached(set)?;
    set.execute((of_texts, rows::state_checksum(&record, &texts), id))?;
    Ok(())
}

/// Refuses a non-empty store of an earlier version before updating it.
fn refuse_older(conn: &Connection) -> Result<(), OpenError> {
    match (schema::schema_version(conn)?, schema::known_version()) {
        (found, known) if 0 < found && found < known => Err(OpenError::NotEmpty),
        _ => Ok(()),
    }
}

/// Marks an empty store as being filled.
fn mark_import(conn: &Connection, export: &str) -> Result<(), OpenError> {
    let holds = conn.query_row(HAS_CONTENTS, [], |row| row.get::<_, bool>(0));
    if holds.map_err(schema::unavailable)? {
        return Err(OpenError::NotEmpty);
    }
    write_mark(conn, export).map_err(schema::unavailable)
}

fn write_mark(conn: &Connection, export: &str) -> rusqlite::Result<()> {
    let transaction = conn.unchecked_transaction()?;
    transaction.execute_batch("CREATE TABLE unfinished_import (export TEXT NOT NULL) STRICT")?;
    transaction.execute("INSERT INTO unfinished_import VALUES (?1)", [export])?;
    transaction.commit()
}

#[async_trait]
impl StoreImport for SqliteImport {
    async fn stored(&mut self, table: &CopiedTable) -> Result<u64, StoreError> {
        let Some(count) = table.count() else {
            return Ok(0);
        };
        let count = self.conn.query_row(&count, [], |row| row.get::<_, i64>(0));
        Ok(count.map_err(SqliteFault::from)?.unsigned_abs())
    }

    async fn put(&mut self, table: &CopiedTable, rows: &[CopiedRow]) -> Result<(), StoreError> {
        Ok(self.write(table, rows)?)
    }

    async fn put_sums(&mut self) -> Result<(), StoreError> {
        let sum = "BEGIN; DELETE FROM usage; INSERT INTO usage (project, bytes, tasks) \
                   SELECT project, sum(charged_bytes), count(*) FILTER (WHERE phase <> 'expired') \
                   FROM tasks GROUP BY project; \
                   INSERT INTO usage (project, bytes, tasks) SELECT project, sum(bytes), 0 \
                   FROM (SELECT DISTINCT project, blob_key, bytes FROM uploads) WHERE true GROUP BY project \
                   ON CONFLICT (project) DO UPDATE SET bytes = bytes + excluded.bytes; COMMIT";
        Ok(self.conn.execute_batch(sum).map_err(SqliteFault::from)?)
    }

    async fn read_back(&mut self) -> Result<Box<dyn StoreExport>, OpenError> {
        Ok(Box::new(SqliteExport::begin(&self.path)?))
    }

    async fn finish(self: Box<Self>) -> Result<(), StoreError> {
        let dropped = self.conn.execute_batch("DROP TABLE unfinished_import");
        dropped.map_err(SqliteFault::from)?;
        checkpoint::run_checkpoint(&self.conn);
        Ok(())
    }
}
