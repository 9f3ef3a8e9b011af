//! Turns of projects: weighted by cost, within a share of the slots, and predictable.

use std::time::{Duration, Instant};

use kinora_contract::{FrameSize, Size, VideoLength};

use super::bench::Bench;
use super::fixtures::{MODELS, RETENTION_MS, claiming, id, renewal, spec, task, with_images};
use super::{Harness, Site};
use crate::{ClaimRequest, ClaimedTask, LeaseRenewal, LongTasks, NewTask, ReleasedAttempt};

fn lasting(number: u64, project: &str, seconds: u32, height: u32) -> NewTask {
    let mut new = task(number, project);
    new.spec.seconds = VideoLength::Fixed(seconds);
    new.spec.frame = FrameSize::Fixed(Size::new(height * 7 / 3, height));
    new
}

async fn claim(
    stores: &Site,
    count: usize,
    slots: usize,
    project_slots_max: usize,
) -> Vec<ClaimedTask> {
    let request = ClaimRequest {
        slots,
        project_slots_max,
        ..claiming(count)
    };
    stores.work.claim(request).await.unwrap()
}

/// A project of long tasks gets no more slot time than one of short tasks: many short ones run in
/// between.
pub async fn turns_are_weighted_by_cost(harness: &impl Harness) {
    let stores = harness.open("store").await;
    for number in 0..4 {
        let heavy = lasting(number, "heavy", 15, 1080);
        stores.tasks.insert(heavy).await.unwrap();
    }
    for number in 10..60 {
        let light = lasting(number, "light", 2, 480);
        stores.tasks.insert(light).await.unwrap();
    }
    let (mut heavy, mut order) = (0, Vec::new());
    for _ in 0..40 {
        let claims = claim(&stores, 1, 1, 0).await;
        stores.complete(&claims[0]).await.unwrap();
        order.push(claims[0].task.project.clone());
        heavy += usize::from(claims[0].task.project == "heavy");
    }
    // A heavy one costs as much as more than twenty light ones.
    assert!((1..=2).contains(&heavy), "{order:?}");
    assert_eq!(order[..3], ["heavy", "light", "light"], "{order:?}");
}

/// One claim of many tasks takes the same ones as many claims of one, even if the store reads its
/// queue in parts.
pub async fn a_claim_of_many_keeps_all_turns(harness: &impl Harness) {
    let mut orders = Vec::new();
    for (name, size) in [("together", 60), ("apart", 1)] {
        let stores = harness.open(name).await;
        for number in 0..160 {
            // For one project nearly every task needs its own turn.
            let new = match number % 8 {
                0..3 => lasting(number, "light", 2, 480),
                other => lasting(number, &format!("heavy {other}"), 15, 720),
            };
            stores.tasks.insert(new).await.unwrap();
        }
        let mut order = Vec::new();
        while order.len() < 60 {
            for claim in claim(&stores, size, 1_000, 0).await {
                order.push(claim.task.id);
            }
        }
        orders.push(order);
    }
    assert_eq!(orders[0], orders[1]);
}

/// Slots used at one worker do not count at another.
pub async fn a_project_has_a_share_of_each_worker(harness: &impl Harness) {
    let stores = harness.open("store").await;
    for number in 0..12 {
        stores
            .submit(number, ["one", "other"][usize::from(number % 2 == 0)])
            .await;
    }
    let mut claimed = Vec::new();
    for worker in 0..4 {
        for (slots, wanted) in [(1, 1), (2, 1)] {
            let request = ClaimRequest {
                worker: format!("worker {worker}"),
                slots,
                ..claiming(wanted)
            };
            claimed.extend(stores.work.claim(request).await.unwrap());
        }
    }
    let of_one = claimed.iter().filter(|claim| claim.task.project == "one");
    assert_eq!((claimed.len(), of_one.count()), (8, 4));
}

/// The turns do not matter: a free slot remains for waiting projects.
pub async fn a_project_leaves_a_slot_where_others_wait(harness: &impl Harness) {
    let stores = harness.open("store").await;
    for number in 0..6 {
        stores.submit(number, "many").await;
    }
    let alone = claim(&stores, 1, 3, 0).await;
    assert_eq!(alone[0].task.project, "many");
    // Another project has had far more than its turn, and waits.
    let debt = lasting(10, "other", 15, 1080);
    stores.tasks.insert(debt).await.unwrap();
    let mut changed = claim(&stores, 1, 3, 0).await;
    assert_eq!(changed[0].task.project, "other");
    stores.complete(&changed.remove(0)).await.unwrap();
    stores.submit(11, "other").await;
    let both = claim(&stores, 2, 3, 0).await;
    let projects: Vec<_> = both.iter().map(|one| one.task.project.as_str()).collect();
    assert_eq!(projects, ["many", "other"], "two of three are its share");
    // Nobody else waits: an unused slot is of no use.
    stores.complete(&both[1]).await.unwrap();
    let third = claim(&stores, 1, 3, 0).await;
    assert_eq!(third[0].task.project, "many");
    // With one slot there is no share but the turn.
    stores.submit(12, "third").await;
    stores.complete(&alone[0]).await.unwrap();
    stores.complete(&both[0]).await.unwrap();
    stores.complete(&third[0]).await.unwrap();
    assert_eq!(claim(&stores, 1, 1, 0).await.len(), 1);
}

/// Then a new project finds a slot immediately.
pub async fn a_bound_on_a_project_s_slots_holds_also_when_it_is_alone(harness: &impl Harness) {
    let stores = harness.open("store").await;
    for number in 0..6 {
        stores.submit(number, "many").await;
    }
    assert_eq!(claim(&stores, 9, 4, 3).await.len(), 3);
    assert!(claim(&stores, 1, 4, 3).await.is_empty());
    stores.submit(10, "late").await;
    let late = claim(&stores, 1, 4, 3).await;
    assert_eq!(late[0].task.project, "late");
}

/// This includes a project that has had far more than its turn.
pub async fn a_claim_passes_over_every_project_at_its_share(harness: &impl Harness) {
    let stores = harness.open("store").await;
    let debt = lasting(0, "late", 15, 1080);
    stores.tasks.insert(debt).await.unwrap();
    let past = claim(&stores, 1, 4, 1).await;
    stores.complete(&past[0]).await.unwrap();
    for number in 0..3 {
        let project = format!("full {number}");
        stores.submit(10 + number, &project).await;
        stores.submit(20 + number, &project).await;
    }
    assert_eq!(claim(&stores, 3, 4, 1).await.len(), 3);
    stores.submit(30, "late").await;
    let late = claim(&stores, 1, 4, 1).await;
    assert_eq!(late.len(), 1, "it has a free slot");
    assert_eq!(late[0].task.id, id(30));
}

/// A worker must not make room for a task that it would not get.
pub async fn what_a_share_keeps_back_is_not_claimable(harness: &impl Harness) {
    let stores = harness.open("store").await;
    let sees = async |worker: &str, project_slots_max| {
        let request = ClaimRequest {
            worker: worker.to_owned(),
            slots: 2,
            project_slots_max,
            ..claiming(1)
        };
        stores.work.has_claimable(&request).await.unwrap()
    };
    for number in 0..3 {
        stores.submit(number, "many").await;
    }
    assert!(sees("worker", 1).await);
    assert_eq!(claim(&stores, 1, 2, 1).await.len(), 1);
    assert!(!sees("worker", 1).await);
    assert!(sees("worker", 2).await && sees("another", 1).await);
    // A slot is left only where another project waits.
    assert!(sees("worker", 0).await);
    stores.submit(10, "late").await;
    assert!(sees("worker", 1).await, "that of the other project");
    let late = claim(&stores, 1, 2, 0).await;
    assert_eq!(late[0].task.project, "late");
    assert!(!sees("worker", 1).await && sees("worker", 0).await);
}

/// A task that this machine cannot run at the moment must not be retried before everybody else's.
pub async fn a_task_that_is_given_back_has_had_its_turn(harness: &impl Harness) {
    let stores = harness.open("store").await;
    stores.submit(1, "one").await;
    stores.submit(2, "one").await;
    stores.submit(3, "two").await;
    for wanted in [1, 3, 1] {
        let claims = claim(&stores, 1, 1, 0).await;
        assert_eq!(claims[0].task.id, id(wanted));
        assert_eq!(claims[0].task.attempt, 1);
        let given_back = stores
            .work
            .release(&claims[0].lease, ReleasedAttempt::Forgiven);
        given_back.await.unwrap();
    }
}

/// A claim of up to `count` tasks, of which up to `long` may cost more than those of [`task`].
fn with_long(count: usize, long: usize) -> ClaimRequest {
    let long_tasks = LongTasks {
        cost_over: task(0, "one").spec.cost(),
        count: long,
    };
    ClaimRequest {
        long_tasks: Some(long_tasks),
        ..claiming(count)
    }
}

async fn claim_with_long(stores: &Site, count: usize, long: usize) -> Vec<u64> {
    let request = with_long(count, long);
    let is_claimable = stores.work.has_claimable(&request).await.unwrap();
    let claims = stores.work.claim(request).await.unwrap();
    assert_eq!(is_claimable, !claims.is_empty());
    let numbers = claims
        .iter()
        .map(|claim| claim.task.metadata["number"].parse());
    numbers.collect::<Result<_, _>>().unwrap()
}

/// A project whose next task is long waits with its short ones, so that its tasks keep their order; others go on.
pub async fn long_tasks_of_a_claim_are_limited(harness: &impl Harness) {
    let stores = harness.open("store").await;
    for number in 0..3 {
        let heavy = lasting(number, "heavy", 15, 1080);
        stores.tasks.insert(heavy).await.unwrap();
    }
    stores.submit(3, "heavy").await;
    for number in 10..12 {
        stores.submit(number, "light").await;
    }
    assert_eq!(claim_with_long(&stores, 9, 1).await, [0, 10, 11]);
    assert!(claim_with_long(&stores, 9, 0).await.is_empty());
    assert_eq!(claim_with_long(&stores, 9, 1).await, [1]);
    assert_eq!(claim_with_long(&stores, 9, 2).await, [2, 3]);
}

/// Any number of projects may be passed over for it, before a claim and within one.
pub async fn short_tasks_are_found_behind_any_number_of_long_ones(harness: &impl Harness) {
    let stores = harness.open("store").await;
    for number in 0..40 {
        let mut heavy = lasting(number, &format!("heavy {number}"), 15, 1080);
        if number % 2 == 1 {
            heavy.spec.model = spec(MODELS[1]).model;
        }
        stores.tasks.insert(heavy).await.unwrap();
        // Of the other model, and behind the long one.
        let mut behind = task(100 + number, &format!("heavy {number}"));
        if number % 2 == 0 {
            behind.spec.model = spec(MODELS[1]).model;
        }
        stores.tasks.insert(behind).await.unwrap();
    }
    for number in 50..53 {
        stores.submit(number, "light").await;
    }
    assert_eq!(claim_with_long(&stores, 1, 0).await, [50]);
    assert_eq!(claim_with_long(&stores, 9, 1).await, [0, 51, 52, 100]);
    assert!(claim_with_long(&stores, 1, 0).await.is_empty());
}

/// Its job is running at another server.
pub async fn a_task_with_a_ticket_is_never_held_back_as_long(harness: &impl Harness) {
    let stores = harness.open("store").await;
    let heavy = lasting(0, "heavy", 15, 1080);
    stores.tasks.insert(heavy).await.unwrap();
    let claim = stores.claim_one().await;
    let renewal = LeaseRenewal {
        ticket: Some("job-1".to_owned()),
        ..renewal(1)
    };
    stores.renew(&claim.lease, renewal).await.unwrap();
    let given_back = stores.work.release(&claim.lease, ReleasedAttempt::Forgiven);
    given_back.await.unwrap();
    assert_eq!(claim_with_long(&stores, 1, 0).await, [0]);
}

/// Positions cover projects and models that are claimed together. Only a task that waits for its
/// first worker has one, and a task whose references are in transit delays nobody.
pub async fn queue_positions_foretell_the_starts(harness: &impl Harness) {
    let stores = harness.open("store").await;
    let tasks = [
        lasting(0, "one", 15, 1080),
        task(1, "one"),
        task(2, "one"),
        lasting(3, "two", 2, 480),
        lasting(4, "two", 2, 480),
        task(5, "three"),
        with_images(6, "four", 1),
    ];
    for (number, mut new) in (0..).zip(tasks) {
        if number % 2 == 1 {
            new.spec.model = spec(MODELS[1]).model;
        }
        stores.tasks.insert(new).await.unwrap();
    }
    // One, two, three; then two again, which has used least; one has used most.
    let wanted = [
        Some(0),
        Some(4),
        Some(5),
        Some(1),
        Some(3),
        Some(2),
        Some(3),
    ];
    settle(&stores, &wanted).await;
    let order = claim(&stores, 9, usize::MAX, 0).await;
    let started: Vec<_> = order.iter().map(|claim| claim.task.id).collect();
    assert_eq!(started, [0, 3, 5, 4, 1, 2].map(id));
    let mut wanted = vec![None; 6];
    wanted.push(Some(0));
    settle(&stores, &wanted).await;

    // Those that wait again are the first of their projects, and have no position themselves. Each
    // project but the fourth has had its turn.
    for claim in order.iter().rev() {
        let given_back = stores.work.release(&claim.lease, ReleasedAttempt::Forgiven);
        given_back.await.unwrap();
    }
    stores.fetch_all().await;
    stores.submit(7, "one").await;
    wanted.push(Some(7));
    settle(&stores, &wanted).await;
    stores.cancel("two", 3, RETENTION_MS).await;
}

/// Waits until the positions of the first tasks are `wanted`: they may be up to a second old.
pub(super) async fn settle(stores: &Site, wanted: &[Option<u64>]) {
    let ids: Vec<_> = (0..).map(id).take(wanted.len()).collect();
    let begun = Instant::now();
    loop {
        let found = stores.tasks.positions(&ids).await.unwrap();
        if found == wanted {
            return;
        }
        assert!(
            begun.elapsed() < Duration::from_secs(10),
            "{found:?} is not {wanted:?}"
        );
        tokio::task::yield_now().await;
    }
}
