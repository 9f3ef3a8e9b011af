//! Stores by their names, each in a database of its own.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use kinora_contract::ManualClock;
use kinora_store::conformance::fixtures::NOW;
use kinora_store::conformance::{Harness, Site, year_ahead};
use kinora_store::{
    DirectAddress, OpenOptions, PostgresOptions, StoreHandles, TimeSource, migrate, open,
};
use kinora_testkit::postgres::{Pooler, Server};
use tokio::sync::OnceCell;

/// The name of the database that all others are copies of.
static TEMPLATE: OnceCell<String> = OnceCell::const_new();

/// What the cases judge by: their own clock, and nothing that is old.
pub(crate) fn exact() -> PostgresOptions {
    PostgresOptions {
        time: TimeSource::Clock,
        cached_ms_max: 0,
        polled_ms_max: 0,
        totals_ms_max: 0,
        positions_ms_max: 0,
        notify_every_ms: 1,
        ..PostgresOptions::default()
    }
}

/// The address of a new database with an empty store.
pub(crate) async fn database() -> String {
    let server = Server::shared();
    let template = TEMPLATE.get_or_init(|| async {
        let url = server.database();
        migrate(&url).await.unwrap();
        url.rsplit('/').next().unwrap().to_owned()
    });
    let template = template.await;
    let url = tokio::task::block_in_place(|| server.copy_of(template));
    // An identity of its own, as if it had not been copied.
    let draw = "UPDATE queue SET identity = (random() * 9007199254740991)::bigint";
    tokio::task::block_in_place(|| server.run(&url, draw));
    url
}

/// Opens the store at this address.
pub(crate) async fn open_at(url: &str, clock: Arc<ManualClock>) -> Site {
    let options = OpenOptions {
        postgres: exact(),
        ..OpenOptions::new(clock.clone())
    };
    Site::of(open(url, &options).await.unwrap(), clock)
}

/// Opens the store at this address at [`NOW`].
pub(crate) async fn open_now(url: &str) -> Site {
    open_at(url, Arc::new(ManualClock::at(NOW))).await
}

/// Databases by the names of the stores in them.
#[derive(Default)]
pub(crate) struct Databases {
    named: Mutex<BTreeMap<String, String>>,
    /// What the stores are reached through, except for notifications.
    pooler: Option<Arc<Pooler>>,
}

impl Databases {
    /// Stores that are reached through this pooler.
    pub(crate) fn through(pooler: Arc<Pooler>) -> Self {
        Self {
            pooler: Some(pooler),
            ..Self::default()
        }
    }

    /// Opens the store at this address, which judges by this time.
    async fn open(&self, url: &str, time: TimeSource, clock: Arc<ManualClock>) -> StoreHandles {
        let direct = || DirectAddress(url.to_owned());
        let pooled = self.pooler.as_ref().map(|pooler| pooler.address_of(url));
        let options = OpenOptions {
            postgres: PostgresOptions {
                listen_at: pooled.is_some().then(direct),
                time,
                ..exact()
            },
            ..OpenOptions::new(clock)
        };
        open(pooled.as_deref().unwrap_or(url), &options)
            .await
            .unwrap()
    }

    fn known(&self, name: &str) -> Option<String> {
        let named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        named.get(name).cloned()
    }

    /// The address of the store of this name, which is made if there is none.
    async fn address(&self, name: &str) -> String {
        if let Some(url) = self.known(name) {
            return url;
        }
        let url = database().await;
        let mut named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        named.insert(name.to_owned(), url.clone());
        url
    }
}

#[async_trait]
impl Harness for Databases {
    async fn stores(&self, name: &str, clock: Arc<ManualClock>) -> StoreHandles {
        self.open(&self.address(name).await, TimeSource::Clock, clock)
            .await
    }

    fn outlives_its_processes(&self) -> bool {
        true
    }

    async fn open_second(&self, _: &Site, name: &str, clock: Arc<ManualClock>) -> Site {
        let url = self.known(name).unwrap();
        Site::of(
            self.open(&url, TimeSource::Clock, clock.clone()).await,
            clock,
        )
    }

    async fn open_apart(&self, name: &str) -> [Site; 2] {
        let url = self.address(name).await;
        let clocks = [Arc::new(ManualClock::at(NOW)), year_ahead()];
        let [first, second] = clocks.map(|clock| async {
            let stores = self.open(&url, TimeSource::Server, clock.clone());
            Site::of(stores.await, clock)
        });
        [first.await, second.await]
    }
}

/// Whether a call was refused for now.
pub(crate) const fn is_unavailable<T>(result: &Result<T, kinora_store::StoreError>) -> bool {
    matches!(result, Err(kinora_store::StoreError::Unavailable(_)))
}
