//! Runs that lose their lease: hung, or cut off.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use kinora_contract::{
    Clock, FailureCode, ManualClock, StandstillReason, SteadyMs, TaskPhase, UnixMs, VideoInputs,
    WorkerReadiness,
};
use kinora_store::faulty::{Rates, StoreMethod as Store};
use kinora_store::{ClaimRequest, Pauses};
use kinora_worker::{FaultBackoff, Worker};

use crate::bench::{Bench, DEADLINE, LEASE_MS, MODEL, Running, spec, until};
use crate::engines::{Act, Puppet, is_left};

/// Claims the one waiting task for a worker that dies.
pub(crate) async fn claim_and_die(bench: &Bench, lease_ms: u64) {
    let request = ClaimRequest {
        worker: "a worker that dies".to_owned(),
        models: vec![MODEL.to_owned()],
        paused: Pauses::default(),
        count: 1,
        slots: usize::MAX,
        project_slots_max: 0,
        long_tasks: None,
        is_settled: true,
        attempts_max: 3,
        lease_ms,
    };
    assert_eq!(bench.store.work.claim(request).await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn p03_a_hung_engine_is_overtaken_and_what_it_makes_later_goes() {
    let bench = Bench::new();
    let hung = Arc::new(Puppet::at_first(Act::Held));
    let first = Running::start(bench.worker_without_time(&hung));
    let id = bench.submit().await;
    until("the engine hangs", async || hung.at_work() == 1).await;
    bench.heartbeats_go_round().await;
    let second = Running::start(bench.worker(&Arc::new(Puppet::new(Act::Good))));
    bench.clock.advance(LEASE_MS);
    let artifact = bench.completes(id).await;
    assert_eq!(bench.task(id).await.attempt, 2);
    assert_eq!(hung.at_work(), 1);
    second.drained().await;

    hung.release();
    // The only slot of the first worker comes back when the hung engine's thread has ended.
    let next = bench.submit().await;
    let next = bench.completes(next).await;
    assert_eq!(hung.started(), 2);
    first.drained().await;
    bench.holds_only(&[artifact.clone(), next]).await;
    assert_eq!(bench.completes(id).await, artifact);
}

#[tokio::test(flavor = "multi_thread")]
async fn p03_the_finish_of_a_worker_that_was_cut_off_is_refused_and_its_files_go() {
    let bench = Bench::new();
    let engine = Arc::new(Puppet::new(Act::Held));
    let cut_off = Running::start(bench.worker_without_time(&engine));
    let id = bench.submit().await;
    until("the engine works", async || engine.at_work() == 1).await;
    // A renewal that is under way would last from the hour to which the clock is moved.
    bench.heartbeats_go_round().await;
    bench.store_plan.set(Rates::AWAY);
    let mut worker = bench.worker(&Arc::new(Puppet::new(Act::Good)));
    worker.work = bench.store.work.clone();
    worker.chores = bench.store.chores.clone();
    worker.pauses = bench.store.pauses.clone();
    let rescuer = Running::start(worker);
    bench.clock.advance(2 * LEASE_MS);
    let artifact = bench.completes(id).await;
    assert_eq!(bench.task(id).await.attempt, 2);

    engine.release();
    until("both results are stored", async || {
        bench.keys().await.len() == 10
    })
    .await;
    let finishes = bench.finishes();
    let tried = async || bench.finishes() > finishes;
    until("the late finish is tried", tried).await;
    bench.store_plan.set(Rates::NONE);
    cut_off.drained().await;
    rescuer.drained().await;
    bench.holds_only(std::slice::from_ref(&artifact)).await;
    assert_eq!(bench.completes(id).await, artifact);
}

#[tokio::test(flavor = "multi_thread")]
async fn p05_a_task_whose_workers_are_lost_too_often_fails_with_worker_lost() {
    const ATTEMPTS: usize = 2;
    let bench = Bench::new();
    let engine = Arc::new(Puppet::new(Act::Held));
    let mut worker = bench.worker_without_time(&engine);
    worker.settings.slots = ATTEMPTS;
    worker.settings.attempts_max = ATTEMPTS as u32;
    let running = Running::start(worker);
    let id = bench.submit().await;
    for attempt in 1..=ATTEMPTS {
        until("the engine hangs", async || engine.started() == attempt).await;
        bench.heartbeats_go_round().await;
        bench.clock.advance(LEASE_MS);
    }
    let (code, message) = bench.fails(id).await;
    assert_eq!(code, FailureCode::WorkerLost.as_str());
    assert_eq!(message, FailureCode::WorkerLost.sentence());
    assert_eq!(bench.task(id).await.attempt, 2);

    engine.release();
    running.drained().await;
    is_left(&engine).await;
    bench.comes_to_hold_only(&[]).await;
    assert_eq!(engine.started(), ATTEMPTS);
    assert_eq!(bench.phase(id).await, TaskPhase::Failed);
}

/// Another worker may have the task by then. The engine is not to go on for nobody, and the attempt is not the task's
/// fault.
#[tokio::test(flavor = "multi_thread")]
async fn p05_a_run_whose_lease_ran_out_stops_by_itself_although_the_store_is_away() {
    let bench = Bench::new();
    let engine = Arc::new(Puppet::at_first(Act::Obedient));
    let running = Running::start(bench.worker(&engine));
    let id = bench.submit().await;
    until("the engine works", async || engine.at_work() == 1).await;
    bench.store_plan.set(Rates::AWAY);
    bench.clock.advance(LEASE_MS);
    until("the engine is told to stop", async || engine.at_work() == 0).await;
    bench.store_plan.set(Rates::NONE);
    bench.completes(id).await;
    running.drained().await;
}

/// Work that blocks every thread of the runtime is a mistake, and no reason to lose what runs.
#[test]
fn p05_leases_are_renewed_although_every_thread_of_the_runtime_is_blocked() {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(async {
        let bench = Bench::new();
        let engine = Arc::new(Puppet::new(Act::Held));
        let running = Running::start(bench.worker(&engine));
        let id = bench.submit().await;
        until("the engine works", async || engine.at_work() == 1).await;
        bench.heartbeats_go_round().await;
        let (plan, clock) = (bench.store_plan.clone(), bench.clock.clone());
        let blocked = tokio::spawn(async move {
            let renewals = || plan.calls(Store::Renew);
            let before = renewals();
            clock.advance(LEASE_MS - 1);
            let begun = Instant::now();
            while renewals() == before && begun.elapsed() < DEADLINE {
                std::thread::sleep(Duration::from_millis(1));
            }
            assert!(renewals() > before, "the lease was not renewed");
        });
        blocked.await.unwrap();
        bench.heartbeats_go_round().await;
        bench.clock.advance(LEASE_MS - 1);
        engine.release();
        bench.completes(id).await;
        assert_eq!((bench.task(id).await.attempt, engine.started()), (1, 1));
        running.drained().await;
    });
}

/// A clock that panics on the thread of the lease keeper, once the test asks for it.
#[derive(Debug, Default)]
struct Treacherous {
    inner: ManualClock,
    panics: AtomicBool,
}

impl Clock for Treacherous {
    fn now_ms(&self) -> UnixMs {
        self.inner.now_ms()
    }

    fn steady_ms(&self) -> SteadyMs {
        let panics = self.panics.load(Ordering::SeqCst);
        assert!(!panics || std::thread::current().name() != Some("lease-keeper"));
        self.inner.steady_ms()
    }
}

/// Without its keeper every run would lose its lease, and be made again in vain.
#[tokio::test(flavor = "multi_thread")]
async fn p11_a_lease_keeper_that_panics_is_known_and_ends_no_run() {
    let bench = Bench::new();
    let engine = Arc::new(Puppet::new(Act::Held));
    let clock = Arc::new(Treacherous::default());
    let readiness = WorkerReadiness::default();
    let worker = Worker {
        clock: clock.clone(),
        backoff: FaultBackoff::new(readiness.clone(), bench.clock.clone()),
        ..bench.worker(&engine)
    };
    let running = Running::start(worker);
    let id = bench.submit().await;
    until("the engine works", async || engine.at_work() == 1).await;
    assert_eq!(readiness.standstill(), None);
    clock.panics.store(true, Ordering::SeqCst);
    let dead = async || readiness.standstill() == Some(StandstillReason::Worker);
    until("the worker counts as dead", dead).await;
    engine.release();
    bench.completes(id).await;
    running.drained().await;
}

/// On one thread, so that a claim beside the first sweep would always come before it.
#[tokio::test]
async fn what_a_dead_worker_left_is_taken_up_at_start_and_goes_before_younger_tasks() {
    let bench = Bench::new();
    let engine = Arc::new(Puppet::new(Act::Held));
    let old = bench.submit().await;
    claim_and_die(&bench, 1).await;
    bench.clock.advance(1);
    let young = bench.submit().await;
    let mut worker = bench.worker(&engine);
    worker.settings.sweep_every = DEADLINE;
    let running = Running::start(worker);
    until("the engine works", async || engine.at_work() == 1).await;
    assert_eq!(bench.phase(old).await, TaskPhase::Running);
    assert_eq!(bench.phase(young).await, TaskPhase::Waiting);
    engine.release();
    running.drained().await;
}

/// A client that submits and deletes makes more of them than the pace removes, and others' would wait behind them.
#[tokio::test(flavor = "multi_thread")]
async fn files_to_be_removed_do_not_pile_up_behind_the_pace() {
    let bench = Bench::new();
    for _ in 0..90 {
        let mut spec = spec(MODEL);
        spec.inputs = VideoInputs::References {
            images: vec!["https://example.org/picture".to_owned(); 12],
            audios: Vec::new(),
        };
        let id = bench.submit_spec(spec).await;
        bench.delete(id).await;
    }
    let mut worker = bench.worker(&Arc::new(Puppet::new(Act::Good)));
    worker.settings.sweep_every = DEADLINE;
    let running = Running::start(worker);
    // 1,080 keys, 200 by a sweep.
    let forgets = || bench.store_plan.calls(Store::CompleteChores);
    until("all files are removed", async || forgets() >= 6).await;
    running.drained().await;
}
