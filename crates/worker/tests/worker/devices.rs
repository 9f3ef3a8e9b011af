//! Engines that share a device: they load for a task, leave for each other, and no model starves. Time is the tests' own.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use kinora_contract::{Clock, ManualClock, TaskId, TaskPhase};
use kinora_store::DeviceEngineState;
use kinora_store::faulty::{Fault, StoreMethod};
use kinora_worker::{
    AnyEngine, DevicePatience, EngineDevice, EngineLineup, ServedEngine, SharingEngine, Worker,
};
use tokio::sync::Semaphore;

use crate::bench::{Bench, NOW, Running, until};
use crate::engines::{Act, Puppet};
use crate::lodger::{Lodger, Memory};

const IDLE: Duration = Duration::from_secs(300);
pub(crate) const AGE: Duration = Duration::from_secs(120);
/// Models of the first, the second and an engine without a device.
pub(crate) const FIRST: &str = "first";
pub(crate) const SECOND: &str = "second";
pub(crate) const FREE: &str = "free";

/// Two engines of 60 on a device with 100, one seat each, and an engine beside it.
pub(crate) struct Shared {
    pub(crate) bench: Bench,
    pub(crate) memory: Arc<Memory>,
    first: Arc<Puppet>,
    second: Arc<Puppet>,
    pub(crate) free: Arc<Puppet>,
    patience: Arc<ManualClock>,
}

impl Shared {
    pub(crate) fn new(first: Act, second: Act) -> Self {
        Self {
            bench: Bench::new(),
            memory: Arc::default(),
            first: Arc::new(Puppet::new(first)),
            second: Arc::new(Puppet::new(second)),
            free: Arc::new(Puppet::new(Act::Good)),
            patience: Arc::new(ManualClock::at(NOW)),
        }
    }

    pub(crate) fn worker(&self, slots: usize) -> Worker {
        self.worker_with_seats(slots, 1)
    }

    fn worker_with_seats(&self, slots: usize, seats: usize) -> Worker {
        let served = |engine: AnyEngine, seats: Option<usize>| ServedEngine {
            engine,
            // The tests' clock may pass hours.
            progress_timeout: Duration::from_secs(1_000_000),
            device: None,
            seats: seats.map(Semaphore::new).map(Arc::new),
            preset: None,
        };
        let lodger = |name, puppet: &Arc<Puppet>| {
            AnyEngine::Frames(Arc::new(Lodger {
                name,
                megabytes: 60,
                puppet: puppet.clone(),
                memory: self.memory.clone(),
                clock: self.patience.clone(),
            }))
        };
        let engines = [(FIRST, &self.first), (SECOND, &self.second)];
        let engines = engines.map(|(name, puppet)| (name, lodger(name, puppet)));
        let tenant = |(name, engine): &(&'static str, AnyEngine)| SharingEngine {
            name: (*name).to_owned(),
            engine: engine.clone(),
            megabytes: 60,
            models: vec![(*name).to_owned()],
        };
        let patience = DevicePatience {
            idle_max: Some(IDLE),
            age_max: AGE,
        };
        let tenants = engines.iter().map(tenant).collect();
        let now = self.patience.steady();
        let device = EngineDevice::new("gpu0".to_owned(), 100, patience, tenants, now);
        let models = engines.map(|(name, engine)| (name.to_owned(), served(engine, Some(seats))));
        let free = (
            FREE.to_owned(),
            served(AnyEngine::Frames(self.free.clone()), None),
        );
        let mut worker = self.bench.worker(&self.first);
        worker.lineup = EngineLineup::new(models.into_iter().chain([free])).sharing([device]);
        worker.patience = self.patience.clone();
        worker.settings.slots = slots;
        worker
    }

    pub(crate) fn pass(&self, time: Duration) {
        self.patience
            .advance(u64::try_from(time.as_millis()).unwrap());
    }

    async fn waits(&self, id: TaskId) {
        assert_eq!(self.bench.phase(id).await, TaskPhase::Waiting);
    }

    /// Another task of the engine without a device runs to its end: the claim loop has gone round.
    async fn goes_round(&self) {
        for _ in 0..3 {
            let id = self.bench.submit_to(FREE).await;
            self.bench.completes(id).await;
        }
    }
}

async fn a_hundred_tasks_in_turn(slots: usize) {
    let shared = Shared::new(Act::Good, Act::Good);
    let mut ids = Vec::new();
    for number in 0..100 {
        let model = [FIRST, SECOND][number % 2];
        ids.push(shared.bench.submit_to(model).await);
    }
    let running = Running::start(shared.worker(slots));
    for id in ids {
        shared.bench.completes(id).await;
    }
    running.drained().await;
    assert_eq!(shared.memory.most.load(Ordering::SeqCst), 60);
    // All tasks of the one, then all of the other.
    assert_eq!(shared.memory.loads.load(Ordering::SeqCst), 2);
    assert_eq!((shared.first.started(), shared.second.started()), (50, 50));
}

/// Lets the first engine go on: all these tasks are completed, and the device never held more than one engine.
async fn all_end_within_the_budget(shared: &Shared, running: Running, tasks: Vec<TaskId>) {
    shared.first.release();
    for id in tasks {
        shared.bench.completes(id).await;
    }
    running.drained().await;
    assert_eq!(shared.memory.most.load(Ordering::SeqCst), 60);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_tasks_in_turn_load_each_engine_once_and_never_both() {
    a_hundred_tasks_in_turn(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn slots_for_both_engines_do_not_load_both() {
    a_hundred_tasks_in_turn(4).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn engines_that_both_have_many_tasks_swap_at_the_age_limit_and_not_for_every_task() {
    let shared = Shared::new(Act::Good, Act::Good);
    shared.memory.clip_ms.store(10_000, Ordering::SeqCst);
    let mut ids = Vec::new();
    for number in 0..100 {
        let model = [FIRST, SECOND][number % 2];
        ids.push(shared.bench.submit_to(model).await);
    }
    let running = Running::start(shared.worker(1));
    for id in ids {
        shared.bench.completes(id).await;
    }
    running.drained().await;
    assert_eq!(shared.memory.most.load(Ordering::SeqCst), 60);
    // Each has 500 s of clips, and a turn is 120 s.
    let loads = shared.memory.loads.load(Ordering::SeqCst);
    assert!((6..=10).contains(&loads), "{loads}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_in_use_keeps_its_room_and_others_their_slots() {
    let shared = Shared::new(Act::Held, Act::Good);
    let running = Running::start(shared.worker(3));
    let first = shared.bench.submit_to(FIRST).await;
    until("the first works", async || shared.first.at_work() == 1).await;
    let second = shared.bench.submit_to(SECOND).await;
    // Even after the age limit.
    for _ in 0..3 {
        shared.goes_round().await;
        shared.waits(second).await;
        shared.pass(AGE);
    }
    shared.first.release();
    shared.bench.completes(first).await;
    shared.bench.completes(second).await;
    running.drained().await;
    assert_eq!(shared.memory.most.load(Ordering::SeqCst), 60);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rare_model_waits_for_the_age_limit_and_no_longer() {
    let shared = Shared::new(Act::Held, Act::Held);
    let running = Running::start(shared.worker(2));
    let mut frequent = Vec::new();
    for _ in 0..5 {
        frequent.push(shared.bench.submit_to(FIRST).await);
    }
    until("the first works", async || shared.first.started() == 1).await;
    let rare = shared.bench.submit_to(SECOND).await;
    shared.pass(AGE - Duration::from_secs(1));
    shared.first.release_one();
    until("its next task runs", async || shared.first.started() == 2).await;
    shared.goes_round().await;
    shared.waits(rare).await;
    shared.pass(Duration::from_secs(1));
    // The worker sees that the limit has passed, while the engine still works.
    shared.goes_round().await;
    shared.first.release_one();
    until("the rare one works", async || shared.second.at_work() == 1).await;
    assert_eq!(shared.first.started(), 2, "the others wait meanwhile");
    shared.second.release();
    shared.bench.completes(rare).await;
    all_end_within_the_budget(&shared, running, frequent).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_high_task_unloads_no_engine_with_tasks_and_goes_first_when_its_own_has_room() {
    let shared = Shared::new(Act::Held, Act::Held);
    let running = Running::start(shared.worker(2));
    let mut normal = Vec::new();
    for _ in 0..5 {
        normal.push(shared.bench.submit_to(FIRST).await);
    }
    until("the first works", async || shared.first.started() == 1).await;
    let before = shared.bench.submit_to(SECOND).await;
    let high = shared.bench.submit_high(SECOND).await;
    shared.pass(AGE - Duration::from_secs(1));
    shared.first.release_one();
    until("a normal one runs", async || shared.first.started() == 2).await;
    shared.goes_round().await;
    shared.waits(high).await;
    shared.pass(Duration::from_secs(1));
    shared.goes_round().await;
    shared.first.release_one();
    until("the high one works", async || shared.second.at_work() == 1).await;
    shared.waits(before).await;
    assert_eq!(shared.first.started(), 2, "the others wait meanwhile");
    shared.second.release();
    shared.bench.completes(high).await;
    normal.push(before);
    all_end_within_the_budget(&shared, running, normal).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_whose_runs_overlap_lets_them_end_for_one_that_has_waited_too_long() {
    let shared = Shared::new(Act::Held, Act::Good);
    let running = Running::start(shared.worker_with_seats(3, 2));
    let mut frequent = Vec::new();
    for _ in 0..6 {
        frequent.push(shared.bench.submit_to(FIRST).await);
    }
    until("both seats are taken", async || shared.first.at_work() == 2).await;
    let rare = shared.bench.submit_to(SECOND).await;
    shared.pass(AGE);
    shared.goes_round().await;
    shared.first.release_one();
    until("one run ends", async || shared.first.at_work() == 1).await;
    shared.goes_round().await;
    assert_eq!(shared.first.started(), 2, "its seat stays free");
    shared.waits(rare).await;
    shared.first.release_one();
    shared.bench.completes(rare).await;
    all_end_within_the_budget(&shared, running, frequent).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_leaves_after_its_idle_time_and_loads_again_for_a_task() {
    let shared = Shared::new(Act::Good, Act::Good);
    let running = Running::start(shared.worker(1));
    let id = shared.bench.submit_to(FIRST).await;
    shared.bench.completes(id).await;
    shared.pass(IDLE - Duration::from_secs(1));
    shared.goes_round().await;
    assert!(shared.memory.has(FIRST));
    shared.pass(Duration::from_secs(1));
    until("it leaves", async || !shared.memory.has(FIRST)).await;
    let id = shared.bench.submit_to(FIRST).await;
    shared.bench.completes(id).await;
    assert_eq!(shared.memory.loads.load(Ordering::SeqCst), 2);
    running.drained().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_that_does_not_leave_holds_up_no_task_but_those_that_need_its_room() {
    let shared = Shared::new(Act::Good, Act::Good);
    let running = Running::start(shared.worker(2));
    let first = shared.bench.submit_to(FIRST).await;
    shared.bench.completes(first).await;
    shared.memory.set_stuck(true);
    let second = shared.bench.submit_to(SECOND).await;
    shared.goes_round().await;
    shared.pass(Duration::from_secs(3600));
    shared.goes_round().await;
    shared.waits(second).await;
    let task = shared.bench.task(second).await;
    assert_eq!((task.attempt, shared.second.started()), (0, 0));
    shared.memory.set_stuck(false);
    shared.bench.completes(second).await;
    running.drained().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_that_fails_gives_way_like_any_other() {
    for act in [Act::Panics, Act::Fails, Act::RunsOutOfMemory] {
        let shared = Shared::new(act, Act::Good);
        let running = Running::start(shared.worker(1));
        let first = shared.bench.submit_to(FIRST).await;
        let second = shared.bench.submit_to(SECOND).await;
        shared.bench.fails(first).await;
        shared.bench.completes(second).await;
        running.drained().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_fails_costs_no_engine_its_turn() {
    let shared = Shared::new(Act::Good, Act::Good);
    let running = Running::start(shared.worker(1));
    let first = shared.bench.submit_to(FIRST).await;
    shared.bench.completes(first).await;
    let plan = &shared.bench.store_plan;
    plan.fail_next(StoreMethod::HasClaimable, 1, Fault::Before);
    let asked = plan.calls(StoreMethod::HasClaimable);
    let second = shared.bench.submit_to(SECOND).await;
    shared.bench.completes(second).await;
    assert!(plan.calls(StoreMethod::HasClaimable) >= asked + 2);
    running.drained().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn operators_see_what_is_loaded() {
    let shared = Shared::new(Act::Good, Act::Good);
    let worker = shared.worker(1);
    worker.announce().await.unwrap();
    let shown = async || {
        let living = shared.bench.store.workers.living().await.unwrap();
        living[0].worker.devices[0].clone()
    };
    let device = shown().await;
    assert_eq!((&*device.name, device.memory_megabytes), ("gpu0", 100));
    assert_eq!(device.used_megabytes(), 0);
    let running = Running::start(worker);
    let first = shared.bench.submit_to(FIRST).await;
    shared.bench.completes(first).await;
    until("the engine is shown", async || {
        shown().await.engines[0].state == DeviceEngineState::Idle
    })
    .await;
    let device = shown().await;
    assert_eq!((device.used_megabytes(), device.swaps), (60, 0));
    let second = &device.engines[1];
    assert_eq!(
        (second.state, second.models.as_slice()),
        (DeviceEngineState::Away, [SECOND.to_owned()].as_slice())
    );
    let second = shared.bench.submit_to(SECOND).await;
    shared.bench.completes(second).await;
    until("the swap is shown", async || shown().await.swaps == 1).await;
    shared.pass(IDLE);
    until("nothing is loaded", async || {
        shown().await.used_megabytes() == 0
    })
    .await;
    assert_eq!(shown().await.swaps, 1, "nobody needed its room");
    running.drained().await;
}
