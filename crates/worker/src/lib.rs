//! The worker: takes tasks from claim to terminal state. Read it in the order in which a task
//! crosses it:
//!
//! 1. `startup` pauses after a crash loop, and `upkeep` loads engines before their first task.
//!    `fetching` brings the references of waiting tasks; `references` stores them,
//!    `reference_check` checks them, `host_failures` counts the failures of their hosts.
//! 2. `claim` asks the store for work while there is a free slot (`slots`), a free seat at an
//!    engine (`lineup`), and room on a device that engines share (`devices`, `device_scheduler`). It leaves
//!    models out that an operator has paused (`pauses`).
//! 3. `run` takes a claimed task through five steps: `prepare`, make (`record` for an engine that
//!    makes frames, `film` for a film made elsewhere), clear (`policy_check`), `publish`, `finish`.
//!    `task_run` is the state that they share, and stops a run whose lease is lost or whose engine
//!    makes no progress. `stage_metrics` times the steps.
//! 4. `lease_keeper` renews the leases of all runs.
//! 5. `sweep` handles expired leases and results, by a wall clock that `clock_trust` believes.
//!    `chores` and `orphans` remove files; `shutdown` is the orderly stop.
//! 6. `announce` tells the store's registry that this worker lives, and what it serves.
//! 7. `error` says whose fault an error is. `backoff` holds claims back after a fault of this
//!    machine until `upkeep` finds that results can be stored again, and `retry` spares a task an
//!    outage of seconds.
//!
//! All of them work with one [`Worker`]. The crate knows nothing of HTTP: it meets the API in the
//! store.

#![forbid(unsafe_code)]

mod announce;
mod any_engine;
mod backoff;
mod chores;
mod claim;
mod clock_trust;
mod device_scheduler;
mod devices;
mod error;
mod fetching;
mod film;
mod finish;
mod host_failures;
mod lease_keeper;
mod lineup;
mod orphans;
mod pauses;
mod policy_check;
mod prepare;
mod publish;
mod record;
mod reference_check;
mod references;
mod retry;
mod run;
mod shutdown;
mod slots;
mod stage_metrics;
mod startup;
mod sweep;
mod task_run;
mod upkeep;
mod worker;

use std::sync::Arc;

use std::pin::Pin;

use announce::AnnounceService;
pub use any_engine::AnyEngine;
pub use backoff::FaultBackoff;
pub use clock_trust::{ClockTrust, ClockVerdict, ExpiryMove};
pub use device_scheduler::DevicePatience;
pub use devices::{EngineDevice, SharingEngine};
use lease_keeper::{KeeperService, LeaseKeeper};
pub use lineup::{EngineLineup, ServedEngine};
pub use orphans::{
    KnownTasks, OrphanCheck, OrphanCount, OrphanError, find_orphans, is_marked, remove_orphans,
    store_mark,
};
pub use record::{FilmSigner, WatermarkImage, WatermarkPainter};
pub use references::{ReferenceGatherer, ReferenceSource};
pub use shutdown::Shutdown;
use sweep::Sweeper;
use tokio::task::JoinSet;
pub use worker::{Worker, WorkerOptions, WorkerOrigin, WorkerPools};

/// A worker at work. Boxed, so that only this crate compiles it: each crate that polls the future of an `async fn`
/// compiles its body.
pub type WorkFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

impl Worker {
    /// Works until `shutdown`: claims, runs, sweeps. Returns when every task it held is finished or
    /// given back, with the number of tasks that still ran when the stop began. Dropping the future
    /// ends everything immediately, like the death of the process, except for an engine that makes
    /// frames.
    pub fn work(self, shutdown: Shutdown) -> WorkFuture<usize> {
        Box::pin(self.work_until(shutdown))
    }

    async fn work_until(self, shutdown: Shutdown) -> usize {
        let worker = Arc::new(self);
        let alive = worker.backoff.readiness().register_part();
        // Before the first claim, so that tasks of a dead worker run before newer ones.
        let mut sweeper = Sweeper::new(&worker);
        sweeper.sweep_once(&worker).await;
        upkeep::clear_devices(&worker);
        let announcing = AnnounceService::start(&worker, &shutdown);
        let both = || (worker.clone(), shutdown.clone());
        let mut services = tending(sweeper, &worker, &shutdown);
        let (own, stop) = both();
        services.spawn(fetching::fetch_until_drain(own, stop));
        let (own, stop) = both();
        services.spawn(upkeep::probe_until_drain(own, stop));
        if !worker.lineup.devices().is_empty() {
            let (own, stop) = both();
            services.spawn(upkeep::unload_idle_until_drain(own, stop));
        }
        if worker.lineup.warms_up() {
            let (own, stop) = both();
            services.spawn(upkeep::warm_up_until_drain(own, stop));
        }
        // Before the first claim: a service that keeps dying must not use up the attempts of its
        // tasks.
        startup::pause_after_unclean_starts(&worker, &shutdown).await;
        let keeper = LeaseKeeper::new(worker.clock.clone(), worker.settings.lease_ms);
        // Ends after the last run.
        let running = match KeeperService::start(keeper.clone(), &worker) {
            Ok(_service) => claim::claim_until_drain(worker.clone(), keeper, shutdown).await,
            Err(error) => {
                tracing::error!(%error, "no thread available for the lease keeper; no tasks will be claimed");
                drop(alive);
                shutdown.draining().await;
                0
            }
        };
        // They end with the drain; their tasks have logged any panic.
        while services.join_next().await.is_some() {}
        announcing.end().await;
        running
    }

    /// Does only the work that needs no engine, until `shutdown`: sweeps, file removals, the
    /// search for orphans. For a process that serves only the API: its store must be tidied even
    /// without a worker.
    pub fn tend(self, shutdown: Shutdown) -> WorkFuture<()> {
        Box::pin(self.tend_until(shutdown))
    }

    async fn tend_until(self, shutdown: Shutdown) {
        let worker = Arc::new(self);
        let mut sweeper = Sweeper::new(&worker);
        sweeper.sweep_once(&worker).await;
        let mut services = tending(sweeper, &worker, &shutdown);
        while services.join_next().await.is_some() {}
    }
}

/// The services that need no engine; they end with the drain.
fn tending(sweeper: Sweeper, worker: &Arc<Worker>, shutdown: &Shutdown) -> JoinSet<()> {
    let both = || (worker.clone(), shutdown.clone());
    let mut services = JoinSet::new();
    let (own, stop) = both();
    services.spawn(sweeper.sweep_until_drain(own, stop));
    let (own, stop) = both();
    services.spawn(chores::remove_files_until_drain(own, stop));
    let (own, stop) = both();
    services.spawn(chores::cancel_jobs_until_drain(own, stop));
    let (own, stop) = both();
    services.spawn(orphans::sweep_orphans_until_drain(own, stop));
    let (own, stop) = both();
    services.spawn(async move { startup::record_settled(&own, &stop).await });
    services
}
