//! The effects of a sweep, and their limits.

use kinora_contract::{FailureCode, TaskPhase, TaskState};

use super::Harness;
use super::bench::Bench;
use super::fixtures::{LEASE_MS, NOW, RETENTION_MS, artifact, files, id, renewal, sweep_at, task};
use crate::{
    ClaimedTask, IdempotencyKey, InsertOutcome, NewTask, ReleasedAttempt, SweepReport, SweepRequest,
};

/// The lease ends to the millisecond.
pub async fn an_expired_lease_goes_back_to_its_old_place(harness: &impl Harness) {
    let stores = harness.open("store").await;
    for number in [1, 2] {
        stores.submit(number, "one").await;
    }
    let claim = stores.claim_one().await;
    let renewed_ms = NOW + LEASE_MS - 1;
    assert_eq!(stores.sweep(renewed_ms).await, SweepReport::default());
    stores.renew(&claim.lease, renewal(30)).await.unwrap();
    let before_ms = renewed_ms + LEASE_MS - 1;
    assert_eq!(stores.sweep(before_ms).await, SweepReport::default());
    stores.check(&claim.lease).await.unwrap();
    assert_eq!(stores.files_due().await, [""; 0]);
    let requeued = SweepReport {
        requeued: 1,
        ..SweepReport::default()
    };
    assert_eq!(stores.sweep(before_ms + 1).await, requeued);
    assert_eq!(stores.files_due().await, claim.lease.file_keys());
    assert!(stores.check(&claim.lease).await.is_err());
    let again = stores.claim_one().await.task;
    assert_eq!((again.id, again.attempt, again.progress), (id(1), 2, 30));
}

/// This happens after `attempts_max` workers were lost.
pub async fn the_last_attempt_fails_with_worker_lost(harness: &impl Harness) {
    let stores = harness.open("store").await;
    stores.submit(1, "one").await;
    for attempt in 1..=3_u32 {
        let claim = stores.claim_one().await;
        assert_eq!(claim.task.attempt, attempt);
        let lost = attempt == 3;
        let wanted = SweepReport {
            requeued: u64::from(!lost),
            lost: u64::from(lost),
            ..SweepReport::default()
        };
        let swept = stores.sweep(NOW + u64::from(attempt) * LEASE_MS).await;
        assert_eq!(swept, wanted);
        assert_eq!(stores.remove_files().await, claim.lease.file_keys());
    }
    let task = stores.task("one", 1).await;
    assert_eq!(
        task.state,
        TaskState::Failed(FailureCode::WorkerLost.into())
    );
    assert_eq!(task.finished_at_ms, Some(NOW + 3 * LEASE_MS));
    assert_eq!(task.expires_at_ms, Some(NOW + 3 * LEASE_MS + 500));
    assert!(stores.claim(1).await.is_empty());
}

/// The files expire first, the tombstone much later; idempotency keys have their own time.
pub async fn results_expire_then_vanish(harness: &impl Harness) {
    let stores = harness.open("store").await;
    let key = IdempotencyKey {
        key: "key".to_owned(),
        fingerprint: [1; 32],
        bound_ms: 50_000,
    };
    let keyed = |number| NewTask {
        idempotency: Some(key.clone()),
        ..task(number, "one")
    };
    stores.tasks.insert(keyed(1)).await.unwrap();
    let claim = stores.claim_one().await;
    let finish = stores.work.finish(&claim.lease, Ok(artifact("v")), 100);
    finish.await.unwrap();
    stores.submit(2, "one").await;
    stores.cancel("one", 2, 100).await;

    assert_eq!(stores.sweep(NOW + 99).await, SweepReport::default());
    assert_eq!(stores.files_due().await, [""; 0]);
    let expired = SweepReport {
        expired: 2,
        ..SweepReport::default()
    };
    assert_eq!(stores.sweep(NOW + 100).await, expired);
    for number in [1, 2] {
        let task = stores.task("one", number).await;
        assert_eq!(
            (task.state.phase(), task.expires_at_ms),
            (TaskPhase::Expired, Some(NOW + 100))
        );
    }
    assert_eq!(stores.remove_files().await, files("v"));
    let replay = stores.tasks.insert(keyed(3)).await.unwrap();
    assert!(matches!(replay, InsertOutcome::Replayed(task) if task.id == id(1)));

    assert_eq!(
        stores.sweep(NOW + 100 + 9_999).await,
        SweepReport::default()
    );
    let forgotten = SweepReport {
        forgotten: 2,
        ..SweepReport::default()
    };
    assert_eq!(stores.sweep(NOW + 100 + 10_000).await, forgotten);
    assert_eq!(stores.files_due().await, [""; 0]);
    assert!(stores.tasks.get("one", id(1)).await.unwrap().is_none());
    let free = stores.tasks.insert(keyed(4)).await.unwrap();
    assert!(
        matches!(free, InsertOutcome::Inserted(_)),
        "its task is gone, so is the key: {free:?}"
    );
}

/// A worker may have stored them before it died or learned of the end; only a completed task keeps
/// files.
pub async fn files_of_attempts_that_came_to_nothing_are_swept(harness: &impl Harness) {
    let stores = harness.open("store").await;
    let mut wanted = Vec::new();
    for number in 1..=5 {
        stores.submit(number, "one").await;
    }
    let [released, failed, completed, cancelled, deleted]: [ClaimedTask; 5] =
        stores.claim(5).await.try_into().unwrap();
    let release = stores
        .work
        .release(&released.lease, ReleasedAttempt::Forgiven);
    release.await.unwrap();
    let failure = Err(FailureCode::GenerationFailed.into());
    let finish = stores.work.finish(&failed.lease, failure, RETENTION_MS);
    finish.await.unwrap();
    stores.complete(&completed).await.unwrap();
    stores.cancel("one", 4, RETENTION_MS).await;
    assert_eq!((cancelled.task.id, deleted.task.id), (id(4), id(5)));
    stores.tasks.delete("one", id(5)).await.unwrap();
    for claim in [released, failed, cancelled, deleted] {
        wanted.extend(claim.lease.file_keys());
    }
    assert_eq!(stores.sweep(NOW).await, SweepReport::default());
    assert_eq!(stores.remove_files().await, wanted);

    let died = stores.claim_one().await;
    drop(stores);
    let stores = harness.open("store").await;
    // Immediately if the store knows that nobody else runs it, otherwise when the lease ends.
    stores.sweep(NOW + LEASE_MS).await;
    assert_eq!(stores.remove_files().await, died.lease.file_keys());
    let again = stores.claim_one().await;
    stores.complete(&again).await.unwrap();
    assert_eq!(stores.sweep(NOW + LEASE_MS).await, SweepReport::default());
    assert_eq!(stores.files_due().await, [""; 0]);
}

/// Large backlogs are handled in steps.
pub async fn a_sweep_is_bounded_by_its_batch(harness: &impl Harness) {
    let stores = harness.open("store").await;
    for number in 0..7 {
        stores.submit(number, "one").await;
        stores.cancel("one", number, 0).await;
    }
    for number in 10..17 {
        stores.submit(number, "one").await;
    }
    stores.claim(7).await;
    let sweep = SweepRequest {
        batch: 3,
        ..sweep_at(NOW + LEASE_MS)
    };
    for wanted in [3, 3, 1, 0] {
        let swept = stores.sweep_by(sweep).await;
        assert_eq!((swept.expired, swept.requeued), (wanted, wanted));
        assert_eq!(swept.more, wanted == 3, "a full batch is followed at once");
    }
}
