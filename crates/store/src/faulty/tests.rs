//! The wrapper with nothing to do passes the suite of what it wraps; faults are what they are
//! called; and a caller who tries again as the interface says is never betrayed.
#![cfg(feature = "conformance")]

use std::collections::BTreeMap;

use async_trait::async_trait;
use kinora_contract::{Clock as _, ManualClock, TaskId, TaskPhase, TaskState};

use super::*;
use crate::conformance::fixtures::{
    EXPIRY, LEASE_MS, NOW, RETENTION_MS, artifact, claiming, id, sweep_at, task,
};
use crate::conformance::{Harness, Site};
use crate::{
    ClaimRequest, IdempotencyKey, InsertOutcome, Lease, NewTask, OpenOptions, PageRequest,
    StoreError, SweepRequest, open,
};

/// Stores behind a plan that lets all calls pass.
struct Calm(tempfile::TempDir);

impl Calm {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }
}

#[async_trait]
impl Harness for Calm {
    async fn stores(&self, name: &str, clock: Arc<ManualClock>) -> StoreHandles {
        let path = self.0.path().join(name).join("kinora.db");
        let url = format!("sqlite:{}", path.display());
        let stores = open(&url, &OpenOptions::new(clock)).await.unwrap();
        FaultyStore::wrap(stores, Arc::new(Plan::seeded(1)))
    }

    async fn open_second(&self, first: &Site, _: &str, clock: Arc<ManualClock>) -> Site {
        Site {
            clock,
            ..first.clone()
        }
    }
}

crate::conformance_suite!(Calm::new());

/// A real store, and the same behind `plan`.
async fn both(harness: &Calm, plan: &Arc<Plan<StoreMethod>>) -> [Site; 2] {
    let clock = Arc::new(ManualClock::at(NOW));
    let real = harness.stores("one", clock.clone()).await;
    let faulty = FaultyStore::wrap(real.clone(), plan.clone());
    [real, faulty].map(|stores| Site::of(stores, clock.clone()))
}

#[tokio::test]
async fn a_call_fails_before_or_after_it_is_done() {
    let plan = Arc::new(Plan::seeded(1));
    let harness = Calm::new();
    let [real, faulty] = both(&harness, &plan).await;
    plan.fail_call(StoreMethod::Insert, 2, Fault::Before);
    plan.fail_call(StoreMethod::Insert, 3, Fault::After);
    for (number, stored, said) in [(1, true, true), (2, false, false), (3, true, false)] {
        assert_eq!(faulty.tasks.insert(task(number, "one")).await.is_ok(), said);
        let found = real.tasks.get("one", id(number)).await.unwrap();
        assert_eq!(found.is_some(), stored, "task {number}");
    }
}

/// A client and a worker who do what the interface tells them to do about a failed call.
struct Stubborn(Site);

impl Stubborn {
    /// Sends the same request, each time with an id of its own, until it is answered.
    async fn submit(&self, numbers: &mut u64, key: u64) -> TaskId {
        loop {
            *numbers += 1;
            let idempotency = Some(IdempotencyKey {
                key: key.to_string(),
                fingerprint: [0; 32],
                bound_ms: u64::MAX >> 2,
            });
            let new = NewTask {
                idempotency,
                ..task(*numbers, "one")
            };
            match self.0.tasks.insert(new).await {
                Ok(InsertOutcome::Inserted(task) | InsertOutcome::Replayed(task)) => {
                    return task.id;
                }
                Ok(other) => panic!("{other:?}"),
                Err(_) => {}
            }
        }
    }

    /// Completes a lease; a refused second try is looked up.
    async fn complete(&self, lease: &Lease) {
        let outcome = artifact(&format!("token-{}", lease.token));
        loop {
            let result = Ok(outcome.clone());
            match self.0.work.finish(lease, result, RETENTION_MS).await {
                Ok(()) => return,
                Err(StoreError::LeaseLost(_)) => break,
                Err(_) => {}
            }
        }
        let found = loop {
            if let Ok(found) = self.0.tasks.task(lease.task).await {
                break found.expect("the task is there");
            }
        };
        assert_eq!(found.state, TaskState::Completed(Box::new(outcome)));
    }

    /// Works until nothing is left; a claim whose answer was lost comes back by the sweep.
    async fn work_off(&self, tasks: u64) {
        let mut done = 0;
        while done < tasks {
            self.0.clock.advance(LEASE_MS);
            let now_ms = self.0.clock.now_ms();
            let sweep = SweepRequest {
                attempts_max: u32::MAX,
                ..sweep_at(now_ms)
            };
            // A task completed at `NOW` shall not expire while others are worked on.
            assert!(now_ms < EXPIRY, "{done} of {tasks} done");
            let _ = self.0.chores.sweep(sweep).await;
            let request = ClaimRequest {
                worker: "stubborn".to_owned(),
                ..claiming(50)
            };
            for claim in self.0.work.claim(request).await.unwrap_or_default() {
                self.complete(&claim.lease).await;
                done += 1;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p06_at_five_percent_faults_no_key_makes_two_tasks_and_no_acknowledged_task_is_lost() {
    const KEYS: u64 = 200;
    for seed in 1..=5 {
        let plan = Arc::new(Plan::seeded(seed));
        let harness = Calm::new();
        let [real, faulty] = both(&harness, &plan).await;
        plan.set(Rates::each(50_000));
        let stubborn = Stubborn(faulty);
        let (mut numbers, mut acknowledged) = (0, BTreeMap::new());
        for round in 0..3 {
            for key in 0..KEYS {
                let id = stubborn.submit(&mut numbers, key).await;
                let first = *acknowledged.entry(key).or_insert(id);
                assert_eq!(
                    id, first,
                    "seed {seed}, round {round}: two tasks of key {key}"
                );
            }
        }
        stubborn.work_off(KEYS).await;
        let mut stored = Vec::new();
        loop {
            let request = PageRequest {
                project: "one".to_owned(),
                after: stored.last().copied(),
                limit: 100,
                order: crate::ListOrder::Ascending,
            };
            let page = real.tasks.list(request).await.unwrap();
            for task in &page.tasks {
                assert_eq!(task.state.phase(), TaskPhase::Completed, "seed {seed}");
            }
            stored.extend(page.tasks.iter().map(|task| task.id));
            if !page.has_more {
                break;
            }
        }
        let mut wanted: Vec<_> = acknowledged.into_values().collect();
        wanted.sort_unstable();
        assert_eq!(stored, wanted, "seed {seed}: lost or doubled tasks");
        let injected = plan.injected();
        assert!(injected.before > 10 && injected.after > 10, "{injected:?}");
    }
}
