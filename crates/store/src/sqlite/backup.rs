//! Snapshots by `VACUUM INTO`: one read transaction, so that writers continue and no step has to
//! restart because of them, as in SQLite's backup API when another process writes. The copy is one
//! file without a log and without the pages that held deleted texts
//! (<https://sqlite.org/lang_vacuum.html>).

use std::fs::File;
use std::path::Path;

use kinora_contract::{Artifact, StoredFile, TaskId, VideoSpec};
use rusqlite::{Connection, OptionalExtension, Row};
use serde_json::from_str;

use super::fault::{SqliteFault, SqliteResult};
use super::{recovery, schema, script};
use kinora_contract::lifecycle::reference_keys_for;

use crate::sql::SqlDialect;
use crate::tables::{keys, uploads};
use crate::{
    BackupCounts as Counts, BackupSource, OpenError, SqliteOptions, StoreError, TaskFiles,
};

/// Maximum number of lines that describe a damaged snapshot.
const COMPLAINTS_MAX: usize = 5;

/// A store that another process may be serving.
#[derive(Debug)]
pub struct SqliteSource {
    conn: Connection,
}

impl SqliteSource {
    /// Opens the store in the file at `path`.
    ///
    /// # Errors
    /// [`OpenError::Missing`] if the file is missing or empty.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let conn = schema::open_source(path, &SqliteOptions::default())?;
        schema::refuse_unfinished_import(&conn)?;
        Ok(Self { conn })
    }
}

impl BackupSource for SqliteSource {
    fn snapshot(&self, to: &Path) -> Result<(), StoreError> {
        let name = to.to_str().ok_or_else(|| {
            StoreError::Unavailable(format!("{} is not UTF-8", to.display()).into())
        })?;
        self.conn
            .execute("VACUUM INTO ?1", [name])
            .map_err(SqliteFault::from)?;
        let copy = Connection::open(to).map_err(SqliteFault::from)?;
        // The running tasks of a restored copy did not die with a worker: they continued in the
        // original, and must not count an attempt.
        recovery::mark_copy(&copy)?;
        drop(copy);
        // SQLite does not report whether it has synced the copy.
        let synced = File::open(to).and_then(|file| file.sync_all());
        synced.map_err(|error| StoreError::Unavailable(error.into()))
    }

    fn has_result(&self, task: TaskId) -> Result<bool, StoreError> {
        let phase = "SELECT phase FROM tasks WHERE id = ?1";
        let phase = self
            .conn
            .query_row(phase, [task.to_string()], |row| row.get::<_, String>(0));
        let phase = phase.optional().map_err(SqliteFault::from)?;
        Ok(phase.is_some_and(|phase| phase == "completed"))
    }

    fn has_upload(&self, key: &str) -> Result<bool, StoreError> {
        let used = uploads::used_keys(SqlDialect::Sqlite, &[key.to_owned()]);
        Ok(!script::ask(&self.conn, &used)?.is_empty())
    }
}

/// A snapshot. It is read-only, and has the schema of the original store.
#[derive(Debug)]
pub struct BackupSnapshot {
    conn: Connection,
}

impl BackupSnapshot {
    pub(crate) fn open(file: &Path) -> Result<Self, OpenError> {
        let conn = schema::open_snapshot(file)?;
        Ok(Self { conn })
    }

    /// Checks every page, index and constraint, and that it has no trigger or view of a stranger.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] with the damage.
    pub fn check(&self) -> Result<(), StoreError> {
        let strange = schema::has_unknown_parts(&self.conn)
            .map_err(|error| StoreError::Unavailable(Box::new(error)))?;
        if strange {
            let message = "it has a trigger, a view or a virtual table that is not Kinora's";
            return Err(SqliteFault::Corrupt(message.to_owned()).into());
        }
        Ok(self.complaints()?)
    }

    fn complaints(&self) -> SqliteResult<()> {
        let mut query = self
            .conn
            .prepare(&format!("PRAGMA integrity_check({COMPLAINTS_MAX})"))?;
        let lines = query.query_map([], |row| row.get::<_, String>(0))?;
        let lines: Vec<String> = lines.collect::<Result<_, _>>()?;
        if lines == ["ok"] {
            return Ok(());
        }
        Err(SqliteFault::Corrupt(lines.join("; ")))
    }

    /// Version of its schema.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read.
    pub fn schema(&self) -> Result<u32, StoreError> {
        schema::readable_version(&self.conn)
            .map_err(|error| StoreError::Unavailable(Box::new(error)))
    }

    /// The store's own number; `None` in a schema without one.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read.
    pub fn identity(&self) -> Result<Option<u64>, StoreError> {
        let sql = "SELECT value FROM counters WHERE name = 'identity'";
        let value = self.conn.query_row(sql, [], |row| row.get::<_, i64>(0));
        let value = value.optional().map_err(SqliteFault::from)?;
        Ok(value.map(i64::unsigned_abs))
    }

    /// Whether it has the key that signs result URLs; earlier schemas kept it in a file.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read.
    pub fn has_signing_key(&self) -> Result<bool, StoreError> {
        let there = self.conn.table_exists(None, "secrets");
        if !there.map_err(SqliteFault::from)? {
            return Ok(false);
        }
        Ok(!script::ask(&self.conn, &keys::signing_key())?.is_empty())
    }

    /// Counts its contents.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read.
    pub fn counts(&self) -> Result<Counts, StoreError> {
        Ok(self.count()?)
    }

    fn count(&self) -> SqliteResult<Counts> {
        let mut counts = Counts::default();
        let mut query = self
            .conn
            .prepare("SELECT phase, count(*) FROM tasks GROUP BY phase")?;
        let mut rows = query.query([])?;
        while let Some(row) = rows.next()? {
            let count = row.get::<_, i64>(1)?.unsigned_abs();
            match row.get_ref(0)?.as_str()? {
                "waiting" | "running" => counts.unfinished += count,
                "completed" => counts.completed = count,
                "failed" => counts.failed = count,
                _ => counts.expired += count,
            }
        }
        let keys = "SELECT count(*) FROM api_keys";
        let keys: i64 = self.conn.query_row(keys, [], |row| row.get(0))?;
        counts.keys = keys.unsigned_abs();
        Ok(counts)
    }

    /// The bytes of all uploaded files; earlier schemas have none.
    ///
    /// # Errors
    /// [`StoreError`] if they cannot be read.
    pub fn uploads(&self) -> Result<Vec<StoredFile>, StoreError> {
        let there = self.conn.table_exists(None, "uploads");
        if !there.map_err(SqliteFault::from)? {
            return Ok(Vec::new());
        }
        Ok(script::ask(&self.conn, &uploads::stored_bytes())?)
    }

    /// Calls `each` with every task that has files. Returns the number of unreadable tasks, whose
    /// rows are in the snapshot unchanged.
    ///
    /// # Errors
    /// The error of `each`, or a [`StoreError`] if the snapshot cannot be read.
    pub fn for_each_task<E: From<StoreError>>(
        &self,
        mut each: impl FnMut(TaskFiles) -> Result<(), E>,
    ) -> Result<u64, E> {
        let mut unreadable = 0;
        let sql = |error: rusqlite::Error| StoreError::from(SqliteFault::from(error));
        // Columns that every schema has.
        let mut query = self
            .conn
            .prepare(
                "SELECT id, artifact, spec FROM tasks \
                 WHERE phase IN ('waiting', 'running', 'completed') ORDER BY seq",
            )
            .map_err(sql)?;
        let mut rows = query.query([]).map_err(sql)?;
        while let Some(row) = rows.next().map_err(sql)? {
            match task_files(row) {
                Ok(files) => each(files)?,
                Err(_) => unreadable += 1,
            }
        }
        Ok(unreadable)
    }
}

fn task_files(row: &Row<'_>) -> SqliteResult<TaskFiles> {
    let id: String = row.get("id")?;
    let id: TaskId = id
        .parse()
        .map_err(|_| SqliteFault::Corrupt(format!("{id} is no task id")))?;
    let artifact: Option<String> = row.get("artifact")?;
    let artifact = artifact.as_deref().map(from_str::<Artifact>).transpose()?;
    let spec: VideoSpec = from_str(row.get_ref("spec")?.as_str()?)?;
    // References are needed while the task is unfinished. A draft keeps them for its final.
    let keeps_references = artifact.is_none() || spec.draft;
    Ok(TaskFiles {
        task: id,
        completed: artifact.is_some(),
        results: artifact.map_or_else(Vec::new, |made| made.files().cloned().collect()),
        references: if keeps_references {
            reference_keys_for(id, &spec)
        } else {
            Vec::new()
        },
    })
}
