//! Accepting tasks: stored data, idempotency, limits, tenancy.

use kinora_contract::{Status, TaskId, TaskState};
use std::collections::HashSet;

use super::bench::Bench;
use super::fixtures::{NOW, claiming, id, sweep_at, task};
use super::{Harness, Site};
use crate::{
    ClaimRequest, IdempotencyKey, InsertOutcome, NewTask, QueueBounds, RetryAfter, SweepRequest,
};

fn with_key(mut new: NewTask, key: &str, fingerprint: u8) -> NewTask {
    new.idempotency = Some(IdempotencyKey {
        key: key.to_owned(),
        fingerprint: [fingerprint; 32],
        bound_ms: 1_000,
    });
    new
}

async fn insert(stores: &Site, new: NewTask) -> InsertOutcome {
    stores.tasks.insert(new).await.unwrap()
}

/// The task that this request created under its key.
async fn find_twin(stores: &Site, new: &NewTask) -> Option<TaskId> {
    let idempotency = new.idempotency.as_ref().unwrap();
    let tasks = &stores.tasks;
    let found = tasks.find_twin(&new.project, idempotency);
    found.await.unwrap().map(|task| task.id)
}

/// The input is returned unchanged, from the answer, from memory and from disk.
pub async fn a_submitted_task_is_read_back_whole(harness: &impl Harness) {
    let stores = harness.open("store").await;
    let new = task(1, "one");
    let answered = stores.submit(1, "one").await;
    let read = stores.task("one", 1).await;
    assert_eq!(stores.position(1).await, Some(0));
    drop(stores);
    let stores = harness.open("store").await;
    let reread = stores.task("one", 1).await;
    assert_eq!(stores.position(1).await, Some(0));
    for stored in [answered, read, reread] {
        assert_eq!((stored.id, stored.project.as_str()), (new.id, "one"));
        assert_eq!((&stored.spec, &stored.metadata), (&new.spec, &new.metadata));
        assert_eq!(
            (stored.state.clone(), stored.progress, stored.attempt),
            (TaskState::Waiting, 0, 0)
        );
        assert_eq!(stored.created_at_ms, NOW);
        assert_eq!(stored.status(), Some(Status::Queued));
    }
}

/// Both are answered as missing.
pub async fn unknown_and_foreign_ids_are_alike(harness: &impl Harness) {
    let stores = harness.open("store").await;
    stores.submit(1, "one").await;
    assert!(stores.tasks.get("one", id(1)).await.unwrap().is_some());
    assert!(stores.tasks.get("two", id(1)).await.unwrap().is_none());
    assert!(stores.tasks.get("", id(1)).await.unwrap().is_none());
    assert!(stores.tasks.get("one", id(2)).await.unwrap().is_none());
}

/// The store inserts one, and answers the others with it.
pub async fn sixty_four_concurrent_twins_make_one_task(harness: &impl Harness) {
    let stores = harness.open("store").await;
    let twins = (0..64).map(|number| {
        let tasks = stores.tasks.clone();
        let new = with_key(task(number, "one"), "key", 1);
        tokio::spawn(async move { tasks.insert(new).await.unwrap() })
    });
    let (mut inserted, mut seen) = (0, HashSet::new());
    for twin in twins.collect::<Vec<_>>() {
        match twin.await.unwrap() {
            InsertOutcome::Inserted(task) => {
                inserted += 1;
                seen.insert(task.id);
            }
            InsertOutcome::Replayed(task) => {
                seen.insert(task.id);
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((inserted, seen.len()), (1, 1));
    assert_eq!(stores.claim(64).await.len(), 1);
}

/// Another request under the key is refused; another project has its own keys.
pub async fn an_idempotency_key_belongs_to_one_request_and_one_project(harness: &impl Harness) {
    let stores = harness.open("store").await;
    let first = insert(&stores, with_key(task(1, "one"), "key", 1)).await;
    assert!(matches!(first, InsertOutcome::Inserted(_)), "{first:?}");
    let reused = insert(&stores, with_key(task(2, "one"), "key", 2)).await;
    assert!(matches!(reused, InsertOutcome::KeyReused), "{reused:?}");
    assert!(stores.tasks.get("one", id(2)).await.unwrap().is_none());
    let other = insert(&stores, with_key(task(3, "two"), "key", 2)).await;
    assert!(matches!(other, InsertOutcome::Inserted(_)), "{other:?}");
    // It replays whatever the task's state.
    let claim = stores.claim_one().await;
    stores.complete(&claim).await.unwrap();
    match insert(&stores, with_key(task(4, "one"), "key", 1)).await {
        InsertOutcome::Replayed(task) => {
            assert_eq!((task.id, task.progress), (id(1), 100));
        }
        other => panic!("{other:?}"),
    }
}

/// The answer is that of a repeated insert, without inserting.
pub async fn a_twin_is_found_while_its_key_is_bound(harness: &impl Harness) {
    let stores = harness.open("store").await;
    let twin = |number, project, fingerprint| with_key(task(number, project), "key", fingerprint);
    assert_eq!(find_twin(&stores, &twin(1, "one", 1)).await, None);
    insert(&stores, twin(1, "one", 1)).await;
    assert_eq!(find_twin(&stores, &twin(2, "one", 1)).await, Some(id(1)));
    assert_eq!(find_twin(&stores, &twin(2, "one", 2)).await, None);
    assert_eq!(find_twin(&stores, &twin(2, "two", 1)).await, None);

    // Whatever the clock shows.
    for now_ms in [0, NOW + 1_000, u64::MAX / 2] {
        stores.clock.set(now_ms);
        assert_eq!(find_twin(&stores, &twin(2, "one", 1)).await, Some(id(1)));
    }
    drop(stores);
    let stores = harness.open("store").await;
    assert_eq!(find_twin(&stores, &twin(2, "one", 1)).await, Some(id(1)));
    stores.tasks.delete("one", id(1)).await.unwrap();
    assert_eq!(find_twin(&stores, &twin(2, "one", 1)).await, None);
}

/// Only a sweep frees an expired key, since the clock may be wrong when a task is inserted.
pub async fn an_idempotency_key_is_freed_by_a_sweep_after_its_time(harness: &impl Harness) {
    let stores = harness.open("store").await;
    let same = |number| with_key(task(number, "one"), "key", 1);
    let other = |number| with_key(task(number, "one"), "key", 2);
    insert(&stores, same(1)).await;
    let past = NOW + 90_000_000;
    let unsure = [
        sweep_at(NOW + 999),
        SweepRequest {
            due_ms: None,
            ..sweep_at(past)
        },
        SweepRequest {
            keys_kept_ms: past,
            ..sweep_at(past)
        },
        SweepRequest {
            keys_kept_ms: 1,
            ..sweep_at(NOW + 1_000)
        },
    ];
    for sweep in unsure {
        stores.clock.set(sweep.due_ms.unwrap_or(past));
        stores.sweep_by(sweep).await;
        stores.clock.set(past);
        let held = insert(&stores, other(2)).await;
        assert!(matches!(held, InsertOutcome::KeyReused), "{held:?}");
        let twin = insert(&stores, same(2)).await;
        assert!(matches!(twin, InsertOutcome::Replayed(task) if task.id == id(1)));
    }
    stores.clock.set(NOW + 1_000);
    stores.sweep(NOW + 1_000).await;
    let free = insert(&stores, other(3)).await;
    assert!(matches!(free, InsertOutcome::Inserted(_)), "{free:?}");
    stores.clock.advance(500);
    let again = insert(&stores, other(4)).await;
    assert!(matches!(again, InsertOutcome::Replayed(task) if task.id == id(3)));
    // It is bound from its own insert on.
    for (now_ms, found) in [(NOW + 1_999, Some(id(3))), (NOW + 2_000, None)] {
        stores.sweep(now_ms).await;
        assert_eq!(find_twin(&stores, &other(5)).await, found);
    }
}

fn bounded(number: u64, project: &str, waiting_max: u64, project_unfinished_max: u64) -> NewTask {
    let bounds = QueueBounds {
        waiting_max,
        project_unfinished_max,
        ..QueueBounds::NONE
    };
    NewTask {
        bounds,
        ..task(number, project)
    }
}

/// Each sweep reports whether another should follow immediately.
pub async fn due_idempotency_keys_are_freed_batch_after_batch(harness: &impl Harness) {
    let stores = harness.open("store").await;
    let key = |number: u64| format!("key-{}", number % 10);
    for number in 1..=5 {
        insert(&stores, with_key(task(number, "one"), &key(number), 1)).await;
    }
    let sweep = SweepRequest {
        batch: 2,
        ..sweep_at(NOW + 1_000)
    };
    for more in [true, true, false] {
        assert_eq!(stores.sweep_by(sweep).await.more, more);
    }
    for number in 11..=15 {
        let free = insert(&stores, with_key(task(number, "one"), &key(number), 2)).await;
        assert!(matches!(free, InsertOutcome::Inserted(_)), "{free:?}");
    }
}

/// Checks a submit at the limit, one more, and one after a claim.
pub async fn the_queue_is_bounded_at_its_limit(harness: &impl Harness) {
    let stores = harness.open("store").await;
    for (number, project) in [(1, "one"), (2, "two"), (3, "one")] {
        let taken = insert(&stores, bounded(number, project, 3, 99)).await;
        assert!(matches!(taken, InsertOutcome::Inserted(_)), "{taken:?}");
    }
    let refused = insert(&stores, bounded(4, "three", 3, 99)).await;
    assert!(
        matches!(refused, InsertOutcome::QueueFull(_)),
        "{refused:?}"
    );
    assert!(stores.tasks.get("three", id(4)).await.unwrap().is_none());
    stores.claim_one().await;
    let taken = insert(&stores, bounded(4, "three", 3, 99)).await;
    assert!(matches!(taken, InsertOutcome::Inserted(_)), "{taken:?}");
    let closed = insert(&stores, bounded(5, "one", 0, 99)).await;
    assert!(matches!(closed, InsertOutcome::QueueFull(_)), "{closed:?}");
}

/// Each refused project gets its own return time and finds its place then; a project without a
/// promise cannot take it. A project that does not return in time loses it.
pub async fn a_promised_place_is_kept_for_its_project(harness: &impl Harness) {
    let stores = harness.open("store").await;
    for number in 1..=3 {
        insert(&stores, bounded(number, "one", 3, 99)).await;
    }
    let come = async |number, project| insert(&stores, bounded(number, project, 3, 99)).await;
    let told = async |number, project| match come(number, project).await {
        InsertOutcome::QueueFull(RetryAfter { millis }) => millis,
        other => panic!("{other:?}"),
    };
    let (two, three) = (told(4, "two").await, told(5, "three").await);
    assert!((1..=120_000).contains(&two) && three <= 120_000);
    assert!(two < three, "{two} and {three} meet");
    stores.claim_one().await;
    assert!(told(6, "four").await >= three, "it is promised to another");
    stores.pass_until(NOW + two);
    let kept = come(4, "two").await;
    assert!(matches!(kept, InsertOutcome::Inserted(_)), "{kept:?}");
    stores.claim_one().await;
    stores.pass_until(NOW + 130_000);
    let free = come(7, "five").await;
    assert!(matches!(free, InsertOutcome::Inserted(_)), "{free:?}");
}

/// Clients of one project that all obey do not collide either.
pub async fn a_full_project_is_told_when_its_tasks_end(harness: &impl Harness) {
    let stores = harness.open("store").await;
    for number in 1..=3 {
        insert(&stores, bounded(number, "one", 99, 3)).await;
    }
    let one_slot = ClaimRequest {
        slots: 1,
        ..claiming(1)
    };
    assert_eq!(stores.work.claim(one_slot).await.unwrap().len(), 1);
    let mut last = 0;
    for number in 4..=6 {
        let refused = insert(&stores, bounded(number, "one", 99, 3)).await;
        let InsertOutcome::ProjectFull(RetryAfter { millis }) = refused else {
            panic!("{refused:?}");
        };
        assert!(millis > last && millis <= 120_000, "{millis} after {last}");
        last = millis;
    }
}

/// Running tasks count; finished ones and other projects do not.
pub async fn a_project_is_bounded_at_its_limit(harness: &impl Harness) {
    let stores = harness.open("store").await;
    for number in [1, 2] {
        let taken = insert(&stores, bounded(number, "one", 99, 2)).await;
        assert!(matches!(taken, InsertOutcome::Inserted(_)), "{taken:?}");
    }
    let claim = stores.claim_one().await;
    let refused = insert(&stores, bounded(3, "one", 99, 2)).await;
    assert!(
        matches!(refused, InsertOutcome::ProjectFull(_)),
        "{refused:?}"
    );
    let other = insert(&stores, bounded(4, "two", 99, 2)).await;
    assert!(matches!(other, InsertOutcome::Inserted(_)), "{other:?}");
    stores.complete(&claim).await.unwrap();
    let taken = insert(&stores, bounded(3, "one", 99, 2)).await;
    assert!(matches!(taken, InsertOutcome::Inserted(_)), "{taken:?}");

    // Of many concurrent ones, exactly as many as fit are accepted.
    let many = (10..40).map(|number| {
        let (tasks, new) = (stores.tasks.clone(), bounded(number, "many", 99, 7));
        tokio::spawn(async move { tasks.insert(new).await.unwrap() })
    });
    let mut taken = 0;
    for one in many.collect::<Vec<_>>() {
        taken += usize::from(matches!(one.await.unwrap(), InsertOutcome::Inserted(_)));
    }
    assert_eq!(taken, 7);
}

/// A client that repeats a request has already been served.
pub async fn a_full_queue_still_replays(harness: &impl Harness) {
    let stores = harness.open("store").await;
    insert(&stores, with_key(bounded(1, "one", 1, 1), "key", 1)).await;
    let again = insert(&stores, with_key(bounded(2, "one", 1, 1), "key", 1)).await;
    assert!(matches!(again, InsertOutcome::Replayed(_)), "{again:?}");
    let reused = insert(&stores, with_key(bounded(2, "one", 1, 1), "key", 2)).await;
    assert!(matches!(reused, InsertOutcome::KeyReused), "{reused:?}");
}

/// The bad request, with the id of a task of another project, fails; others, which may share its
/// transaction, do not.
pub async fn a_duplicate_id_fails_alone(harness: &impl Harness) {
    let stores = harness.open("store").await;
    stores.submit(7, "one").await;
    // Each in a project of its own: within one, an id that is taken gets another.
    let inserts = (0..32).map(|number| {
        let (tasks, new) = (
            stores.tasks.clone(),
            task(number, &format!("other-{number}")),
        );
        tokio::spawn(async move { tasks.insert(new).await.is_ok() })
    });
    for (number, insert) in inserts.collect::<Vec<_>>().into_iter().enumerate() {
        assert_eq!(insert.await.unwrap(), number != 7, "{number}");
    }
    assert!(stores.tasks.get("other-7", id(7)).await.unwrap().is_none());
    assert_eq!(stores.task("one", 7).await.project, "one");
    assert_eq!(stores.claim(99).await.len(), 32);
}
