//! API keys in SQLite: how they are stored, changed by the serving process and by commands beside it. How the serving
//! process reads them is in [`reader`].

pub(super) mod reader;

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use kinora_contract::UnixMs;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, TransactionBehavior, params};
use serde_json::{from_str, to_string};

use super::batch::Batch;
use super::carrying;
use super::columns::int;
use super::fault::{Done, Fault};
use super::job::Operation;
use super::schema;
use crate::{ApiKey, KeyStore, NewKey, OpenError, Scope, SqliteOptions, StoreError};

const COLUMNS: &str = "id, sha256, name, project, scopes, models, requests_per_minute, \
     unfinished_max, created_at_ms, expires_at_ms, revoked_at_ms, last_used_at_ms";

/// The keys of a store, beside the process that serves it.
#[derive(Debug)]
pub struct SqliteKeys {
    conn: Mutex<Connection>,
}

impl SqliteKeys {
    /// Opens the keys of the store in the file at `path`.
    ///
    /// # Errors
    /// [`OpenError::Missing`] where there is no such file; otherwise another [`OpenError`], with a
    /// message that is fit for an operator.
    pub fn open(path: &Path, options: &SqliteOptions) -> Result<Self, OpenError> {
        if !path.try_exists().map_err(schema::unavailable)? {
            return Err(OpenError::Missing(path.to_owned()));
        }
        let conn = schema::open_writer(path, options)?;
        schema::refuse_unfinished_import(&conn)?;
        Ok(Self {
            conn: Mutex::new(conn),
        })
    }

    fn conn(&self) -> MutexGuard<'_, Connection> {
        self.conn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl KeyStore for SqliteKeys {
    async fn add_key(&self, key: NewKey) -> Result<ApiKey, StoreError> {
        let conn = self.conn();
        let added = add(&conn, &key)?;
        carry_over(&conn);
        Ok(added)
    }

    async fn add_first_key(&self, key: NewKey) -> Result<bool, StoreError> {
        let conn = self.conn();
        let added = || -> Done<bool> {
            let step = Transaction::new_unchecked(&conn, TransactionBehavior::Immediate)?;
            let added = add_first(&step, &key)?;
            step.commit()?;
            Ok(added)
        };
        let added = added()?;
        carry_over(&conn);
        Ok(added)
    }

    async fn list_keys(&self) -> Result<Vec<ApiKey>, StoreError> {
        Ok(list(&self.conn())?)
    }

    async fn find_key(
        &self,
        sha256: &[u8; 32],
        _now_ms: UnixMs,
    ) -> Result<Option<Arc<ApiKey>>, StoreError> {
        Ok(find(&self.conn(), sha256)?.map(Arc::new))
    }

    async fn revoke_key(&self, id: &str, now_ms: UnixMs) -> Result<bool, StoreError> {
        let conn = self.conn();
        let revoked = revoke(&conn, id, now_ms)?;
        carry_over(&conn);
        Ok(revoked)
    }

    async fn rotate_key(
        &self,
        old: &str,
        new: NewKey,
        now_ms: UnixMs,
        grace_ms: u64,
    ) -> Result<Option<ApiKey>, StoreError> {
        let conn = self.conn();
        let rotate = RotateKey {
            old: old.to_owned(),
            new,
            now_ms,
            grace_ms,
        };
        let rotated = || -> Done<Option<ApiKey>> {
            let step = Transaction::new_unchecked(&conn, TransactionBehavior::Immediate)?;
            let added = rotate.run(&step)?;
            step.commit()?;
            Ok(added)
        };
        let rotated = rotated()?;
        carry_over(&conn);
        Ok(rotated)
    }
}

/// The high-water mark does not count what commands change: only what is in the database cannot be lost with the log
/// unnoticed.
fn carry_over(conn: &Connection) {
    carrying::carry_over(conn);
}

/// Adds a key, by the writer.
#[derive(Debug)]
pub(super) struct AddKey(pub(super) NewKey);

impl Operation for AddKey {
    type Output = ApiKey;

    fn apply(&self, batch: &mut Batch<'_>) -> Done<ApiKey> {
        add(batch.conn, &self.0)
    }
}

/// Adds a key where there is none, by the writer.
#[derive(Debug)]
pub(super) struct AddFirstKey(pub(super) NewKey);

impl Operation for AddFirstKey {
    type Output = bool;

    fn apply(&self, batch: &mut Batch<'_>) -> Done<bool> {
        add_first(batch.conn, &self.0)
    }
}

/// Revokes a key, by the writer.
#[derive(Debug)]
pub(super) struct RevokeKey(pub(super) String, pub(super) UnixMs);

impl Operation for RevokeKey {
    type Output = bool;

    fn apply(&self, batch: &mut Batch<'_>) -> Done<bool> {
        revoke(batch.conn, &self.0, self.1)
    }
}

/// Puts a key in the place of another.
#[derive(Debug)]
pub(super) struct RotateKey {
    pub(super) old: String,
    pub(super) new: NewKey,
    pub(super) now_ms: UnixMs,
    pub(super) grace_ms: u64,
}

impl RotateKey {
    /// Within a transaction.
    fn run(&self, conn: &Connection) -> Done<Option<ApiKey>> {
        let found = if self.grace_ms == 0 {
            revoke(conn, &self.old, self.now_ms)?
        } else {
            end(conn, &self.old, self.now_ms.saturating_add(self.grace_ms))?
        };
        found.then(|| add(conn, &self.new)).transpose()
    }
}

impl Operation for RotateKey {
    type Output = Option<ApiKey>;

    fn apply(&self, batch: &mut Batch<'_>) -> Done<Option<ApiKey>> {
        self.run(batch.conn)
    }
}

/// Ids of keys, and when each was used.
pub(super) type Uses = HashMap<String, UnixMs>;

/// Keeps when keys were last used.
#[derive(Debug)]
pub(super) struct NoteUses(pub(super) Uses);

impl Operation for NoteUses {
    type Output = ();

    fn apply(&self, batch: &mut Batch<'_>) -> Done<()> {
        let mut query = batch
            .conn
            .prepare_cached("UPDATE api_keys SET last_used_at_ms = ?2 WHERE id = ?1")?;
        for (id, used_at_ms) in &self.0 {
            query.execute(params![id, int(*used_at_ms)])?;
        }
        Ok(())
    }
}

fn add(conn: &Connection, key: &NewKey) -> Done<ApiKey> {
    let added = ApiKey {
        key: key.clone(),
        revoked_at_ms: None,
        last_used_at_ms: None,
    };
    insert(conn, &added)?;
    Ok(added)
}

/// Adds a key as it is.
pub(super) fn insert(conn: &Connection, stored: &ApiKey) -> Done<()> {
    let key = &stored.key;
    let scopes: Vec<&str> = key.scopes.iter().map(|scope| scope.name()).collect();
    let mut query = conn.prepare_cached(&format!(
        "INSERT INTO api_keys ({COLUMNS}) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)"
    ))?;
    query.execute(params![
        key.id,
        key.sha256,
        key.name,
        key.project,
        scopes.join(" "),
        key.models.as_ref().map(to_string).transpose()?,
        key.requests_per_minute,
        key.unfinished_max,
        int(key.created_at_ms),
        key.expires_at_ms.map(int),
        stored.revoked_at_ms.map(int),
        stored.last_used_at_ms.map(int),
    ])?;
    Ok(())
}

fn add_first(conn: &Connection, key: &NewKey) -> Done<bool> {
    let any = conn.query_row("SELECT EXISTS (SELECT 1 FROM api_keys)", [], |row| {
        row.get(0)
    });
    if any? {
        return Ok(false);
    }
    add(conn, key).map(|_| true)
}

fn revoke(conn: &Connection, id: &str, now_ms: UnixMs) -> Done<bool> {
    let mut query = conn.prepare_cached(
        "UPDATE api_keys SET revoked_at_ms = coalesce(revoked_at_ms, ?2) WHERE id = ?1",
    )?;
    Ok(query.execute(params![id, int(now_ms)])? == 1)
}

/// Has a key expire at `ends_at_ms` at the latest.
fn end(conn: &Connection, id: &str, ends_at_ms: UnixMs) -> Done<bool> {
    let mut query = conn.prepare_cached(
        "UPDATE api_keys SET expires_at_ms = min(coalesce(expires_at_ms, ?2), ?2) WHERE id = ?1",
    )?;
    Ok(query.execute(params![id, int(ends_at_ms)])? == 1)
}

fn find(conn: &Connection, sha256: &[u8; 32]) -> Done<Option<ApiKey>> {
    let mut query =
        conn.prepare_cached(&format!("SELECT {COLUMNS} FROM api_keys WHERE sha256 = ?1"))?;
    let found = query.query_row([sha256], |row| Ok(read(row))).optional()?;
    found.transpose()
}

/// Newest first.
pub(super) fn list(conn: &Connection) -> Done<Vec<ApiKey>> {
    let mut query = conn.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM api_keys ORDER BY created_at_ms DESC, rowid DESC"
    ))?;
    let keys: Vec<Done<ApiKey>> = query
        .query_map([], |row| Ok(read(row)))?
        .collect::<Result<_, _>>()?;
    keys.into_iter().collect()
}

fn read(row: &Row<'_>) -> Done<ApiKey> {
    let time = |column| -> Done<Option<UnixMs>> {
        let value: Option<i64> = row.get(column)?;
        Ok(value.map(|value| u64::try_from(value).unwrap_or(0)))
    };
    let scopes: String = row.get("scopes")?;
    let scope = |name| {
        Scope::from_name(name).ok_or_else(|| Fault::Corrupt(format!("unknown scope {name:?}")))
    };
    let models: Option<String> = row.get("models")?;
    let key = NewKey {
        id: row.get("id")?,
        sha256: row.get("sha256")?,
        name: row.get("name")?,
        project: row.get("project")?,
        scopes: scopes
            .split_ascii_whitespace()
            .map(scope)
            .collect::<Done<_>>()?,
        models: models.as_deref().map(from_str).transpose()?,
        requests_per_minute: row.get("requests_per_minute")?,
        unfinished_max: row.get("unfinished_max")?,
        created_at_ms: time("created_at_ms")?.unwrap_or(0),
        expires_at_ms: time("expires_at_ms")?,
    };
    Ok(ApiKey {
        key,
        revoked_at_ms: time("revoked_at_ms")?,
        last_used_at_ms: time("last_used_at_ms")?,
    })
}
