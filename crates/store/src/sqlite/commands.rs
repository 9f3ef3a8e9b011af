//! The store as commands use it beside the process that serves it: keys and webhooks, operators'
//! queries, and the checks of `kinora doctor`. It never creates a store.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use kinora_contract::{Clock, StoredFile, Task, TaskId, UnixMs};
use rusqlite::{Connection, Transaction, TransactionBehavior};

use super::fault::{SqliteFault, SqliteResult};
use super::open_checks::CheckOutcome;
use super::rows::COLUMNS;
use super::{checkpoint, open_checks, read_overview, rows, schema, script};
use crate::backend::StoreTables;
use crate::sql::{SqlDialect, SqlScript, TypedQuery};
use crate::tables::{keys, operators, uploads};
use crate::{
    KeyAction, LostChanges, OpenError, OperatorStore, ServiceOverview, SqliteOptions, StoreError,
    TallyRequest, TallyRow,
};

/// A store, beside the process that serves it.
#[derive(Debug)]
pub(crate) struct SqliteTables {
    conn: Mutex<Connection>,
}

impl SqliteTables {
    /// Opens the store in the file at `path`. Never creates one.
    ///
    /// # Errors
    /// [`OpenError::Missing`] if there is no such file; otherwise another [`OpenError`], with a
    /// message for operators.
    pub(crate) fn open(path: &Path) -> Result<Self, OpenError> {
        if !path.try_exists().map_err(schema::unavailable)? {
            return Err(OpenError::Missing(path.to_owned()));
        }
        let conn = schema::open_writer(path, &SqliteOptions::default())?;
        schema::refuse_unfinished_import(&conn)?;
        let conn = Mutex::new(conn);
        Ok(Self { conn })
    }

    fn conn(&self) -> MutexGuard<'_, Connection> {
        self.conn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Commands have their own thread, which may block.
impl StoreTables for SqliteTables {
    const DIALECT: SqlDialect = SqlDialect::Sqlite;

    async fn ask<T: Send + 'static>(&self, question: TypedQuery<T>) -> Result<Vec<T>, StoreError> {
        Ok(script::ask(&self.conn(), &question)?)
    }

    async fn run<S: SqlScript>(&self, script: S) -> Result<S::Output, StoreError> {
        let conn = self.conn();
        let changed = run_script(&conn, &script)?;
        // The high-water mark does not count changes by commands, so nobody would notice if the log
        // were lost with them. In the database itself they are safe.
        checkpoint::run_checkpoint(&conn);
        Ok(changed)
    }
}

fn run_script<S: SqlScript>(conn: &Connection, script: &S) -> SqliteResult<S::Output> {
    // Immediate: a deferred transaction fails at its first write, without waiting for its turn, if the
    // serving process has committed since it began to read.
    let step = Transaction::new_unchecked(conn, TransactionBehavior::Immediate)?;
    let changed = script::run_all(&step, script, 0)?;
    step.commit()?;
    Ok(changed)
}

/// A store opened for queries. Commands have their own thread, which may block.
#[derive(Debug)]
pub(crate) struct SqliteOperations {
    inspector: SqliteInspector,
    clock: Arc<dyn Clock>,
}

impl SqliteOperations {
    /// Opens the store in the file at `path`.
    pub(crate) fn open(path: &Path, clock: Arc<dyn Clock>) -> Result<Self, OpenError> {
        let inspector =
            SqliteInspector::open(path)?.ok_or_else(|| OpenError::Missing(path.to_owned()))?;
        Ok(Self { inspector, clock })
    }
}

#[async_trait]
impl OperatorStore for SqliteOperations {
    async fn tallies(&self, request: &TallyRequest) -> Result<Vec<TallyRow>, StoreError> {
        self.inspector
            .read(|conn| script::ask(conn, &operators::sums(request)))
    }

    async fn key_log(&self, project: Option<&str>) -> Result<Vec<KeyAction>, StoreError> {
        self.inspector
            .read(|conn| script::ask(conn, &keys::log(project)))
    }

    async fn overview(&self) -> Result<ServiceOverview, StoreError> {
        let script = read_overview(self.clock.read());
        self.inspector.read(|conn| script::read_all(conn, &script))
    }
}

/// A store in a file, opened for checks.
#[derive(Debug)]
pub(crate) struct SqliteInspector {
    path: PathBuf,
    conn: Mutex<Connection>,
}

impl SqliteInspector {
    /// Opens the store in the file at `path`; `None` if there is none.
    pub(crate) fn open(path: &Path) -> Result<Option<Self>, OpenError> {
        if !path.is_file() {
            open_checks::check_lost_changes(path, None)?;
            return Ok(None);
        }
        open_checks::refuse_emptied(path)?;
        let conn = schema::open_reader(path, &SqliteOptions::default())?;
        let (found, known) = (
            schema::schema_version(&conn).map_err(open_checks::classify_error)?,
            schema::known_version(),
        );
        if found > known {
            return Err(OpenError::NewerSchema { found, known });
        }
        if found == 0 {
            open_checks::check_lost_changes(path, None)?;
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
        Ok(!script::ask(&self.conn(), &keys::signing_key())?.is_empty())
    }

    pub(crate) fn check(&self) -> Result<Vec<String>, OpenError> {
        match open_checks::check_database(&mut self.conn(), None)? {
            CheckOutcome::Damaged(findings) => Ok(findings),
            CheckOutcome::Whole | CheckOutcome::Partly => Ok(Vec::new()),
        }
    }

    pub(crate) fn loss(&self) -> Result<Option<LostChanges>, OpenError> {
        match open_checks::check_lost_changes(&self.path, Some(&self.conn())) {
            Err(OpenError::Lost(loss)) => Ok(Some(loss)),
            judged => judged.map(|()| None),
        }
    }

    pub(crate) fn count(&self) -> Result<u64, StoreError> {
        let count = self
            .conn()
            .query_row("SELECT count(*) FROM tasks", [], |row| row.get::<_, i64>(0));
        Ok(count.map_err(SqliteFault::from)?.unsigned_abs())
    }

    pub(crate) fn tasks(
        &self,
        each: &mut dyn FnMut(Result<&Task, &StoreError>),
    ) -> Result<(), StoreError> {
        Ok(for_each_row(&self.conn(), each)?)
    }

    pub(crate) fn task(&self, id: TaskId) -> Result<Option<Arc<Task>>, StoreError> {
        let found = rows::find(&self.conn(), id)?;
        Ok(found.map(|record| record.task.clone()))
    }

    pub(crate) fn find_uploads(&self, keys: &[String]) -> Result<HashSet<String>, StoreError> {
        let used = uploads::used_keys(SqlDialect::Sqlite, keys);
        Ok(script::ask(&self.conn(), &used)?.into_iter().collect())
    }

    pub(crate) fn uploads(&self) -> Result<Vec<StoredFile>, StoreError> {
        self.read(|conn| script::ask(conn, &uploads::stored_bytes()))
    }

    pub(crate) fn overdue_uploads(&self, due_ms: UnixMs) -> Result<u64, StoreError> {
        let counts = self.read(|conn| script::ask(conn, &uploads::count_due(due_ms)))?;
        Ok(counts.first().copied().unwrap_or(0))
    }

    /// Runs any read.
    fn read<T>(&self, read: impl FnOnce(&Connection) -> SqliteResult<T>) -> Result<T, StoreError> {
        Ok(read(&self.conn())?)
    }

    fn conn(&self) -> MutexGuard<'_, Connection> {
        self.conn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn for_each_row(
    conn: &Connection,
    each: &mut dyn FnMut(Result<&Task, &StoreError>),
) -> SqliteResult<()> {
    let mut query = conn.prepare(&format!("SELECT {COLUMNS} FROM tasks ORDER BY seq"))?;
    let mut found = query.query([])?;
    while let Some(row) = found.next()? {
        match rows::read(row) {
            Ok(record) => each(Ok(&record.task)),
            Err(SqliteFault::Corrupt(error)) => each(Err(&StoreError::Corrupt(error))),
            Err(fault) => return Err(fault),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use kinora_contract::limits::KEY_LOG_ENTRIES_MAX;

    use super::*;
    use crate::KeyActor;
    use crate::tables::keys;
    use crate::{KeyAction, KeyActionKind};

    #[test]
    fn the_newest_entries_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.db");
        let conn = schema::open_writer(&path, &SqliteOptions::default()).unwrap();
        let entry = |number: u64| KeyAction {
            at_ms: number,
            kind: KeyActionKind::Created,
            key: format!("key_{number}"),
            name: String::new(),
            project: "one".to_owned(),
            successor: None,
            by: KeyActor {
                user: "alice".to_owned(),
                host: "host".to_owned(),
            },
        };
        let most = KEY_LOG_ENTRIES_MAX as u64;
        let together = conn.unchecked_transaction().unwrap();
        for number in 0..most + 3 {
            script::run(&together, &keys::log_entry(&entry(number))).unwrap();
        }
        script::run(&together, &keys::trim_log()).unwrap();
        together.commit().unwrap();
        let kept = script::ask(&conn, &keys::log(None)).unwrap();
        assert_eq!(kept.len(), KEY_LOG_ENTRIES_MAX);
        assert_eq!(kept.first(), Some(&entry(most + 2)));
        assert_eq!(kept.last(), Some(&entry(3)));
    }
}
