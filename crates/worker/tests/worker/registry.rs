//! The worker in the registry: announced while it lives, draining while it ends, withdrawn with its end.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kinora_contract::TaskPhase;
use kinora_store::faulty::{Rates, StoreMethod};
use kinora_store::{LivingWorker, StoreError, WorkerAnnouncement, WorkerDirectory, WorkerState};
use kinora_worker::Worker;
use tokio::sync::Notify;

use crate::bench::{Bench, MODEL, Running, until};
use crate::engines::{Act, ENGINE, Puppet};

async fn living(bench: &Bench) -> Vec<LivingWorker> {
    bench.store.workers.living().await.unwrap()
}

async fn is_served(bench: &Bench) -> bool {
    let served = bench.store.workers.served_models().await.unwrap();
    served.contains(MODEL)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_is_announced_until_its_end() {
    let bench = Bench::new();
    let engine = Arc::new(Puppet::new(Act::Held));
    let worker = bench.worker(&engine);
    worker.announce().await.unwrap();
    assert!(is_served(&bench).await, "before it works");
    let running = Running::start(worker);
    let id = bench.submit().await;
    bench.reaches(id, TaskPhase::Running).await;
    let seen = living(&bench).await.remove(0);
    assert_eq!((&*seen.worker.id, seen.worker.slots), ("worker", 1));
    assert_eq!(seen.worker.state, WorkerState::Serving);
    assert_eq!(seen.worker.models[0].engine, ENGINE);
    assert_eq!(seen.running, 1);
    running.shutdown.drain();
    until("it drains", async || !is_served(&bench).await).await;
    let seen = living(&bench).await.remove(0);
    assert_eq!(
        (seen.worker.state, seen.running),
        (WorkerState::Draining, 1)
    );
    engine.release();
    running.returns().await;
    assert!(living(&bench).await.is_empty());
}

/// A registry that takes its time for a draining worker: until that withdraws, or for a moment if it waits for the answer.
/// It completes the call even if nobody waits for it any more, as a database server does.
#[derive(Debug)]
struct Unhurried {
    registry: Arc<dyn WorkerDirectory>,
    begun: Arc<Notify>,
    withdrawn: Arc<Notify>,
    done: Arc<Notify>,
}

#[async_trait]
impl WorkerDirectory for Unhurried {
    async fn announce(&self, worker: &WorkerAnnouncement, for_ms: u64) -> Result<(), StoreError> {
        if worker.state != WorkerState::Draining {
            return self.registry.announce(worker, for_ms).await;
        }
        let (registry, worker) = (self.registry.clone(), worker.clone());
        let (withdrawn, done) = (self.withdrawn.clone(), self.done.clone());
        let call = tokio::spawn(async move {
            let _ = tokio::time::timeout(Duration::from_millis(50), withdrawn.notified()).await;
            let announced = registry.announce(&worker, for_ms).await;
            done.notify_one();
            announced
        });
        self.begun.notify_one();
        call.await.unwrap()
    }

    async fn withdraw(&self, id: &str) -> Result<(), StoreError> {
        let withdrawn = self.registry.withdraw(id).await;
        self.withdrawn.notify_one();
        withdrawn
    }

    async fn living(&self) -> Result<Vec<LivingWorker>, StoreError> {
        self.registry.living().await
    }

    async fn served_models(&self) -> Result<BTreeSet<String>, StoreError> {
        self.registry.served_models().await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_announcement_does_not_outlive_the_withdrawal() {
    let bench = Bench::new();
    let registry = Arc::new(Unhurried {
        registry: bench.store.workers.clone(),
        begun: Arc::default(),
        withdrawn: Arc::default(),
        done: Arc::default(),
    });
    let engine = Arc::new(Puppet::new(Act::Held));
    let worker = Worker {
        workers: registry.clone(),
        ..bench.worker(&engine)
    };
    let running = Running::start(worker);
    let id = bench.submit().await;
    bench.reaches(id, TaskPhase::Running).await;
    running.shutdown.drain();
    registry.begun.notified().await;
    engine.release();
    running.returns().await;
    registry.done.notified().await;
    assert!(living(&bench).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_takes_no_announcement_costs_no_task() {
    let bench = Bench::new();
    let never = Rates {
        before_ppm: 1_000_000,
        ..Rates::default()
    };
    for method in [StoreMethod::Announce, StoreMethod::Withdraw] {
        bench.store_plan.set_of(method, Some(never));
    }
    let running = Running::start(bench.worker(&Arc::new(Puppet::new(Act::Good))));
    let id = bench.submit().await;
    let artifact = bench.completes(id).await;
    assert!(!is_served(&bench).await);
    running.drained().await;
    bench.holds_only(&[artifact]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_without_a_worker_tidies_up_and_claims_nothing() {
    let bench = Bench::of_two_processes(false);
    let (ended, waits) = (bench.submit().await, bench.submit().await);
    bench.cancel(ended).await;
    bench.clock.advance(crate::bench::RETENTION_MS);
    let engine = Arc::new(Puppet::new(Act::Good));
    let shutdown = kinora_worker::Shutdown::default();
    let tending = tokio::spawn(bench.worker(&engine).tend(shutdown.clone()));
    until("the cancelled task expires", async || {
        bench.phase(ended).await == TaskPhase::Expired
    })
    .await;
    assert!(living(&bench).await.is_empty());
    assert_eq!(bench.phase(waits).await, TaskPhase::Waiting);
    assert_eq!(engine.started(), 0);
    shutdown.drain();
    tending.await.unwrap();
}
