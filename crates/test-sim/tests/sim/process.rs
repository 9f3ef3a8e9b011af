//! A process with the real worker in it: begun, stopped in order, killed, hung, all in virtual time.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kinora_blobs::BlobStore;
use kinora_contract::{Clock, WorkerReadiness};
use kinora_media::RecorderOptions;
use kinora_store::StoreHandles;
use kinora_system::scratch::ScratchFolder;
use kinora_traces::TaskTracer;
use kinora_worker::{
    AnyEngine, EngineLineup, FaultBackoff, ReferenceGatherer, ServedEngine, Shutdown, Worker,
    WorkerOptions, WorkerOrigin, WorkerPools,
};
use tokio::sync::Notify;
use tokio::task::{JoinHandle, yield_now};

use crate::clocks::WrongClock;
use crate::films::{CannedFilms, Studio};
use crate::hosts::Hosts;
use crate::seen::{SeenBlobs, SeenStore};
use crate::witness::Witness;
use crate::world::{
    ATTEMPTS_MAX, HOUR_MS, LEASE_MS, RETENTION_MS, SETTLE_MS, SWEEP_MS, TOMBSTONE_MS,
};

pub(crate) const MODELS: [&str; 2] = ["kinora-a1", "kinora-b1"];
const SLOTS: usize = 2;
const HEARTBEAT: Duration = Duration::from_secs(3);
/// An engine that reports nothing for so long is given up.
const SILENCE_MAX: Duration = Duration::from_secs(20);
const DRAIN_LIMIT: Duration = Duration::from_secs(20);
/// No stop lasts longer, however many stores are away.
const STOP_MAX: Duration = Duration::from_mins(10);
/// Turns in which everything of a process that was killed is dropped.
const LAST_TURNS: usize = 100;

/// A life of a process, as its calls see it.
#[derive(Debug)]
pub(crate) struct Pulse {
    /// Which worker.
    pub(crate) k: usize,
    dead: AtomicBool,
    hangs: AtomicBool,
    comes_back: Notify,
    stops: AtomicBool,
}

impl Pulse {
    fn of(k: usize) -> Arc<Self> {
        Arc::new(Self {
            k,
            dead: AtomicBool::new(false),
            hangs: AtomicBool::new(false),
            comes_back: Notify::new(),
            stops: AtomicBool::new(false),
        })
    }

    /// Passes while the process lives and does not hang.
    pub(crate) async fn beats(&self) {
        while self.hangs.load(Ordering::SeqCst) {
            self.comes_back.notified().await;
        }
        if self.dead.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
    }

    /// Whether a stop was asked for.
    pub(crate) fn stops(&self) -> bool {
        self.stops.load(Ordering::SeqCst)
    }
}

/// A process, while it runs.
#[derive(Debug)]
struct Running {
    pulse: Arc<Pulse>,
    shutdown: Shutdown,
    working: JoinHandle<usize>,
}

/// A process that may be begun again and again.
#[derive(Debug)]
pub(crate) struct Process {
    k: usize,
    clock: Arc<WrongClock>,
    witness: Arc<Witness>,
    running: Option<Running>,
}

impl Process {
    pub(crate) const fn new(k: usize, clock: Arc<WrongClock>, witness: Arc<Witness>) -> Self {
        Self {
            k,
            clock,
            witness,
            running: None,
        }
    }

    pub(crate) fn hangs(&self) -> bool {
        let running = self.running.as_ref();
        running.is_some_and(|running| running.pulse.hangs.load(Ordering::SeqCst))
    }

    /// Begins to work on these stores, with files in the making below `folder`.
    pub(crate) fn begin(
        &mut self,
        stores: &StoreHandles,
        blobs: &Arc<dyn BlobStore>,
        folder: &Path,
    ) {
        let pulse = Pulse::of(self.k);
        self.witness.shaken(self.k, false);
        let seen = Arc::new(SeenStore::new(
            stores.clone(),
            self.witness.clone(),
            pulse.clone(),
        ));
        let blobs = SeenBlobs::new(blobs.clone(), self.witness.clone(), pulse.clone());
        let scratch =
            Arc::new(ScratchFolder::create(&folder.join(format!("work-{}", self.k))).unwrap());
        let studio = Studio::new(self.witness.clone(), pulse.clone());
        let served = ServedEngine {
            engine: AnyEngine::Film(Arc::new(studio)),
            progress_timeout: SILENCE_MAX,
            seats: None,
            device: None,
            preset: None,
        };
        let clock: Arc<dyn Clock> = self.clock.clone();
        let hosts = Hosts::new(self.witness.clone());
        let worker = Worker {
            work: seen.clone(),
            pauses: seen.clone(),
            chores: seen,
            workers: stores.workers.clone(),
            blobs: Arc::new(blobs),
            lineup: EngineLineup::new(MODELS.map(|model| (model.to_owned(), served.clone()))),
            references: Arc::new(ReferenceGatherer::new(hosts, scratch.clone())),
            backoff: FaultBackoff::new(WorkerReadiness::default(), clock.clone()),
            scratch,
            pools: WorkerPools::on_the_spot(),
            films: Arc::new(CannedFilms),
            policy: None,
            tracer: TaskTracer::default(),
            clock: clock.clone(),
            patience: clock,
            settings: settings(self.k),
        };
        let shutdown = Shutdown::default();
        let working = tokio::spawn(worker.work(shutdown.clone()));
        self.running = Some(Running {
            pulse,
            shutdown,
            working,
        });
    }

    /// Stops answering, or goes on.
    pub(crate) fn hang(&self, hangs: bool) {
        let Some(running) = &self.running else { return };
        self.witness.shaken(self.k, hangs);
        running.pulse.hangs.store(hangs, Ordering::SeqCst);
        running.pulse.comes_back.notify_waiters();
    }

    /// Asks for an orderly stop.
    pub(crate) fn stop(&self, at_once: bool) {
        let Some(running) = &self.running else { return };
        running.pulse.stops.store(true, Ordering::SeqCst);
        if at_once {
            running.shutdown.now();
        } else {
            running.shutdown.drain();
        }
    }

    /// Waits for the end of one that was stopped.
    pub(crate) async fn stopped(&mut self) {
        let Some(running) = self.running.take() else {
            return;
        };
        let stopped = tokio::time::timeout(STOP_MAX, running.working).await;
        let ended = stopped.unwrap_or_else(|_| panic!("P16: worker {} does not stop", self.k));
        ended.unwrap();
    }

    /// Ends at once, whatever it was doing.
    pub(crate) async fn die(&mut self) {
        let Some(running) = self.running.take() else {
            return;
        };
        running.pulse.dead.store(true, Ordering::SeqCst);
        running.working.abort();
        for _ in 0..LAST_TURNS {
            yield_now().await;
        }
        assert!(running.working.is_finished(), "a dead process lives");
    }
}

fn settings(k: usize) -> WorkerOptions {
    WorkerOptions {
        name: format!("worker-{k}"),
        origin: WorkerOrigin::default(),
        slots: SLOTS,
        project_slots_max: 0,
        short_slot_memory: Duration::from_millis(HOUR_MS / 60),
        lease_ms: LEASE_MS,
        sweep_every: Duration::from_millis(SWEEP_MS),
        heartbeat_every: HEARTBEAT,
        drain_limit: DRAIN_LIMIT,
        retention_ms: RETENTION_MS,
        failed_retention_ms: RETENTION_MS,
        waiting_ms_max: None,
        tombstone_ms: TOMBSTONE_MS,
        clock_settle_ms: SETTLE_MS,
        attempts_max: ATTEMPTS_MAX,
        start_pause_max: Duration::from_secs(10),
        // Soon, so that lives have last attempts after deaths.
        settled_after: Duration::from_secs(1),
        recorder: RecorderOptions::default(),
        marker: None,
        film_signer: None,
    }
}
