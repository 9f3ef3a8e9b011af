//! Models that an operator has paused: nothing of them is claimed, and everything else goes on.

use std::sync::Arc;

use kinora_contract::{ManualClock, TaskPhase};
use kinora_store::Pause;
use kinora_store::faulty::{Rates, StoreMethod};
use kinora_worker::Worker;

use crate::bench::{Bench, MODEL, NOW, Running, until};
use crate::engines::{Act, Puppet};

const OTHER: &str = "other";

/// A store, and the time by which workers judge how old their pauses are.
struct Site {
    bench: Bench,
    patience: Arc<ManualClock>,
}

impl Site {
    fn new() -> Self {
        Self {
            bench: Bench::new(),
            patience: Arc::new(ManualClock::at(NOW)),
        }
    }

    /// A worker with one slot, for both models.
    fn worker(&self, engine: &Arc<Puppet>) -> Worker {
        Worker {
            patience: self.patience.clone(),
            ..self.bench.worker_of([(MODEL, engine), (OTHER, engine)])
        }
    }

    async fn pause(&self, model: Option<&str>) {
        let pause = Pause {
            model: model.map(str::to_owned),
            since_ms: NOW,
            reason: None,
        };
        self.bench.store.pauses.pause(pause).await.unwrap();
        self.patience.advance(500);
    }

    async fn resume(&self, model: Option<&str>) {
        let resumed = self.bench.store.pauses.resume(model, NOW).await;
        assert!(resumed.unwrap());
        self.patience.advance(500);
    }

    /// Waits until the worker has claimed and completed a task of this model.
    async fn makes(&self, model: &str) {
        let id = self.bench.submit_to(model).await;
        self.bench.completes(id).await;
    }

    async fn waits(&self, id: kinora_contract::TaskId) {
        assert_eq!(self.bench.phase(id).await, TaskPhase::Waiting);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_a_paused_model_is_begun_and_what_runs_ends() {
    let site = Site::new();
    let engine = Arc::new(Puppet::new(Act::Held));
    let running = Running::start(site.worker(&engine));
    let first = site.bench.submit().await;
    until("the engine works", async || engine.at_work() == 1).await;
    site.pause(Some(MODEL)).await;
    let second = site.bench.submit().await;
    engine.release();
    site.bench.completes(first).await;
    site.makes(OTHER).await;
    site.waits(second).await;
    site.pause(None).await;
    let third = site.bench.submit_to(OTHER).await;
    let asked = || site.bench.store_plan.calls(StoreMethod::Claim);
    let enough = asked() + 3;
    until("the worker asks for tasks", async || {
        site.patience.advance(500);
        asked() >= enough
    })
    .await;
    site.waits(third).await;
    site.resume(None).await;
    site.bench.completes(third).await;
    site.waits(second).await;
    site.resume(Some(MODEL)).await;
    site.bench.completes(second).await;
    running.drained().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_outlives_the_worker() {
    let site = Site::new();
    site.pause(Some(MODEL)).await;
    let waiting = site.bench.submit().await;
    let engine = Arc::new(Puppet::new(Act::Good));
    for _ in 0..2 {
        let running = Running::start(site.worker(&engine));
        site.makes(OTHER).await;
        site.waits(waiting).await;
        running.drained().await;
    }
}

/// Before it knows any it begins nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_cannot_read_pauses_goes_on_with_those_that_it_knows() {
    let site = Site::new();
    let plan = &site.bench.store_plan;
    site.pause(Some(MODEL)).await;
    plan.set_of(StoreMethod::Pauses, Some(Rates::AWAY));
    let engine = Arc::new(Puppet::new(Act::Good));
    let running = Running::start(site.worker(&engine));
    let [paused, other] = [site.bench.submit().await, site.bench.submit_to(OTHER).await];
    let fails = async |times| {
        let enough = plan.calls(StoreMethod::Pauses) + times;
        until("it cannot read them", async || {
            site.patience.advance(500);
            plan.calls(StoreMethod::Pauses) >= enough
        })
        .await;
    };
    fails(3).await;
    site.waits(other).await;
    assert_eq!(plan.calls(StoreMethod::Claim), 0);
    plan.set_of(StoreMethod::Pauses, None);
    site.patience.advance(500);
    site.bench.completes(other).await;
    plan.set_of(StoreMethod::Pauses, Some(Rates::AWAY));
    site.resume(Some(MODEL)).await;
    fails(2).await;
    site.makes(OTHER).await;
    site.waits(paused).await;
    plan.set_of(StoreMethod::Pauses, None);
    site.patience.advance(500);
    site.bench.completes(paused).await;
    running.drained().await;
}
