//! Reads for checks, on a read-only connection.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kinora_contract::{Task, TaskId};
use rusqlite::Connection;

use super::fault::{Done, Fault};
use super::opening::{self, Checked};
use super::rows::COLUMNS;
use super::{rows, schema, script};
use crate::tables::secrets;
use crate::{Loss, OpenError, SqliteOptions, StoreError};

/// A store in a file, opened for checks.
#[derive(Debug)]
pub(crate) struct Inspector {
    path: PathBuf,
    conn: Mutex<Connection>,
}

impl Inspector {
    /// Opens the store in the file at `path`; `None` if there is none.
    pub(crate) fn open(path: &Path) -> Result<Option<Self>, OpenError> {
        if !path.is_file() {
            opening::lost(path, None)?;
            return Ok(None);
        }
        opening::refuse_emptied(path)?;
        let conn = schema::open_reader(path, &SqliteOptions::default())?;
        let (found, known) = (
            schema::version(&conn).map_err(opening::named)?,
            schema::known_version(),
        );
        if found > known {
            return Err(OpenError::NewerSchema { found, known });
        }
        if found == 0 {
            opening::lost(path, None)?;
            return Ok(None);
        }
        if found < known {
            return Err(OpenError::OlderSchema { found, known });
        }
        schema::refuse_unfinished_import(&conn)?;
        Ok(Some(Self {
            path: path.to_owned(),
            conn: Mutex::new(conn),
        }))
    }

    pub(crate) fn identity(&self) -> Result<u64, StoreError> {
        Ok(rows::counter(&self.conn(), "identity")?)
    }

    pub(crate) fn has_signing_key(&self) -> Result<bool, StoreError> {
        Ok(!script::ask(&self.conn(), &secrets::signing_key())?.is_empty())
    }

    pub(crate) fn check(&self) -> Result<Vec<String>, OpenError> {
        match opening::check(&mut self.conn(), None)? {
            Checked::Damaged(findings) => Ok(findings),
            Checked::Whole | Checked::Partly => Ok(Vec::new()),
        }
    }

    pub(crate) fn loss(&self) -> Result<Option<Loss>, OpenError> {
        match opening::lost(&self.path, Some(&self.conn())) {
            Err(OpenError::Lost(loss)) => Ok(Some(loss)),
            judged => judged.map(|()| None),
        }
    }

    pub(crate) fn count(&self) -> Result<u64, StoreError> {
        let count = self
            .conn()
            .query_row("SELECT count(*) FROM tasks", [], |row| row.get::<_, i64>(0));
        Ok(count.map_err(Fault::from)?.unsigned_abs())
    }

    pub(crate) fn tasks(
        &self,
        each: &mut dyn FnMut(Result<&Task, &StoreError>),
    ) -> Result<(), StoreError> {
        Ok(all(&self.conn(), each)?)
    }

    pub(crate) fn task(&self, id: TaskId) -> Result<Option<Arc<Task>>, StoreError> {
        let found = rows::find(&self.conn(), id)?;
        Ok(found.map(|record| record.task.clone()))
    }

    /// Runs any read.
    pub(super) fn read<T>(
        &self,
        read: impl FnOnce(&Connection) -> Done<T>,
    ) -> Result<T, StoreError> {
        Ok(read(&self.conn())?)
    }

    fn conn(&self) -> MutexGuard<'_, Connection> {
        self.conn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn all(conn: &Connection, each: &mut dyn FnMut(Result<&Task, &StoreError>)) -> Done<()> {
    let mut query = conn.prepare(&format!("SELECT {COLUMNS} FROM tasks ORDER BY seq"))?;
    let mut found = query.query([])?;
    while let Some(row) = found.next()? {
        match rows::read(row) {
            Ok(record) => each(Ok(&record.task)),
            Err(Fault::Corrupt(error)) => each(Err(&StoreError::Corrupt(error))),
            Err(fault) => return Err(fault),
        }
    }
    Ok(())
}
