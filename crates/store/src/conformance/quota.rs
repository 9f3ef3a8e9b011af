//! Usage is counted exactly and limited; a task that waits too long fails with that reason.

use kinora_contract::{FailureCode, TaskState};

use super::bench::Bench;
use super::fixtures::{EXPIRY, NOW, RETENTION_MS, artifact, id, sweep_at, task, with_images};
use super::{Harness, Site};
use crate::{ExceededQuota, InsertOutcome, NewTask, QueueBounds, QuotaUsage, SweepRequest};

async fn usage(stores: &Site, project: &str) -> QuotaUsage {
    stores.tasks.usage(project).await.unwrap()
}

fn with_image(number: u64) -> NewTask {
    with_images(number, "one", 1)
}

/// References count with an allowance until their size is known, results by their bytes, texts by
/// their length. A deletion releases all of it.
pub async fn what_a_task_takes_is_counted_until_it_is_gone(harness: &impl Harness) {
    let stores = harness.open("store").await;
    stores.tasks.insert(with_image(1)).await.unwrap();
    let allowed = usage(&stores, "one").await;
    assert!(
        allowed.bytes > 1_000_000 && allowed.tasks == 1,
        "{allowed:?}"
    );
    for bytes in [7_000, 5_000, 8_000] {
        stores.work.charge_references(id(1), bytes).await.unwrap();
    }
    let charged = usage(&stores, "one").await;
    assert!((8_000..12_000).contains(&charged.bytes), "{charged:?}");
    assert_eq!(usage(&stores, "two").await, QuotaUsage::default());
    drop(stores);

    let stores = harness.open("store").await;
    assert_eq!(usage(&stores, "one").await, charged);
    stores.fetch_all().await;
    let claim = stores.claim_one().await;
    assert_eq!(usage(&stores, "one").await, charged);
    let mut result = artifact("x");
    result.video.bytes = 1_000_000;
    let done = stores.work.finish(&claim.lease, Ok(result), 10);
    done.await.unwrap();
    let completed = usage(&stores, "one").await;
    assert!(
        (1_000_000..1_004_000).contains(&completed.bytes),
        "{completed:?}"
    );
    // A report about references that are gone does not count.
    stores.work.charge_references(id(1), 9).await.unwrap();
    assert_eq!(usage(&stores, "one").await, completed);
    stores.sweep(NOW + 10).await;
    let expired = usage(&stores, "one").await;
    assert!(
        (1..4_000).contains(&expired.bytes) && expired.tasks == 0,
        "{expired:?}"
    );
    stores.sweep(NOW + 10 + 10_000).await;
    assert_eq!(usage(&stores, "one").await, QuotaUsage::default());
}

/// Checks a submit at the limit, beyond it, and after a delete; other projects are unaffected.
pub async fn what_a_project_stores_is_bounded(harness: &impl Harness) {
    let stores = harness.open("store").await;
    let bounded = |number, project: &str, bounds| {
        let new = NewTask {
            bounds,
            ..task(number, project)
        };
        stores.tasks.insert(new)
    };
    let refusal = |insertion| match insertion {
        Ok(InsertOutcome::QuotaFull(quota)) => Some(quota),
        Ok(InsertOutcome::Inserted(_)) => None,
        other => panic!("{other:?}"),
    };
    bounded(1, "one", QueueBounds::NONE).await.unwrap();
    let each = usage(&stores, "one").await.bytes;
    let two_tasks = QueueBounds {
        project_tasks_max: 2,
        ..QueueBounds::NONE
    };
    let two_bytes = QueueBounds {
        project_bytes_max: 2 * each,
        ..QueueBounds::NONE
    };
    let three_bytes = QueueBounds {
        bytes_max: 3 * each,
        ..QueueBounds::NONE
    };
    for no_room in [
        QueueBounds {
            project_bytes_max: each - 1,
            ..QueueBounds::NONE
        },
        QueueBounds {
            bytes_max: each - 1,
            ..QueueBounds::NONE
        },
    ] {
        let never = bounded(9, "three", no_room).await;
        assert_eq!(refusal(never), Some(ExceededQuota::Task));
    }
    assert_eq!(refusal(bounded(2, "one", two_bytes).await), None);
    let over = bounded(3, "one", two_bytes).await;
    assert_eq!(refusal(over), Some(ExceededQuota::ProjectBytes));
    assert_eq!(
        refusal(bounded(3, "one", two_tasks).await),
        Some(ExceededQuota::ProjectTasks)
    );
    assert!(stores.tasks.get("one", id(3)).await.unwrap().is_none());
    assert_eq!(refusal(bounded(3, "two", three_bytes).await), None);
    assert_eq!(
        refusal(bounded(4, "two", three_bytes).await),
        Some(ExceededQuota::Bytes)
    );
    // Ended tasks count as well, until they are deleted.
    stores.cancel("one", 1, RETENTION_MS).await;
    assert_eq!(
        refusal(bounded(5, "one", two_tasks).await),
        Some(ExceededQuota::ProjectTasks)
    );
    stores.tasks.delete("one", id(1)).await.unwrap();
    assert_eq!(refusal(bounded(5, "one", two_tasks).await), None);
}

/// Fails only tasks that no worker has claimed yet, oldest first, and only if there is a limit.
pub async fn a_task_that_waits_too_long_expires(harness: &impl Harness) {
    let stores = harness.open("store").await;
    for number in [0, 1, 5_000] {
        stores.clock.set(NOW + number);
        stores.submit(number, "one").await;
    }
    stores.clock.set(NOW);
    let claim = stores.claim_one().await;
    let release = stores
        .work
        .release(&claim.lease, crate::ReleasedAttempt::Forgiven);
    release.await.unwrap();
    let bounded = |now_ms| SweepRequest {
        waiting_ms_max: Some(4_000),
        ..sweep_at(now_ms)
    };
    assert_eq!(stores.sweep_by(bounded(NOW + 4_000)).await.waited, 0);
    assert_eq!(stores.sweep(NOW + 4_001).await.waited, 0);
    assert_eq!(stores.sweep_by(bounded(NOW + 4_001)).await.waited, 1);
    match &stores.task("one", 1).await.state {
        TaskState::Failed(failure) => assert_eq!(failure.code, FailureCode::TaskExpired.as_str()),
        other => panic!("{other:?}"),
    }
    assert_eq!(stores.sweep(NOW + 1_000_000).await.waited, 0);
    let waiting = [stores.claim_one().await, stores.claim_one().await];
    assert_eq!(waiting.map(|claim| claim.task.id), [id(0), id(5_000)]);
}

/// After an outage of the store, running tasks get time for their overdue renewals.
pub async fn a_sweep_may_spare_the_leases(harness: &impl Harness) {
    let stores = harness.open("store").await;
    stores.submit(1, "one").await;
    stores.claim_one().await;
    let sparing = SweepRequest {
        spares_leases: true,
        ..sweep_at(EXPIRY)
    };
    assert_eq!(stores.sweep_by(sparing).await.requeued, 0);
    assert_eq!(stores.sweep(EXPIRY).await.requeued, 1);
}

/// An ended task loses the URLs of its references, unless a final may need them. Their kinds and
/// number stay until it expires.
pub async fn an_ended_task_keeps_no_addresses(harness: &impl Harness) {
    let stores = harness.open("store").await;
    let mut draft = with_image(2);
    draft.spec.draft = true;
    stores
        .submit_all([with_image(1), draft, with_image(3)])
        .await;
    stores.fetch_all().await;
    for claim in stores.claim(2).await {
        let done = stores
            .work
            .finish(&claim.lease, Ok(artifact("x")), RETENTION_MS);
        done.await.unwrap();
    }
    stores.cancel("one", 3, RETENTION_MS).await;
    for (number, keeps) in [(1, false), (2, true), (3, false)] {
        let spec = stores.task("one", number).await.spec.clone();
        let asked = with_image(number).spec;
        let mut expected = asked.inputs.clone();
        if !keeps {
            expected.clear_urls();
        }
        assert_eq!(spec.inputs, expected, "{number}");
        assert_eq!(
            (&spec.prompt, &spec.negative_prompt),
            (&asked.prompt, &asked.negative_prompt)
        );
    }
    stores.sweep(EXPIRY).await;
    let expired = stores.task("one", 2).await;
    assert_eq!(
        (&*expired.spec.prompt, &expired.spec.negative_prompt),
        ("", &None)
    );
}
