//! Workers: claims, fairness, fencing.

use std::collections::HashSet;

use kinora_contract::{FailureCode, Phase, State, Status};

use super::Harness;
use super::fixtures::{
    Bench, EXPIRY, LEASE_MS, MODELS, NOW, artifact, cancelled, id, renewed, spec, sweep_at, task,
};
use crate::{Attempt, ClaimRequest, Lease, LeaseLost, NewTask, StoreError};

fn is_lost(result: &Result<(), StoreError>, how: LeaseLost) -> bool {
    matches!(result, Err(StoreError::LeaseLost(lost)) if *lost == how)
}

/// The claim says how the task stands, and everybody sees it so.
pub async fn a_claim_marks_the_task_and_counts_the_attempt(harness: &impl Harness) {
    let stores = harness.open("store").await;
    assert!(stores.claim(5).await.is_empty());
    stores.submit(1, "one").await;
    assert!(stores.claim(0).await.is_empty());
    let claim = stores.claim_one().await;
    assert_eq!(
        (claim.task.state.clone(), claim.task.attempt),
        (State::Running, 1)
    );
    assert_eq!(
        (claim.task.started_at_ms, claim.lease.task),
        (Some(NOW), id(1))
    );
    let view = stores.view("one", 1).await;
    assert_eq!(*view.task, claim.task);
    assert_eq!(
        (view.task.status(), view.queue_position),
        (Some(Status::InProgress), None)
    );
    stores.tasks.check(&claim.lease).await.unwrap();
    assert!(stores.claim(5).await.is_empty());
}

/// Also of the same task.
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
            .tasks
            .release(&claims[0].lease, Attempt::Forgiven)
            .await
            .unwrap();
        stores
            .tasks
            .release(&claims[1].lease, Attempt::Forgiven)
            .await
            .unwrap();
    }
}

/// A worker without the model leaves its tasks alone.
pub async fn only_served_models_are_claimed(harness: &impl Harness) {
    let stores = harness.open("store").await;
    for (number, model) in [(1, MODELS[0]), (2, MODELS[1]), (3, MODELS[0])] {
        stores
            .tasks
            .insert(NewTask {
                spec: spec(model),
                ..task(number, "one")
            })
            .await
            .unwrap();
    }
    let of = |models: &[&str]| ClaimRequest {
        worker: "worker".to_owned(),
        models: models.iter().copied().map(str::to_owned).collect(),
        count: 9,
        slots: usize::MAX,
        project_slots_max: 0,
        attempts_max: 3,
        now_ms: NOW,
        steady_ms: NOW,
        lease_ms: LEASE_MS,
    };
    assert!(stores.tasks.claim(of(&[])).await.unwrap().is_empty());
    assert!(stores.tasks.claim(of(&["other"])).await.unwrap().is_empty());
    let claims = stores.tasks.claim(of(&[MODELS[1], "other"])).await.unwrap();
    assert_eq!(
        claims.iter().map(|claim| claim.task.id).collect::<Vec<_>>(),
        [id(2)]
    );
    let claims = stores.tasks.claim(of(&MODELS)).await.unwrap();
    assert_eq!(
        claims.iter().map(|claim| claim.task.id).collect::<Vec<_>>(),
        [id(1), id(3)]
    );
}

/// The project with one task is served second at the latest; ties go to the older task.
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

/// With one worker nothing runs whenever it asks: then it is the turn of who was not served.
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
        let finished = stores.tasks.finish(&claim.lease, outcome, NOW, EXPIRY);
        finished.await.unwrap();
        served.push(claim.task.project);
    }
    assert_eq!(served, ["many", "single", "third", "many", "many", "many"]);
    // A project keeps its place although nothing of it is left for a while.
    stores.submit(6, "many").await;
    stores.submit(7, "single").await;
    assert_eq!(stores.claim_one().await.task.project, "single");
}

/// Whatever was claimed and given back before.
pub async fn within_a_project_the_oldest_is_first(harness: &impl Harness) {
    let stores = harness.open("store").await;
    for number in 0..10 {
        stores.submit(number, "one").await;
    }
    for claim in stores.claim(4).await.into_iter().rev() {
        stores
            .tasks
            .release(&claim.lease, Attempt::Forgiven)
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

/// 100 is for completed tasks.
pub async fn progress_never_falls_and_a_renewal_never_completes(harness: &impl Harness) {
    let stores = harness.open("store").await;
    stores.submit(1, "one").await;
    let claim = stores.claim_one().await;
    for (reported, shown) in [(10, 10), (5, 10), (99, 99), (100, 99), (255, 99), (0, 99)] {
        stores
            .tasks
            .renew(&claim.lease, renewed(reported))
            .await
            .unwrap();
        assert_eq!(stores.view("one", 1).await.task.progress, shown);
    }
    let mut named = renewed(1);
    named.engine = Some("storyboard/1".to_owned());
    stores.tasks.renew(&claim.lease, named).await.unwrap();
    stores.tasks.renew(&claim.lease, renewed(1)).await.unwrap();
    assert_eq!(
        stores.view("one", 1).await.task.engine.as_deref(),
        Some("storyboard/1")
    );
    stores
        .tasks
        .release(&claim.lease, Attempt::Forgiven)
        .await
        .unwrap();
    let again = stores.claim_one().await;
    assert_eq!(
        (again.task.progress, again.task.started_at_ms),
        (99, Some(NOW))
    );
}

/// After the task went to another worker, was given back, or never was this one's.
pub async fn a_stale_token_changes_nothing(harness: &impl Harness) {
    let stores = harness.open("store").await;
    stores.submit(1, "one").await;
    let old = stores.claim_one().await.lease;
    stores.sweep(NOW + LEASE_MS).await;
    let waiting = stores.view("one", 1).await;
    let current = stores.claim_one().await.lease;
    let running = stores.view("one", 1).await;
    assert_eq!(
        (waiting.task.state.phase(), running.task.attempt),
        (Phase::Waiting, 2)
    );

    let made_up = Lease {
        task: id(1),
        token: current.token + 1,
    };
    for stale in [&old, &made_up] {
        for result in [
            stores.tasks.check(stale).await,
            stores.tasks.renew(stale, renewed(50)).await,
            stores.tasks.release(stale, Attempt::Forgiven).await,
            stores
                .tasks
                .finish(stale, Ok(artifact("stale")), NOW, EXPIRY)
                .await,
            stores
                .tasks
                .finish(stale, Err(cancelled()), NOW, EXPIRY)
                .await,
        ] {
            assert!(is_lost(&result, LeaseLost::Superseded), "{result:?}");
        }
        assert_eq!(*stores.view("one", 1).await.task, *running.task);
    }
    stores
        .tasks
        .renew(&current, renewed(50))
        .await
        .expect("the current lease holds");
    let unknown = Lease {
        task: id(99),
        token: 1,
    };
    assert!(is_lost(
        &stores.tasks.check(&unknown).await,
        LeaseLost::Withdrawn
    ));
    assert!(is_lost(
        &stores.tasks.renew(&unknown, renewed(1)).await,
        LeaseLost::Withdrawn
    ));
}

/// Completed or failed, it is not written again.
pub async fn a_finished_task_stays_as_it_is(harness: &impl Harness) {
    let stores = harness.open("store").await;
    stores.submit(1, "one").await;
    stores.submit(2, "one").await;
    let claims = stores.claim(2).await;
    let tasks = &stores.tasks;
    tasks
        .finish(&claims[0].lease, Ok(artifact("first")), NOW + 5, EXPIRY)
        .await
        .unwrap();
    let failure = FailureCode::OutOfMemory.into();
    tasks
        .finish(&claims[1].lease, Err(failure), NOW + 5, EXPIRY)
        .await
        .unwrap();
    let (done, failed) = (
        stores.view("one", 1).await.task,
        stores.view("one", 2).await.task,
    );
    assert_eq!(done.state, State::Completed(Box::new(artifact("first"))));
    assert_eq!((done.progress, done.finished_at_ms), (100, Some(NOW + 5)));
    assert_eq!(done.expires_at_ms, Some(EXPIRY));
    assert_eq!(failed.state, State::Failed(FailureCode::OutOfMemory.into()));
    for claim in &claims {
        for result in [
            tasks.check(&claim.lease).await,
            tasks.renew(&claim.lease, renewed(50)).await,
            tasks.release(&claim.lease, Attempt::Forgiven).await,
            tasks
                .finish(&claim.lease, Ok(artifact("second")), NOW, EXPIRY)
                .await,
        ] {
            assert!(is_lost(&result, LeaseLost::Superseded), "{result:?}");
        }
    }
    tasks.sweep(sweep_at(NOW + LEASE_MS)).await.unwrap();
    assert_eq!(stores.view("one", 1).await.task, done);
    assert_eq!(stores.view("one", 2).await.task, failed);
}

/// The counter moves for what a worker waits for.
pub async fn workers_hear_of_new_work_and_of_withdrawn_work(harness: &impl Harness) {
    let stores = harness.open("store").await;
    let mut changes = stores.tasks.changes();
    changes.mark_unchanged();
    stores.submit(1, "one").await;
    assert!(changes.has_changed().unwrap(), "a submit");
    let claim = stores.claim_one().await;
    changes.mark_unchanged();
    stores
        .tasks
        .release(&claim.lease, Attempt::Forgiven)
        .await
        .unwrap();
    assert!(changes.has_changed().unwrap(), "a release");
    stores.claim_one().await;
    changes.mark_unchanged();
    stores.sweep(NOW + LEASE_MS).await;
    assert!(changes.has_changed().unwrap(), "a requeue");
    stores.claim_one().await;
    changes.mark_unchanged();
    stores
        .tasks
        .cancel("one", id(1), cancelled(), NOW, EXPIRY)
        .await
        .unwrap();
    assert!(changes.has_changed().unwrap(), "a cancel");
    stores.submit(2, "one").await;
    stores.claim_one().await;
    changes.mark_unchanged();
    stores.tasks.delete("one", id(2)).await.unwrap();
    assert!(changes.has_changed().unwrap(), "a delete");
}
