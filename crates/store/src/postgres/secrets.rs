//! Shared secrets: one row for each.

use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::batch::Batch;
use super::fault::{Done, corrupt};
use super::job::Operation;
use super::statement::Statement;
use crate::SecretKey;

const SIGNING_KEY: &str = "signing_key";

/// Asks for the key that signs result addresses.
pub(super) fn ask() -> Statement {
    Statement::new("SELECT value FROM secrets WHERE name = $1").text(SIGNING_KEY)
}

/// The key in the first of these rows.
pub(super) fn read(rows: &[Row]) -> Done<Option<SecretKey>> {
    let Some(row) = rows.first() else {
        return Ok(None);
    };
    let bytes: &[u8] = row.try_get(0)?;
    let damaged = |_| corrupt("the signing key does not have 32 bytes".to_owned());
    bytes.try_into().map(SecretKey).map(Some).map_err(damaged)
}

/// Adds the key if there is none.
pub(super) fn insert(key: SecretKey) -> Statement {
    let add = "INSERT INTO secrets (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING";
    let add = Statement::new(add).text(SIGNING_KEY);
    add.bind(key.0.to_vec(), Type::BYTEA)
}

/// Keeps a key that signs result addresses, if there is none.
#[derive(Debug)]
pub(super) struct KeepSigningKey(pub(super) SecretKey);

impl Operation for KeepSigningKey {
    type Output = SecretKey;

    async fn apply(&self, batch: &mut Batch<'_>) -> Done<SecretKey> {
        batch.change(insert(self.0)).await?;
        // Another process may have been faster: its key is committed by now.
        let kept = read(&batch.query(ask()).await?)?;
        kept.ok_or_else(|| corrupt("the signing key is gone".to_owned()))
    }
}

/// Replaces the key that signs result addresses.
#[derive(Debug)]
pub(super) struct ReplaceSigningKey(pub(super) SecretKey);

impl Operation for ReplaceSigningKey {
    type Output = ();

    async fn apply(&self, batch: &mut Batch<'_>) -> Done<()> {
        let replace = "INSERT INTO secrets (name, value) VALUES ($1, $2) \
                       ON CONFLICT (name) DO UPDATE SET value = excluded.value RETURNING 1";
        let replace = Statement::new(replace).text(SIGNING_KEY);
        let replace = replace.bind(self.0.0.to_vec(), Type::BYTEA);
        batch.change(replace).await?;
        Ok(())
    }
}
