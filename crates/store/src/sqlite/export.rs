//! A SQLite store, read in one transaction while writers continue.

use std::path::Path;

use async_trait::async_trait;
use rusqlite::types::Value as Key;
use rusqlite::{Connection, params_from_iter};

use super::fault::{Done, Fault};
use super::{rows, schema, script};
use crate::sql::Dialect;
use crate::tables::copied::{COPIED_AT_ONCE, RowCheck};
use crate::{CopiedRow, CopiedTable, Export, OpenError, SqliteOptions, StoreError};

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

    /// The same for a store with an unfinished import.
    pub(super) fn begin(path: &Path) -> Result<Self, OpenError> {
        let conn = schema::open_source(path, &SqliteOptions::default())?;
        let (found, known) = (schema::version(&conn)?, schema::known_version());
        if found < known {
            return Err(OpenError::OlderSchema { found, known });
        }
        conn.execute_batch("BEGIN").map_err(schema::unavailable)?;
        Ok(Self {
            conn,
            after: ("", Vec::new()),
            check: RowCheck::default(),
        })
    }

    fn read(&mut self, table: &'static CopiedTable) -> Done<Vec<Result<CopiedRow, StoreError>>> {
        if self.after.0 != table.name {
            self.after = (table.name, Vec::new());
        }
        let key = table.key(Dialect::Sqlite);
        let keys = key.split(", ").count();
        let mut page = table.select(Dialect::Sqlite, &format!("{key}, "));
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
            let values = values.collect::<Done<_>>()?;
            let read = |row: &CopiedRow| Ok(read_task(&self.conn, row)?);
            match self.check.check(table, values, read) {
                Err(error @ StoreError::Unavailable(_)) => {
                    return Err(Fault::GivenUp(error.to_string()));
                }
                checked => copied.push(checked),
            }
        }
        Ok(copied)
    }
}

/// Reads a task as it was stored, with its checksums.
fn read_task(conn: &Connection, row: &CopiedRow) -> Done<()> {
    let id: String = row.of_task("id")?;
    let found = match id.parse() {
        Ok(id) => rows::find(conn, id)?,
        Err(_) => None,
    };
    let missing = || Fault::Corrupt("its id is damaged".to_owned());
    found.map(drop).ok_or_else(missing)
}

#[async_trait]
impl Export for SqliteExport {
    async fn rows(
        &mut self,
        table: &'static CopiedTable,
    ) -> Result<Vec<Result<CopiedRow, StoreError>>, StoreError> {
        Ok(self.read(table)?)
    }
}
