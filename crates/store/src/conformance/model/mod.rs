//! Random operations, compared after each with a model of a page: what a store does is what a
//! handful of maps would do.

mod steps;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU32, Ordering};

use kinora_contract::{Phase, TaskId};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::Harness;
use super::fixtures::{MODELS, NOW, id, sweep_at};
use crate::{
    Abandoned, Deletion, Lease, Order, PageRequest, QueueBounds, StoreError, Stores, Swept, Usage,
};

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
    },
    ChargeReferences {
        task: u64,
        bytes: u64,
    },
}

fn operation() -> impl Strategy<Value = Operation> {
    use Operation::{
        Cancel, ChargeReferences, Claim, Delete, Fetch, Finish, Insert, Release, Renew, Sweep,
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
        2 => (0..40_000_u64).prop_map(|after_ms| Sweep { after_ms }),
        1 => (0..20_u64, 0..9_u64).prop_map(|(task, bytes)| ChargeReferences { task, bytes }),
    ]
}

#[derive(Clone, Debug)]
struct Known {
    project: &'static str,
    model: usize,
    phase: Phase,
    attempt: u32,
    progress: u8,
    token: Option<u64>,
    until_ms: u64,
    expires_at_ms: u64,
    key: Option<(u8, usize, u64)>,
    kept: Option<String>,
    fetch: Fetching,
}

/// How far a task's references are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fetching {
    AtHand,
    Wanted,
    /// Somebody fetches them until then.
    Taken(u64),
}

/// The store as a map.
#[derive(Default)]
struct Model {
    tasks: BTreeMap<u64, Known>,
    next: u64,
    now_ms: u64,
    leases: Vec<(u64, Lease)>,
    /// How late each project's turn is, in cost units, and where the last task began.
    turns: BTreeMap<&'static str, u64>,
    turn_now: u64,
    /// Projects that were promised a place of the queue, once.
    promised: BTreeSet<&'static str>,
    /// What was kept of tasks that ended without a result, by task; nobody calls it off here.
    abandoned: BTreeMap<u64, Abandoned>,
}

/// The case: 24 sequences of up to 40 operations.
pub async fn random_operations_agree_with_a_simple_model(harness: &impl Harness) {
    let number = AtomicU32::new(0);
    tokio::task::block_in_place(|| {
        let config = Config {
            cases: 24,
            failure_persistence: None,
            ..Config::default()
        };
        let sequences = proptest::collection::vec(operation(), 1..40);
        let tested = TestRunner::new(config).run(&sequences, |operations| {
            let name = format!("model-{}", number.fetch_add(1, Ordering::Relaxed));
            tokio::runtime::Handle::current().block_on(async {
                let stores = harness.open(&name).await;
                let mut model = Model {
                    now_ms: NOW,
                    ..Model::default()
                };
                for operation in operations {
                    model.step(&stores, operation).await;
                    model.compare(&stores).await;
                }
                model.delete_everything(&stores).await;
            });
            Ok(())
        });
        tested.unwrap_or_else(|failure| panic!("{failure}"));
    });
}

impl Model {
    async fn step(&mut self, stores: &Stores, operation: Operation) {
        self.now_ms += 1;
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
                let deleted = stores
                    .tasks
                    .delete(PROJECTS[project], id(task))
                    .await
                    .unwrap();
                let own = self
                    .tasks
                    .get(&task)
                    .is_some_and(|k| k.project == PROJECTS[project]);
                assert_eq!(own, deleted != Deletion::NotFound);
                if own {
                    self.abandon(task);
                    self.tasks.remove(&task);
                }
            }
            Operation::Sweep { after_ms } => {
                self.now_ms += after_ms;
                let sweep = crate::SweepRequest {
                    retention_ms: RETENTION_MS,
                    lease_ahead_max_ms: u64::MAX,
                    ..sweep_at(self.now_ms)
                };
                let swept = stores.tasks.sweep(sweep).await.unwrap();
                let wanted = self.sweep();
                assert_eq!(
                    Swept {
                        files: Vec::new(),
                        ..swept
                    },
                    wanted
                );
            }
            Operation::ChargeReferences { task, bytes } => {
                let charged = stores.tasks.charge_references(id(task), bytes).await;
                charged.unwrap();
            }
        }
    }

    /// Notes what was kept of a task that ends without a result, or goes.
    fn abandon(&mut self, number: u64) {
        let known = self.tasks.get_mut(&number);
        if let Some((model, kept)) = known.and_then(|known| Some((known.model, known.kept.take()?)))
        {
            let abandoned = Abandoned {
                task: id(number),
                model: MODELS[model].to_owned(),
                kept,
            };
            self.abandoned.insert(number, abandoned);
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
    async fn delete_everything(&self, stores: &Stores) {
        for (number, known) in &self.tasks {
            let deleted = stores.tasks.delete(known.project, id(*number)).await;
            assert_ne!(deleted.unwrap(), Deletion::NotFound);
        }
        for project in PROJECTS {
            assert_eq!(stores.tasks.usage(project).await.unwrap(), Usage::default());
        }
    }

    async fn compare(&self, stores: &Stores) {
        for number in 0..self.next {
            for project in PROJECTS {
                let found = stores.tasks.get(project, id(number)).await.unwrap();
                let known = self
                    .tasks
                    .get(&number)
                    .filter(|known| known.project == project);
                let shape = |phase, attempt, progress| (phase, attempt, progress);
                assert_eq!(
                    found.map(|v| shape(v.task.state.phase(), v.task.attempt, v.task.progress)),
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
            assert_eq!(stores.tasks.check(lease).await.is_ok(), holds);
        }
        for project in PROJECTS {
            let request = PageRequest {
                project: project.to_owned(),
                after: None,
                limit: 100,
                order: Order::Ascending,
            };
            let page = stores.tasks.list(request).await.unwrap();
            let listed: Vec<TaskId> = page.tasks.iter().map(|view| view.task.id).collect();
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
