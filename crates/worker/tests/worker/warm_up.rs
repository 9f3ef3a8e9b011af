//! Engines that load at the worker's start.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kinora_contract::{StandstillReason, VideoSpec, WorkerReadiness};
use kinora_engine::{
    ClipPlan, ClipPlanner, ClipSink, Engine, EngineDescription, EngineError, FrameJob, JobControl,
    JobMaterials,
};
use kinora_worker::FaultBackoff;

use crate::bench::{Bench, Running, until};
use crate::engines::{Act, Puppet};

/// A puppet that loads until it is cancelled or released.
struct Slow {
    puppet: Arc<Puppet>,
    begun: AtomicUsize,
    released: AtomicUsize,
    ended: AtomicUsize,
}

impl Slow {
    fn new(puppet: &Arc<Puppet>) -> Arc<Self> {
        Arc::new(Self {
            puppet: puppet.clone(),
            begun: AtomicUsize::new(0),
            released: AtomicUsize::new(0),
            ended: AtomicUsize::new(0),
        })
    }
}

impl ClipPlanner for Slow {
    fn describe(&self) -> &EngineDescription {
        self.puppet.describe()
    }

    fn plan(&self, spec: &VideoSpec, materials: &JobMaterials) -> Result<ClipPlan, EngineError> {
        self.puppet.plan(spec, materials)
    }
}

impl Engine for Slow {
    fn generate(
        &self,
        job: &FrameJob<'_>,
        sink: &mut dyn ClipSink,
        control: &JobControl,
    ) -> Result<(), EngineError> {
        self.puppet.generate(job, sink, control)
    }

    fn warm_up(&self, control: &JobControl) {
        self.begun.fetch_add(1, Ordering::SeqCst);
        while !control.cancel.is_cancelled() && self.released.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
        self.ended.fetch_add(1, Ordering::SeqCst);
    }
}

/// A worker that waits for `slow`, and what `/readyz` reports of it.
fn warming(
    bench: &Bench,
    puppet: &Arc<Puppet>,
    slow: &Arc<Slow>,
) -> (kinora_worker::Worker, WorkerReadiness) {
    let readiness = WorkerReadiness::default();
    let mut worker = bench.worker(puppet);
    worker.backoff = FaultBackoff::new(readiness.clone(), crate::bench::real_clock());
    worker.lineup = worker.lineup.warming([slow.clone() as Arc<dyn Engine>]);
    readiness.set_warming_up(true);
    (worker, readiness)
}

#[tokio::test(flavor = "multi_thread")]
async fn readiness_waits_for_engines_that_warm_up_and_tasks_of_others_do_not() {
    let bench = Bench::new();
    let puppet = Arc::new(Puppet::new(Act::Good));
    let slow = Slow::new(&puppet);
    let (worker, readiness) = warming(&bench, &puppet, &slow);
    let running = Running::start(worker);
    let begun = async || slow.begun.load(Ordering::SeqCst) == 1;
    until("the engine loads", begun).await;
    let id = bench.submit().await;
    bench.completes(id).await;
    assert_eq!(readiness.standstill(), Some(StandstillReason::WarmUp));
    slow.released.store(1, Ordering::SeqCst);
    until("it is ready", async || readiness.standstill().is_none()).await;
    running.drained().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_ends_the_warming_up() {
    let bench = Bench::new();
    let puppet = Arc::new(Puppet::new(Act::Good));
    let slow = Slow::new(&puppet);
    let (worker, _readiness) = warming(&bench, &puppet, &slow);
    let running = Running::start(worker);
    let begun = async || slow.begun.load(Ordering::SeqCst) == 1;
    until("the engine loads", begun).await;
    running.drained().await;
    assert_eq!(slow.ended.load(Ordering::SeqCst), 1);
}
