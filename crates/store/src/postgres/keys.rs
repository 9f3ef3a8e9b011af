//! API keys in PostgreSQL: their rows and changes.

use kinora_contract::UnixMs;
use serde_json::{from_str, to_string};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::batch::Batch;
use super::fault::{Done, corrupt};
use super::job::Operation;
use super::key_log;
use super::statement::Statement;
use crate::stored::int;
use crate::{Actor, ApiKey, KeyRotation, NewKey, Scope};

/// The columns of a key ([`read`]).
pub(super) const COLUMNS: &str = "id, sha256, name, project, scopes, models, requests_per_minute, \
     unfinished_max, created_at_ms, expires_at_ms, revoked_at_ms, last_used_at_ms";

/// Adds a key.
#[derive(Debug)]
pub(super) struct AddKey(pub(super) NewKey, pub(super) Actor);

impl Operation for AddKey {
    type Output = ApiKey;

    async fn apply(&self, batch: &mut Batch<'_>) -> Done<ApiKey> {
        let Self(key, by) = self;
        let added = add(key, batch).await?;
        log(key_log::add(&key.created_by(by)), batch).await?;
        Ok(added)
    }
}

async fn add(key: &NewKey, batch: &mut Batch<'_>) -> Done<ApiKey> {
    let added = ApiKey {
        key: key.clone(),
        revoked_at_ms: None,
        last_used_at_ms: None,
    };
    batch.change(insert(&added)?).await?;
    Ok(added)
}

/// Adds an entry to the log.
async fn log(entry: Statement, batch: &mut Batch<'_>) -> Done<()> {
    batch.change(entry).await?;
    batch.change(key_log::trim()).await?;
    Ok(())
}

/// Adds a key unchanged.
pub(super) fn insert(stored: &ApiKey) -> Done<Statement> {
    let key = &stored.key;
    let scopes: Vec<&str> = key.scopes.iter().map(|scope| scope.name()).collect();
    let models = key.models.as_ref().map(to_string).transpose()?;
    let number = |value: Option<u32>| value.map(i64::from);
    let add = Statement::new(format!(
        "INSERT INTO api_keys ({COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)"
    ));
    Ok(add
        .text(key.id.clone())
        .bind(key.sha256.to_vec(), Type::BYTEA)
        .text(key.name.clone())
        .text(key.project.clone())
        .text(scopes.join(" "))
        .bind(models, Type::TEXT)
        .bind(number(key.requests_per_minute), Type::INT8)
        .bind(number(key.unfinished_max), Type::INT8)
        .int(key.created_at_ms)
        .bind(key.expires_at_ms.map(int), Type::INT8)
        .bind(stored.revoked_at_ms.map(int), Type::INT8)
        .bind(stored.last_used_at_ms.map(int), Type::INT8))
}

/// Adds a key if there is none.
#[derive(Debug)]
pub(super) struct AddFirstKey(pub(super) NewKey, pub(super) Actor);

impl Operation for AddFirstKey {
    type Output = bool;

    async fn apply(&self, batch: &mut Batch<'_>) -> Done<bool> {
        // Other transactions that add keys wait until this one has ended, and then see its key.
        let lock = Statement::new("LOCK TABLE api_keys IN SHARE ROW EXCLUSIVE MODE");
        batch.query(lock).await?;
        let any = Statement::new("SELECT 1 FROM api_keys LIMIT 1");
        if !batch.query(any).await?.is_empty() {
            return Ok(false);
        }
        AddKey(self.0.clone(), self.1.clone()).apply(batch).await?;
        Ok(true)
    }
}

/// Revokes a key.
#[derive(Debug)]
pub(super) struct RevokeKey(pub(super) String, pub(super) UnixMs, pub(super) Actor);

impl Operation for RevokeKey {
    type Output = bool;

    async fn apply(&self, batch: &mut Batch<'_>) -> Done<bool> {
        let Self(id, now_ms, by) = self;
        log(key_log::note_end(id, *now_ms, None, by), batch).await?;
        end_now(id, *now_ms, batch).await
    }
}

async fn end_now(id: &str, now_ms: UnixMs, batch: &mut Batch<'_>) -> Done<bool> {
    let revoke =
        "UPDATE api_keys SET revoked_at_ms = coalesce(revoked_at_ms, $2) WHERE id = $1 RETURNING 1";
    let revoke = Statement::new(revoke).text(id).int(now_ms);
    Ok(!batch.change(revoke).await?.is_empty())
}

/// Replaces a key with another.
#[derive(Debug)]
pub(super) struct RotateKey(pub(super) KeyRotation, pub(super) Actor);

impl Operation for RotateKey {
    type Output = Option<ApiKey>;

    async fn apply(&self, batch: &mut Batch<'_>) -> Done<Option<ApiKey>> {
        let Self(rotation, by) = self;
        let KeyRotation {
            old,
            new,
            now_ms,
            grace_ms,
        } = rotation;
        let entry = key_log::note_end(old, *now_ms, Some(&new.id), by);
        log(entry, batch).await?;
        let found = if *grace_ms == 0 {
            end_now(old, *now_ms, batch).await?
        } else {
            let end = "UPDATE api_keys SET expires_at_ms = least(coalesce(expires_at_ms, $2), $2) \
                       WHERE id = $1 RETURNING 1";
            let ends_at_ms = now_ms.saturating_add(*grace_ms);
            let end = Statement::new(end).text(old.clone()).int(ends_at_ms);
            !batch.change(end).await?.is_empty()
        };
        match found {
            true => add(new, batch).await.map(Some),
            false => Ok(None),
        }
    }
}

/// Records the last use of a key.
#[derive(Debug)]
pub(super) struct NoteUse(pub(super) String, pub(super) UnixMs);

impl Operation for NoteUse {
    type Output = ();

    async fn apply(&self, batch: &mut Batch<'_>) -> Done<()> {
        let note = "UPDATE api_keys SET last_used_at_ms = $2 WHERE id = $1";
        let note = Statement::new(note).text(self.0.clone()).int(self.1);
        batch.change(note).await?;
        Ok(())
    }
}

/// Reads a row of [`COLUMNS`].
pub(super) fn read(row: &Row) -> Done<ApiKey> {
    let time = |at: usize| -> Done<Option<UnixMs>> {
        let value: Option<i64> = row.try_get(at)?;
        Ok(value.map(|value| u64::try_from(value).unwrap_or(0)))
    };
    let number = |at: usize| -> Done<Option<u32>> {
        let value: Option<i64> = row.try_get(at)?;
        Ok(value.map(|value| u32::try_from(value).unwrap_or(0)))
    };
    let sha256: &[u8] = row.try_get(1)?;
    let scope =
        |name| Scope::from_name(name).ok_or_else(|| corrupt(format!("unknown scope {name:?}")));
    let scopes: &str = row.try_get(4)?;
    let models: Option<&str> = row.try_get(5)?;
    let key = NewKey {
        id: row.try_get(0)?,
        sha256: sha256
            .try_into()
            .map_err(|_| corrupt("a key's hash has the wrong length".to_owned()))?,
        name: row.try_get(2)?,
        project: row.try_get(3)?,
        scopes: scopes
            .split_ascii_whitespace()
            .map(scope)
            .collect::<Done<_>>()?,
        models: models.map(from_str).transpose()?,
        requests_per_minute: number(6)?,
        unfinished_max: number(7)?,
        created_at_ms: time(8)?.unwrap_or(0),
        expires_at_ms: time(9)?,
    };
    Ok(ApiKey {
        key,
        revoked_at_ms: time(10)?,
        last_used_at_ms: time(11)?,
    })
}
