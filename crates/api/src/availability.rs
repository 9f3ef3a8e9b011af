//! Which models a living worker serves, and which are paused. The answer may be a second old, so that requests need
//! not wait for it: when it goes stale, one request asks the store and the others use the previous
//! answer.

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use kinora_contract::Clock;
use kinora_store::{Pause, PauseStore, Pauses, StoreError, WorkerDirectory};
use tokio::sync::Mutex;
use tokio::time::timeout;

/// Maximum age of an answer.
const AGE_MAX: Duration = Duration::from_secs(1);
/// How long a request waits for the store. The answer is optional, so a short wait is enough.
const ASK_MAX: Duration = Duration::from_millis(500);

/// The served and the paused models. Clones share one answer.
#[derive(Clone, Debug)]
pub struct ModelAvailability(Arc<AvailabilityCache>);

#[derive(Debug)]
struct AvailabilityCache {
    workers: Arc<dyn WorkerDirectory>,
    pauses: Arc<dyn PauseStore>,
    clock: Arc<dyn Clock>,
    known: RwLock<KnownModels>,
    asking: Mutex<()>,
}

#[derive(Clone, Debug, Default)]
struct KnownModels {
    /// Time of the last query, by the steady clock.
    asked: Option<Duration>,
    /// `None` until the store has answered once.
    models: Option<Arc<BTreeSet<String>>>,
    paused: Pauses,
}

impl ModelAvailability {
    /// Reads the registry `workers` and the `pauses`; `clock` measures the age of an answer.
    pub fn new(
        workers: Arc<dyn WorkerDirectory>,
        pauses: Arc<dyn PauseStore>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self(Arc::new(AvailabilityCache {
            workers,
            pauses,
            clock,
            known: RwLock::default(),
            asking: Mutex::default(),
        }))
    }

    /// Whether a living worker serves the model with this canonical identifier. While the store is
    /// unavailable, returns the previous answer, or `true` if there is none.
    pub(crate) async fn serves(&self, model: &str) -> bool {
        self.refresh().await;
        let known = self.known();
        known.models.is_none_or(|models| models.contains(model))
    }

    /// The pause that holds the model with this canonical identifier back, if there is one. While the
    /// store is unavailable, as in the previous answer.
    pub(crate) async fn pause(&self, model: &str) -> Option<Pause> {
        self.refresh().await;
        self.known().paused.find(model).cloned()
    }

    /// Makes the next answer a new one: this process has changed the pauses.
    pub(crate) fn forget(&self) {
        let mut known = self.0.known.write().unwrap_or_else(PoisonError::into_inner);
        known.asked = None;
    }

    async fn refresh(&self) {
        let AvailabilityCache { clock, asking, .. } = &*self.0;
        let age = |asked| clock.steady().saturating_sub(asked);
        if self.known().asked.is_some_and(|asked| age(asked) < AGE_MAX) {
            return;
        }
        // Not `lock`: a store that does not answer must delay one request, and not all of them.
        let Ok(_asking) = asking.try_lock() else {
            return;
        };
        let answer = timeout(ASK_MAX, self.ask()).await;
        let mut known = self.0.known.write().unwrap_or_else(PoisonError::into_inner);
        // After a failure too: otherwise each request would wait for a store that does not answer.
        known.asked = Some(clock.steady());
        match answer {
            Ok(Ok((models, paused))) => {
                (known.models, known.paused) = (Some(Arc::new(models)), paused);
            }
            Ok(Err(error)) => tracing::debug!(%error, "live workers not read"),
            Err(_) => tracing::debug!("live workers not read in time"),
        }
    }

    async fn ask(&self) -> Result<(BTreeSet<String>, Pauses), StoreError> {
        let AvailabilityCache {
            workers, pauses, ..
        } = &*self.0;
        Ok((workers.served_models().await?, pauses.pauses().await?))
    }

    fn known(&self) -> KnownModels {
        let known = self.0.known.read();
        known.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use kinora_contract::ManualClock;
    use kinora_store::EmbeddedStore;
    use kinora_store::faulty::{FaultyStore, Plan, Rates, StoreMethod};
    use kinora_store::{ServedModel, WorkerAnnouncement, WorkerState};

    use super::*;

    fn worker(model: &str) -> WorkerAnnouncement {
        WorkerAnnouncement {
            id: "worker".to_owned(),
            host: String::new(),
            pid: 1,
            version: String::new(),
            models: vec![ServedModel {
                model: model.to_owned(),
                engine: "storyboard/1".to_owned(),
                device: None,
                is_available: true,
            }],
            slots: 1,
            started_at_ms: 0,
            state: WorkerState::Serving,
            devices: Vec::new(),
            places: Vec::new(),
        }
    }

    #[tokio::test]
    async fn an_answer_is_kept_for_a_second_and_through_an_outage() {
        let clock = Arc::new(ManualClock::at(0));
        let plan = Arc::new(Plan::<StoreMethod>::seeded(1));
        let embedded = EmbeddedStore::open(clock.clone());
        let store = &embedded.stores;
        let seen = FaultyStore::wrap(store.clone(), plan.clone());
        let availability = ModelAvailability::new(seen.workers, seen.pauses, clock.clone());
        let never = Rates {
            before_ppm: 1_000_000,
            ..Rates::default()
        };
        plan.set(never);
        assert!(availability.serves("one").await, "nobody knows better");
        plan.set(Rates::default());
        clock.advance(1_000);
        assert!(!availability.serves("one").await);
        store
            .workers
            .announce(&worker("one"), 10_000)
            .await
            .unwrap();
        assert!(!availability.serves("one").await, "not asked again yet");
        clock.advance(1_000);
        for _ in 0..10 {
            assert!(availability.serves("one").await && !availability.serves("two").await);
        }
        assert_eq!(plan.calls(StoreMethod::ServedModels), 3);
        plan.set(never);
        clock.advance(60_000);
        assert!(availability.serves("one").await, "the last answer holds");
        plan.set(Rates::default());
        clock.advance(1_000);
        assert!(!availability.serves("one").await, "its announcement ended");
    }

    #[tokio::test]
    async fn a_pause_is_known_at_once_where_it_is_made_and_through_an_outage() {
        let clock = Arc::new(ManualClock::at(0));
        let plan = Arc::new(Plan::<StoreMethod>::seeded(1));
        let embedded = EmbeddedStore::open(clock.clone());
        let store = &embedded.stores;
        let seen = FaultyStore::wrap(store.clone(), plan.clone());
        let availability = ModelAvailability::new(seen.workers, seen.pauses, clock.clone());
        assert_eq!(availability.pause("one").await, None);
        let pause = |model: Option<&str>| Pause {
            model: model.map(str::to_owned),
            since_ms: 7,
            reason: Some("why".to_owned()),
        };
        store.pauses.pause(pause(None)).await.unwrap();
        assert_eq!(availability.pause("one").await, None, "not asked again yet");
        availability.forget();
        assert_eq!(availability.pause("one").await, Some(pause(None)));
        store.pauses.pause(pause(Some("one"))).await.unwrap();
        clock.advance(1_000);
        assert_eq!(availability.pause("one").await, Some(pause(Some("one"))));
        assert_eq!(availability.pause("two").await, Some(pause(None)));
        plan.set(Rates::AWAY);
        store.pauses.resume(None, 0).await.unwrap();
        clock.advance(60_000);
        assert_eq!(availability.pause("two").await, Some(pause(None)));
        plan.set(Rates::default());
        clock.advance(1_000);
        assert_eq!(availability.pause("two").await, None);
    }
}
