//! Owners: cancel and delete, and what their workers are told.

use kinora_contract::{FailureCode, State};

use super::Harness;
use super::fixtures::{Bench, EXPIRY, NOW, artifact, cancelled, files, id, renewed, task};
use crate::{Attempt, Cancellation, Deletion, Idempotency, Insertion, LeaseLost, StoreError};

/// Waiting or running, it fails at once; finished, it stays.
pub async fn a_cancel_is_final_and_withdraws_the_lease(harness: &impl Harness) {
    let stores = harness.open("store").await;
    stores.submit(1, "one").await;
    stores.submit(2, "one").await;
    let claim = stores.claim_one().await;
    for number in [1, 2] {
        let end = stores
            .tasks
            .cancel("one", id(number), cancelled(), NOW + 7, EXPIRY)
            .await;
        let Ok(Cancellation::Cancelled(view)) = end else {
            panic!("{end:?}")
        };
        assert_eq!(
            view.task.state,
            State::Failed(FailureCode::Cancelled.into())
        );
        assert_eq!(
            (view.task.finished_at_ms, view.queue_position),
            (Some(NOW + 7), None)
        );
        assert_eq!(view.task.expires_at_ms, Some(EXPIRY));
        assert_eq!(stores.view("one", number).await.task, view.task);
        let again = stores
            .tasks
            .cancel("one", id(number), FailureCode::TaskExpired.into(), 0, 0)
            .await;
        let Ok(Cancellation::AlreadyFinished(same)) = again else {
            panic!("{again:?}")
        };
        assert_eq!(same.task, view.task);
    }
    for result in [
        stores.tasks.check(&claim.lease).await,
        stores.tasks.renew(&claim.lease, renewed(1)).await,
        stores.tasks.release(&claim.lease, Attempt::Forgiven).await,
        stores.complete(&claim).await,
    ] {
        let withdrawn = matches!(result, Err(StoreError::LeaseLost(LeaseLost::Withdrawn)));
        assert!(withdrawn, "{result:?}");
    }
    assert!(stores.claim(9).await.is_empty());
    let unknown = stores
        .tasks
        .cancel("one", id(3), cancelled(), NOW, EXPIRY)
        .await
        .unwrap();
    assert!(matches!(unknown, Cancellation::NotFound));
}

/// Raced over and over: one terminal state, and both sides know which.
pub async fn of_a_cancel_and_a_finish_exactly_one_wins(harness: &impl Harness) {
    let stores = harness.open("store").await;
    for number in 0..40 {
        stores.submit(number, "one").await;
        let claim = stores.claim_one().await;
        let racer = stores.clone();
        let finish = tokio::spawn(async move { racer.complete(&claim).await });
        let cancel = stores
            .tasks
            .cancel("one", id(number), cancelled(), NOW, EXPIRY)
            .await;
        let (finished, cancel) = (finish.await.unwrap(), cancel.unwrap());
        let state = stores.view("one", number).await.task.state.clone();
        match cancel {
            Cancellation::Cancelled(_) => {
                assert!(finished.is_err());
                assert_eq!(state, State::Failed(cancelled()));
            }
            Cancellation::AlreadyFinished(view) => {
                finished.unwrap();
                assert!(matches!(state, State::Completed(_)));
                assert_eq!(view.task.state, state);
            }
            Cancellation::NotFound => panic!("it is there"),
        }
    }
}

/// In any phase; its idempotency key is free, its worker is told.
pub async fn a_delete_removes_task_key_and_lease(harness: &impl Harness) {
    let stores = harness.open("store").await;
    let mut new = task(1, "one");
    new.idempotency = Some(Idempotency {
        key: "key".to_owned(),
        fingerprint: [1; 32],
        expires_at_ms: NOW + 1_000,
    });
    stores.tasks.insert(new.clone()).await.unwrap();
    let nothing = Deletion::Deleted { files: Vec::new() };
    assert_eq!(stores.tasks.delete("one", id(1)).await.unwrap(), nothing);
    assert!(stores.tasks.get("one", id(1)).await.unwrap().is_none());
    assert_eq!(
        stores.tasks.delete("one", id(1)).await.unwrap(),
        Deletion::NotFound
    );
    new.id = id(2);
    let again = stores.tasks.insert(new).await.unwrap();
    assert!(matches!(again, Insertion::Inserted(_)), "{again:?}");

    let claim = stores.claim_one().await;
    assert_eq!(stores.tasks.delete("one", id(2)).await.unwrap(), nothing);
    for result in [
        stores.tasks.check(&claim.lease).await,
        stores.complete(&claim).await,
    ] {
        let withdrawn = matches!(result, Err(StoreError::LeaseLost(LeaseLost::Withdrawn)));
        assert!(withdrawn, "{result:?}");
    }
    assert!(stores.claim(9).await.is_empty());
    assert!(stores.tasks.get("one", id(2)).await.unwrap().is_none());
}

/// Sweeps hand them out until they are confirmed, also after a restart.
pub async fn deleted_files_are_remembered_until_they_are_forgotten(harness: &impl Harness) {
    let stores = harness.open("store").await;
    stores.submit(1, "one").await;
    let claim = stores.claim_one().await;
    stores
        .tasks
        .finish(&claim.lease, Ok(artifact("v/1")), NOW, EXPIRY)
        .await
        .unwrap();
    assert!(stores.sweep(NOW).await.files.is_empty());
    let deleted = stores.tasks.delete("one", id(1)).await.unwrap();
    assert_eq!(
        deleted,
        Deletion::Deleted {
            files: files("v/1")
        }
    );
    assert_eq!(stores.sweep(NOW).await.files, files("v/1"));
    drop(stores);
    let stores = harness.open("store").await;
    assert_eq!(stores.sweep(NOW).await.files, files("v/1"));
    stores.tasks.forget_files(&files("v/1")[1..]).await.unwrap();
    assert_eq!(stores.sweep(NOW).await.files, files("v/1")[..1]);
    stores.tasks.forget_files(&files("v/1")).await.unwrap();
    stores.tasks.forget_files(&[]).await.unwrap();
    assert!(stores.sweep(NOW).await.files.is_empty());
}

/// It is as if the task did not exist.
pub async fn another_project_can_neither_cancel_nor_delete(harness: &impl Harness) {
    let stores = harness.open("store").await;
    stores.submit(1, "one").await;
    let before = stores.view("one", 1).await.task;
    let cancel = stores
        .tasks
        .cancel("two", id(1), cancelled(), NOW, EXPIRY)
        .await
        .unwrap();
    assert!(matches!(cancel, Cancellation::NotFound), "{cancel:?}");
    assert_eq!(
        stores.tasks.delete("two", id(1)).await.unwrap(),
        Deletion::NotFound
    );
    assert_eq!(stores.view("one", 1).await.task, before);
    let claim = stores.claim_one().await;
    stores.complete(&claim).await.unwrap();
    let cancel = stores
        .tasks
        .cancel("two", id(1), cancelled(), NOW, EXPIRY)
        .await
        .unwrap();
    assert!(matches!(cancel, Cancellation::NotFound), "{cancel:?}");
    assert_eq!(
        stores.tasks.delete("two", id(1)).await.unwrap(),
        Deletion::NotFound
    );
}
