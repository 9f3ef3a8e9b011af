//! Priorities of a project's tasks: they have effect within the project, and none between projects.

use kinora_contract::{Priority, TaskId};

use super::bench::Bench;
use super::fixtures::{MODELS, claiming, id, spec, task, with_images};
use super::turns::settle;
use super::{Harness, Site};
use crate::{ClaimRequest, ClaimedTask, NewTask, ReleasedAttempt};

use Priority::{High, Low, Normal};

fn of(number: u64, project: &str, priority: Priority) -> NewTask {
    NewTask {
        priority,
        ..task(number, project)
    }
}

fn ids(claims: &[ClaimedTask]) -> Vec<TaskId> {
    claims.iter().map(|claim| claim.task.id).collect()
}

/// Claims `count` tasks, `size` at a time.
async fn order(stores: &Site, count: usize, size: usize) -> Vec<ClaimedTask> {
    let mut order = Vec::new();
    while order.len() < count {
        let request = ClaimRequest {
            slots: 1_000,
            ..claiming(size)
        };
        let claims = stores.work.claim(request).await.unwrap();
        assert!(!claims.is_empty(), "{} of {count}", order.len());
        order.extend(claims);
    }
    order
}

/// This holds over models that are claimed together; within a priority the oldest task is first.
pub async fn within_a_project_higher_classes_are_first(harness: &impl Harness) {
    for (name, size) in [("together", 9), ("apart", 1)] {
        let stores = harness.open(name).await;
        let classes = [Normal, Low, High, Normal, High, Low];
        for (number, priority) in (0..).zip(classes) {
            let mut new = of(number, "one", priority);
            new.spec = spec(MODELS[usize::from(number >= 3)]);
            stores.submit_all([new]).await;
        }
        let claims = order(&stores, classes.len(), size).await;
        assert_eq!(ids(&claims), [2, 4, 0, 3, 1, 5].map(id), "{name}");
        let told: Vec<_> = claims.iter().map(|claim| claim.task.priority).collect();
        assert_eq!(told, [High, High, Normal, Normal, Low, Low]);
    }
}

/// A project whose tasks are all high gets no more and no earlier turns.
pub async fn classes_change_nothing_between_projects(harness: &impl Harness) {
    let mut turns = Vec::new();
    for (name, one, other) in [("plain", Normal, Normal), ("classes", Low, High)] {
        let stores = harness.open(name).await;
        for number in 0..24 {
            let new = match number % 4 {
                0 => of(number, "one", one),
                _ => of(number, "other", other),
            };
            stores.submit_all([new]).await;
        }
        let claims = order(&stores, 24, 5).await;
        turns.push(ids(&claims));
    }
    assert_eq!(turns[0], turns[1]);
}

/// Reading the queue in parts must not change the order.
pub async fn a_claim_of_many_takes_the_classes_in_order(harness: &impl Harness) {
    let mut orders = Vec::new();
    for (name, size) in [("together", 60), ("apart", 1)] {
        let stores = harness.open(name).await;
        for number in 0..160 {
            let project = format!("{}", number % 8 / 3);
            let mut new = of(number, &project, Priority::ALL[(number * 7 % 3) as usize]);
            new.spec = spec(MODELS[usize::from(number % 5 == 0)]);
            stores.submit_all([new]).await;
        }
        let claims = order(&stores, 60, size).await;
        for project in ["0", "1", "2"] {
            let own = claims.iter().map(|claim| &claim.task);
            let own = own.filter(|task| task.project == project);
            let places: Vec<_> = own.map(|task| (task.priority, task.id)).collect();
            assert!(places.is_sorted(), "{name}: {places:?}");
        }
        orders.push(ids(&claims));
    }
    assert_eq!(orders[0], orders[1]);
}

/// It waits in its old place.
pub async fn a_task_that_is_given_back_keeps_its_class(harness: &impl Harness) {
    let stores = harness.open("store").await;
    let classes = [Normal, High, High];
    for (number, priority) in (0..).zip(classes) {
        stores.submit_all([of(number, "one", priority)]).await;
    }
    for claim in stores.claim(3).await {
        let given_back = stores.work.release(&claim.lease, ReleasedAttempt::Forgiven);
        given_back.await.unwrap();
    }
    stores
        .submit_all([of(3, "one", Low), of(4, "one", High)])
        .await;
    assert_eq!(ids(&order(&stores, 5, 2).await), [1, 2, 4, 0, 3].map(id));
}

/// Fetches follow the same order as claims.
pub async fn references_of_higher_classes_are_fetched_first(harness: &impl Harness) {
    let stores = harness.open("store").await;
    for (number, priority) in (0..).zip([Low, Normal, High, High]) {
        let new = with_images(number, "one", 1);
        stores.submit_all([NewTask { priority, ..new }]).await;
    }
    let mut order = Vec::new();
    for _ in 0..2 {
        order.extend(stores.take(1).await.iter().map(|fetch| fetch.task.id));
    }
    assert_eq!(order, [2, 3].map(id));
}

/// Positions of other projects stay as they are.
pub async fn queue_positions_follow_the_classes(harness: &impl Harness) {
    let stores = harness.open("store").await;
    for (number, priority) in (0..).zip([Normal, Low, Normal, High]) {
        let project = ["one", "two"][usize::from(number == 2)];
        stores.submit_all([of(number, project, priority)]).await;
    }
    // Among equals, the project whose first task is oldest is next.
    let wanted = [Some(2), Some(3), Some(0), Some(1)];
    settle(&stores, &wanted).await;
    assert_eq!(ids(&order(&stores, 4, 1).await), [2, 3, 0, 1].map(id));
}

/// The priorities are stored with the tasks.
pub async fn classes_outlive_a_restart(harness: &impl Harness) {
    let stores = harness.open("store").await;
    let classes = [Low, Normal, High];
    for (number, priority) in (0..).zip(classes) {
        stores.submit_all([of(number, "one", priority)]).await;
    }
    drop(stores);
    let stores = harness.open_after_leases("store").await;
    for (number, priority) in (0..).zip(classes) {
        assert_eq!(stores.task("one", number).await.priority, priority);
    }
    assert_eq!(ids(&order(&stores, 3, 1).await), [2, 1, 0].map(id));
}
