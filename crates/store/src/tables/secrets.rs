//! Shared secrets: one row for each.

use kinora_contract::UnixMs;

use crate::SecretKey;
use crate::sql::{Query, Question, Row, Script, Unreadable};

pub(crate) const SIGNING_KEY: &str = "signing_key";

/// Asks for the key that signs result addresses.
pub(crate) fn signing_key() -> Question<SecretKey> {
    Question {
        query: Query::new("SELECT value FROM secrets WHERE name = $1").bind(SIGNING_KEY),
        read,
    }
}

fn read(row: &Row) -> Result<SecretKey, Unreadable> {
    let damaged = |_: Unreadable| Unreadable("the signing key does not have 32 bytes".to_owned());
    row.get(0).map(SecretKey).map_err(damaged)
}

/// Adds the key if there is none.
pub(crate) fn insert(key: &SecretKey) -> Query {
    let add = "INSERT INTO secrets (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING RETURNING 1";
    Query::new(add).bind(SIGNING_KEY).bind(&key.0)
}

/// Keeps a key that signs result addresses, if there is none.
#[derive(Debug)]
pub(crate) struct KeepSigningKey(pub(crate) SecretKey);

impl Script for KeepSigningKey {
    type Output = SecretKey;

    fn statements(&self, _: UnixMs) -> Vec<Query> {
        // Another process may have been faster: its key is committed by then.
        vec![insert(&self.0), signing_key().query]
    }

    fn output(&self, answers: &[Vec<Row>]) -> Result<SecretKey, Unreadable> {
        let kept = answers.last().and_then(|rows| rows.first());
        read(kept.ok_or_else(|| Unreadable("the signing key is gone".to_owned()))?)
    }
}

/// Replaces the key that signs result addresses.
#[derive(Debug)]
pub(crate) struct ReplaceSigningKey(pub(crate) SecretKey);

impl Script for ReplaceSigningKey {
    type Output = ();

    fn statements(&self, _: UnixMs) -> Vec<Query> {
        let replace = "INSERT INTO secrets (name, value) VALUES ($1, $2) \
                       ON CONFLICT (name) DO UPDATE SET value = excluded.value RETURNING 1";
        vec![Query::new(replace).bind(SIGNING_KEY).bind(&self.0.0)]
    }

    fn output(&self, _: &[Vec<Row>]) -> Result<(), Unreadable> {
        Ok(())
    }
}
