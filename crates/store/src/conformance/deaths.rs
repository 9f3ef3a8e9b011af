//! Deaths of workers: the attempts that they use up, and the tasks that run alone afterwards.

use kinora_contract::{Clock as _, FailureCode, TaskPhase, TaskState};

use super::bench::Bench;
use super::fixtures::{LEASE_MS, MODELS, RETENTION_MS, claiming, id, of_model, renewal, sweep_at};
use super::{Harness, Site};
use crate::{ClaimRequest, ClaimedTask, LeaseRenewal, ReleasedAttempt, SweepRequest};

/// A worker's claims for these models.
async fn claim(stores: &Site, models: &[&str], attempts_max: u32) -> Vec<ClaimedTask> {
    let request = ClaimRequest {
        models: models.iter().map(|model| (*model).to_owned()).collect(),
        attempts_max,
        ..claiming(4)
    };
    stores.work.claim(request).await.unwrap()
}

/// The worker dies with all of its runs; returns how many tasks waited again, and how many were
/// lost.
async fn die(stores: &Site, attempts_max: u32) -> (u64, u64) {
    let sweep = SweepRequest {
        attempts_max,
        ..sweep_at(stores.clock.now_ms() + LEASE_MS)
    };
    let swept = stores.sweep_by(sweep).await;
    (swept.requeued, swept.lost)
}

async fn attempts(stores: &Site, numbers: std::ops::RangeInclusive<u64>) -> Vec<u32> {
    let mut attempts = Vec::new();
    for number in numbers {
        attempts.push(stores.task("one", number).await.attempt);
    }
    attempts
}

/// A task that kills its worker each time does not fail any neighbour.
pub async fn a_last_attempt_is_made_alone_and_used_up_alone(harness: &impl Harness) {
    let stores = harness.open("store").await;
    for number in 1..=3 {
        stores.submit(number, "one").await;
    }
    for _ in 1..=2 {
        assert_eq!(claim(&stores, &MODELS, 3).await.len(), 3);
        assert_eq!(die(&stores, 3).await, (3, 0));
    }
    let alone = claim(&stores, &MODELS, 3).await;
    assert_eq!(alone.len(), 1);
    assert_eq!((alone[0].task.id, alone[0].task.attempt), (id(1), 3));
    // Nothing beside it, not even new tasks.
    stores.submit(4, "two").await;
    assert!(claim(&stores, &MODELS, 3).await.is_empty());
    assert_eq!(die(&stores, 3).await, (0, 1));
    let lost = stores.task("one", 1).await;
    assert_eq!(
        lost.state,
        TaskState::Failed(FailureCode::WorkerLost.into())
    );
    // The new task may have its turn before its neighbours, which complete one by one.
    for _ in 2..=4 {
        for claim in claim(&stores, &MODELS, 3).await {
            stores.complete(&claim).await.unwrap();
        }
    }
    for (number, project) in [(2, "one"), (3, "one"), (4, "two")] {
        let phase = stores.task(project, number).await.state.phase();
        assert_eq!(phase, TaskPhase::Completed, "{number}");
    }
}

/// Its project waits with such a task; others do not.
pub async fn no_last_attempt_is_made_in_a_process_that_may_be_in_a_crash_loop(
    harness: &impl Harness,
) {
    let stores = harness.open("store").await;
    let young = || ClaimRequest {
        is_settled: false,
        ..claiming(4)
    };
    let claimed = async || {
        let claims = stores.work.claim(young()).await.unwrap();
        claims
            .into_iter()
            .map(|claim| claim.task.id)
            .collect::<Vec<_>>()
    };
    let is_claimable = async || stores.work.has_claimable(&young()).await.unwrap();
    stores.submit(1, "one").await;
    for _ in 1..=2 {
        assert_eq!(claimed().await, [id(1)]);
        assert_eq!(die(&stores, 3).await, (1, 0));
    }
    stores.submit(2, "one").await;
    assert!(!is_claimable().await);
    stores.submit(3, "two").await;
    assert!(is_claimable().await);
    // However many others it completes.
    let other = stores.work.claim(young()).await.unwrap();
    assert_eq!((other.len(), other[0].task.id), (1, id(3)));
    stores.complete(&other[0]).await.unwrap();
    assert!(!is_claimable().await);
    assert_eq!(claimed().await, []);
    let alone = claim(&stores, &MODELS, 3).await;
    assert_eq!((alone.len(), alone[0].task.id), (1, id(1)));
}

/// Its job goes on there, and a later attempt follows it.
pub async fn no_death_counts_against_a_task_that_runs_at_another_server(harness: &impl Harness) {
    let stores = harness.open("store").await;
    stores.submit(1, "one").await;
    for _ in 1..=5 {
        let claims = claim(&stores, &MODELS, 3).await;
        assert_eq!((claims.len(), claims[0].task.attempt), (1, 1));
        let ticket = LeaseRenewal {
            ticket: Some("job 7".into()),
            ..renewal(1)
        };
        stores.renew(&claims[0].lease, ticket).await.unwrap();
        assert_eq!(die(&stores, 3).await, (1, 0));
    }
    let last = claim(&stores, &MODELS, 3).await;
    stores.complete(&last[0]).await.unwrap();
}

/// This holds even for a limit of one attempt.
pub async fn a_last_attempt_with_company_is_forgiven(harness: &impl Harness) {
    let stores = harness.open("store").await;
    for number in 1..=2 {
        stores.submit(number, "one").await;
    }
    assert_eq!(claim(&stores, &MODELS, 1).await.len(), 2);
    assert_eq!(die(&stores, 1).await, (2, 0));
    assert_eq!(attempts(&stores, 1..=2).await, [0, 0]);
    assert_eq!(claim(&stores, &MODELS, 1).await.len(), 1);
    assert_eq!(die(&stores, 1).await, (0, 1));
    let last = claim(&stores, &MODELS, 1).await;
    stores.complete(&last[0]).await.unwrap();
}

/// A crash of an engine's own process is not a death of the worker.
pub async fn attempts_that_broke_do_not_make_a_task_run_alone(harness: &impl Harness) {
    let stores = harness.open("store").await;
    for number in 1..=2 {
        stores.submit(number, "one").await;
    }
    for _ in 1..=2 {
        for claim in claim(&stores, &MODELS, 3).await {
            let released = stores.work.release(&claim.lease, ReleasedAttempt::Counts);
            released.await.unwrap();
        }
    }
    assert_eq!(attempts(&stores, 1..=2).await, [2, 2]);
    assert_eq!(claim(&stores, &MODELS, 3).await.len(), 2);
}

/// Otherwise a busy queue of other models would keep it waiting for ever.
pub async fn a_task_that_is_to_run_alone_holds_back_all_models(harness: &impl Harness) {
    let stores = harness.open("store").await;
    let [own, other] = [[MODELS[0]], [MODELS[1]]];
    stores.submit(1, "one").await;
    let of_other = |number| of_model(number, "one", MODELS[1]);
    for _ in 1..=2 {
        assert_eq!(claim(&stores, &own, 3).await.len(), 1);
        assert_eq!(die(&stores, 3).await, (1, 0));
    }
    stores.submit_all([of_other(2)]).await;
    let busy = claim(&stores, &other, 3).await;
    assert_eq!(busy.len(), 1);
    stores.submit_all([of_other(3)]).await;
    // It waits for the worker to be free, and nothing else starts meanwhile.
    assert!(claim(&stores, &own, 3).await.is_empty());
    assert!(claim(&stores, &other, 3).await.is_empty());
    stores.complete(&busy[0]).await.unwrap();
    let alone = claim(&stores, &own, 3).await;
    assert_eq!(alone.len(), 1);
    assert!(claim(&stores, &other, 3).await.is_empty());
    stores.complete(&alone[0]).await.unwrap();
    let after = claim(&stores, &other, 3).await;
    stores.complete(&after[0]).await.unwrap();
}

/// A worker may make room for one that is to run alone as soon as it runs nothing else, but for nothing beside it.
pub async fn what_may_not_run_beside_others_is_not_claimable(harness: &impl Harness) {
    let stores = harness.open("store").await;
    let [own, other] = [[MODELS[0]], [MODELS[1]]];
    let sees = async |models: &[&str], worker: &str| {
        let request = ClaimRequest {
            worker: worker.to_owned(),
            models: models.iter().map(|model| (*model).to_owned()).collect(),
            ..claiming(1)
        };
        stores.work.has_claimable(&request).await.unwrap()
    };
    let of_other = |number| of_model(number, "one", MODELS[1]);
    stores.submit(1, "one").await;
    for _ in 1..=2 {
        assert_eq!(claim(&stores, &own, 3).await.len(), 1);
        assert_eq!(die(&stores, 3).await, (1, 0));
    }
    stores.submit_all([of_other(2)]).await;
    let busy = claim(&stores, &other, 3).await;
    stores.submit_all([of_other(3)]).await;
    assert!(sees(&own, "worker").await && sees(&other, "worker").await);
    assert!(claim(&stores, &own, 3).await.is_empty());
    // Now the worker gets nothing until it is empty, and then that task.
    assert!(sees(&own, "worker").await && !sees(&other, "worker").await);
    assert!(sees(&other, "another").await);
    stores.complete(&busy[0]).await.unwrap();
    assert!(sees(&own, "worker").await);
    let alone = claim(&stores, &own, 3).await;
    stores.submit(4, "two").await;
    assert!(!sees(&own, "worker").await && !sees(&other, "worker").await);
    assert!(sees(&own, "another").await && sees(&other, "another").await);
    stores.complete(&alone[0]).await.unwrap();
    assert!(sees(&own, "worker").await && sees(&other, "worker").await);
}

/// It is claimed neither beside the worker's other tasks nor beside those of the same request.
pub async fn a_task_that_is_to_run_alone_ends_the_claim_that_comes_to_it(harness: &impl Harness) {
    let stores = harness.open("store").await;
    stores.submit(1, "one").await;
    stores
        .submit_all([of_model(2, "one", MODELS[1]), of_model(3, "one", MODELS[1])])
        .await;
    let first_of_two = ClaimRequest {
        models: vec![MODELS[1].to_owned()],
        ..claiming(1)
    };
    for _ in 1..=2 {
        let claims = stores.work.claim(first_of_two.clone()).await.unwrap();
        assert_eq!(claims[0].task.id, id(2));
        assert_eq!(die(&stores, 3).await, (1, 0));
    }
    for number in [1, 2, 3] {
        let claims = claim(&stores, &MODELS, 3).await;
        let ids: Vec<_> = claims.iter().map(|claim| claim.task.id).collect();
        assert_eq!(ids, [id(number)]);
        assert!(claim(&stores, &MODELS, 3).await.is_empty(), "{number}");
        stores.complete(&claims[0]).await.unwrap();
    }
}

/// A cancel ends its wait, and that of the others for it.
pub async fn a_cancelled_task_holds_back_nobody(harness: &impl Harness) {
    let stores = harness.open("store").await;
    stores.submit(1, "one").await;
    for _ in 1..=2 {
        assert_eq!(claim(&stores, &MODELS, 3).await.len(), 1);
        assert_eq!(die(&stores, 3).await, (1, 0));
    }
    stores.submit_all([of_model(2, "two", MODELS[1])]).await;
    assert_eq!(claim(&stores, &[MODELS[1]], 3).await.len(), 1);
    assert!(claim(&stores, &MODELS, 3).await.is_empty());
    stores.cancel("one", 1, RETENTION_MS).await;
    stores.submit(3, "one").await;
    assert_eq!(claim(&stores, &MODELS, 3).await.len(), 1);
}
