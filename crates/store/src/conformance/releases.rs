//! Tasks that their workers give back, and what of an attempt is left to the next one.

use kinora_contract::{FailureCode, State, Status, Warning, WarningCode};

use super::Harness;
use super::fixtures::{Bench, EXPIRY, LEASE_MS, NOW, id, renewed, sweep_at};
use crate::{Abandoned, Attempt, Renewed, StoreError, SweepRequest};

/// Over releases, lost leases and restarts; a stale attempt keeps nothing.
pub async fn what_an_attempt_keeps_is_given_to_later_ones_until_the_end(harness: &impl Harness) {
    let stores = harness.open("store").await;
    stores.submit(1, "one").await;
    let keeping = |token: &str| Renewed {
        kept: Some(token.to_owned()),
        ..renewed(1)
    };
    let first = stores.claim_one().await;
    assert_eq!(first.kept, None);
    for token in ["ticket 1", "ticket 2"] {
        stores
            .tasks
            .renew(&first.lease, keeping(token))
            .await
            .unwrap();
    }
    stores.tasks.renew(&first.lease, renewed(2)).await.unwrap();
    stores
        .tasks
        .release(&first.lease, Attempt::Forgiven)
        .await
        .unwrap();
    let second = stores.claim_one().await;
    assert_eq!(second.kept.as_deref(), Some("ticket 2"));
    stores.sweep(NOW + 3 * LEASE_MS).await;
    let stale = stores.tasks.renew(&second.lease, keeping("ticket 3")).await;
    assert!(matches!(stale, Err(StoreError::LeaseLost(_))), "{stale:?}");
    drop(stores);
    let stores = harness.open("store").await;
    let third = stores.claim_one().await;
    assert_eq!(third.kept.as_deref(), Some("ticket 2"));
    stores.complete(&third).await.unwrap();
    stores.submit(2, "one").await;
    assert_eq!(stores.claim_one().await.kept, None, "another task");
}

/// However it ended, until somebody says that it was called off; a result leaves nothing.
pub async fn what_was_kept_of_a_task_without_a_result_is_abandoned(harness: &impl Harness) {
    let stores = harness.open("store").await;
    let mut claims = Vec::new();
    for number in 1..=6 {
        stores.submit(number, "one").await;
        let claim = stores.claim_one().await;
        let kept = Renewed {
            kept: (number != 6).then(|| format!("ticket {number}")),
            ..renewed(1)
        };
        stores.tasks.renew(&claim.lease, kept).await.unwrap();
        claims.push(claim);
    }
    stores.complete(&claims[0]).await.unwrap();
    assert_eq!(stores.sweep(NOW + 1).await.abandoned, []);

    let failed = Err(FailureCode::GenerationFailed.into());
    stores
        .tasks
        .finish(&claims[1].lease, failed, NOW, EXPIRY)
        .await
        .unwrap();
    // Waiting again, with what was kept.
    stores
        .tasks
        .release(&claims[2].lease, Attempt::Forgiven)
        .await
        .unwrap();
    for number in [3, 6] {
        let cancelled = FailureCode::Cancelled.into();
        stores
            .tasks
            .cancel("one", id(number), cancelled, NOW, EXPIRY)
            .await
            .unwrap();
    }
    stores.tasks.delete("one", id(4)).await.unwrap();
    let abandoned = |numbers: &[u64]| -> Vec<Abandoned> {
        let one = |number: &u64| Abandoned {
            task: id(*number),
            model: claims[0].task.spec.model.clone(),
            kept: format!("ticket {number}"),
        };
        numbers.iter().map(one).collect()
    };
    assert_eq!(stores.sweep(NOW + 1).await.abandoned, abandoned(&[2, 3, 4]));
    let lost = SweepRequest {
        attempts_max: 1,
        ..sweep_at(NOW + 3 * LEASE_MS)
    };
    let swept = stores.tasks.sweep(lost).await.unwrap();
    assert_eq!(swept.abandoned, abandoned(&[2, 3, 4, 5]), "5 was lost");
    drop(stores);

    let stores = harness.open("store").await;
    let settled = [id(3), id(5), id(1)];
    stores.tasks.forget_abandoned(&settled).await.unwrap();
    let swept = stores.sweep(NOW + 3 * LEASE_MS).await;
    assert_eq!(swept.abandoned, abandoned(&[2, 4]));
}

/// Each run shows its own; what has ended shows nothing.
pub async fn a_preview_is_shown_while_its_lease_lasts(harness: &impl Harness) {
    let stores = harness.open("store").await;
    stores.submit(1, "one").await;
    let showing = |preview: &[u8]| Renewed {
        preview: Some(preview.into()),
        ..renewed(1)
    };
    let shown = async || stores.view("one", 1).await.preview;
    assert_eq!(shown().await, None);
    let first = stores.claim_one().await;
    for preview in [&b"one"[..], b"two"] {
        stores
            .tasks
            .renew(&first.lease, showing(preview))
            .await
            .unwrap();
        assert_eq!(shown().await.as_deref(), Some(preview));
    }
    stores.tasks.renew(&first.lease, renewed(2)).await.unwrap();
    assert_eq!(shown().await.as_deref(), Some(&b"two"[..]), "the last one");
    let of_project = stores.tasks.get_of_any_project(id(1)).await.unwrap();
    assert!(of_project.unwrap().preview.is_some());
    stores
        .tasks
        .release(&first.lease, Attempt::Forgiven)
        .await
        .unwrap();
    assert_eq!(shown().await, None, "given back");

    let second = stores.claim_one().await;
    assert_eq!(shown().await, None, "another run");
    let stale = stores.tasks.renew(&first.lease, showing(b"late")).await;
    assert!(matches!(stale, Err(StoreError::LeaseLost(_))), "{stale:?}");
    assert_eq!(shown().await, None, "of a lost lease");
    stores
        .tasks
        .renew(&second.lease, showing(b"three"))
        .await
        .unwrap();
    stores.complete(&second).await.unwrap();
    assert_eq!(shown().await, None, "completed");
}

/// An orderly stop costs a task nothing.
pub async fn a_release_gives_back_the_old_place_and_the_attempt(harness: &impl Harness) {
    let stores = harness.open("store").await;
    stores.submit(1, "one").await;
    stores.submit(2, "one").await;
    let claim = stores.claim_one().await;
    stores
        .tasks
        .release(&claim.lease, Attempt::Forgiven)
        .await
        .unwrap();
    let view = stores.view("one", 1).await;
    assert_eq!(
        (view.task.state.clone(), view.task.attempt),
        (State::Waiting, 0)
    );
    assert_eq!(
        view.task.status(),
        Some(Status::InProgress),
        "its work had begun"
    );
    assert_eq!(view.queue_position, None);
    let again = stores.claim_one().await;
    assert_eq!((again.task.id, again.task.attempt), (id(1), 1));
}

/// What broke cost an attempt, and no place.
pub async fn a_release_may_count_the_attempt(harness: &impl Harness) {
    let stores = harness.open("store").await;
    stores.submit(1, "one").await;
    stores.submit(2, "one").await;
    for attempt in 1..=2 {
        let claim = stores.claim_one().await;
        assert_eq!((claim.task.id, claim.task.attempt), (id(1), attempt));
        let given_back = stores.tasks.release(&claim.lease, Attempt::Counts).await;
        given_back.unwrap();
        assert_eq!(stores.view("one", 1).await.task.attempt, attempt);
    }
}

/// Over renewals that say nothing of them, the end and a restart; a later attempt's take their place.
pub async fn warnings_stay_with_their_task(harness: &impl Harness) {
    let stores = harness.open("store").await;
    stores.submit(1, "one").await;
    let warning = |message: &str| Warning::new(WarningCode::SeedIgnored, message);
    let warning_of = |warnings: Vec<Warning>| Renewed {
        warnings: Some(warnings),
        ..renewed(1)
    };
    let first = stores.claim_one().await;
    assert_eq!(first.task.warnings, []);
    let two = vec![warning("first"), warning("a \"quoted\" \u{1f30a}")];
    let tasks = &stores.tasks;
    tasks
        .renew(&first.lease, warning_of(two.clone()))
        .await
        .unwrap();
    tasks.renew(&first.lease, renewed(2)).await.unwrap();
    assert_eq!(stores.view("one", 1).await.task.warnings, two);
    drop(stores);
    let stores = harness.open("store").await;
    stores.sweep(NOW + 3 * LEASE_MS).await;
    let second = stores.claim_one().await;
    assert_eq!(second.task.warnings, two);
    let last = vec![warning("last")];
    let renewal = warning_of(last.clone());
    stores.tasks.renew(&second.lease, renewal).await.unwrap();
    stores.complete(&second).await.unwrap();
    assert_eq!(stores.view("one", 1).await.task.warnings, last);
    drop(stores);
    let stores = harness.open("store").await;
    assert_eq!(stores.view("one", 1).await.task.warnings, last);
}
