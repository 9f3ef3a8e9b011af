//! The server's clock is set while processes hold leases: no lease ends early, and none lasts longer.

use std::sync::Arc;

use kinora_contract::{Clock as _, ManualClock, TaskPhase};
use kinora_store::conformance::Site;
use kinora_store::conformance::bench::Bench as _;
use kinora_store::conformance::fixtures::{
    LEASE_MS, NOW, claiming, fetching, renewal, sweep_at, with_images,
};
use kinora_store::{
    ClaimRequest, FETCH_PAUSE_MS_MAX, FetchReport, OpenOptions, PostgresOptions, SweepReport,
    SweepRequest, TimeSource, WorkerAnnouncement, WorkerState, open,
};
use kinora_testkit::postgres::Server;

use crate::harness::{database, exact};

const HOUR: i64 = 60 * 60 * 1000;
const DAY: i64 = 24 * HOUR;
const YEARS: i64 = 3_652 * DAY;
const STEPS: [i64; 6] = [HOUR, -2 * HOUR, 25 * HOUR, 8 * DAY, YEARS, -YEARS];

/// A database whose clock the test sets, and the steady clock of its processes.
struct Moved {
    url: String,
    clock: Arc<ManualClock>,
    ahead_ms: i64,
}

impl Moved {
    async fn new() -> Self {
        let moved = Self {
            url: database().await,
            clock: Arc::new(ManualClock::at(NOW)),
            ahead_ms: 0,
        };
        moved.show();
        moved
    }

    fn show(&self) {
        let now_ms = self.wall_ms();
        tokio::task::block_in_place(|| Server::shared().stop_clock(&self.url, now_ms));
    }

    fn wall_ms(&self) -> u64 {
        self.clock.now_ms().saturating_add_signed(self.ahead_ms)
    }

    /// A process that begins now.
    async fn process(&self) -> Site {
        let options = OpenOptions {
            postgres: PostgresOptions {
                time: TimeSource::Server,
                ..exact()
            },
            ..OpenOptions::new(self.clock.clone())
        };
        Site::of(open(&self.url, &options).await.unwrap(), self.clock.clone())
    }

    fn step(&mut self, by_ms: i64) {
        self.ahead_ms += by_ms;
        self.show();
    }

    fn pass(&self, by_ms: u64) {
        self.clock.advance(by_ms);
        self.show();
    }
}

async fn sweep(site: &Site) -> SweepReport {
    let leases_alone = SweepRequest {
        due_ms: None,
        ..sweep_at(0)
    };
    site.chores.sweep(leases_alone).await.unwrap()
}

async fn announce(site: &Site, id: &str, for_ms: u64) {
    let announcement = WorkerAnnouncement {
        id: id.to_owned(),
        host: "gpu-1".to_owned(),
        pid: 1,
        version: "0.1.0".to_owned(),
        models: Vec::new(),
        slots: 1,
        started_at_ms: NOW,
        state: WorkerState::Serving,
        devices: Vec::new(),
        places: Vec::new(),
    };
    site.workers.announce(&announcement, for_ms).await.unwrap();
}

async fn living(site: &Site) -> usize {
    site.workers.living().await.unwrap().len()
}

#[tokio::test(flavor = "multi_thread")]
async fn p10_a_reading_shows_a_step_of_the_servers_clock() {
    let mut moved = Moved::new().await;
    let site = moved.process().await;
    let first = site.chores.clock().await.unwrap();
    moved.pass(70);
    moved.step(YEARS);
    let second = site.chores.clock().await.unwrap();
    assert_eq!(second.steady_ms - first.steady_ms, 70);
    let passed_ms = YEARS.unsigned_abs() + 70;
    assert_eq!(second.wall_ms - first.wall_ms, passed_ms);
}

#[tokio::test(flavor = "multi_thread")]
async fn p10_steps_of_the_servers_clock_cost_a_healthy_worker_no_attempt() {
    for step_ms in STEPS {
        let mut moved = Moved::new().await;
        let [api, worker] = [moved.process().await, moved.process().await];
        worker.submit(1, "one").await;
        let claim = worker.claim_one().await;
        announce(&worker, "worker", 2 * LEASE_MS).await;
        for _ in 0..4 {
            // Renewals come in time, by the clock that no step moves.
            moved.pass(LEASE_MS * 2 / 3);
            moved.step(step_ms);
            for site in [&api, &worker] {
                assert_eq!(sweep(site).await, SweepReport::default(), "{step_ms}");
                assert_eq!(living(site).await, 1, "{step_ms}");
            }
            announce(&worker, "worker", 2 * LEASE_MS).await;
            worker.renew(&claim.lease, renewal(0)).await.unwrap();
        }
        worker.complete(&claim).await.unwrap();
        assert_eq!(api.task("one", 1).await.attempt, 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn p05_a_step_of_the_servers_clock_delays_no_rescue() {
    for step_ms in STEPS {
        let mut moved = Moved::new().await;
        let [api, worker] = [moved.process().await, moved.process().await];
        worker.submit(1, "one").await;
        worker.claim_one().await;
        announce(&worker, "worker", LEASE_MS).await;
        assert_eq!(
            (sweep(&api).await, living(&api).await),
            (SweepReport::default(), 1)
        );
        moved.pass(LEASE_MS / 2);
        moved.step(step_ms);
        moved.pass(LEASE_MS / 2 - 1);
        assert_eq!(
            (sweep(&api).await, living(&api).await),
            (SweepReport::default(), 1),
            "{step_ms}"
        );
        moved.pass(1);
        assert_eq!(
            (sweep(&api).await.requeued, living(&api).await),
            (1, 0),
            "{step_ms}"
        );
    }
}

/// Of a process that has not seen the step: a lease that the clock cannot have granted is over, unless its worker lives.
#[tokio::test(flavor = "multi_thread")]
async fn p05_a_process_that_begins_after_a_step_back_takes_what_a_dead_worker_had() {
    let mut moved = Moved::new().await;
    let worker = moved.process().await;
    worker.submit(1, "one").await;
    worker.claim_one().await;
    announce(&worker, "worker", LEASE_MS).await;
    worker.submit(2, "one").await;
    let long = ClaimRequest {
        worker: "long".to_owned(),
        lease_ms: 20 * LEASE_MS,
        ..claiming(1)
    };
    moved.step(-2 * HOUR);
    announce(&worker, "long", LEASE_MS).await;
    assert_eq!(worker.work.claim(long).await.unwrap().len(), 1);
    drop(worker);
    let api = moved.process().await;
    assert_eq!(living(&api).await, 1);
    assert_eq!(sweep(&api).await.requeued, 1);
    let phases = [api.task("one", 1).await, api.task("one", 2).await];
    let phases = phases.map(|task| task.state.phase());
    assert_eq!(phases, [TaskPhase::Waiting, TaskPhase::Running]);
}

#[tokio::test(flavor = "multi_thread")]
async fn p10_a_clock_that_jitters_costs_no_attempt_and_delays_no_rescue() {
    let mut moved = Moved::new().await;
    let [api, worker] = [moved.process().await, moved.process().await];
    worker.submit(1, "one").await;
    let claim = worker.claim_one().await;
    for round in 0..40 {
        moved.pass(LEASE_MS / 4);
        moved.step(STEPS[round % STEPS.len()]);
        assert_eq!(sweep(&api).await, SweepReport::default(), "{round}");
        if round % 2 == 1 {
            worker.renew(&claim.lease, renewal(0)).await.unwrap();
        }
    }
    for step_ms in &STEPS[..4] {
        assert_eq!(sweep(&api).await, SweepReport::default(), "{step_ms}");
        moved.pass(LEASE_MS / 4);
        moved.step(*step_ms);
    }
    assert_eq!(sweep(&api).await.requeued, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn p10_fetches_and_their_pauses_last_as_long_after_a_step_of_the_servers_clock() {
    for step_ms in STEPS {
        let mut moved = Moved::new().await;
        let [one, other] = [moved.process().await, moved.process().await];
        one.submit_all([with_images(1, "one", 1), with_images(2, "two", 1)])
            .await;
        let fetches = one.take(2).await;
        let pause = FetchReport::Back {
            pause_ms: FETCH_PAUSE_MS_MAX,
        };
        one.work.complete_fetch(&fetches[1], pause).await.unwrap();
        let taken = async |site: &Site| {
            let taken = site.work.lease_fetches(fetching(9)).await.unwrap();
            taken.iter().map(|fetch| fetch.task.id).collect::<Vec<_>>()
        };
        for site in [&one, &other] {
            assert!(taken(site).await.is_empty());
        }
        moved.step(step_ms);
        moved.pass(LEASE_MS - 1);
        assert!(taken(&other).await.is_empty(), "{step_ms}");
        moved.pass(1);
        assert_eq!(taken(&other).await, [fetches[0].task.id], "{step_ms}");
        moved.pass(FETCH_PAUSE_MS_MAX - LEASE_MS);
        assert!(
            taken(&other).await.contains(&fetches[1].task.id),
            "{step_ms}"
        );
    }
}
