//! The link that signs a browser in to the page, as the process that printed it knows it: the hash of its code, and a key that no
//! store has yet. It works once, for ten minutes, from one origin. It refuses to keep the code itself.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kinora_contract::limits::SIGN_IN_SECONDS;
use kinora_contract::{Clock, ClockReading, KeyText, UnixMs};
use kinora_store::{KeyActor, KeyStore, NewKey, StoreError};
use sha2::{Digest, Sha256};
use url::Url;

/// A sign-in link that one browser may use.
pub struct SignInLink {
    code_sha256: [u8; 32],
    origin: String,
    clock: Arc<dyn Clock>,
    created: ClockReading,
    /// `None` once a browser has it, or it is too late.
    key: Mutex<Option<BrowserKey>>,
}

/// The key that the browser gets. It is added to the store when the link is used.
#[derive(Clone)]
pub struct BrowserKey {
    /// Its text, for the browser.
    pub text: KeyText,
    /// Its record, for the store.
    pub record: NewKey,
    /// The user whom the log of keys names.
    pub creator: KeyActor,
}

impl BrowserKey {
    /// The record of a key that is created at `now_ms` and lives as long as this one was meant to.
    fn record_at(&self, now_ms: UnixMs) -> NewKey {
        let record = self.record.clone();
        let lifetime = |end: UnixMs| end.saturating_sub(record.created_at_ms);
        NewKey {
            created_at_ms: now_ms,
            expires_at_ms: record.expires_at_ms.map(|end| now_ms + lifetime(end)),
            ..record
        }
    }
}

/// Why a link signs nobody in.
#[derive(Debug)]
pub(crate) enum SignInError {
    /// The code is that of no link of this process.
    Unknown,
    /// A browser has used the link.
    Used,
    /// The link is too old.
    Expired,
    /// The key could not be stored; the link still works.
    Store(StoreError),
}

impl SignInLink {
    /// A link with this code under `base_url`, which begins to age now. `None` if `base_url` is no URL.
    pub fn new(code: &str, base_url: &str, key: BrowserKey, clock: Arc<dyn Clock>) -> Option<Self> {
        let origin = Url::parse(base_url).ok()?.origin().ascii_serialization();
        Some(Self {
            code_sha256: Sha256::digest(code).into(),
            origin,
            created: clock.read(),
            clock,
            key: Mutex::new(Some(key)),
        })
    }

    /// Whether pages of `origin` may use the link, as browsers name it in `Origin`.
    pub(crate) fn is_for(&self, origin: &[u8]) -> bool {
        origin == self.origin.as_bytes()
    }

    /// Exchanges the code for the key, which works from now on.
    ///
    /// # Errors
    /// [`SignInError`]; only a wrong code and a store that fails leave the link as it was.
    pub(crate) async fn redeem(
        &self,
        code: &str,
        keys: &dyn KeyStore,
    ) -> Result<KeyText, SignInError> {
        let sha256: [u8; 32] = Sha256::digest(code).into();
        if !is_equal(&sha256, &self.code_sha256) {
            return Err(SignInError::Unknown);
        }
        if self.is_expired() {
            *self.lock() = None;
            return Err(SignInError::Expired);
        }
        // Taken before the store is asked: of two browsers with the same link, one gets the key.
        let key = self.lock().take().ok_or(SignInError::Used)?;
        let record = key.record_at(self.clock.now_ms());
        match keys.add_key(record, &key.creator).await {
            Ok(added) => {
                tracing::info!(key = added.key.id, "browser signed in by the link");
                Ok(key.text)
            }
            Err(error) => {
                *self.lock() = Some(key);
                Err(SignInError::Store(error))
            }
        }
    }

    /// Whether ten minutes have passed by either clock: the monotonic one may stand still while the machine sleeps, and the
    /// wall clock may be set back.
    fn is_expired(&self) -> bool {
        let now = self.clock.read();
        let passed_ms = |now: u64, created: u64| now.saturating_sub(created);
        let by_wall = passed_ms(now.wall_ms, self.created.wall_ms);
        let by_steady = passed_ms(now.steady_ms, self.created.steady_ms);
        by_wall.max(by_steady) >= SIGN_IN_SECONDS * 1000
    }

    fn lock(&self) -> MutexGuard<'_, Option<BrowserKey>> {
        self.key.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Compares two hashes in a time that does not depend on them.
fn is_equal(one: &[u8; 32], other: &[u8; 32]) -> bool {
    let pairs = one.iter().zip(other);
    pairs.fold(0, |different, (a, b)| different | (a ^ b)) == 0
}

impl fmt::Debug for SignInLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SignInLink(..)")
    }
}

#[cfg(test)]
mod tests {
    use kinora_contract::ManualClock;
    use kinora_store::{EmbeddedStore, KeyScope};

    use super::*;

    const CODE: &str = "00112233445566778899aabbccddeeff";
    const LIFETIME_MS: u64 = SIGN_IN_SECONDS * 1000;

    struct Fixture {
        clock: Arc<ManualClock>,
        store: EmbeddedStore,
        link: SignInLink,
        key: KeyText,
    }

    impl Fixture {
        fn new() -> Self {
            let clock = Arc::new(ManualClock::at(LIFETIME_MS));
            let key = KeyText::from_random(&[7; 64]).unwrap();
            let record = NewKey {
                id: "key_abcdefghijkl".to_owned(),
                sha256: key.sha256(),
                name: "studio".to_owned(),
                project: "default".to_owned(),
                scopes: KeyScope::VIDEOS.to_vec(),
                models: None,
                requests_per_minute: None,
                unfinished_max: None,
                budget: kinora_store::Budget::default(),
                created_at_ms: LIFETIME_MS,
                expires_at_ms: Some(LIFETIME_MS + 1000),
            };
            let creator = KeyActor {
                user: "alice".to_owned(),
                host: "here".to_owned(),
            };
            let browser_key = BrowserKey {
                text: key.clone(),
                record,
                creator,
            };
            let base_url = "http://127.0.0.1:8080/folder";
            Self {
                store: EmbeddedStore::open(clock.clone()),
                link: SignInLink::new(CODE, base_url, browser_key, clock.clone()).unwrap(),
                clock,
                key,
            }
        }

        async fn redeem(&self, code: &str) -> Result<KeyText, SignInError> {
            self.link.redeem(code, &*self.store.stores.keys).await
        }

        /// Creation and expiry of the key, if the store has it.
        async fn stored(&self) -> Option<(u64, Option<u64>)> {
            let found = self.store.stores.keys.find_key(&self.key.sha256(), 0).await;
            let found = found.unwrap()?;
            Some((found.key.created_at_ms, found.key.expires_at_ms))
        }
    }

    #[tokio::test]
    async fn p14_a_link_works_once_and_stores_no_key_before() {
        let fixture = Fixture::new();
        for wrong in [
            "",
            &CODE[1..],
            &CODE.to_uppercase(),
            &CODE.replace('0', "1"),
        ] {
            let refused = fixture.redeem(wrong).await;
            assert!(matches!(refused, Err(SignInError::Unknown)), "{refused:?}");
        }
        assert_eq!(fixture.stored().await, None);
        fixture.clock.advance(5);
        assert_eq!(fixture.redeem(CODE).await.unwrap(), fixture.key);
        let now_ms = LIFETIME_MS + 5;
        assert_eq!(fixture.stored().await, Some((now_ms, Some(now_ms + 1000))));
        let again = fixture.redeem(CODE).await;
        assert!(matches!(again, Err(SignInError::Used)), "{again:?}");
        let shown = format!("{:?}", fixture.link);
        assert!(!shown.contains(CODE) && !shown.contains(fixture.key.reveal()));
    }

    #[tokio::test]
    async fn a_link_expires_by_the_clock_that_is_ahead() {
        let late = Fixture::new();
        late.clock.advance(LIFETIME_MS - 1);
        late.redeem(CODE).await.unwrap();
        let set_back = Fixture::new();
        set_back.clock.advance(LIFETIME_MS);
        set_back.clock.set(0);
        let slept = Fixture::new();
        slept.clock.set(2 * LIFETIME_MS);
        let long_ago = Fixture::new();
        long_ago.clock.advance(1000 * LIFETIME_MS);
        for fixture in [set_back, slept, long_ago] {
            let refused = fixture.redeem(CODE).await;
            assert!(matches!(refused, Err(SignInError::Expired)), "{refused:?}");
            // Also for a clock that is set back later.
            fixture.clock.set(LIFETIME_MS);
            assert!(fixture.redeem(CODE).await.is_err());
            assert_eq!(fixture.stored().await, None);
        }
    }

    #[test]
    fn only_the_link_s_own_origin_may_use_it() {
        let link = Fixture::new().link;
        assert!(link.is_for(b"http://127.0.0.1:8080"));
        for other in [
            "",
            "null",
            "http://127.0.0.1",
            "http://127.0.0.1:8081",
            "https://127.0.0.1:8080",
            "http://localhost:8080",
            "http://127.0.0.1:8080/",
            "http://127.0.0.1:8080.example.com",
        ] {
            assert!(!link.is_for(other.as_bytes()), "{other}");
        }
    }
}
