//! The tables of API keys, of the log of their changes (only the newest entries are kept) and of shared
//! secrets. A change of a key and its entry are one transaction.

use std::collections::HashMap;

use kinora_contract::limits::KEY_LOG_ENTRIES_MAX;
use kinora_contract::{Amount, UnixMs};
use serde_json::{from_str, json};

use crate::sql::{SqlDialect, SqlQuery, SqlRow, SqlScript, TypedQuery, UnreadableValue};
use crate::{
    ApiKey, Budget, KeyAction, KeyActionKind, KeyActor, KeyRotation, KeyScope, NewKey, SecretKey,
};

const COLUMNS: &str = "id, sha256, name, project, scopes, models, requests_per_minute, \
     unfinished_max, created_at_ms, expires_at_ms, revoked_at_ms, last_used_at_ms, budget_per_day, \
     budget_per_month";

/// Asks for all keys, newest first.
pub(crate) fn all(dialect: SqlDialect) -> TypedQuery<ApiKey> {
    let number = dialect.number();
    let ask = format!("SELECT {COLUMNS} FROM api_keys ORDER BY created_at_ms DESC, {number} DESC");
    TypedQuery {
        query: SqlQuery::new(ask),
        read,
    }
}

/// Asks for the key with this hash.
pub(crate) fn find(sha256: &[u8; 32]) -> TypedQuery<ApiKey> {
    let ask = format!("SELECT {COLUMNS} FROM api_keys WHERE sha256 = $1");
    TypedQuery {
        query: SqlQuery::new(ask).bind(sha256),
        read,
    }
}

fn read(row: &SqlRow) -> Result<ApiKey, UnreadableValue> {
    let scopes: String = row.get(4)?;
    let models: Option<String> = row.get(5)?;
    let key = NewKey {
        id: row.get(0)?,
        sha256: row.get(1)?,
        name: row.get(2)?,
        project: row.get(3)?,
        scopes: scopes
            .split_ascii_whitespace()
            .map(|name| {
                // Of a newer version, perhaps. Without the scope the key would have fewer permissions than
                // it shows, so it is refused as a whole.
                KeyScope::from_name(name)
                    .ok_or_else(|| UnreadableValue(format!("unknown scope {name:?}")))
            })
            .collect::<Result<_, _>>()?,
        models: models.as_deref().map(from_str).transpose()?,
        requests_per_minute: row.get(6)?,
        unfinished_max: row.get(7)?,
        created_at_ms: row.get(8)?,
        expires_at_ms: row.get(9)?,
        budget: Budget {
            per_day: amount(row, 12)?,
            per_month: amount(row, 13)?,
        },
    };
    Ok(ApiKey {
        key,
        revoked_at_ms: row.get(10)?,
        last_used_at_ms: row.get(11)?,
    })
}

fn amount(row: &SqlRow, at: usize) -> Result<Option<Amount>, UnreadableValue> {
    Ok(row.get::<Option<u64>>(at)?.map(Amount::from_micros))
}

/// Adds a key unchanged.
pub(crate) fn insert(stored: &ApiKey) -> SqlQuery {
    insert_where(stored, "1 = 1")
}

/// Adds a key if `condition` holds; the values of the condition follow those of the key.
fn insert_where(stored: &ApiKey, condition: &str) -> SqlQuery {
    let key = &stored.key;
    let scopes: Vec<&str> = key.scopes.iter().map(|scope| scope.name()).collect();
    let add = format!(
        "INSERT INTO api_keys ({COLUMNS}) \
         SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14 WHERE {condition} RETURNING 1"
    );
    SqlQuery::new(add)
        .bind(&key.id)
        .bind(&key.sha256)
        .bind(&key.name)
        .bind(&key.project)
        .bind(scopes.join(" "))
        .bind(key.models.as_ref().map(|models| json!(models).to_string()))
        .bind(key.requests_per_minute.map(u64::from))
        .bind(key.unfinished_max.map(u64::from))
        .bind(key.created_at_ms)
        .bind(key.expires_at_ms)
        .bind(stored.revoked_at_ms)
        .bind(stored.last_used_at_ms)
        .bind(key.budget.per_day.map(Amount::micros))
        .bind(key.budget.per_month.map(Amount::micros))
}

fn unused(key: &NewKey) -> ApiKey {
    ApiKey {
        key: key.clone(),
        revoked_at_ms: None,
        last_used_at_ms: None,
    }
}

fn has_changed(answers: &[Vec<SqlRow>]) -> bool {
    // The statement that changes the key is the last one of each script; it returns a row if it
    // changed something.
    answers.last().is_some_and(|rows| !rows.is_empty())
}

/// Adds a key.
#[derive(Debug)]
pub(crate) struct AddKey(pub(crate) NewKey, pub(crate) KeyActor);

impl SqlScript for AddKey {
    type Output = ApiKey;

    fn statements(&self, _: UnixMs) -> Vec<SqlQuery> {
        let Self(key, by) = self;
        vec![
            log_entry(&key.created_by(by)),
            trim_log(),
            insert(&unused(key)),
        ]
    }

    fn output(&self, _: &[Vec<SqlRow>]) -> Result<ApiKey, UnreadableValue> {
        Ok(unused(&self.0))
    }
}

/// Adds a key if there is none.
#[derive(Debug)]
pub(crate) struct AddFirstKey(pub(crate) NewKey, pub(crate) KeyActor);

impl SqlScript for AddFirstKey {
    type Output = bool;

    /// Others that add keys wait until this has ended, and then see its key.
    fn locked_table(&self) -> Option<&'static str> {
        Some("api_keys")
    }

    fn statements(&self, _: UnixMs) -> Vec<SqlQuery> {
        let Self(key, by) = self;
        let is_first = "NOT EXISTS (SELECT 1 FROM api_keys)";
        vec![
            // The entry comes first: its condition must see the table as it is before the key is
            // added.
            log_entry_where(&key.created_by(by), is_first),
            trim_log(),
            insert_where(&unused(key), is_first),
        ]
    }

    fn output(&self, answers: &[Vec<SqlRow>]) -> Result<bool, UnreadableValue> {
        Ok(has_changed(answers))
    }
}

/// Revokes a key.
#[derive(Debug)]
pub(crate) struct RevokeKey(pub(crate) String, pub(crate) UnixMs, pub(crate) KeyActor);

impl SqlScript for RevokeKey {
    type Output = bool;

    fn statements(&self, _: UnixMs) -> Vec<SqlQuery> {
        let Self(id, now_ms, by) = self;
        let [lock, entry, trim] = log_end(id, *now_ms, None, by);
        vec![lock, entry, trim, revoke(id, *now_ms)]
    }

    fn output(&self, answers: &[Vec<SqlRow>]) -> Result<bool, UnreadableValue> {
        Ok(has_changed(answers))
    }
}

fn revoke(id: &str, now_ms: UnixMs) -> SqlQuery {
    let revoke =
        "UPDATE api_keys SET revoked_at_ms = coalesce(revoked_at_ms, $2) WHERE id = $1 RETURNING 1";
    SqlQuery::new(revoke).bind(id).bind(now_ms)
}

/// Replaces a key with another; `None` if there is no such key.
#[derive(Debug)]
pub(crate) struct RotateKey(pub(crate) KeyRotation, pub(crate) KeyActor);

impl SqlScript for RotateKey {
    type Output = Option<ApiKey>;

    fn statements(&self, _: UnixMs) -> Vec<SqlQuery> {
        let Self(rotation, by) = self;
        let KeyRotation {
            old,
            new,
            now_ms,
            grace_ms,
        } = rotation;
        let end = if *grace_ms == 0 {
            revoke(old, *now_ms)
        } else {
            let end = "UPDATE api_keys SET expires_at_ms = CASE WHEN expires_at_ms < $2 THEN expires_at_ms ELSE $2 END \
                       WHERE id = $1 RETURNING 1";
            SqlQuery::new(end)
                .bind(old)
                .bind(now_ms.saturating_add(*grace_ms))
        };
        let [lock, entry, trim] = log_end(old, *now_ms, Some(&new.id), by);
        // Adds nothing if the old key does not exist, so that the script ends without a change
        // then.
        let is_known = "EXISTS (SELECT 1 FROM api_keys WHERE id = $15)";
        let add = insert_where(&unused(new), is_known).bind(old);
        vec![lock, entry, trim, end, add, take_over_budget(old, &new.id)]
    }

    fn output(&self, answers: &[Vec<SqlRow>]) -> Result<Option<ApiKey>, UnreadableValue> {
        Ok(has_changed(answers).then(|| unused(&self.0.new)))
    }
}

/// Lets a new key spend from the budget of the one that it replaces, with which it shares the sums from then on.
fn take_over_budget(old: &str, new: &str) -> SqlQuery {
    let take = "UPDATE api_keys SET budget_id = (SELECT coalesce(budget_id, id) FROM api_keys WHERE id = $1) \
                WHERE id = $2 RETURNING 1";
    SqlQuery::new(take).bind(old).bind(new)
}

/// Ids of keys, and the time of the last use of each.
pub(crate) type KeyUses = HashMap<String, UnixMs>;

/// Records when keys were last used.
#[derive(Debug)]
pub(crate) struct RecordUses(pub(crate) KeyUses);

impl SqlScript for RecordUses {
    type Output = ();

    fn statements(&self, _: UnixMs) -> Vec<SqlQuery> {
        let record = "UPDATE api_keys SET last_used_at_ms = $2 WHERE id = $1 RETURNING 1";
        self.0
            .iter()
            .map(|(id, used_at_ms)| SqlQuery::new(record).bind(id).bind(*used_at_ms))
            .collect()
    }

    fn output(&self, _: &[Vec<SqlRow>]) -> Result<(), UnreadableValue> {
        Ok(())
    }
}

const ENTRY: &str = "at_ms, kind, key, name, project, successor, \"user\", host";

/// Asks for the log of one project or of all, newest first.
pub(crate) fn log(project: Option<&str>) -> TypedQuery<KeyAction> {
    let ask = format!(
        "SELECT {ENTRY} FROM key_log WHERE $1 IS NULL OR project = $1 ORDER BY number DESC"
    );
    TypedQuery {
        query: SqlQuery::new(ask).bind(project.map(str::to_owned)),
        read: read_entry,
    }
}

fn read_entry(row: &SqlRow) -> Result<KeyAction, UnreadableValue> {
    let kind: String = row.get(1)?;
    Ok(KeyAction {
        at_ms: row.get(0)?,
        kind: KeyActionKind::from_name(&kind)
            .ok_or_else(|| UnreadableValue(format!("unknown change of a key {kind:?}")))?,
        key: row.get(2)?,
        name: row.get(3)?,
        project: row.get(4)?,
        successor: row.get(5)?,
        by: KeyActor {
            user: row.get(6)?,
            host: row.get(7)?,
        },
    })
}

/// Adds an entry to the log.
pub(crate) fn log_entry(entry: &KeyAction) -> SqlQuery {
    log_entry_where(entry, "1 = 1")
}

fn log_entry_where(entry: &KeyAction, condition: &str) -> SqlQuery {
    let add = format!(
        "INSERT INTO key_log ({ENTRY}) SELECT $1, $2, $3, $4, $5, $6, $7, $8 WHERE {condition} RETURNING 1"
    );
    SqlQuery::new(add)
        .bind(entry.at_ms)
        .bind(entry.kind.name())
        .bind(&entry.key)
        .bind(&entry.name)
        .bind(&entry.project)
        .bind(entry.successor.clone())
        .bind(&entry.by.user)
        .bind(&entry.by.host)
}

/// Records the end of a key before the change, so that revoking twice adds one entry. Another
/// transaction that ends the same key waits for the first statement.
fn log_end(id: &str, at_ms: UnixMs, successor: Option<&str>, by: &KeyActor) -> [SqlQuery; 3] {
    let kind = match successor {
        Some(_) => KeyActionKind::Rotated,
        None => KeyActionKind::Revoked,
    };
    // An update that changes nothing locks the row in PostgreSQL. A concurrent revocation waits
    // here, then sees `revoked_at_ms` set and adds no second entry.
    let lock = SqlQuery::new("UPDATE api_keys SET id = id WHERE id = $1 RETURNING 1").bind(id);
    let add = format!(
        "INSERT INTO key_log ({ENTRY}) SELECT $2, $3, id, name, project, $4, $5, $6 FROM api_keys \
         WHERE id = $1 AND ($4 IS NOT NULL OR revoked_at_ms IS NULL) RETURNING 1"
    );
    let add = SqlQuery::new(add)
        .bind(id)
        .bind(at_ms)
        .bind(kind.name())
        .bind(successor.map(str::to_owned))
        .bind(&by.user)
        .bind(&by.host);
    [lock, add, trim_log()]
}

/// Removes the oldest entries of the log beyond the limit.
pub(crate) fn trim_log() -> SqlQuery {
    // By number, not by count: this reads only the largest number and the rows to remove. Gaps in the
    // numbers make the log shorter, never longer.
    let trim =
        "DELETE FROM key_log WHERE number <= (SELECT max(number) FROM key_log) - $1 RETURNING 1";
    SqlQuery::new(trim).bind(KEY_LOG_ENTRIES_MAX as u64)
}

pub(crate) const SIGNING_KEY: &str = "signing_key";

/// Asks for the key that signs result addresses.
pub(crate) fn signing_key() -> TypedQuery<SecretKey> {
    TypedQuery {
        query: SqlQuery::new("SELECT value FROM secrets WHERE name = $1").bind(SIGNING_KEY),
        read: read_signing_key,
    }
}

fn read_signing_key(row: &SqlRow) -> Result<SecretKey, UnreadableValue> {
    let key = row.get(0).map(SecretKey);
    key.map_err(|_| UnreadableValue("the signing key does not have 32 bytes".to_owned()))
}

/// Adds the key if there is none.
pub(crate) fn insert_signing_key(key: &SecretKey) -> SqlQuery {
    let add = "INSERT INTO secrets (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING RETURNING 1";
    SqlQuery::new(add).bind(SIGNING_KEY).bind(&key.0)
}

/// Keeps a key that signs result addresses, if there is none.
#[derive(Debug)]
pub(crate) struct AddSigningKey(pub(crate) SecretKey);

impl SqlScript for AddSigningKey {
    type Output = SecretKey;

    fn statements(&self, _: UnixMs) -> Vec<SqlQuery> {
        // Another process may have been faster. The insert waits for its transaction and then does nothing,
        // so the second statement reads the key that all processes use.
        vec![insert_signing_key(&self.0), signing_key().query]
    }

    fn output(&self, answers: &[Vec<SqlRow>]) -> Result<SecretKey, UnreadableValue> {
        let kept = answers.last().and_then(|rows| rows.first());
        read_signing_key(kept.ok_or_else(|| UnreadableValue("the signing key is gone".to_owned()))?)
    }
}

/// Replaces the key that signs result addresses.
#[derive(Debug)]
pub(crate) struct ReplaceSigningKey(pub(crate) SecretKey);

impl SqlScript for ReplaceSigningKey {
    type Output = ();

    fn statements(&self, _: UnixMs) -> Vec<SqlQuery> {
        let replace = "INSERT INTO secrets (name, value) VALUES ($1, $2) \
                       ON CONFLICT (name) DO UPDATE SET value = excluded.value RETURNING 1";
        vec![SqlQuery::new(replace).bind(SIGNING_KEY).bind(&self.0.0)]
    }

    fn output(&self, _: &[Vec<SqlRow>]) -> Result<(), UnreadableValue> {
        Ok(())
    }
}
