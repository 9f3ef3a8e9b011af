//! One task from claim to terminal state. Read it in the order in which a task crosses it:
//!
//! 1. [`start`](mod@start): a pause after a crash loop. [`claim`](mod@claim): asks the store for work while
//!    there is a free slot.
//!    [`fetching`](mod@fetching) has brought its references before that.
//! 2. [`run`](mod@run): the straight line of one task, from its lease to its end.
//! 3. [`prepare`](mod@prepare): [`references`](mod@references) and [`source`](mod@source) opened,
//!    the clip planned; [`record`](mod@record): engine to file, or [`film`](mod@film): a file that was made
//!    elsewhere; [`publish`](mod@publish): file to blob store;
//!    [`finish`](mod@finish): the terminal state.
//! 4. [`keeper`](mod@keeper): keeps the leases of all runs; [`watch`](mod@watch): ends a run whose lease is gone,
//!    or whose engine stands still.
//! 5. [`sweep`](mod@sweep): picks up expired leases and results, by a wall clock that [`trust`](mod@trust) believes
//!    and leases that no [`stall`](mod@stall) of the process has let run out, and does the [`chores`](mod@chores) that the
//!    store leaves; [`drain`](mod@drain): the orderly stop.
//! 6. [`fault`](mod@fault): which errors are this machine's; their tasks go back to the queue, and
//!    [`backoff`](mod@backoff) holds further claims back until [`probe`](mod@probe) finds that results
//!    can be stored.
//!
//! It knows nothing of HTTP: it meets the API in the store.

#![forbid(unsafe_code)]

mod backoff;
mod chores;
mod claim;
mod drain;
mod fault;
mod fetching;
mod film;
mod finish;
mod keep;
mod keeper;
mod lineup;
mod orphans;
mod pools;
mod prepare;
mod preview;
mod probe;
mod publish;
mod record;
mod reference_source;
mod references;
mod run;
mod script;
mod source;
mod stall;
mod start;
mod sweep;
mod tenacious;
mod trust;
mod watch;

use std::sync::Arc;
use std::time::Duration;

pub use backoff::Backoff;
pub use drain::Shutdown;
use keeper::{KeeperService, LeaseKeeper};
use kinora_blobs::BlobStore;
use kinora_contract::Clock;
use kinora_media::{Films, RecorderOptions};
use kinora_scratch::Scratch;
use kinora_store::{Chores, Work};
pub use lineup::{Lineup, Maker, Served};
pub use orphans::{
    Known, Looked, OrphanError, Orphans, is_marked, look_for_orphans, put_mark, remove_orphans,
};
pub use pools::Pools;
pub use reference_source::ReferenceSource;
pub use references::References;
use sweep::Sweeper;
use tokio::task::JoinSet;
pub use trust::{Move, Trust, Verdict};

/// A worker and everything it depends on.
#[derive(Clone, Debug)]
pub struct Worker {
    /// Where tasks come from and go to.
    pub work: Arc<dyn Work>,
    /// Leased chores: files to remove, upstream jobs to cancel.
    pub chores: Arc<dyn Chores>,
    /// Where results go.
    pub blobs: Arc<dyn BlobStore>,
    /// Which engine serves which model.
    pub lineup: Lineup,
    /// Fetches references.
    pub references: Arc<References>,
    /// How it fares with its machine.
    pub backoff: Backoff,
    /// Where unfinished files are.
    pub scratch: Arc<Scratch>,
    /// Where it blocks.
    pub pools: Pools,
    /// Reads films that exist: those of other servers, and sources of edits.
    pub films: Arc<dyn Films>,
    /// Tells how long leases last.
    pub clock: Arc<dyn Clock>,
    /// Measures pauses, and how long the process and engines stand still: the same clock, but in tests that wait.
    pub patience: Arc<dyn Clock>,
    /// How it works.
    pub settings: Settings,
}

/// How a worker works.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Worker name, for logs and operators: host and process.
    pub name: String,
    /// Tasks at a time.
    pub slots: usize,
    /// Tasks of one project at a time. 0: all slots, or all but one while another project waits.
    pub project_slots_max: usize,
    /// How long a lease lasts without renewal, in milliseconds.
    pub lease_ms: u64,
    /// How often expired leases are looked for.
    pub sweep_every: Duration,
    /// How long a lease is looked after at most before it is looked at again.
    pub heartbeat_every: Duration,
    /// After an orderly stop was asked for, how long running tasks may go on.
    pub drain_limit: Duration,
    /// How long a finished task and its files are kept, in milliseconds.
    pub retention_ms: u64,
    /// A task that has waited so long for its first run, in milliseconds, fails with `task_expired`;
    /// `None`: never.
    pub waiting_ms_max: Option<u64>,
    /// How long an expired task still answers 410, in milliseconds.
    pub tombstone_ms: u64,
    /// How long wall and steady time must have agreed before anything ends by wall time, in milliseconds.
    pub clock_settle_ms: u64,
    /// Runs of one task before it fails with `worker_lost`.
    pub attempts_max: u32,
    /// Longest pause before the first claim of a process that follows several that died.
    pub start_pause_max: Duration,
    /// A process that has lived so long is in no crash loop.
    pub settled_after: Duration,
    /// How files are encoded.
    pub recorder: RecorderOptions,
}

impl Worker {
    /// Works until `shutdown` says so: claims, runs, sweeps. Returns when every task it held is
    /// finished or given back: how many tasks still ran when the stop was asked for. When this is dropped,
    /// everything ends at once, as when the process dies, but for an engine that makes frames.
    pub async fn work(self, shutdown: Shutdown) -> usize {
        let worker = Arc::new(self);
        let alive = worker.backoff.readiness().alive();
        // Before the first claim, so that tasks of a dead worker go before younger ones.
        let mut sweeper = Sweeper::new(&worker);
        sweeper.sweep_once(&worker).await;
        let both = || (worker.clone(), shutdown.clone());
        let mut services = JoinSet::new();
        let (own, stop) = both();
        services.spawn(sweeper.sweep_until_drain(own, stop));
        let (own, stop) = both();
        services.spawn(fetching::fetch_until_drain(own, stop));
        let (own, stop) = both();
        services.spawn(orphans::sweep_orphans_until_drain(own, stop));
        let (own, stop) = both();
        services.spawn(probe::probe_until_drain(own, stop));
        let (own, stop) = both();
        services.spawn(async move { start::settle(&own, &stop).await });
        start::pause_after_unclean_starts(&worker, &shutdown).await;
        let keeper = LeaseKeeper::new(worker.clock.clone(), worker.settings.lease_ms);
        // Ends after the last run.
        let running = match KeeperService::start(keeper.clone(), &worker) {
            Ok(_service) => claim::claim_until_drain(worker, keeper, shutdown).await,
            Err(error) => {
                tracing::error!(%error, "no thread for the lease keeper; no task is claimed");
                drop(alive);
                shutdown.draining().await;
                0
            }
        };
        // They end with the drain; a panic in them was logged by their task.
        while services.join_next().await.is_some() {}
        running
    }
}
