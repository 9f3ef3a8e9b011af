//! A change's whole path, from the store to the waiting clients.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use kinora_contract::{ManualClock, TaskId};
use kinora_store::EmbeddedStore;
use kinora_store::conformance::Site;
use kinora_store::conformance::bench::Bench as _;
use kinora_store::conformance::fixtures::{NOW, RETENTION_MS, id};
use kinora_store::faulty::{FaultyStore, Plan, StoreMethod};
use kinora_store::{EndedRequest, LeaseRenewal, StoreError};

use super::hub_tests::{of_project, of_task};
use super::*;
use crate::event_id::ReportedState;

/// Only a failing test waits this long.
const PATIENCE: Duration = Duration::from_secs(60);

/// A store and its waiting clients.
struct World {
    _embedded: EmbeddedStore,
    site: Site,
    /// The store as clients see it.
    tasks: Arc<dyn TaskStore>,
    plan: Arc<Plan<StoreMethod>>,
    watch: TaskWatch,
    stopping: CancellationToken,
}

impl World {
    fn new(is_deaf: bool) -> Self {
        let clock = Arc::new(ManualClock::at(NOW));
        let embedded = EmbeddedStore::open(clock.clone());
        let store = embedded.stores.clone();
        let plan = Arc::new(Plan::<StoreMethod>::seeded(1));
        let wrapped = match is_deaf {
            true => FaultyStore::wrap_deaf(store.clone(), plan.clone()),
            false => FaultyStore::wrap(store.clone(), plan.clone()),
        };
        Self {
            _embedded: embedded,
            site: Site::of(store, clock),
            tasks: wrapped.tasks,
            plan,
            watch: TaskWatch::default(),
            stopping: CancellationToken::new(),
        }
    }

    fn join(&self, subject: WatchSubject) -> TaskWaiter {
        self.watch.join(subject, &self.tasks, &self.stopping)
    }
}

async fn next(waiter: &TaskWaiter) -> TaskId {
    let moved = tokio::time::timeout(PATIENCE, waiter.mailbox().moved()).await;
    moved.expect("a letter comes");
    waiter.mailbox().pop().expect("a letter").id
}

/// Runs everything that can run now.
async fn settle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

#[tokio::test(start_paused = true)]
async fn a_change_is_told_to_those_whom_it_concerns_and_read_once() {
    let world = World::new(false);
    world.site.submit(1, "one").await;
    world.site.submit(2, "two").await;
    let own: Vec<_> = (0..100)
        .map(|_| world.join(of_task(id(1), "one")))
        .collect();
    let project = world.join(of_project("one"));
    let others = [
        world.join(of_task(id(2), "two")),
        world.join(of_project("two")),
    ];
    let claim = world.site.claim_one().await;
    assert_eq!(claim.task.id, id(1));
    let report = LeaseRenewal {
        progress: 50,
        ..LeaseRenewal::default()
    };
    world.site.renew(&claim.lease, report).await.unwrap();
    settle().await;
    for waiter in own.iter().chain([&project]) {
        assert_eq!(next(waiter).await, id(1));
    }
    settle().await;
    assert!(own.iter().all(|waiter| waiter.mailbox().is_empty()));
    assert!(
        world.plan.calls(StoreMethod::Task) <= 2,
        "once for each change"
    );
    world.site.submit(3, "one").await;
    assert_eq!(next(&project).await, id(3));
    settle().await;
    assert!(others.iter().all(|waiter| waiter.mailbox().is_empty()));
}

/// All streams of a project report a change of which one has made the rendering.
#[tokio::test(start_paused = true)]
async fn p08_a_change_is_rendered_once_for_all_streams_of_a_project() {
    for streams in [1, 16] {
        let world = World::new(false);
        let waiters: Vec<_> = (0..streams)
            .map(|_| world.join(of_project("one")))
            .collect();
        let renders = AtomicUsize::new(0);
        for number in 1..=3 {
            world.site.submit(number, "one").await;
            settle().await;
            let reports = waiters.iter().map(async |waiter| {
                let letter = waiter.mailbox().pop().expect("a letter");
                let render = async |letter: TaskUpdate| {
                    renders.fetch_add(1, Ordering::Relaxed);
                    let task = world.tasks.task(letter.id).await?.expect("a task");
                    Ok::<_, StoreError>(Some(RenderedTask {
                        state: ReportedState::from(TaskGlance::from_task(&task).expect("a state")),
                        ended_ms: 0,
                        json: letter.id.to_string().into(),
                    }))
                };
                waiter.rendering(letter, render).await.unwrap().unwrap()
            });
            for report in join_all(reports).await {
                assert_eq!(report.json, id(number).to_string());
            }
            let rendered = renders.load(Ordering::Relaxed) as u64;
            assert_eq!(rendered, number, "once for {streams} streams");
        }
        world.site.cancel("one", 1, RETENTION_MS).await;
        settle().await;
        let letter = waiters[0].mailbox().pop().expect("a letter");
        let renewed = waiters[0].rendering(letter, async |_| Ok::<_, StoreError>(None));
        assert_eq!(
            renewed.await.unwrap(),
            None,
            "a later change is rendered anew"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_not_heard_is_found_by_a_look() {
    let world = World::new(true);
    world.site.submit(1, "one").await;
    let own = world.join(of_task(id(1), "one"));
    let project = world.join(of_project("one"));
    let request = EndedRequest {
        project: "one".to_owned(),
        since_ms: 0,
        limit: 0,
    };
    let unfinished = world.tasks.unfinished("one").await.unwrap();
    project.record_read(&unfinished, &world.tasks.ended(request).await.unwrap());
    for number in [2, 3] {
        world.site.submit(number, "one").await;
    }
    assert_eq!(next(&own).await, id(1));
    assert_eq!(next(&project).await, id(2));
    assert_eq!(next(&project).await, id(3));
    world.site.cancel("one", 1, RETENTION_MS).await;
    assert_eq!(next(&own).await, id(1));
    assert_eq!(next(&project).await, id(1));
    // Created and removed between two checks.
    world.site.submit(4, "one").await;
    world.site.cancel("one", 4, RETENTION_MS).await;
    assert_eq!(next(&project).await, id(4));
}

#[tokio::test(start_paused = true)]
async fn p11_an_outage_of_the_store_loses_no_change() {
    use kinora_store::faulty::Rates;

    let world = World::new(false);
    world.site.submit(1, "one").await;
    let waiter = world.join(of_task(id(1), "one"));
    world.plan.set(Rates {
        before_ppm: 1_000_000,
        ..Rates::default()
    });
    world.site.cancel("one", 1, RETENTION_MS).await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert!(waiter.mailbox().is_empty());
    world.plan.set(Rates::default());
    assert_eq!(next(&waiter).await, id(1));
}

#[tokio::test(start_paused = true)]
async fn p16_a_stop_ends_every_wait_at_once() {
    let world = World::new(false);
    world.site.submit(1, "one").await;
    let waiters = [
        world.join(of_task(id(1), "one")),
        world.join(of_project("one")),
    ];
    world.stopping.cancel();
    let late = world.join(of_task(id(1), "one"));
    for waiter in waiters.iter().chain([&late]) {
        let moved = tokio::time::timeout(PATIENCE, waiter.mailbox().moved()).await;
        assert!(moved.is_ok() && waiter.mailbox().is_over());
    }
}

#[tokio::test(start_paused = true)]
async fn changes_are_followed_while_somebody_waits() {
    let world = World::new(false);
    world.site.submit(1, "one").await;
    for _ in 0..3 {
        let waiter = world.join(of_task(id(1), "one"));
        assert!(world.watch.hub.is_followed());
        drop(waiter);
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert!(!world.watch.hub.is_followed());
    }
    let waiter = world.join(of_task(id(1), "one"));
    world.site.cancel("one", 1, RETENTION_MS).await;
    assert_eq!(next(&waiter).await, id(1));
}
