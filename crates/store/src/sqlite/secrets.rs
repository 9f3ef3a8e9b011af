//! Shared secrets in SQLite.

use rusqlite::{Connection, OptionalExtension, params};

use super::batch::Batch;
use super::fault::{Done, Fault};
use super::job::Operation;
use crate::SecretKey;

const SIGNING_KEY: &str = "signing_key";

/// The key that signs result URLs.
pub(super) fn signing_key(conn: &Connection) -> Done<Option<SecretKey>> {
    let mut query = conn.prepare_cached("SELECT value FROM secrets WHERE name = ?1")?;
    let found: Option<Vec<u8>> = query
        .query_row([SIGNING_KEY], |row| row.get(0))
        .optional()?;
    let key = |bytes: Vec<u8>| bytes.try_into().map(SecretKey).ok();
    let damaged = || Fault::Corrupt("the signing key does not have 32 bytes".to_owned());
    found
        .map(|bytes| key(bytes).ok_or_else(damaged))
        .transpose()
}

/// Stores a key that signs result URLs, if there is none.
#[derive(Debug)]
pub(super) struct KeepSigningKey(pub(super) SecretKey);

impl Operation for KeepSigningKey {
    type Output = SecretKey;

    fn apply(&self, batch: &mut Batch<'_>) -> Done<SecretKey> {
        if let Some(kept) = signing_key(batch.conn)? {
            return Ok(kept);
        }
        insert(batch.conn, &self.0.0)?;
        Ok(self.0)
    }
}

/// Stores the key that signs result URLs.
pub(super) fn insert(conn: &Connection, key: &[u8; 32]) -> Done<()> {
    let mut insert = conn.prepare_cached("INSERT INTO secrets (name, value) VALUES (?1, ?2)")?;
    insert.execute(params![SIGNING_KEY, key])?;
    Ok(())
}

/// Replaces the key that signs result URLs.
#[derive(Debug)]
pub(super) struct ReplaceSigningKey(pub(super) SecretKey);

impl Operation for ReplaceSigningKey {
    type Output = ();

    fn apply(&self, batch: &mut Batch<'_>) -> Done<()> {
        replace(batch.conn, &self.0)
    }
}

/// The same on a connection.
pub(super) fn replace(conn: &Connection, new: &SecretKey) -> Done<()> {
    conn.execute("DELETE FROM secrets WHERE name = ?1", [SIGNING_KEY])?;
    insert(conn, &new.0)
}
