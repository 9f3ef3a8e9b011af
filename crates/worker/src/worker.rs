//! A worker and its settings: what every stage works with. The stages start in `lib.rs`.

use std::sync::Arc;
use std::time::Duration;

use kinora_blobs::BlobStore;
use kinora_contract::{Clock, UnixMs};
use kinora_media::{Films, RecorderOptions};
use kinora_policy::Policy;
use kinora_scratch::Scratch;
use kinora_store::{Chores, Work, Workers};
use kinora_traces::Tracer;

use crate::backoff::Backoff;
use crate::lineup::Lineup;
use crate::mark::Marker;
use crate::pools::Pools;
use crate::references::References;

/// A worker and everything it depends on.
#[derive(Clone, Debug)]
pub struct Worker {
    /// Where tasks come from and go to.
    pub work: Arc<dyn Work>,
    /// Leased chores: files to remove, upstream jobs to cancel.
    pub chores: Arc<dyn Chores>,
    /// Where it says that it lives.
    pub workers: Arc<dyn Workers>,
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
    /// Judges results before they are published, if there is one.
    pub policy: Option<Policy>,
    /// Goes on with the traces of tasks.
    pub tracer: Tracer,
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
    /// Worker name, in leases, logs and the registry: no other process has it.
    pub name: String,
    /// Where it runs.
    pub origin: Origin,
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
    /// Draws the operator's mark, if there is one.
    pub marker: Option<Marker>,
}

/// Where a worker runs, for operators.
#[derive(Clone, Debug, Default)]
pub struct Origin {
    /// Name of the machine.
    pub host: String,
    /// Number of the process.
    pub pid: u32,
    /// When it started.
    pub started_at_ms: UnixMs,
}
