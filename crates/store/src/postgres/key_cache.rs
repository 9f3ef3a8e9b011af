//! A cache of API keys for one serving process. It queries each key at most twice a second (half of
//! [`crate::PostgresOptions::cached_ms_max`]), so that a revoked key is refused within a second, even by
//! callers that check their key again only at intervals.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kinora_contract::UnixMs;

use super::fault::with_timeout;
use super::lane::WriteLane;
use super::reads::StoreReader;
use super::script;
use super::shared::SharedState;
use crate::tables::keys::{self, RecordUses};
use crate::{ApiKey, StoreError};

/// Maximum number of remembered keys; beyond it the process forgets all of them.
const KNOWN_MAX: usize = 10_000;

/// Maximum time that a request waits for its key; then the key as last read counts.
const ANSWER_MAX: Duration = Duration::from_secs(2);

/// A key or its absence, with the time of the query.
type KeyResult = (Duration, Option<Arc<ApiKey>>);

/// Results of queries since this process last changed a key.
#[derive(Debug, Default)]
struct KnownKeys {
    /// Result and time of each query, by hash.
    keys: HashMap<[u8; 32], KeyResult>,
    /// Number of changes so far.
    changes: u64,
}

impl KnownKeys {
    /// Keeps the result of a query that was sent after this many changes, unless a change may be newer.
    fn store(&mut self, sha256: &[u8; 32], found: KeyResult, changes: u64) {
        // This process has changed a key since the query was sent, so the answer may show the state
        // before. Example: a query reads a key as valid, the key is revoked here, then the answer comes.
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

/// The keys that the serving process remembers.
#[derive(Debug, Default)]
pub(super) struct KeyCache {
    known: Mutex<KnownKeys>,
    /// The last recorded use of each key.
    recorded_uses: Mutex<HashMap<String, UnixMs>>,
}

impl KeyCache {
    /// Finds the key with this hash, as it was a moment ago, or, while the server is unreachable,
    /// as last read; records its use.
    pub(super) async fn find(
        &self,
        sha256: &[u8; 32],
        now_ms: UnixMs,
        (reader, shared, lane): (&StoreReader, &SharedState, &WriteLane),
    ) -> Result<Option<Arc<ApiKey>>, StoreError> {
        let asked = shared.clock.steady();
        let (known, changes) = {
            let known = lock(&self.known);
            (known.keys.get(sha256).cloned(), known.changes)
        };
        let age = known.as_ref().map(|(at, _)| asked.saturating_sub(*at));
        let known = known.map(|(_, key)| key);
        let options = &shared.options;
        let found = match known {
            Some(key) if is_younger(age, options.cached_ms_max / 2) => key,
            known => match with_timeout(ANSWER_MAX, query_key(reader, sha256)).await {
                // Better an old answer than none: during an outage of the database, requests that
                // need no write still work, and a key revoked meanwhile could not be known in any case.
                Err(error @ StoreError::Unavailable(_)) => known
                    .filter(|_| is_younger(age, options.last_known_ms_max))
                    .ok_or(error)?,
                asked_for => {
                    let found = asked_for?;
                    lock(&self.known).store(sha256, (asked, found.clone()), changes);
                    found
                }
            },
        };
        if let Some(key) = &found {
            self.record_use(key, now_ms, lane);
        }
        Ok(found)
    }

    /// Records a use of a key in the background, to an accuracy of about a minute.
    fn record_use(&self, key: &ApiKey, now_ms: UnixMs, lane: &WriteLane) {
        let mut noted = lock(&self.recorded_uses);
        let last_ms = noted.get(&key.key.id).copied().or(key.last_used_at_ms);
        if key.should_record_use(last_ms.unwrap_or(0), now_ms) {
            if noted.len() >= KNOWN_MAX {
                noted.clear();
            }
            noted.insert(key.key.id.clone(), now_ms);
            let last_use = [(key.key.id.clone(), now_ms)];
            lane.try_send(RecordUses(last_use.into()));
        }
    }

    /// Makes a change of keys visible to this process at once.
    pub(super) fn forget(&self) {
        lock(&self.known).forget();
    }
}

fn is_younger(age: Option<Duration>, age_ms_max: u64) -> bool {
    age.is_some_and(|age| age < Duration::from_millis(age_ms_max))
}

async fn query_key(
    reader: &StoreReader,
    sha256: &[u8; 32],
) -> Result<Option<Arc<ApiKey>>, StoreError> {
    let mut found = script::ask(reader, keys::find(sha256)).await?;
    Ok(found.pop().map(Arc::new))
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A revoked key would be accepted for another second, and for minutes while the server is away.
    #[test]
    fn a_key_read_before_a_change_is_not_kept_after_it() {
        let mut known = KnownKeys::default();
        let sent_after = known.changes;
        known.forget();
        known.store(&[1; 32], (Duration::ZERO, None), sent_after);
        assert!(known.keys.is_empty());
        known.store(&[1; 32], (Duration::ZERO, None), known.changes);
        assert_eq!(known.keys.len(), 1);
    }
}
