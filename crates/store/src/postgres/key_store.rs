//! The keys of a store, for the process that serves it and for commands beside it. The serving
//! process queries a key at most twice a second (half of [`crate::PostgresOptions::cached_ms_max`]):
//! with the pause between two looks of those who wait with it, a revoked key ends within a second.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use kinora_contract::UnixMs;
use tokio::sync::OnceCell;

use super::beside::Beside;
use super::fault::answered;
use super::lane::Lane;
use super::reads::Reader;
use super::script;
use super::shared::Shared;
use crate::tables::keys::{self, AddFirstKey, AddKey, RecordUses, RevokeKey, RotateKey};
use crate::tables::secrets::ReplaceSigningKey;
use crate::{Actor, ApiKey, KeyRotation, KeyStore, NewKey, OpenError, SecretKey, StoreError};

/// Maximum number of remembered keys; beyond it the process forgets all of them.
const KNOWN_MAX: usize = 10_000;

/// How long a request waits for its key. Then the key as it was last read counts.
const ANSWER_MAX: Duration = Duration::from_secs(2);

/// A key or its absence, with the time of the query.
type Found = (Duration, Option<Arc<ApiKey>>);

/// What queries found since this process last changed a key.
#[derive(Debug, Default)]
struct Known {
    /// Result and time of each query, by hash.
    keys: HashMap<[u8; 32], Found>,
    /// Number of changes so far.
    changes: u64,
}

impl Known {
    /// Keeps the result of a query that was sent after this many changes, unless a change may be newer.
    fn keep(&mut self, sha256: &[u8; 32], found: Found, changes: u64) {
        if self.changes != changes {
            return;
        }
        if self.keys.len() >= KNOWN_MAX {
            self.keys.clear();
        }
        self.keys.insert(*sha256, found);
    }

    /// A key has changed.
    fn forget(&mut self) {
        self.keys.clear();
        self.changes += 1;
    }
}

/// Reads and changes keys.
#[derive(Debug)]
pub(super) struct PostgresKeys {
    pub(super) lane: Lane,
    pub(super) reader: Arc<Reader>,
    pub(super) shared: Arc<Shared>,
    known: Mutex<Known>,
    /// The last recorded use of each key.
    noted: Mutex<HashMap<String, UnixMs>>,
}

impl PostgresKeys {
    pub(super) fn new(lane: Lane, reader: Arc<Reader>, shared: Arc<Shared>) -> Self {
        Self {
            lane,
            reader,
            shared,
            known: Mutex::default(),
            noted: Mutex::default(),
        }
    }

    /// Finds the key with this hash, as it was a moment ago, or, while the server is unreachable,
    /// as last read; records its use.
    pub(super) async fn find_serving(
        &self,
        sha256: &[u8; 32],
        now_ms: UnixMs,
    ) -> Result<Option<Arc<ApiKey>>, StoreError> {
        let asked = self.shared.clock.steady();
        let (known, changes) = {
            let known = lock(&self.known);
            (known.keys.get(sha256).cloned(), known.changes)
        };
        let younger_than = |age_max: u64| {
            let known = known.as_ref();
            let found = known
                .filter(|(at, _)| asked.saturating_sub(*at) < Duration::from_millis(age_max))?;
            Some(found.1.clone())
        };
        let options = &self.shared.options;
        let found = match younger_than(options.cached_ms_max / 2) {
            Some(found) => found,
            None => match answered(ANSWER_MAX, self.find_key(sha256, now_ms)).await {
                Err(error @ StoreError::Unavailable(_)) => {
                    younger_than(options.last_known_ms_max).ok_or(error)?
                }
                asked_for => {
                    let found = asked_for?;
                    lock(&self.known).keep(sha256, (asked, found.clone()), changes);
                    found
                }
            },
        };
        if let Some(key) = &found {
            self.note_use(key, now_ms);
        }
        Ok(found)
    }

    /// Runs in the background, to an accuracy of about a minute.
    fn note_use(&self, key: &ApiKey, now_ms: UnixMs) {
        let mut noted = lock(&self.noted);
        let last_ms = noted.get(&key.key.id).copied().or(key.last_used_at_ms);
        if key.notes_use(last_ms.unwrap_or(0), now_ms) {
            if noted.len() >= KNOWN_MAX {
                noted.clear();
            }
            noted.insert(key.key.id.clone(), now_ms);
            let last_use = [(key.key.id.clone(), now_ms)];
            self.lane.try_send(RecordUses(last_use.into()));
        }
    }

    /// Makes a change of keys visible to this process at once.
    fn forget(&self) {
        lock(&self.known).forget();
    }
}

#[async_trait]
impl KeyStore for PostgresKeys {
    async fn add_key(&self, key: NewKey, by: &Actor) -> Result<ApiKey, StoreError> {
        let added = self.lane.call(AddKey(key, by.clone())).await;
        self.forget();
        added
    }

    async fn add_first_key(&self, key: NewKey, by: &Actor) -> Result<bool, StoreError> {
        let added = self.lane.call(AddFirstKey(key, by.clone())).await;
        self.forget();
        added
    }

    async fn list_keys(&self) -> Result<Vec<ApiKey>, StoreError> {
        script::ask(&self.reader, keys::all("number")).await
    }

    async fn find_key(
        &self,
        sha256: &[u8; 32],
        _now_ms: UnixMs,
    ) -> Result<Option<Arc<ApiKey>>, StoreError> {
        let mut found = script::ask(&self.reader, keys::find(sha256)).await?;
        Ok(found.pop().map(Arc::new))
    }

    async fn revoke_key(&self, id: &str, now_ms: UnixMs, by: &Actor) -> Result<bool, StoreError> {
        let revoked = self
            .lane
            .call(RevokeKey(id.to_owned(), now_ms, by.clone()))
            .await;
        self.forget();
        revoked
    }

    async fn rotate_key(
        &self,
        rotation: KeyRotation,
        by: &Actor,
    ) -> Result<Option<ApiKey>, StoreError> {
        let rotated = self.lane.call(RotateKey(rotation, by.clone())).await;
        self.forget();
        rotated
    }

    async fn replace_signing_key(&self, new: SecretKey) -> Result<(), StoreError> {
        self.lane.call(ReplaceSigningKey(new)).await
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The keys of a store, for commands beside the serving processes. It connects on first use.
#[derive(Debug)]
pub(crate) struct KeysBeside {
    beside: Beside,
    keys: OnceCell<PostgresKeys>,
}

impl KeysBeside {
    /// The keys of the store in the database at `url`.
    pub(crate) fn of(url: &str) -> Result<Self, OpenError> {
        Ok(Self {
            beside: Beside::of(url)?,
            keys: OnceCell::new(),
        })
    }

    async fn keys(&self) -> Result<&PostgresKeys, StoreError> {
        let connect = || async {
            let connected = self.beside.connected().await?;
            let (lane, reader) = (connected.lane.clone(), connected.reader.clone());
            Ok(PostgresKeys::new(lane, reader, connected.shared.clone()))
        };
        self.keys.get_or_try_init(connect).await
    }
}

#[async_trait]
impl KeyStore for KeysBeside {
    async fn add_key(&self, key: NewKey, by: &Actor) -> Result<ApiKey, StoreError> {
        self.keys().await?.add_key(key, by).await
    }

    async fn add_first_key(&self, key: NewKey, by: &Actor) -> Result<bool, StoreError> {
        self.keys().await?.add_first_key(key, by).await
    }

    async fn list_keys(&self) -> Result<Vec<ApiKey>, StoreError> {
        self.keys().await?.list_keys().await
    }

    async fn find_key(
        &self,
        sha256: &[u8; 32],
        now_ms: UnixMs,
    ) -> Result<Option<Arc<ApiKey>>, StoreError> {
        self.keys().await?.find_key(sha256, now_ms).await
    }

    async fn revoke_key(&self, id: &str, now_ms: UnixMs, by: &Actor) -> Result<bool, StoreError> {
        self.keys().await?.revoke_key(id, now_ms, by).await
    }

    async fn rotate_key(
        &self,
        rotation: KeyRotation,
        by: &Actor,
    ) -> Result<Option<ApiKey>, StoreError> {
        self.keys().await?.rotate_key(rotation, by).await
    }

    async fn replace_signing_key(&self, new: SecretKey) -> Result<(), StoreError> {
        self.keys().await?.replace_signing_key(new).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A revoked key would be accepted for another second, and for minutes while the server is away.
    #[test]
    fn a_key_read_before_a_change_is_not_kept_after_it() {
        let mut known = Known::default();
        let sent_after = known.changes;
        known.forget();
        known.keep(&[1; 32], (Duration::ZERO, None), sent_after);
        assert!(known.keys.is_empty());
        known.keep(&[1; 32], (Duration::ZERO, None), known.changes);
        assert_eq!(known.keys.len(), 1);
    }
}
