//! A task that no claim may take now unloads no engine that shares a device: nothing would run in its place.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use kinora_contract::{TaskId, TaskPhase};
use kinora_store::faulty::StoreMethod;

use crate::bench::{Running, until};
use crate::devices::{AGE, FIRST, FREE, SECOND, Shared};
use crate::engines::{Act, Puppet};

/// A project with one slot of two, which it uses; its task for the second engine waits. Others use the first engine.
struct Waiting {
    shared: Shared,
    running: Running,
    task: TaskId,
}

impl Waiting {
    async fn new() -> Self {
        let mut shared = Shared::new(Act::Good, Act::Good);
        shared.free = Arc::new(Puppet::new(Act::Held));
        let mut worker = shared.worker(2);
        worker.settings.project_slots_max = 1;
        let running = Running::start(worker);
        shared.bench.submit_as("long", FREE).await;
        let works = async || shared.free.at_work() == 1;
        until("the long task runs", works).await;
        let task = shared.bench.submit_as("long", SECOND).await;
        Self {
            shared,
            running,
            task,
        }
    }

    async fn ends(&self, id: TaskId) {
        let work = &self.shared.bench.store.work;
        let ends = async || {
            let task = work.task(id).await.unwrap().unwrap();
            task.state.phase() == TaskPhase::Completed
        };
        until(&format!("{id} ends"), ends).await;
    }

    fn loads(&self) -> usize {
        self.shared.memory.loads.load(Ordering::SeqCst)
    }

    /// The first engine was never unloaded, and the second loads once its task may run.
    async fn loads_each_once(self) {
        assert_eq!(self.loads(), 1);
        assert!(self.shared.memory.has(FIRST));
        self.shared.free.release();
        self.ends(self.task).await;
        assert_eq!(self.loads(), 2);
        self.running.drained().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_beyond_its_project_s_share_unloads_no_engine_in_its_lulls() {
    let waiting = Waiting::new().await;
    let plan = &waiting.shared.bench.store_plan;
    for _ in 0..4 {
        let id = waiting.shared.bench.submit_as("other", FIRST).await;
        waiting.ends(id).await;
        waiting.shared.pass(AGE);
        // The worker has nothing else to do.
        let asked = plan.calls(StoreMethod::HasClaimable);
        let looks = async || plan.calls(StoreMethod::HasClaimable) >= asked + 2;
        until("the worker looks for the other engine's tasks", looks).await;
    }
    waiting.loads_each_once().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_beyond_its_project_s_share_unloads_no_engine_at_the_age_limit() {
    let waiting = Waiting::new().await;
    let age_ms = u64::try_from(AGE.as_millis()).unwrap();
    let clip_ms = &waiting.shared.memory.clip_ms;
    clip_ms.store(age_ms, Ordering::SeqCst);
    let mut ids = Vec::new();
    for _ in 0..6 {
        ids.push(waiting.shared.bench.submit_as("other", FIRST).await);
    }
    for id in ids {
        waiting.ends(id).await;
    }
    waiting.loads_each_once().await;
}
