//! All acknowledged data exists when the store is reopened.

use kinora_contract::TaskPhase;

use super::Harness;
use super::bench::Bench;
use super::fixtures::{EXPIRY, NOW, RETENTION_MS, artifact, id, task};
use crate::{IdempotencyKey, InsertOutcome, NewTask};

/// Tasks in every phase are unchanged. (Running ones may be waiting again.)
pub async fn everything_acknowledged_is_there_after_a_restart(harness: &impl Harness) {
    let stores = harness.open("store").await;
    for number in 0..6 {
        stores.submit(number, "one").await;
    }
    let claims = stores.claim(4).await;
    stores.complete(&claims[0]).await.unwrap();
    stores.cancel("one", 1, RETENTION_MS).await;
    let done = stores.work.finish(&claims[2].lease, Ok(artifact("x")), 0);
    done.await.unwrap();
    stores.sweep(NOW).await;
    let mut before = Vec::new();
    for number in 0..6 {
        before.push(stores.task("one", number).await);
    }
    drop(stores);

    let stores = harness.open_after_leases("store").await;
    for (number, before) in (0..).zip(before) {
        let after = stores.task("one", number).await;
        if before.state.phase() == TaskPhase::Running {
            assert!(matches!(
                after.state.phase(),
                TaskPhase::Waiting | TaskPhase::Running
            ));
            assert_eq!(
                (after.attempt, after.started_at_ms),
                (1, before.started_at_ms)
            );
        } else {
            assert_eq!(after, before);
        }
    }
    // In order of acceptance, whichever ran before.
    stores.sweep(EXPIRY).await;
    let order: Vec<_> = stores
        .claim(9)
        .await
        .into_iter()
        .map(|claim| claim.task.id)
        .collect();
    assert_eq!(order, [id(3), id(4), id(5)]);
}

/// This holds even if the task with the largest token is gone.
pub async fn tokens_go_on_growing_after_a_restart(harness: &impl Harness) {
    let mut last = 0;
    for number in 0..4 {
        let stores = harness.open("store").await;
        stores.submit(number, "one").await;
        let token = stores.claim_one().await.lease.token;
        assert!(token > last, "{token} after {last}");
        last = token;
        stores.tasks.delete("one", id(number)).await.unwrap();
    }
}

/// The key stays bound to its task.
pub async fn an_idempotency_key_outlives_a_restart(harness: &impl Harness) {
    let key = IdempotencyKey {
        key: "key".to_owned(),
        fingerprint: [1; 32],
        bound_ms: 50_000,
    };
    let keyed = |number| NewTask {
        idempotency: Some(key.clone()),
        ..task(number, "one")
    };
    let stores = harness.open("store").await;
    stores.tasks.insert(keyed(1)).await.unwrap();
    drop(stores);
    let stores = harness.open("store").await;
    let again = stores.tasks.insert(keyed(2)).await.unwrap();
    assert!(matches!(again, InsertOutcome::Replayed(task) if task.id == id(1)));
}

/// The identity that distinguishes stores that share a result store.
pub async fn a_store_stays_who_it_is_and_is_no_other(harness: &impl Harness) {
    let identity = harness.open("store").await.chores.identity();
    assert_eq!(harness.open("store").await.chores.identity(), identity);
    assert_ne!(harness.open("another").await.chores.identity(), identity);
}
