//! Workers: claims, fairness, fencing.

use std::collections::HashSet;

use kinora_contract::{FailureCode, Status, TaskPhase, TaskState};

use super::Harness;
use super::bench::{Bench, heard};
use super::fixtures::{
    LEASE_MS, MODELS, NOW, RETENTION_MS, artifact, cancelled, claiming, id, of_model, renewal,
    task, with_images,
};
use crate::{ClaimRequest, Lease, LeaseLost, ReleasedAttempt, StoreError};

fn is_lost(result: &Result<(), StoreError>, how: LeaseLost) -> bool {
    matches!(result, Err(StoreError::LeaseLost(lost)) if *lost == how)
}

/// The claim returns the new state of the task, and everybody sees it.
pub async fn a_claim_marks_the_task_and_counts_the_attempt(harness: &impl Harness) {
    let stores = harness.open("store").await;
    assert!(stores.claim(5).await.is_empty());
    stores.submit(1, "one").await;
    assert!(stores.claim(0).await.is_empty());
    let claim = stores.claim_one().await;
    assert_eq!(
        (claim.task.state.clone(), claim.task.attempt),
        (TaskState::Running, 1)
    );
    assert_eq!(
        (claim.task.started_at_ms, claim.lease.task),
        (Some(NOW), id(1))
    );
    let stored = stores.task("one", 1).await;
    assert_eq!(*stored, claim.task);
    assert_eq!(
        (stored.status(), stores.position(1).await),
        (Some(Status::InProgress), None)
    );
    stores.check(&claim.lease).await.unwrap();
    assert!(stores.claim(5).await.is_empty());
}

/// This includes claims of the same task.
pub async fn tokens_grow_with_every_claim(harness: &impl Harness) {
    let stores = harness.open("store").await;
    let mut last = 0;
    for number in 0..3 {
        stores.submit(number, "one").await;
    }
    for _ in 0..4 {
        let claims = stores.claim(2).await;
        for claim in &claims {
            assert!(claim.lease.token > last);
            last = claim.lease.token;
        }
        stores
            .work
            .release(&claims[0].lease, ReleasedAttempt::Forgiven)
            .await
            .unwrap();
        stores
            .work
            .release(&claims[1].lease, ReleasedAttempt::Forgiven)
            .await
            .unwrap();
    }
}

/// A worker without the model ignores its tasks.
pub async fn only_served_models_are_claimed(harness: &impl Harness) {
    let stores = harness.open("store").await;
    for (number, model) in [(1, MODELS[0]), (2, MODELS[1]), (3, MODELS[0])] {
        stores.submit_all([of_model(number, "one", model)]).await;
    }
    let of = |models: &[&str]| ClaimRequest {
        models: models.iter().copied().map(str::to_owned).collect(),
        ..claiming(9)
    };
    assert!(stores.work.claim(of(&[])).await.unwrap().is_empty());
    assert!(stores.work.claim(of(&["other"])).await.unwrap().is_empty());
    let claims = stores.work.claim(of(&[MODELS[1], "other"])).await.unwrap();
    assert_eq!(
        claims.iter().map(|claim| claim.task.id).collect::<Vec<_>>(),
        [id(2)]
    );
    let claims = stores.work.claim(of(&MODELS)).await.unwrap();
    assert_eq!(
        claims.iter().map(|claim| claim.task.id).collect::<Vec<_>>(),
        [id(1), id(3)]
    );
}

/// One whose references are missing is none, nor one of another model.
pub async fn a_claimable_task_is_seen_until_it_is_claimed(harness: &impl Harness) {
    let stores = harness.open("store").await;
    let sees = async |models: &[&str]| {
        let request = ClaimRequest {
            models: models.iter().copied().map(str::to_owned).collect(),
            ..claiming(1)
        };
        stores.work.has_claimable(&request).await.unwrap()
    };
    let [first, second] = MODELS;
    stores.submit_all([with_images(1, "one", 1)]).await;
    assert!(!sees(&MODELS).await, "its references are missing");
    stores
        .submit_all([of_model(2, "one", second), of_model(3, "two", second)])
        .await;
    assert!(!sees(&[]).await && !sees(&[first, "other"]).await);
    assert!(sees(&[second]).await && sees(&["other", second]).await);
    let claim = stores.claim_one().await;
    assert!(sees(&[second]).await, "there is another one");
    stores.claim_one().await;
    assert!(!sees(&MODELS).await);
    let released = stores
        .work
        .release(&claim.lease, ReleasedAttempt::Forgiven)
        .await;
    released.unwrap();
    assert!(sees(&[second]).await);
}

/// The project with one task is second at the latest; ties go to the older task.
pub async fn a_thousand_tasks_do_not_starve_one(harness: &impl Harness) {
    let stores = harness.open("store").await;
    let many = (0..1_000).map(|number| {
        let (tasks, new) = (stores.tasks.clone(), task(number, "many"));
        tokio::spawn(async move { tasks.insert(new).await.unwrap() })
    });
    for one in many.collect::<Vec<_>>() {
        one.await.unwrap();
    }
    stores.submit(5_000, "single").await;
    let first = stores.claim_one().await;
    assert_eq!(first.task.project, "many");
    assert_eq!(stores.claim_one().await.task.project, "single");
    stores.submit(5_001, "single").await;
    stores.submit(5_002, "third").await;
    let next: Vec<_> = stores
        .claim(4)
        .await
        .into_iter()
        .map(|one| one.task.project)
        .collect();
    assert_eq!(next, ["third", "many", "single", "many"]);
}

/// With one worker nothing runs at the time of a request: then the project that was not served is
/// next.
pub async fn projects_take_turns_when_nothing_runs(harness: &impl Harness) {
    let stores = harness.open("store").await;
    for number in 0..4 {
        stores.submit(number, "many").await;
    }
    stores.submit(4, "single").await;
    stores.submit(5, "third").await;
    let mut served = Vec::new();
    for _ in 0..6 {
        let claim = stores.claim_one().await;
        let outcome = Err(FailureCode::GenerationFailed.into());
        let finished = stores.work.finish(&claim.lease, outcome, RETENTION_MS);
        finished.await.unwrap();
        served.push(claim.task.project);
    }
    assert_eq!(served, ["many", "single", "third", "many", "many", "many"]);
    // A project keeps its place although it has no tasks for a while.
    stores.submit(6, "many").await;
    stores.submit(7, "single").await;
    assert_eq!(stores.claim_one().await.task.project, "single");
}

/// Earlier claims and returns do not change this order.
pub async fn within_a_project_the_oldest_is_first(harness: &impl Harness) {
    let stores = harness.open("store").await;
    for number in 0..10 {
        stores.submit(number, "one").await;
    }
    for claim in stores.claim(4).await.into_iter().rev() {
        stores
            .work
            .release(&claim.lease, ReleasedAttempt::Forgiven)
            .await
            .unwrap();
    }
    let order: Vec<_> = stores
        .claim(10)
        .await
        .into_iter()
        .map(|claim| claim.task.id)
        .collect();
    assert_eq!(order, (0..10).map(id).collect::<Vec<_>>());
}

/// Every task has one holder.
pub async fn no_task_is_claimed_twice_by_concurrent_workers(harness: &impl Harness) {
    let stores = harness.open("store").await;
    for number in 0..50 {
        stores
            .submit(number, if number % 3 == 0 { "one" } else { "two" })
            .await;
    }
    let workers = (0..16).map(|_| {
        let stores = stores.clone();
        tokio::spawn(async move { stores.claim(4).await })
    });
    let (mut tasks, mut tokens) = (HashSet::new(), HashSet::new());
    for worker in workers.collect::<Vec<_>>() {
        for claim in worker.await.unwrap() {
            assert!(tasks.insert(claim.task.id), "claimed twice");
            assert!(tokens.insert(claim.lease.token), "a token given out twice");
        }
    }
    assert_eq!(tasks.len(), 50);
}

/// Only completed tasks have 100.
pub async fn progress_never_falls_and_a_renewal_never_completes(harness: &impl Harness) {
    let stores = harness.open("store").await;
    stores.submit(1, "one").await;
    let claim = stores.claim_one().await;
    for (reported, shown) in [(10, 10), (5, 10), (99, 99), (100, 99), (255, 99), (0, 99)] {
        stores.renew(&claim.lease, renewal(reported)).await.unwrap();
        assert_eq!(stores.task("one", 1).await.progress, shown);
    }
    let mut named = renewal(1);
    named.engine = Some("storyboard/1".to_owned());
    stores.renew(&claim.lease, named).await.unwrap();
    stores.renew(&claim.lease, renewal(1)).await.unwrap();
    assert_eq!(
        stores.task("one", 1).await.engine.as_deref(),
        Some("storyboard/1")
    );
    stores
        .work
        .release(&claim.lease, ReleasedAttempt::Forgiven)
        .await
        .unwrap();
    let again = stores.claim_one().await.task;
    assert_eq!((again.progress, again.started_at_ms), (99, Some(NOW)));
}

/// The token is stale once the task went to another worker or was returned, or if it never belonged
/// to this worker.
pub async fn a_stale_token_changes_nothing(harness: &impl Harness) {
    let stores = harness.open("store").await;
    stores.submit(1, "one").await;
    let old = stores.claim_one().await.lease;
    stores.sweep(NOW + LEASE_MS).await;
    let waiting = stores.task("one", 1).await;
    let current = stores.claim_one().await.lease;
    let running = stores.task("one", 1).await;
    assert_eq!(
        (waiting.state.phase(), running.attempt),
        (TaskPhase::Waiting, 2)
    );

    let made_up = Lease {
        task: id(1),
        token: current.token + 1,
    };
    for stale in [&old, &made_up] {
        for result in [
            stores.check(stale).await,
            stores.renew(stale, renewal(50)).await,
            stores.work.release(stale, ReleasedAttempt::Forgiven).await,
            stores
                .work
                .finish(stale, Ok(artifact("stale")), RETENTION_MS)
                .await,
            stores
                .work
                .finish(stale, Err(cancelled()), RETENTION_MS)
                .await,
        ] {
            assert!(is_lost(&result, LeaseLost::Superseded), "{result:?}");
        }
        assert_eq!(stores.task("one", 1).await, running);
    }
    stores
        .renew(&current, renewal(50))
        .await
        .expect("the current lease holds");
    let unknown = Lease {
        task: id(99),
        token: 1,
    };
    assert!(is_lost(&stores.check(&unknown).await, LeaseLost::Withdrawn));
    assert!(is_lost(
        &stores.renew(&unknown, renewal(1)).await,
        LeaseLost::Withdrawn
    ));
}

/// Completed or failed, it is never written again.
pub async fn a_finished_task_stays_as_it_is(harness: &impl Harness) {
    let stores = harness.open("store").await;
    stores.submit(1, "one").await;
    stores.submit(2, "one").await;
    let claims = stores.claim(2).await;
    stores.clock.advance(5);
    let failure = FailureCode::OutOfMemory.into();
    for (claim, outcome) in claims.iter().zip([Ok(artifact("first")), Err(failure)]) {
        let finish = stores.work.finish(&claim.lease, outcome, RETENTION_MS);
        finish.await.unwrap();
    }
    let (done, failed) = (stores.task("one", 1).await, stores.task("one", 2).await);
    assert_eq!(
        done.state,
        TaskState::Completed(Box::new(artifact("first")))
    );
    assert_eq!((done.progress, done.finished_at_ms), (100, Some(NOW + 5)));
    assert_eq!(done.expires_at_ms, Some(NOW + 5 + RETENTION_MS));
    assert_eq!(
        failed.state,
        TaskState::Failed(FailureCode::OutOfMemory.into())
    );
    for claim in &claims {
        let second = Ok(artifact("second"));
        for result in [
            stores.check(&claim.lease).await,
            stores.renew(&claim.lease, renewal(50)).await,
            stores
                .work
                .release(&claim.lease, ReleasedAttempt::Forgiven)
                .await,
            stores.work.finish(&claim.lease, second, RETENTION_MS).await,
        ] {
            assert!(is_lost(&result, LeaseLost::Superseded), "{result:?}");
        }
    }
    stores.sweep(NOW + LEASE_MS).await;
    assert_eq!(stores.task("one", 1).await, done);
    assert_eq!(stores.task("one", 2).await, failed);
}

/// The counter moves for events that a worker waits for.
pub async fn workers_hear_of_new_work_and_of_withdrawn_work(harness: &impl Harness) {
    let stores = harness.open("store").await;
    let (mut work, mut withdrawn) = (stores.work.work_hints(), stores.work.withdrawals());
    work.mark_unchanged();
    stores.submit(1, "one").await;
    heard(&mut work, "a submit").await;
    let claim = stores.claim_one().await;
    work.mark_unchanged();
    let release = stores.work.release(&claim.lease, ReleasedAttempt::Forgiven);
    release.await.unwrap();
    heard(&mut work, "a release").await;
    stores.claim_one().await;
    work.mark_unchanged();
    stores.sweep(NOW + LEASE_MS).await;
    heard(&mut work, "a requeue").await;
    stores.claim_one().await;
    withdrawn.mark_unchanged();
    stores.cancel("one", 1, RETENTION_MS).await;
    heard(&mut withdrawn, "a cancel").await;
    stores.submit(2, "one").await;
    stores.claim_one().await;
    withdrawn.mark_unchanged();
    stores.tasks.delete("one", id(2)).await.unwrap();
    heard(&mut withdrawn, "a delete").await;
}
