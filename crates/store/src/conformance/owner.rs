//! Operations of a task's owner: cancel and delete. Another project's task counts as missing.

use kinora_contract::{FailureCode, TaskState};

use super::Harness;
use super::bench::{Bench, CHORE_LEASE_MS, keys};
use super::fixtures::{NOW, RETENTION_MS, artifact, cancelled, files, id, renewal, task};
use crate::{
    CancelOutcome, Chore, DeleteOutcome, IdempotencyKey, InsertOutcome, LeaseLost, ReleasedAttempt,
    StoreError, SweepReport,
};

/// A waiting or running task fails immediately; a finished one stays unchanged.
pub async fn a_cancel_is_final_and_withdraws_the_lease(harness: &impl Harness) {
    let stores = harness.open("store").await;
    stores.submit(1, "one").await;
    stores.submit(2, "one").await;
    let claim = stores.claim_one().await;
    stores.clock.advance(7);
    for number in [1, 2] {
        let task = stores.cancel("one", number, RETENTION_MS).await;
        assert_eq!(task.state, TaskState::Failed(FailureCode::Cancelled.into()));
        assert_eq!(task.finished_at_ms, Some(NOW + 7));
        assert_eq!(stores.position(number).await, None);
        assert_eq!(task.expires_at_ms, Some(NOW + 7 + RETENTION_MS));
        assert_eq!(stores.task("one", number).await, task);
        let other = FailureCode::TaskExpired.into();
        let again = stores.tasks.cancel("one", id(number), other, 0).await;
        let Ok(CancelOutcome::AlreadyFinished(same)) = again else {
            panic!("{again:?}")
        };
        assert_eq!(same, task);
    }
    for result in [
        stores.check(&claim.lease).await,
        stores.renew(&claim.lease, renewal(1)).await,
        stores
            .work
            .release(&claim.lease, ReleasedAttempt::Forgiven)
            .await,
        stores.complete(&claim).await,
    ] {
        let withdrawn = matches!(result, Err(StoreError::LeaseLost(LeaseLost::Withdrawn)));
        assert!(withdrawn, "{result:?}");
    }
    assert!(stores.claim(9).await.is_empty());
    let unknown = stores.tasks.cancel("one", id(3), cancelled(), RETENTION_MS);
    assert!(matches!(unknown.await.unwrap(), CancelOutcome::NotFound));
}

/// Races both repeatedly: there is one terminal state, and both callers learn which.
pub async fn of_a_cancel_and_a_finish_exactly_one_wins(harness: &impl Harness) {
    let [stores, racer] = harness.open_both("store").await;
    for number in 0..40 {
        stores.submit(number, "one").await;
        let claim = stores.claim_one().await;
        let racer = racer.clone();
        let finish = tokio::spawn(async move { racer.complete(&claim).await });
        let cancel = stores
            .tasks
            .cancel("one", id(number), cancelled(), RETENTION_MS)
            .await;
        let (finished, cancel) = (finish.await.unwrap(), cancel.unwrap());
        let state = stores.task("one", number).await.state.clone();
        match cancel {
            CancelOutcome::Cancelled(_) => {
                assert!(finished.is_err());
                assert_eq!(state, TaskState::Failed(cancelled()));
            }
            CancelOutcome::AlreadyFinished(task) => {
                finished.unwrap();
                assert!(matches!(state, TaskState::Completed(_)));
                assert_eq!(task.state, state);
            }
            CancelOutcome::NotFound => panic!("it is there"),
        }
    }
}

/// A task can be deleted in any phase. Its idempotency key becomes free, and its worker is
/// notified.
pub async fn a_delete_removes_task_key_and_lease(harness: &impl Harness) {
    let stores = harness.open("store").await;
    let mut new = task(1, "one");
    new.idempotency = Some(IdempotencyKey {
        key: "key".to_owned(),
        fingerprint: [1; 32],
        bound_ms: 1_000,
    });
    stores.tasks.insert(new.clone()).await.unwrap();
    let nothing = DeleteOutcome::Deleted { files: Vec::new() };
    assert_eq!(stores.tasks.delete("one", id(1)).await.unwrap(), nothing);
    assert!(stores.tasks.get("one", id(1)).await.unwrap().is_none());
    assert_eq!(
        stores.tasks.delete("one", id(1)).await.unwrap(),
        DeleteOutcome::NotFound
    );
    new.id = id(2);
    let again = stores.tasks.insert(new).await.unwrap();
    assert!(matches!(again, InsertOutcome::Inserted(_)), "{again:?}");

    let claim = stores.claim_one().await;
    assert_eq!(stores.tasks.delete("one", id(2)).await.unwrap(), nothing);
    for result in [
        stores.check(&claim.lease).await,
        stores.complete(&claim).await,
    ] {
        let withdrawn = matches!(result, Err(StoreError::LeaseLost(LeaseLost::Withdrawn)));
        assert!(withdrawn, "{result:?}");
    }
    assert!(stores.claim(9).await.is_empty());
    assert!(stores.tasks.get("one", id(2)).await.unwrap().is_none());
}

/// The deleting process leases the chores; others remove the files if it does not, even after a
/// restart.
pub async fn deleted_files_are_remembered_until_they_are_removed(harness: &impl Harness) {
    let stores = harness.open("store").await;
    for (number, name) in [(1, "v/1"), (2, "v/2")] {
        stores.submit(number, "one").await;
        let claim = stores.claim_one().await;
        let finish = stores
            .work
            .finish(&claim.lease, Ok(artifact(name)), RETENTION_MS);
        finish.await.unwrap();
    }
    assert_eq!(stores.sweep(NOW).await, SweepReport::default());
    assert_eq!(stores.files_due().await, [""; 0]);
    let delete = async |number| match stores.tasks.delete("one", id(number)).await.unwrap() {
        DeleteOutcome::Deleted { files } => files,
        DeleteOutcome::NotFound => panic!("it is there"),
    };
    let deleted = delete(1).await;
    assert_eq!(keys(&deleted), files("v/1"));
    assert!(deleted.iter().all(|chore| chore.attempts == 1));
    assert_eq!(stores.files_due().await, [""; 0], "leased to the caller");
    // The caller removes the files of one, and dies before it removes those of the other.
    let done = deleted.into_iter().map(Chore::done).collect();
    stores.tasks.complete_deletion(done).await.unwrap();
    let abandoned = delete(2).await;
    assert_eq!(keys(&abandoned), files("v/2"));
    stores.clock.advance(CHORE_LEASE_MS);
    assert_eq!(stores.files_due().await, files("v/2"));
    drop(stores);

    let stores = harness.open("store").await;
    stores.clock.advance(2 * CHORE_LEASE_MS);
    let mut again = stores.take_chores(crate::ChoreKind::RemoveFile).await;
    assert_eq!(keys(&again), files("v/2"));
    let first = again.remove(0);
    let done = again.into_iter().map(Chore::done).collect();
    stores.chores.complete_chores(done).await.unwrap();
    stores
        .chores
        .complete_chores(vec![first.again(0)])
        .await
        .unwrap();
    assert_eq!(stores.remove_files().await, files("v/2")[..1]);
    stores.chores.complete_chores(Vec::new()).await.unwrap();
    assert_eq!(stores.files_due().await, [""; 0]);
}

/// The answer is that of a task that does not exist.
pub async fn another_project_can_neither_cancel_nor_delete(harness: &impl Harness) {
    let stores = harness.open("store").await;
    stores.submit(1, "one").await;
    let refused = async || {
        let cancel = stores
            .tasks
            .cancel("two", id(1), cancelled(), RETENTION_MS)
            .await
            .unwrap();
        assert!(matches!(cancel, CancelOutcome::NotFound), "{cancel:?}");
        assert_eq!(
            stores.tasks.delete("two", id(1)).await.unwrap(),
            DeleteOutcome::NotFound
        );
    };
    let before = stores.task("one", 1).await;
    refused().await;
    assert_eq!(stores.task("one", 1).await, before);
    let claim = stores.claim_one().await;
    stores.complete(&claim).await.unwrap();
    refused().await;
}
