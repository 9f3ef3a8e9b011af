//! API keys in SQLite: their storage, and changes by the serving process and by commands beside it.
//! [`reader`] has the reads of the serving process.

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
use super::key_log;
use super::schema;
use super::script;
use crate::tables::secrets::ReplaceSigningKey;
use crate::{
    Actor, ApiKey, KeyRotation, KeyStore, NewKey, OpenError, Scope, SecretKey, SqliteOptions,
    StoreError,
};

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
    /// [`OpenError::Missing`] if there is no such file; otherwise another [`OpenError`], with a
    /// message for operators.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let conn = Mutex::new(open_beside(path)?);
        Ok(Self { conn })
    }

    fn conn(&self) -> MutexGuard<'_, Connection> {
        self.conn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes keys in one transaction.
    fn change<T>(&self, change: impl FnOnce(&Connection) -> Done<T>) -> Result<T, StoreError> {
        let conn = self.conn();
        let changed = || -> Done<T> {
            let step = Transaction::new_unchecked(&conn, TransactionBehavior::Immediate)?;
            let changed = change(&step)?;
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

/// A command's connection, beside the process that serves the store. Never creates a store.
pub(super) fn open_beside(path: &Path) -> Result<Connection, OpenError> {
    if !path.try_exists().map_err(schema::unavailable)? {
        return Err(OpenError::Missing(path.to_owned()));
    }
    let conn = schema::open_writer(path, &SqliteOptions::default())?;
    schema::refuse_unfinished_import(&conn)?;
    Ok(conn)
}

#[async_trait]
impl KeyStore for SqliteKeys {
    async fn add_key(&self, key: NewKey, by: &Actor) -> Result<ApiKey, StoreError> {
        self.change(|conn| add_logged(conn, &key, by))
    }

    async fn add_first_key(&self, key: NewKey, by: &Actor) -> Result<bool, StoreError> {
        self.change(|conn| add_first(conn, &key, by))
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

    async fn revoke_key(&self, id: &str, now_ms: UnixMs, by: &Actor) -> Result<bool, StoreError> {
        self.change(|conn| revoke(conn, id, now_ms, by))
    }

    async fn rotate_key(
        &self,
        rotation: KeyRotation,
        by: &Actor,
    ) -> Result<Option<ApiKey>, StoreError> {
        self.change(|conn| rotate(conn, &rotation, by))
    }

    async fn replace_signing_key(&self, new: SecretKey) -> Result<(), StoreError> {
        self.change(|conn| script::run_all(conn, &ReplaceSigningKey(new), 0))
    }
}

/// Adds a key, through the writer.
#[derive(Debug)]
pub(super) struct AddKey(pub(super) NewKey, pub(super) Actor);

impl Operation for AddKey {
    type Output = ApiKey;

    fn apply(&self, batch: &mut Batch<'_>) -> Done<ApiKey> {
        add_logged(batch.conn, &self.0, &self.1)
    }
}

/// Adds a key if there is none, through the writer.
#[derive(Debug)]
pub(super) struct AddFirstKey(pub(super) NewKey, pub(super) Actor);

impl Operation for AddFirstKey {
    type Output = bool;

    fn apply(&self, batch: &mut Batch<'_>) -> Done<bool> {
        add_first(batch.conn, &self.0, &self.1)
    }
}

/// Revokes a key, through the writer.
#[derive(Debug)]
pub(super) struct RevokeKey(pub(super) String, pub(super) UnixMs, pub(super) Actor);

impl Operation for RevokeKey {
    type Output = bool;

    fn apply(&self, batch: &mut Batch<'_>) -> Done<bool> {
        revoke(batch.conn, &self.0, self.1, &self.2)
    }
}

/// Replaces a key, through the writer.
#[derive(Debug)]
pub(super) struct RotateKey(pub(super) KeyRotation, pub(super) Actor);

impl Operation for RotateKey {
    type Output = Option<ApiKey>;

    fn apply(&self, batch: &mut Batch<'_>) -> Done<Option<ApiKey>> {
        rotate(batch.conn, &self.0, &self.1)
    }
}

/// Ids of keys, and the time of each use.
pub(super) type Uses = HashMap<String, UnixMs>;

/// Stores when keys were last used.
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

fn add_logged(conn: &Connection, key: &NewKey, by: &Actor) -> Done<ApiKey> {
    let added = add(conn, key)?;
    key_log::add(conn, &key.created_by(by))?;
    Ok(added)
}

/// Adds a key unchanged.
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

fn add_first(conn: &Connection, key: &NewKey, by: &Actor) -> Done<bool> {
    let any = conn.query_row("SELECT EXISTS (SELECT 1 FROM api_keys)", [], |row| {
        row.get(0)
    });
    if any? {
        return Ok(false);
    }
    add_logged(conn, key, by).map(|_| true)
}

fn revoke(conn: &Connection, id: &str, now_ms: UnixMs, by: &Actor) -> Done<bool> {
    key_log::note_end(conn, id, now_ms, None, by)?;
    end_now(conn, id, now_ms)
}

fn rotate(conn: &Connection, rotation: &KeyRotation, by: &Actor) -> Done<Option<ApiKey>> {
    let KeyRotation {
        old,
        new,
        now_ms,
        grace_ms,
    } = rotation;
    key_log::note_end(conn, old, *now_ms, Some(&new.id), by)?;
    let found = match grace_ms {
        0 => end_now(conn, old, *now_ms)?,
        _ => end(conn, old, now_ms.saturating_add(*grace_ms))?,
    };
    found.then(|| add(conn, new)).transpose()
}

fn end_now(conn: &Connection, id: &str, now_ms: UnixMs) -> Done<bool> {
    let mut query = conn.prepare_cached(
        "UPDATE api_keys SET revoked_at_ms = coalesce(revoked_at_ms, ?2) WHERE id = ?1",
    )?;
    Ok(query.execute(params![id, int(now_ms)])? == 1)
}

/// Makes a key expire at `ends_at_ms` at the latest.
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
