//! One task from claim to terminal state. Read it in the order in which a task crosses it:
//!
//! 1. [`start`](mod@start): a pause after a crash loop. [`warm_up`](mod@warm_up): engines that load before their first
//!    task. [`claim`](mod@claim): asks the store for work while
//!    there is a free [`slot`](mod@slot), the last one only for [short tasks](mod@short_slot). [`fetching`](mod@fetching) has brought its references before that;
//!    [`host_failures`](mod@host_failures) counts what their hosts cost.
//! 2. [`run`](mod@run): the stages of one [`task_run`](mod@task_run), from its lease to its end.
//! 3. [`prepare`](mod@prepare): [`references`](mod@references), which [`judge`](mod@judge) has checked, and
//!    [`source`](mod@source) opened, the clip planned; [`record`](mod@record): engine to file, or [`film`](mod@film): a file that was made
//!    elsewhere; [`seal`](mod@seal): the operator's signature; [`clear`](mod@clear): the operator's policy; [`publish`](mod@publish): file to blob store;
//!    [`finish`](mod@finish): the terminal state. [`ending`](mod@ending): what becomes of a run without a result;
//!    [`elsewhere`](mod@elsewhere): whether another device or server tries.
//!    Engines that share a [`device`](mod@devices) get its [`room`](mod@room) with the claim, and
//!    [`upkeep`](mod@upkeep) unloads those that are idle.
//! 4. [`keeper`](mod@keeper): keeps the leases of all runs; [`task_run`](mod@task_run) ends a run whose lease is
//!    gone, or whose engine stands still.
//! 5. [`sweep`](mod@sweep): picks up expired leases and results, by a wall clock that [`trust`](mod@trust) believes
//!    and leases that no [`stall`](mod@stall) of the process has let run out; [`chores`](mod@chores): what the store
//!    leaves to do elsewhere; [`drain`](mod@drain): the orderly stop.
//! 6. [`announce`](mod@announce): tells the store's registry that this worker lives, and what it serves.
//! 7. [`fault`](mod@fault): which errors are this machine's; their tasks go back to the queue, and
//!    [`backoff`](mod@backoff) holds further claims back until [`probe`](mod@probe) finds that results
//!    can be stored.
//!
//! All stages work with one [`Worker`]. [`error`](mod@error) lists what ends a run without a result, and
//! [`retry`](mod@retry) spares a task an outage of seconds.
//!
//! The crate knows nothing of HTTP: it meets the API in the store.

#![forbid(unsafe_code)]

mod announce;
mod backoff;
mod chores;
mod claim;
mod clear;
mod devices;
mod drain;
mod error;
mod fetching;
mod film;
mod finish;
mod host_failures;
mod judge;
mod keeper;
mod lineup;
mod maker;
mod metered;
mod orphans;
mod prepare;
mod publish;
mod record;
mod references;
mod retry;
mod room;
mod run;
mod slots;
mod start;
mod sweep;
mod task_run;
mod trust;
mod upkeep;
mod worker;

use std::sync::Arc;

use std::pin::Pin;

use announce::Announcing;
pub use backoff::Backoff;
pub use devices::{Device, Tenant};
pub use drain::Shutdown;
use keeper::{KeeperService, LeaseKeeper};
pub use lineup::{Lineup, Served};
pub use maker::Maker;
pub use orphans::{
    KnownTasks, OrphanCheck, OrphanError, Orphans, is_marked, look_for_orphans, put_mark,
    remove_orphans,
};
pub use record::{Mark, Marker};
pub use references::{ReferenceSource, References};
pub use room::Patience;
use sweep::Sweeper;
use tokio::task::JoinSet;
pub use trust::{Move, Trust, Verdict};
pub use worker::{Origin, Pools, Settings, Worker};

/// A worker at work. Boxed, so that only this crate compiles it: each crate that polls the future of an `async fn`
/// compiles its body.
pub type Working<T> = Pin<Box<dyn Future<Output = T> + Send>>;

impl Worker {
    /// Works until `shutdown`: claims, runs, sweeps. Returns when every task it held is finished or
    /// given back, with the number of tasks that still ran when the stop began. Dropping the future
    /// ends everything immediately, like the death of the process, except for an engine that makes
    /// frames.
    pub fn work(self, shutdown: Shutdown) -> Working<usize> {
        Box::pin(self.work_until(shutdown))
    }

    async fn work_until(self, shutdown: Shutdown) -> usize {
        let worker = Arc::new(self);
        let alive = worker.backoff.readiness().alive();
        // Before the first claim, so that tasks of a dead worker run before newer ones.
        let mut sweeper = Sweeper::new(&worker);
        sweeper.sweep_once(&worker).await;
        upkeep::clear_devices(&worker);
        let announcing = Announcing::begin(&worker, &shutdown);
        let both = || (worker.clone(), shutdown.clone());
        let mut services = tending(sweeper, &worker, &shutdown);
        let (own, stop) = both();
        services.spawn(fetching::fetch_until_drain(own, stop));
        let (own, stop) = both();
        services.spawn(upkeep::probe_until_drain(own, stop));
        if !worker.lineup.devices().is_empty() {
            let (own, stop) = both();
            services.spawn(upkeep::look_after_devices(own, stop));
        }
        if worker.lineup.warms_up() {
            let (own, stop) = both();
            services.spawn(upkeep::warm_up_until_drain(own, stop));
        }
        start::pause_after_unclean_starts(&worker, &shutdown).await;
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
    pub fn tend(self, shutdown: Shutdown) -> Working<()> {
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
    services.spawn(chores::call_off_jobs_until_drain(own, stop));
    let (own, stop) = both();
    services.spawn(orphans::sweep_orphans_until_drain(own, stop));
    let (own, stop) = both();
    services.spawn(async move { start::settle(&own, &stop).await });
    services
}
