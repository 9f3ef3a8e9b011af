//! Random operations, compared after each with a model of a page: what a store does is what a
//! handful of maps would do.

mod chores;
mod known;
mod steps;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU32, Ordering};

use kinora_contract::lifecycle::CallOff;
use kinora_contract::{Clock as _, Phase, TaskId};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use self::known::Known;
use super::bench::Bench as _;
use super::fixtures::{id, sweep_at};
use super::{Harness, Site};
use crate::{ExpiryCursor, Lease, Order, PageRequest, Postponed, QueueBounds, StoreError, Usage};

const PROJECTS: [&str; 3] = ["one", "two", "three"];
const BOUNDS: QueueBounds = QueueBounds {
    waiting_max: 6,
    project_unfinished_max: 4,
    ..QueueBounds::NONE
};
const RETENTION_MS: u64 = 60_000;

#[derive(Clone, Debug)]
enum Operation {
    Insert {
        project: usize,
        model: usize,
        key: Option<u8>,
        images: usize,
    },
    Fetch {
        count: usize,
        how: Option<bool>,
    },
    Claim {
        count: usize,
        models: usize,
    },
    Renew {
        lease: usize,
        progress: u8,
    },
    Finish {
        lease: usize,
        well: bool,
    },
    Release {
        lease: usize,
        counts: bool,
    },
    Cancel {
        task: u64,
        project: usize,
    },
    Delete {
        task: u64,
        project: usize,
    },
    Sweep {
        after_ms: u64,
        trusts: bool,
    },
    /// The wall clock is set, by so many hours.
    SetClock {
        hours: i64,
    },
    /// All that is to be done elsewhere is done.
    Chores,
    /// Results that ended by now are kept for a minute longer.
    Postpone,
    ChargeReferences {
        task: u64,
        bytes: u64,
    },
}

fn operation() -> impl Strategy<Value = Operation> {
    use Operation::{
        Cancel, ChargeReferences, Chores, Claim, Delete, Fetch, Finish, Insert, Postpone, Release,
        Renew, SetClock, Sweep,
    };
    prop_oneof![
        6 => (0..3_usize, 0..2_usize, proptest::option::of(0..3_u8), 0..3_usize)
            .prop_map(|(project, model, key, images)| Insert { project, model, key, images }),
        3 => (1..4_usize, proptest::option::of(any::<bool>()))
            .prop_map(|(count, how)| Fetch { count, how }),
        4 => (0..3_usize, 1..4_usize).prop_map(|(count, models)| Claim { count, models }),
        2 => (0..8_usize, any::<u8>()).prop_map(|(lease, progress)| Renew { lease, progress }),
        3 => (0..8_usize, any::<bool>()).prop_map(|(lease, well)| Finish { lease, well }),
        1 => (0..8_usize, any::<bool>()).prop_map(|(lease, counts)| Release { lease, counts }),
        1 => (0..20_u64, 0..3_usize).prop_map(|(task, project)| Cancel { task, project }),
        1 => (0..20_u64, 0..3_usize).prop_map(|(task, project)| Delete { task, project }),
        2 => (0..40_000_u64, any::<bool>())
            .prop_map(|(after_ms, trusts)| Sweep { after_ms, trusts }),
        1 => (-2..3_i64).prop_map(|hours| SetClock { hours }),
        1 => Just(Postpone),
        2 => Just(Chores),
        1 => (0..20_u64, 0..9_u64).prop_map(|(task, bytes)| ChargeReferences { task, bytes }),
    ]
}

/// The store as a map.
#[derive(Default)]
struct Model {
    tasks: BTreeMap<u64, Known>,
    next: u64,
    now_ms: u64,
    steady_ms: u64,
    leases: Vec<(u64, Lease)>,
    /// How late each project's turn is, in cost units, and where the last task began.
    turns: BTreeMap<&'static str, u64>,
    turn_now: u64,
    /// A task that waits for the worker to have nothing else.
    alone: Option<u64>,
    /// Projects that were promised a place of the queue, once.
    promised: BTreeSet<&'static str>,
    /// Files that are to be removed.
    files: BTreeSet<String>,
    /// Upstream jobs that are to be called off, by task.
    call_offs: BTreeMap<u64, CallOff>,
}

/// The case: 100 sequences of up to 40 operations.
pub async fn random_operations_agree_with_a_simple_model(harness: &impl Harness) {
    let number = AtomicU32::new(0);
    tokio::task::block_in_place(|| {
        let config = Config {
            cases: 100,
            failure_persistence: None,
            ..Config::default()
        };
        let sequences = proptest::collection::vec(operation(), 1..40);
        let tested = TestRunner::new(config).run(&sequences, |operations| {
            let name = format!("model-{}", number.fetch_add(1, Ordering::Relaxed));
            tokio::runtime::Handle::current().block_on(async {
                let stores = harness.open(&name).await;
                let mut model = Model::default();
                for operation in operations {
                    model.step(&stores, operation).await;
                    model.compare(&stores).await;
                }
                model.do_chores(&stores).await;
                model.delete_everything(&stores).await;
            });
            Ok(())
        });
        tested.unwrap_or_else(|failure| panic!("{failure}"));
    });
}

impl Model {
    fn read(&mut self, stores: &Site) {
        self.now_ms = stores.clock.now_ms();
        self.steady_ms = stores.clock.steady_ms();
    }

    async fn step(&mut self, stores: &Site, operation: Operation) {
        stores.clock.advance(1);
        self.read(stores);
        match operation {
            Operation::Insert {
                project,
                model,
                key,
                images,
            } => {
                let project = PROJECTS[project];
                self.insert(stores, project, model, key, images).await;
            }
            Operation::Fetch { count, how } => self.fetch(stores, count, how).await,
            Operation::Claim { count, models } => self.claim(stores, count, models).await,
            Operation::Renew { lease, progress } => self.renew(stores, lease, progress).await,
            Operation::Finish { lease, well } => self.finish(stores, lease, well).await,
            Operation::Release { lease, counts } => self.release(stores, lease, counts).await,
            Operation::Cancel { task, project } => {
                self.cancel(stores, task, PROJECTS[project]).await;
            }
            Operation::Delete { task, project } => {
                self.delete(stores, task, PROJECTS[project]).await;
            }
            Operation::Sweep { after_ms, trusts } => {
                stores.clock.advance(after_ms);
                self.read(stores);
                let sweep = crate::SweepRequest {
                    due_ms: trusts.then_some(self.now_ms),
                    retention_ms: RETENTION_MS,
                    ..sweep_at(self.now_ms)
                };
                let swept = stores.chores.sweep(sweep).await.unwrap();
                assert_eq!(swept, self.sweep(trusts));
            }
            Operation::SetClock { hours } => {
                let set_ms = self.now_ms.saturating_add_signed(hours * 3_600_000);
                stores.clock.set(set_ms);
                self.read(stores);
            }
            Operation::Chores => self.do_chores(stores).await,
            Operation::Postpone => self.postpone(stores).await,
            Operation::ChargeReferences { task, bytes } => {
                let charged = stores.work.charge_references(id(task), bytes).await;
                charged.unwrap();
            }
        }
    }

    /// One of the last leases, counted from the newest.
    fn lease(&self, back: usize) -> Option<(u64, Lease)> {
        self.leases.iter().rev().nth(back).cloned()
    }

    /// The task that the lease holds, after checking that the store thought so too.
    fn holder(
        &mut self,
        number: u64,
        lease: &Lease,
        done: &Result<(), StoreError>,
    ) -> Option<&mut Known> {
        let known = self.tasks.get_mut(&number);
        let known = known.filter(|known| known.token == Some(lease.token));
        match done {
            Ok(()) => assert!(known.is_some(), "a stale lease was obeyed"),
            Err(StoreError::LeaseLost(_)) => assert!(known.is_none(), "a good lease was refused"),
            Err(error) => panic!("{error}"),
        }
        known
    }

    /// What is charged for tasks that are gone would stay for ever.
    async fn delete_everything(&mut self, stores: &Site) {
        let all = self.tasks.iter();
        let all: Vec<_> = all
            .map(|(number, known)| (*number, known.project))
            .collect();
        for (number, project) in all {
            self.delete(stores, number, project).await;
        }
        self.do_chores(stores).await;
        for project in PROJECTS {
            assert_eq!(stores.tasks.usage(project).await.unwrap(), Usage::default());
        }
    }

    /// A task at a time, so that the place at which a move goes on counts.
    async fn postpone(&mut self, stores: &Site) {
        let mut below = Some(ExpiryCursor::END);
        while let Some(place) = below {
            let postpone = crate::Postpone {
                from_ms: 0,
                before_ms: u64::MAX,
                by: Postponed::By(60_000),
                below: place,
                batch: 1,
            };
            below = stores.chores.postpone(postpone).await.unwrap();
        }
        for known in self.tasks.values_mut() {
            if matches!(known.phase, Phase::Completed | Phase::Failed) {
                known.expires_at_ms += 60_000;
            }
        }
    }

    async fn compare(&self, stores: &Site) {
        for number in 0..self.next {
            for project in PROJECTS {
                let found = stores.tasks.get(project, id(number)).await.unwrap();
                let known = self
                    .tasks
                    .get(&number)
                    .filter(|known| known.project == project);
                if let Some(task) = &found {
                    let times = [task.started_at_ms, task.finished_at_ms]
                        .into_iter()
                        .flatten();
                    let times: Vec<u64> = [task.created_at_ms].into_iter().chain(times).collect();
                    assert!(times.is_sorted(), "{times:?} of task {number}");
                }
                let shape = |phase, attempt, progress| (phase, attempt, progress);
                assert_eq!(
                    found.map(|task| shape(task.state.phase(), task.attempt, task.progress)),
                    known.map(|known| shape(known.phase, known.attempt, known.progress)),
                    "task {number} of {project}"
                );
            }
        }
        for (number, lease) in &self.leases {
            let holds = self
                .tasks
                .get(number)
                .is_some_and(|k| k.token == Some(lease.token));
            assert_eq!(stores.check(lease).await.is_ok(), holds);
        }
        for project in PROJECTS {
            let request = PageRequest {
                project: project.to_owned(),
                after: None,
                limit: 100,
                order: Order::Ascending,
            };
            let page = stores.tasks.list(request).await.unwrap();
            let listed: Vec<TaskId> = page.tasks.iter().map(|task| task.id).collect();
            let own = self
                .tasks
                .iter()
                .filter(|(_, known)| known.project == project);
            let wanted = own.filter(|(_, known)| known.phase != Phase::Expired);
            assert_eq!(
                listed,
                wanted.map(|(number, _)| id(*number)).collect::<Vec<_>>()
            );
            let usage = stores.tasks.usage(project).await.unwrap();
            assert_eq!(usage.tasks, listed.len() as u64, "{project}");
        }
    }
}
