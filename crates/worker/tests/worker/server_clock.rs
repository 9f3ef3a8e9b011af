//! The clock of a PostgreSQL server is set while workers of several processes work: nothing expires by it, and no attempt
//! is used up.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use kinora_contract::{Clock as _, ManualClock, Priority, TaskId, TaskPhase};
use kinora_store::faulty::StoreMethod;
use kinora_store::{
    IdempotencyKey, InsertOutcome, NewTask, OpenOptions, QueueBounds, SubmitBudgets, migrate, open,
};
use kinora_testkit::postgres::Server;

use crate::bench::{Bench, MODEL, NOW, PROJECT, RETENTION_MS, Running, spec, until};
use crate::engines::{Act, Puppet};

const HOUR: i64 = 60 * 60 * 1000;
const DAY: i64 = 24 * HOUR;
const YEARS: i64 = 3_652 * DAY;
const SETTLE_MS: u64 = 2 * 60 * 1000;
/// Shorter than a step: sweeps may see one clock moved before the other.
const TICK_MS: u64 = 50 * 1000;

/// A bench over a database whose clock the test sets.
struct Moved {
    bench: Bench,
    url: String,
    ahead_ms: AtomicI64,
}

impl Deref for Moved {
    type Target = Bench;

    fn deref(&self) -> &Bench {
        &self.bench
    }
}

impl Moved {
    async fn new() -> Self {
        let url = tokio::task::block_in_place(|| Server::shared().database());
        migrate(&url).await.unwrap();
        let clock = Arc::new(ManualClock::at(NOW));
        show(&url, NOW);
        let store = open(&url, &OpenOptions::new(clock.clone())).await.unwrap();
        Self {
            bench: Bench::over(store, clock),
            url,
            ahead_ms: AtomicI64::new(0),
        }
    }

    /// Lets time pass, by both clocks.
    fn pass(&self, ms: u64) {
        for _ in 0..ms.div_ceil(TICK_MS) {
            self.clock.advance(TICK_MS);
            self.step_to(self.ahead_ms.load(Ordering::SeqCst));
        }
    }

    /// Lets time pass until the clock may be trusted.
    async fn settle(&self) {
        for _ in 0..=SETTLE_MS / TICK_MS {
            sweeps_go_round(self).await;
            self.pass(TICK_MS);
        }
        sweeps_go_round(self).await;
    }

    /// Sets the server's clock so far ahead of the right time.
    fn step_to(&self, ahead_ms: i64) {
        self.ahead_ms.store(ahead_ms, Ordering::SeqCst);
        show(
            &self.url,
            self.clock.now_ms().saturating_add_signed(ahead_ms),
        );
    }

    /// A task under an idempotency key, or that of an earlier submit.
    async fn submit_once(&self) -> TaskId {
        let new = NewTask {
            id: TaskId::from_parts(NOW, [7; 10]),
            project: PROJECT.to_owned(),
            spec: spec(MODEL),
            metadata: BTreeMap::new(),
            priority: Priority::Normal,
            idempotency: Some(IdempotencyKey {
                key: "once".to_owned(),
                fingerprint: [7; 32],
                bound_ms: DAY.unsigned_abs(),
            }),
            callback: None,
            files: Vec::new(),
            trace: None,
            bounds: QueueBounds::NONE,
            cost: None,
            budgets: SubmitBudgets::default(),
        };
        match self.store.tasks.insert(new).await.unwrap() {
            InsertOutcome::Inserted(task) | InsertOutcome::Replayed(task) => task.id,
            other => panic!("{other:?}"),
        }
    }
}

fn show(url: &str, now_ms: u64) {
    tokio::task::block_in_place(|| Server::shared().stop_clock(url, now_ms));
}

/// Waits until sweeps that have begun after this have ended.
async fn sweeps_go_round(bench: &Bench) {
    let sweeps = || bench.store_plan.calls(StoreMethod::Sweep);
    let enough = sweeps() + 3;
    until("the sweeps go round", async || sweeps() >= enough).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn p10_no_clock_of_the_server_that_is_briefly_wrong_destroys_a_result_or_forgets_a_key() {
    let bench = Moved::new().await;
    let mut worker = bench.worker(&Arc::new(Puppet::new(Act::Good)));
    worker.settings.clock_settle_ms = SETTLE_MS;
    let running = Running::start(worker);
    let id = bench.submit_once().await;
    let artifact = bench.completes(id).await;
    for wrong_ms in [YEARS, 25 * HOUR, 8 * DAY, -2 * HOUR, -YEARS] {
        // The clock is trusted again.
        bench.settle().await;
        // Wrong in a sweep, then again, and some sweeps later right.
        for ahead_ms in [wrong_ms, 0, wrong_ms + HOUR, wrong_ms] {
            bench.step_to(ahead_ms);
            sweeps_go_round(&bench).await;
            bench.pass(TICK_MS);
            sweeps_go_round(&bench).await;
            assert_eq!(bench.submit_once().await, id, "{wrong_ms}");
        }
        bench.step_to(0);
        assert_eq!(bench.phase(id).await, TaskPhase::Completed, "{wrong_ms}");
    }
    sweeps_go_round(&bench).await;
    bench.holds_only(&[artifact]).await;
    // The clock that stays ends it.
    bench.pass(RETENTION_MS);
    bench.settle().await;
    bench.reaches(id, TaskPhase::Expired).await;
    running.drained().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn p10_processes_that_keep_results_for_a_clock_that_was_set_keep_them_as_long_as_one_does() {
    let bench = Moved::new().await;
    let workers = [(); 2].map(|()| {
        let mut worker = bench.worker(&Arc::new(Puppet::new(Act::Good)));
        worker.settings.clock_settle_ms = SETTLE_MS;
        Running::start(worker)
    });
    let id = bench.submit().await;
    bench.completes(id).await;
    bench.settle().await;
    let expires_ms = bench.task(id).await.expires_at_ms.unwrap();
    bench.step_to(25 * HOUR);
    bench.settle().await;
    let moved_ms = expires_ms + (25 * HOUR).unsigned_abs();
    let moved = async || bench.task(id).await.expires_at_ms == Some(moved_ms);
    until("its expiry is moved", moved).await;
    let [one, other] = workers;
    for _ in 0..4 {
        sweeps_go_round(&bench).await;
    }
    one.drained().await;
    other.drained().await;
    assert!(moved().await, "{:?}", bench.task(id).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn p10_steps_of_the_servers_clock_cost_a_slow_task_no_attempt() {
    let bench = Moved::new().await;
    let engine = Arc::new(Puppet::new(Act::Held));
    let running = Running::start(bench.worker(&engine));
    let id = bench.submit().await;
    until("the engine works", async || engine.at_work() == 1).await;
    sweeps_go_round(&bench).await;
    for ahead_ms in [HOUR, 2 * HOUR, 3 * HOUR, 4 * HOUR, -YEARS, YEARS, 0] {
        bench.step_to(ahead_ms);
        sweeps_go_round(&bench).await;
    }
    engine.release();
    let artifact = bench.completes(id).await;
    let task = bench.task(id).await;
    assert_eq!((task.attempt, engine.started()), (1, 1));
    running.drained().await;
    bench.holds_only(&[artifact]).await;
}
