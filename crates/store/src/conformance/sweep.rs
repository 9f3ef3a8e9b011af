//! What a sweep takes up, and what it leaves.

use kinora_contract::{FailureCode, Phase, State};

use super::Harness;
use super::fixtures::{
    Bench, EXPIRY, LEASE_MS, NOW, artifact, cancelled, files, id, renewed, sweep_at, task,
};
use crate::{Attempt, Claim, Idempotency, Insertion, Swept};

/// Not a millisecond early.
pub async fn an_expired_lease_goes_back_to_its_old_place(harness: &impl Harness) {
    let stores = harness.open("store").await;
    for number in [1, 2] {
        stores.submit(number, "one").await;
    }
    let claim = stores.claim_one().await;
    assert_eq!(stores.sweep(NOW + LEASE_MS - 1).await, Swept::default());
    stores.tasks.renew(&claim.lease, renewed(30)).await.unwrap();
    assert_eq!(stores.sweep(NOW + 2 * LEASE_MS - 1).await, Swept::default());
    stores.tasks.check(&claim.lease).await.unwrap();
    let swept = stores.sweep(NOW + 2 * LEASE_MS).await;
    assert_eq!(
        swept,
        Swept {
            requeued: 1,
            files: claim.lease.file_keys().into(),
            ..Swept::default()
        }
    );
    assert!(stores.tasks.check(&claim.lease).await.is_err());
    let again = stores.claim_one().await;
    assert_eq!(
        (again.task.id, again.task.attempt, again.task.progress),
        (id(1), 2, 30)
    );
}

/// After `attempts_max` workers were lost.
pub async fn the_last_attempt_fails_with_worker_lost(harness: &impl Harness) {
    let stores = harness.open("store").await;
    stores.submit(1, "one").await;
    for attempt in 1..=3 {
        let claim = stores.claim_one().await;
        assert_eq!(claim.task.attempt, attempt);
        let swept = stores.sweep(NOW + LEASE_MS).await;
        let lost = attempt == 3;
        let wanted = Swept {
            requeued: u64::from(!lost),
            lost: u64::from(lost),
            files: claim.lease.file_keys().into(),
            ..Swept::default()
        };
        assert_eq!(swept, wanted);
        stores.tasks.forget_files(&swept.files).await.unwrap();
    }
    let task = stores.view("one", 1).await.task;
    assert_eq!(task.state, State::Failed(FailureCode::WorkerLost.into()));
    assert_eq!(task.finished_at_ms, Some(NOW + LEASE_MS));
    assert_eq!(task.expires_at_ms, Some(NOW + LEASE_MS + 500));
    assert!(stores.claim(1).await.is_empty());
}

/// First the files, much later the tombstone; idempotency keys by their own time.
pub async fn results_expire_then_vanish(harness: &impl Harness) {
    let stores = harness.open("store").await;
    let key = Idempotency {
        key: "key".to_owned(),
        fingerprint: [1; 32],
        expires_at_ms: NOW + 50_000,
    };
    let keyed = |number| crate::NewTask {
        idempotency: Some(key.clone()),
        ..task(number, "one")
    };
    stores.tasks.insert(keyed(1)).await.unwrap();
    let claim = stores.claim_one().await;
    stores
        .tasks
        .finish(&claim.lease, Ok(artifact("v")), NOW, NOW + 100)
        .await
        .unwrap();
    stores.submit(2, "one").await;
    stores
        .tasks
        .cancel("one", id(2), cancelled(), NOW, NOW + 100)
        .await
        .unwrap();

    assert_eq!(stores.sweep(NOW + 99).await, Swept::default());
    let swept = stores.sweep(NOW + 100).await;
    assert_eq!(
        swept,
        Swept {
            expired: 2,
            files: files("v"),
            ..Swept::default()
        }
    );
    for number in [1, 2] {
        let task = stores.view("one", number).await.task;
        assert_eq!(
            (task.state.phase(), task.expires_at_ms),
            (Phase::Expired, Some(NOW + 100))
        );
    }
    stores.tasks.forget_files(&swept.files).await.unwrap();
    let replay = stores.tasks.insert(keyed(3)).await.unwrap();
    assert!(matches!(replay, Insertion::Replayed(view) if view.task.id == id(1)));

    assert_eq!(stores.sweep(NOW + 100 + 9_999).await, Swept::default());
    let swept = stores.sweep(NOW + 100 + 10_000).await;
    assert_eq!(
        swept,
        Swept {
            forgotten: 2,
            ..Swept::default()
        }
    );
    assert!(stores.tasks.get("one", id(1)).await.unwrap().is_none());
    let free = stores.tasks.insert(keyed(4)).await.unwrap();
    assert!(
        matches!(free, Insertion::Inserted(_)),
        "its task is gone, so is the key: {free:?}"
    );
}

/// A worker may have put them there before it died or was told; only a completed task has files.
pub async fn files_of_attempts_that_came_to_nothing_are_swept(harness: &impl Harness) {
    let stores = harness.open("store").await;
    let mut wanted = Vec::new();
    for number in 1..=5 {
        stores.submit(number, "one").await;
    }
    let [released, failed, completed, cancelled_one, deleted]: [Claim; 5] =
        stores.claim(5).await.try_into().unwrap();
    let tasks = &stores.tasks;
    tasks
        .release(&released.lease, Attempt::Forgiven)
        .await
        .unwrap();
    let failure = Err(FailureCode::GenerationFailed.into());
    tasks
        .finish(&failed.lease, failure, NOW, EXPIRY)
        .await
        .unwrap();
    stores.complete(&completed).await.unwrap();
    let cancel = tasks.cancel("one", cancelled_one.task.id, cancelled(), NOW, EXPIRY);
    cancel.await.unwrap();
    tasks.delete("one", deleted.task.id).await.unwrap();
    for claim in [released, failed, cancelled_one, deleted] {
        wanted.extend(claim.lease.file_keys());
    }
    assert_eq!(stores.sweep(NOW).await.files, wanted);
    stores.tasks.forget_files(&wanted).await.unwrap();

    let died = stores.claim_one().await;
    drop(stores);
    let stores = harness.open("store").await;
    // At once where the store knows that nobody else runs it, else when the lease is over.
    let swept = stores.sweep(NOW + LEASE_MS).await;
    assert_eq!(swept.files, died.lease.file_keys());
    stores.tasks.forget_files(&swept.files).await.unwrap();
    let again = stores.claim_one().await;
    stores.complete(&again).await.unwrap();
    assert_eq!(stores.sweep(NOW + LEASE_MS).await, Swept::default());
}

/// Large backlogs are taken up in steps.
pub async fn a_sweep_is_bounded_by_its_batch(harness: &impl Harness) {
    let stores = harness.open("store").await;
    for number in 0..7 {
        stores.submit(number, "one").await;
        stores
            .tasks
            .cancel("one", id(number), cancelled(), NOW, NOW)
            .await
            .unwrap();
    }
    for number in 10..17 {
        stores.submit(number, "one").await;
    }
    stores.claim(7).await;
    let mut sweep = sweep_at(NOW + LEASE_MS);
    sweep.batch = 3;
    for wanted in [3, 3, 1, 0] {
        let swept = stores.tasks.sweep(sweep).await.unwrap();
        assert_eq!((swept.expired, swept.requeued), (wanted, wanted));
        assert_eq!(swept.more, wanted == 3, "a full batch is followed at once");
    }
}
