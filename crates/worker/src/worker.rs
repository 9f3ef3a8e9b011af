//! A worker, its settings and its threads, which all services and steps use. The services start in
//! `lib.rs`.

use std::sync::Arc;
use std::time::Duration;

use kinora_blobs::BlobStore;
use kinora_contract::{Clock, UnixMs};
use kinora_media::{FilmOpener, RecorderOptions};
use kinora_policy::PolicyService;
use kinora_store::{ChoreStore, PauseStore, WorkerDirectory, WorkerStore};
use kinora_system::pool::BlockingPool;
use kinora_system::scratch::ScratchFolder;
use kinora_traces::TaskTracer;

use crate::backoff::FaultBackoff;
use crate::lineup::EngineLineup;
use crate::record::{FilmSigner, WatermarkPainter};
use crate::references::ReferenceGatherer;

/// A worker and all its dependencies.
#[derive(Clone, Debug)]
pub struct Worker {
    /// The queue of tasks.
    pub work: Arc<dyn WorkerStore>,
    /// Leased chores: files to remove, upstream jobs to cancel.
    pub chores: Arc<dyn ChoreStore>,
    /// The registry that the worker announces itself in.
    pub workers: Arc<dyn WorkerDirectory>,
    /// The pauses of models.
    pub pauses: Arc<dyn PauseStore>,
    /// The store of results.
    pub blobs: Arc<dyn BlobStore>,
    /// The engine of each served model.
    pub lineup: EngineLineup,
    /// Fetches references.
    pub references: Arc<ReferenceGatherer>,
    /// The state of this machine, and the pauses after its faults.
    pub backoff: FaultBackoff,
    /// The folder of unfinished files.
    pub scratch: Arc<ScratchFolder>,
    /// The threads that it blocks.
    pub pools: WorkerPools,
    /// Reads existing films: those of other servers, and sources of edits.
    pub films: Arc<dyn FilmOpener>,
    /// The policy service that checks results before they are published, if there is one.
    pub policy: Option<PolicyService>,
    /// Continues the traces of tasks.
    pub tracer: TaskTracer,
    /// Times the leases.
    pub clock: Arc<dyn Clock>,
    /// Times pauses and stalls: the same clock, except in tests that wait.
    pub patience: Arc<dyn Clock>,
    /// How it works.
    pub settings: WorkerOptions,
}

/// Settings of a worker.
#[derive(Clone, Debug)]
pub struct WorkerOptions {
    /// Worker name, unique among processes, for leases, logs and the registry.
    pub name: String,
    /// The machine and process.
    pub origin: WorkerOrigin,
    /// Maximum number of concurrent tasks.
    pub slots: usize,
    /// Maximum number of concurrent tasks of one project. 0: all slots, or all but one while
    /// another project waits.
    pub project_slots_max: usize,
    /// How long a started task counts towards the usual cost; tasks that cost clearly more leave one slot to shorter
    /// ones. Zero: any task may have any slot.
    pub short_slot_memory: Duration,
    /// How long a lease lasts without renewal, in milliseconds.
    pub lease_ms: u64,
    /// Interval of searches for expired leases.
    pub sweep_every: Duration,
    /// Maximum interval between two checks of a lease.
    pub heartbeat_every: Duration,
    /// How long running tasks may continue after an orderly stop begins.
    pub drain_limit: Duration,
    /// How long to keep a completed task and its files, in milliseconds.
    pub retention_ms: u64,
    /// How long to keep a failed task.
    pub failed_retention_ms: u64,
    /// A task that has waited this long for its first run, in milliseconds, fails with
    /// `task_expired`; `None`: no limit.
    pub waiting_ms_max: Option<u64>,
    /// How long requests for an expired task get 410, in milliseconds.
    pub tombstone_ms: u64,
    /// How long wall and steady time must agree before anything expires by wall time, in
    /// milliseconds.
    pub clock_settle_ms: u64,
    /// Maximum number of runs of one task before it fails with `worker_lost`.
    pub attempts_max: u32,
    /// Longest pause before the first claim after several processes in a row died.
    pub start_pause_max: Duration,
    /// A process that has lived this long is not in a crash loop.
    pub settled_after: Duration,
    /// How to encode files.
    pub recorder: RecorderOptions,
    /// Draws the operator's mark, if there is one.
    pub marker: Option<WatermarkPainter>,
    /// Signs finished films, if the operator wants it.
    pub film_signer: Option<Arc<dyn FilmSigner>>,
}

/// The machine and process of a worker, for operators.
#[derive(Clone, Debug, Default)]
pub struct WorkerOrigin {
    /// Name of the machine.
    pub host: String,
    /// Process id.
    pub pid: u32,
    /// Start time.
    pub started_at_ms: UnixMs,
}

const PREVIEW_THREADS: usize = 2;
/// References are decoded one task at a time, see [`crate::ReferenceGatherer`].
const DECODING_THREADS: usize = 1;

/// A worker's shares.
#[derive(Clone, Debug)]
pub struct WorkerPools {
    /// Encoding previews.
    pub previews: BlockingPool,
    /// Writing, opening and examining local files.
    pub(crate) files: BlockingPool,
    /// Whether leases are kept on a separate thread.
    pub(crate) keeps_leases_apart: bool,
}

impl WorkerPools {
    /// The shares of a worker with this many slots.
    pub fn new(slots: usize) -> Self {
        Self {
            previews: BlockingPool::new(PREVIEW_THREADS),
            files: BlockingPool::new(Self::file_threads(slots)),
            keeps_leases_apart: true,
        }
    }

    /// No threads: the worker blocks its runtime, so that the order of events does not depend on
    /// threads. For simulations, whose engines deliver films; an engine that makes frames always
    /// has a thread.
    pub const fn on_the_spot() -> Self {
        Self {
            previews: BlockingPool::on_the_spot(),
            files: BlockingPool::on_the_spot(),
            keeps_leases_apart: false,
        }
    }

    /// Maximum number of runtime threads that a worker with this many slots blocks.
    pub const fn threads(slots: usize) -> usize {
        PREVIEW_THREADS + Self::file_threads(slots)
    }

    /// Besides the decoding one, each run moves or examines one file at a time, and one thread
    /// probes the scratch folder.
    const fn file_threads(slots: usize) -> usize {
        DECODING_THREADS + slots + 1
    }
}
