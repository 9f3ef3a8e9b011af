//! Keys and webhooks of a SQLite store for commands beside the process that serves it.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use kinora_contract::Clock;
use rusqlite::{Connection, Transaction, TransactionBehavior};

use super::fault::Done;
use super::inspector::Inspector;
use super::{carrying, read_overview, schema, script};
use crate::backend::Tables;
use crate::sql::{Dialect, Question, Script};
use crate::tables::{keys, tallies};
use crate::{
    KeyAction, OpenError, Operations, Overview, SqliteOptions, StoreError, TallyRequest, TallyRow,
};

/// A store, beside the process that serves it.
#[derive(Debug)]
pub(crate) struct SqliteBeside {
    conn: Mutex<Connection>,
}

impl SqliteBeside {
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
impl Tables for SqliteBeside {
    const DIALECT: Dialect = Dialect::Sqlite;

    async fn ask<T: Send + 'static>(&self, question: Question<T>) -> Result<Vec<T>, StoreError> {
        Ok(script::ask(&self.conn(), &question)?)
    }

    async fn run<S: Script>(&self, script: S) -> Result<S::Output, StoreError> {
        let conn = self.conn();
        let changed = || -> Done<S::Output> {
            let step = Transaction::new_unchecked(&conn, TransactionBehavior::Immediate)?;
            let changed = script::run_all(&step, &script, 0)?;
            step.commit()?;
            Ok(changed)
        };
        let changed = changed()?;
        // The high-water mark does not count changes by commands: only in the database itself are
        // they safe from an unnoticed loss of the log.
        carrying::carry_over(&conn);
        Ok(changed)
    }
}

/// A store opened for queries. Commands have their own thread, which may block.
#[derive(Debug)]
pub(crate) struct SqliteOperations {
    inspector: Inspector,
    clock: Arc<dyn Clock>,
}

impl SqliteOperations {
    /// Opens the store in the file at `path`.
    pub(crate) fn open(path: &Path, clock: Arc<dyn Clock>) -> Result<Self, OpenError> {
        let inspector =
            Inspector::open(path)?.ok_or_else(|| OpenError::Missing(path.to_owned()))?;
        Ok(Self { inspector, clock })
    }
}

#[async_trait]
impl Operations for SqliteOperations {
    async fn tallies(&self, request: &TallyRequest) -> Result<Vec<TallyRow>, StoreError> {
        self.inspector
            .read(|conn| script::ask(conn, &tallies::sums(request)))
    }

    async fn key_log(&self, project: Option<&str>) -> Result<Vec<KeyAction>, StoreError> {
        self.inspector
            .read(|conn| script::ask(conn, &keys::log(project)))
    }

    async fn overview(&self) -> Result<Overview, StoreError> {
        let script = read_overview(self.clock.read());
        self.inspector.read(|conn| script::read_all(conn, &script))
    }
}

#[cfg(test)]
mod tests {
    use kinora_contract::limits::KEY_LOG_ENTRIES_MAX;

    use super::*;
    use crate::Actor;
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
            by: Actor {
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
