//! A check that ends the waits of an API key within a second of its revocation or expiry.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use futures_util::future::join_all;
use kinora_contract::Clock;
use kinora_store::KeyStore;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// Pause between two checks. A store answers from memory for up to half a second.
const CHECK_EVERY: Duration = Duration::from_millis(200);
/// Maximum number of keys that are looked up at a time.
const CHECKED_AT_ONCE: usize = 64;

type Sha256 = [u8; 32];

/// The keys in use by waiting clients. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct WatchedKeys(Arc<Mutex<WatchedKeysState>>);

#[derive(Debug, Default)]
struct WatchedKeysState {
    keys: HashMap<Sha256, WatchedKey>,
    /// Whether they are being checked.
    is_checked: bool,
}

#[derive(Debug, Default)]
struct WatchedKey {
    ended: CancellationToken,
    /// Number of clients.
    holds: usize,
}

/// A waiting client's use of its key; dropping it ends the use.
#[derive(Debug)]
pub(crate) struct KeyHold {
    keys: WatchedKeys,
    sha256: Sha256,
    ended: CancellationToken,
}

impl WatchedKeys {
    /// Watches the key with this hash for a client, until the client drops the hold.
    pub(crate) fn hold(
        &self,
        sha256: Sha256,
        store: &Arc<dyn KeyStore>,
        clock: &Arc<dyn Clock>,
    ) -> KeyHold {
        let mut held = self.lock();
        let key = held.keys.entry(sha256).or_default();
        key.holds += 1;
        let ended = key.ended.clone();
        if !std::mem::replace(&mut held.is_checked, true) {
            let keys = Arc::downgrade(&self.0);
            tokio::spawn(check(keys, store.clone(), clock.clone()));
        }
        KeyHold {
            keys: self.clone(),
            sha256,
            ended,
        }
    }

    fn lock(&self) -> MutexGuard<'_, WatchedKeysState> {
        lock(&self.0)
    }
}

fn lock(held: &Mutex<WatchedKeysState>) -> MutexGuard<'_, WatchedKeysState> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

impl KeyHold {
    /// Whether the key may no longer read.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended.is_cancelled()
    }

    /// Waits until the key may no longer read.
    pub(crate) async fn ended(&self) {
        self.ended.cancelled().await;
    }
}

impl Drop for KeyHold {
    fn drop(&mut self) {
        let mut held = self.keys.lock();
        if let Some(key) = held.keys.get_mut(&self.sha256) {
            key.holds -= 1;
            if key.holds == 0 {
                held.keys.remove(&self.sha256);
            }
        }
    }
}

/// Checks all keys regularly, until no client waits.
async fn check(
    held: Weak<Mutex<WatchedKeysState>>,
    store: Arc<dyn KeyStore>,
    clock: Arc<dyn Clock>,
) {
    loop {
        sleep(CHECK_EVERY).await;
        let Some(held) = held.upgrade() else {
            return;
        };
        // A copy, so that clients can join and leave while the store is asked.
        let all: Vec<Sha256> = {
            let mut held = lock(&held);
            // Decided under the lock: a client that joins after this finds no check running and
            // starts one.
            held.is_checked = !held.keys.is_empty();
            held.keys.keys().copied().collect()
        };
        if all.is_empty() {
            return;
        }
        let now_ms = clock.now_ms();
        for some in all.chunks(CHECKED_AT_ONCE) {
            let found = join_all(some.iter().map(|key| store.find_key(key, now_ms))).await;
            for (sha256, found) in some.iter().zip(found) {
                // The key was valid before; while the store cannot answer, it counts as valid.
                let is_usable =
                    found.map_or(true, |key| key.is_some_and(|key| key.is_usable(now_ms)));
                if !is_usable && let Some(key) = lock(&held).keys.get(sha256) {
                    key.ended.cancel();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use kinora_contract::ManualClock;
    use kinora_store::EmbeddedStore;
    use kinora_store::conformance::fixtures::{NOW, actor};
    use kinora_store::{KeyScope, NewKey};
    use tokio::time::timeout;

    use super::*;

    async fn add(store: &dyn KeyStore, number: u8) -> NewKey {
        let key = NewKey {
            id: format!("key_{number}"),
            sha256: [number; 32],
            name: format!("name {number}"),
            project: "one".to_owned(),
            scopes: vec![KeyScope::Read],
            models: None,
            requests_per_minute: None,
            unfinished_max: None,
            budget: kinora_store::Budget::default(),
            created_at_ms: NOW,
            expires_at_ms: None,
        };
        store.add_key(key, &actor("operator")).await.unwrap().key
    }

    #[tokio::test(start_paused = true)]
    async fn waits_end_within_a_second_of_the_end_of_their_key() {
        let clock: Arc<dyn Clock> = Arc::new(ManualClock::at(NOW));
        let embedded = EmbeddedStore::open(clock.clone());
        let keys = embedded.stores.keys.clone();
        let (revoked, other) = (add(&*keys, 1).await, add(&*keys, 2).await);
        let watched = WatchedKeys::default();
        for _ in 0..2 {
            let hold = |key: &NewKey| watched.hold(key.sha256, &keys, &clock);
            let holds: Vec<_> = (0..100).map(|_| hold(&revoked)).collect();
            let stays = hold(&other);
            keys.revoke_key(&revoked.id, NOW, &actor("operator"))
                .await
                .unwrap();
            for one in &holds {
                let ended = timeout(Duration::from_secs(1), one.ended()).await;
                assert!(ended.is_ok() && one.has_ended());
            }
            assert!(!stays.has_ended());
            drop((holds, stays));
            sleep(2 * CHECK_EVERY).await;
            let left = watched.lock();
            assert!(left.keys.is_empty() && !left.is_checked, "nothing is left");
        }
    }
}
