//! API keys in the serving process. It caches keys, and reads one counter at most every quarter of
//! a second to learn whether commands have changed them, so that a revoked key is refused within a
//! second.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use kinora_contract::{Clock, UnixMs};
use rusqlite::Connection;

use super::fault::SqliteResult;
use super::rows::counter;
use super::schema;
use super::script;
use crate::sql::SqlDialect;
use crate::tables::keys::{self, KeyUses};
use crate::{ApiKey, OpenError, SqliteOptions};

/// Maximum age of the last read of the counter.
const AGE_MAX: Duration = Duration::from_millis(250);
/// Maximum number of cached keys; beyond it all are dropped and looked up again.
const KNOWN_MAX: usize = 10_000;

/// API keys for the serving process.
#[derive(Debug)]
pub(super) struct KeyReader {
    conn: Mutex<Connection>,
    /// Determines the age of the cache.
    clock: Arc<dyn Clock>,
    cached: RwLock<CachedKeys>,
    /// Uses that are not written yet.
    uses: Mutex<KeyUses>,
}

#[derive(Debug, Default)]
struct CachedKeys {
    keys: HashMap<[u8; 32], CachedKey>,
    /// Value of the counter `api_keys`.
    edition: u64,
    /// When the counter was read, by the store's steady clock.
    checked: Option<Duration>,
}

#[derive(Debug)]
struct CachedKey {
    key: Arc<ApiKey>,
    /// 0: never.
    used_at_ms: AtomicU64,
}

impl KeyReader {
    pub(super) fn open(
        path: &Path,
        options: &SqliteOptions,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, OpenError> {
        let conn = Mutex::new(schema::open_reader(path, options)?);
        Ok(Self {
            conn,
            clock,
            cached: RwLock::default(),
            uses: Mutex::default(),
        })
    }

    /// The cached key, at most [`AGE_MAX`] old.
    pub(super) fn cached(&self, sha256: &[u8; 32], now_ms: UnixMs) -> Option<Arc<ApiKey>> {
        let known = self.cached.read().unwrap_or_else(PoisonError::into_inner);
        let one = known.keys.get(sha256)?;
        if !known.is_fresh(self.clock.steady()) {
            return None;
        }
        self.record_use(one, now_ms);
        Some(one.key.clone())
    }

    /// Whether the key is cached, however old.
    pub(super) fn is_cached(&self, sha256: &[u8; 32]) -> bool {
        let known = self.cached.read().unwrap_or_else(PoisonError::into_inner);
        known.keys.contains_key(sha256)
    }

    /// Occupies the connection.
    #[cfg(test)]
    pub(super) fn keep_busy(&self) -> std::sync::MutexGuard<'_, Connection> {
        self.conn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The key, at most [`AGE_MAX`] old. An unknown one is looked up each time, by the index.
    pub(super) fn find(
        &self,
        sha256: &[u8; 32],
        now_ms: UnixMs,
    ) -> SqliteResult<Option<Arc<ApiKey>>> {
        let conn = self.conn.lock().unwrap_or_else(PoisonError::into_inner);
        // Checked again under the lock: of many requests that waited here, the first one has read the
        // counter for all.
        if let Some(key) = self.cached(sha256, now_ms) {
            return Ok(Some(key));
        }
        // Read the counter before the key: a change between the two is noticed the next time.
        let checked = self.clock.steady();
        let edition = counter(&conn, "api_keys")?;
        let found = script::ask(&conn, &keys::find(sha256))?.pop().map(Arc::new);
        let mut known = self.cached.write().unwrap_or_else(PoisonError::into_inner);
        // A change of any key clears all of them. Keys change by hand, a few times a day, and reading
        // one again takes microseconds.
        if known.edition != edition || known.keys.len() >= KNOWN_MAX {
            known.keys.clear();
        }
        known.edition = edition;
        known.checked = Some(checked);
        if let Some(key) = &found {
            let one = CachedKey {
                key: key.clone(),
                used_at_ms: key.last_used_at_ms.unwrap_or(0).into(),
            };
            self.record_use(&one, now_ms);
            known.keys.insert(*sha256, one);
        }
        Ok(found)
    }

    /// Records a use of a key. Costs one atomic load, except once a minute.
    fn record_use(&self, one: &CachedKey, now_ms: UnixMs) {
        let noted_ms = one.used_at_ms.load(Ordering::Relaxed);
        if !one.key.should_record_use(noted_ms, now_ms) {
            return;
        }
        // Two threads may both get here; the second entry then replaces the first.
        one.used_at_ms.store(now_ms, Ordering::Relaxed);
        let mut uses = self.uses.lock().unwrap_or_else(PoisonError::into_inner);
        uses.insert(one.key.key.id.clone(), now_ms);
    }

    /// The uses recorded since the last call.
    pub(super) fn drain_uses(&self) -> KeyUses {
        std::mem::take(&mut self.uses.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn list(&self) -> SqliteResult<Vec<ApiKey>> {
        let conn = self.conn.lock().unwrap_or_else(PoisonError::into_inner);
        script::ask(&conn, &keys::all(SqlDialect::Sqlite))
    }

    /// Makes a change by this process visible now.
    pub(super) fn expire(&self) {
        self.cached
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .checked = None;
    }
}

impl CachedKeys {
    fn is_fresh(&self, now: Duration) -> bool {
        self.checked
            .is_some_and(|checked| now.saturating_sub(checked) < AGE_MAX)
    }
}
