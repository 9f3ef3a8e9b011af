//! The requirements on every store, as tests: all guarantees of [`crate::TaskStore`], [`crate::WorkerStore`],
//! [`crate::ChoreStore`], [`crate::FileStore`], [`crate::KeyStore`], [`crate::WorkerDirectory`], [`crate::PauseStore`],
//! [`crate::OperatorStore`], [`crate::DeliveryStore`] and [`crate::SecretStore`]. A store runs them with one line,
//! [`crate::conformance_suite!`]. Cases about a single implementation are not here.
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "these are tests"
)]

pub mod agreement;
pub mod bench;
pub mod budgets;
pub mod chores;
pub mod clocks;
pub mod deaths;
pub mod fixtures;
pub mod handles;
pub mod keys;
pub mod leases;
pub mod news;
pub mod operations;
pub mod owner;
pub mod pauses;
pub mod priorities;
pub mod quota;
pub mod reading;
pub mod references;
pub mod releases;
pub mod restart;
pub mod secrets;
pub mod submit;
mod suite;
pub mod sweep;
pub mod turns;
pub mod uploads;
pub mod webhooks;
pub mod workers;

use std::sync::Arc;

use async_trait::async_trait;
use kinora_contract::ManualClock;

use self::fixtures::NOW;
use crate::{
    ChoreStore, DeliveryStore, FileStore, KeyStore, OperatorStore, PauseStore, SecretStore,
    StoreHandles, TaskStore, WorkerDirectory, WorkerStore,
};

/// A handle on an open store, with the store's clock.
#[derive(Clone, Debug)]
pub struct Site {
    /// Tasks, for their owners.
    pub tasks: Arc<dyn TaskStore>,
    /// Tasks, for workers.
    pub work: Arc<dyn WorkerStore>,
    /// Chores.
    pub chores: Arc<dyn ChoreStore>,
    /// Uploaded files.
    pub files: Arc<dyn FileStore>,
    /// API keys.
    pub keys: Arc<dyn KeyStore>,
    /// The registry of workers.
    pub workers: Arc<dyn WorkerDirectory>,
    /// Pauses of models.
    pub pauses: Arc<dyn PauseStore>,
    /// Webhooks and the deliveries to them.
    pub webhooks: Arc<dyn DeliveryStore>,
    /// Data for operators.
    pub operations: Arc<dyn OperatorStore>,
    /// Shared secrets.
    pub secrets: Arc<dyn SecretStore>,
    /// The store's clock. It moves only when a case moves it.
    pub clock: Arc<ManualClock>,
}

impl Site {
    /// The traits of a store that was opened with this clock.
    pub fn of(stores: StoreHandles, clock: Arc<ManualClock>) -> Self {
        Self {
            tasks: stores.tasks,
            work: stores.work,
            chores: stores.chores,
            files: stores.files,
            keys: stores.keys,
            workers: stores.workers,
            pauses: stores.pauses,
            webhooks: stores.webhooks,
            operations: stores.operations,
            secrets: stores.secrets,
            clock,
        }
    }
}

/// Makes the stores that the cases run against.
#[async_trait]
pub trait Harness: Send + Sync {
    /// Opens the store with this name: empty the first time, later with its previous contents. The
    /// earlier handles of the name have been dropped.
    async fn stores(&self, name: &str, clock: Arc<ManualClock>) -> StoreHandles;

    /// Opens another handle on the store of this name while `first` is open, as a second process with this clock
    /// does. Of a store that serves one process it is `first` itself, beside a clock that nothing follows.
    async fn open_second(&self, first: &Site, name: &str, clock: Arc<ManualClock>) -> Site;

    /// Opens the store of this name twice, as two processes whose clocks disagree: by the second, a year more has passed.
    /// A store of several processes judges by a time of its own, so that the cases' clocks are not its clock.
    async fn open_apart(&self, name: &str) -> [Site; 2] {
        let first = self.open(name).await;
        let second = self.open_second(&first, name, year_ahead()).await;
        [first, second]
    }

    /// Whether the store survives all its handles, as a server does: then leases end only at their
    /// time, and not with the process that opened the store, which may be one of many.
    fn outlives_its_processes(&self) -> bool {
        false
    }

    /// Opens the store with this name at [`NOW`], once everything that an earlier process had
    /// leased for [`fixtures::LEASE_MS`] at that time is free again by both clocks.
    async fn open_after_leases(&self, name: &str) -> Site {
        let site = self.open(name).await;
        if self.outlives_its_processes() {
            site.clock.advance(fixtures::LEASE_MS);
            site.clock.set(NOW);
        }
        site
    }

    /// Opens the store with this name at [`NOW`], with its own clock.
    async fn open(&self, name: &str) -> Site {
        self.open_at(name, NOW).await
    }

    /// Opens the store with this name when the wall clock shows `wall_ms`.
    async fn open_at(&self, name: &str, wall_ms: u64) -> Site {
        let clock = Arc::new(ManualClock::at(wall_ms));
        Site::of(self.stores(name, clock.clone()).await, clock)
    }

    /// Opens the store with this name twice, at [`NOW`].
    async fn open_both(&self, name: &str) -> [Site; 2] {
        let first = self.open(name).await;
        let second = self.open_second(&first, name, first.clock.clone()).await;
        [first, second]
    }
}

/// A clock that has run for a year longer than one that stands at [`NOW`].
pub fn year_ahead() -> Arc<ManualClock> {
    let clock = ManualClock::at(NOW);
    clock.advance(365 * 24 * 3_600_000);
    Arc::new(clock)
}
