//! Tasks with references: fetched before they are claimed, decided while they run, swept when done.

use kinora_contract::{FailureCode, FrameSize, Phase, Seconds, Size, State, TaskId};

use super::Harness;
use super::fixtures::{
    Bench, EXPIRY, LEASE_MS, MODELS, NOW, artifact, cancelled, id, renewed, task, with_images,
};
use crate::{
    Attempt, Fetch, FetchRequest, Fetched, NewTask, Renewed, StoreError, Stores, reference_keys,
};

async fn insert(stores: &Stores, tasks: impl IntoIterator<Item = NewTask>) {
    for new in tasks {
        stores.tasks.insert(new).await.unwrap();
    }
}

fn numbers(fetches: &[Fetch]) -> Vec<TaskId> {
    fetches.iter().map(|fetch| fetch.task.id).collect()
}

fn is_lost(settled: &Result<(), StoreError>) -> bool {
    matches!(settled, Err(StoreError::LeaseLost(_)))
}

/// Younger tasks go before it, and it goes before them once it can.
pub async fn a_task_is_claimed_only_when_its_references_are_at_hand(harness: &impl Harness) {
    let stores = harness.open("store").await;
    let tasks = [with_images(1, "one", 1), task(2, "one"), task(3, "two")];
    insert(&stores, tasks).await;
    let claims = stores.claim(9).await;
    let claimed: Vec<_> = claims.iter().map(|claim| claim.task.id).collect();
    assert_eq!(claimed, [id(2), id(3)]);
    let fetches = stores.take(9).await;
    assert_eq!(numbers(&fetches), [id(1)]);
    assert!(stores.claim(9).await.is_empty(), "it is only being fetched");
    let mut changes = stores.tasks.changes();
    changes.mark_unchanged();
    let settled = stores.tasks.settle_fetch(&fetches[0], Fetched::AtHand);
    settled.await.unwrap();
    assert!(changes.has_changed().unwrap(), "workers hear of it");
    assert_eq!(stores.claim_one().await.task.id, id(1));
}

/// The project with the fewest under way first, then the one whose last fetch is longest ago; nobody takes all.
pub async fn references_are_fetched_by_projects_in_turn(harness: &impl Harness) {
    let stores = harness.open("store").await;
    insert(
        &stores,
        (0..20).map(|number| with_images(number, "many", 3)),
    )
    .await;
    insert(
        &stores,
        [with_images(20, "single", 1), with_images(21, "third", 1)],
    )
    .await;
    assert_eq!(numbers(&stores.take(1).await), [id(0)]);
    assert_eq!(numbers(&stores.take(1).await), [id(20)]);
    let rest = stores.take(9).await;
    assert_eq!(numbers(&rest), [id(21), id(1)], "two places are all it has");
    assert!(stores.take(9).await.is_empty());
    insert(&stores, [with_images(22, "fourth", 1)]).await;
    assert_eq!(numbers(&stores.take(9).await), [id(22)]);
    let settled = stores.tasks.settle_fetch(&rest[1], Fetched::AtHand);
    settled.await.unwrap();
    assert_eq!(numbers(&stores.take(9).await), [id(2)]);
}

/// A second answer, a late one and one for a task that has ended change nothing.
pub async fn a_fetch_is_leased_and_settled_once(harness: &impl Harness) {
    let stores = harness.open("store").await;
    let tasks = &stores.tasks;
    insert(
        &stores,
        [with_images(1, "one", 1), with_images(2, "one", 1)],
    )
    .await;
    let fetches = stores.take(2).await;
    let failed = || Fetched::Failed {
        failure: FailureCode::ReferenceTimeout.into(),
        now_ms: NOW + 1,
        expires_at_ms: EXPIRY,
    };
    tasks.settle_fetch(&fetches[0], failed()).await.unwrap();
    let task = stores.view("one", 1).await.task;
    let failure = FailureCode::ReferenceTimeout.into();
    assert_eq!(task.state, State::Failed(failure));
    assert_eq!(
        (task.started_at_ms, task.expires_at_ms),
        (None, Some(EXPIRY))
    );
    assert!(is_lost(
        &tasks.settle_fetch(&fetches[0], Fetched::AtHand).await
    ));
    let mut changes = tasks.changes();
    changes.mark_unchanged();
    let cancel = tasks.cancel("one", id(2), cancelled(), NOW, EXPIRY);
    cancel.await.unwrap();
    assert!(
        changes.has_changed().unwrap(),
        "the fetch stage hears of it"
    );
    assert!(is_lost(
        &tasks.settle_fetch(&fetches[1], Fetched::AtHand).await
    ));

    insert(&stores, [with_images(3, "one", 1)]).await;
    let request = |steady_ms| FetchRequest {
        models: MODELS.map(str::to_owned).into(),
        count: 9,
        project_max: 9,
        steady_ms,
        lease_ms: 1_000,
    };
    let first = tasks.take_fetches(request(NOW)).await.unwrap();
    assert!(
        tasks
            .take_fetches(request(NOW + 999))
            .await
            .unwrap()
            .is_empty()
    );
    let second = tasks.take_fetches(request(NOW + 1_000)).await.unwrap();
    assert_eq!((numbers(&second), second[0].tries), (vec![id(3)], 2));
    assert!(is_lost(&tasks.settle_fetch(&first[0], failed()).await));
    let third = tasks.take_fetches(request(NOW + 2_000)).await.unwrap();
    assert_eq!(numbers(&third), [id(3)]);
    assert!(is_lost(
        &tasks.settle_fetch(&second[0], Fetched::AtHand).await
    ));
    tasks
        .settle_fetch(&third[0], Fetched::AtHand)
        .await
        .unwrap();
    assert_eq!(stores.claim_one().await.task.id, id(3));
}

/// A fault of ours costs a task nothing but time.
pub async fn a_fetch_given_back_is_taken_again_after_its_pause(harness: &impl Harness) {
    let stores = harness.open("store").await;
    insert(&stores, [with_images(1, "one", 1)]).await;
    let fetches = stores.take(1).await;
    let back = Fetched::Back {
        not_before_ms: NOW + 500,
    };
    stores.tasks.settle_fetch(&fetches[0], back).await.unwrap();
    assert!(stores.take(1).await.is_empty());
    assert!(stores.claim(1).await.is_empty());
    let later = FetchRequest {
        models: MODELS.map(str::to_owned).into(),
        count: 1,
        project_max: 1,
        steady_ms: NOW + 500,
        lease_ms: LEASE_MS,
    };
    let again = stores.tasks.take_fetches(later).await.unwrap();
    assert_eq!((numbers(&again), again[0].tries), (vec![id(1)], 2));
}

/// It is durable; what was under way is taken again.
pub async fn what_is_at_hand_is_not_fetched_again_after_a_restart(harness: &impl Harness) {
    let stores = harness.open("store").await;
    insert(
        &stores,
        [1, 2, 3].map(|number| with_images(number, "one", 1)),
    )
    .await;
    let fetches = stores.take(2).await;
    let settled = stores.tasks.settle_fetch(&fetches[0], Fetched::AtHand);
    settled.await.unwrap();
    let claim = stores.claim_one().await;
    stores
        .tasks
        .release(&claim.lease, Attempt::Forgiven)
        .await
        .unwrap();
    drop(stores);
    let stores = harness.open("store").await;
    assert_eq!(numbers(&stores.take(9).await), [id(2), id(3)]);
    let claims = stores.claim(9).await;
    assert_eq!(claims.len(), 1);
    assert_eq!(claims[0].task.id, id(1));
}

/// The run gives its slot back, and the attempt does not count.
pub async fn lost_references_are_fetched_again(harness: &impl Harness) {
    let stores = harness.open("store").await;
    insert(&stores, [with_images(1, "one", 1), task(2, "one")]).await;
    stores.fetch_all().await;
    let claims = stores.claim(2).await;
    for claim in &claims {
        let given_back = stores.tasks.release(&claim.lease, Attempt::ReferencesLost);
        given_back.await.unwrap();
    }
    let waiting = stores.view("one", 1).await.task;
    assert_eq!(
        (waiting.state.phase(), waiting.attempt),
        (Phase::Waiting, 0)
    );
    let free = stores.claim(9).await;
    assert_eq!(free.len(), 1, "one has no references to lose");
    assert_eq!(free[0].task.id, id(2));
    drop(stores);
    let stores = harness.open("store").await;
    stores.fetch_all().await;
    assert_eq!(stores.claim(9).await.len(), 2);
}

/// They are of no use to anybody then; those of a completed draft still serve its final.
pub async fn references_are_swept_when_their_task_has_ended(harness: &impl Harness) {
    let stores = harness.open("store").await;
    let mut draft = with_images(3, "one", 1);
    draft.spec.draft = true;
    for new in [with_images(1, "one", 2), with_images(2, "one", 1), draft] {
        stores.tasks.insert(new).await.unwrap();
    }
    stores.fetch_all().await;
    let tasks = &stores.tasks;
    let [one, two, draft]: [_; 3] = stores.claim(3).await.try_into().unwrap();
    let keys = |claim: &crate::Claim| reference_keys(&claim.task);
    assert_eq!(keys(&one).len(), 2);
    assert!(stores.sweep(NOW).await.files.is_empty());
    stores.complete(&one).await.unwrap();
    assert_eq!(stores.sweep(NOW).await.files, keys(&one));
    tasks.forget_files(&keys(&one)).await.unwrap();
    tasks.delete("one", two.task.id).await.unwrap();
    let mut wanted = two.lease.file_keys().to_vec();
    wanted.extend(keys(&two));
    assert_eq!(stores.sweep(NOW).await.files, wanted);
    tasks.forget_files(&wanted).await.unwrap();
    tasks
        .finish(&draft.lease, Ok(artifact("draft")), NOW, NOW + 10)
        .await
        .unwrap();
    assert!(stores.sweep(NOW).await.files.is_empty());
    let swept = stores.sweep(NOW + 10).await;
    assert!(swept.files.ends_with(&keys(&draft)), "{swept:?}");
}

/// Clients see it at once, and a rerun starts from it.
pub async fn what_is_decided_of_a_spec_is_kept(harness: &impl Harness) {
    let stores = harness.open("store").await;
    let mut new = with_images(1, "one", 1);
    new.spec.seconds = Seconds::Auto;
    stores.tasks.insert(new).await.unwrap();
    stores.fetch_all().await;
    let claim = stores.claim_one().await;
    let mut spec = claim.task.spec.clone();
    spec.seconds = Seconds::Fixed(9);
    spec.frame = FrameSize::Fixed(Size::new(480, 480));
    let decided = Renewed {
        decided: Some(Box::new(spec.clone())),
        ..renewed(3)
    };
    stores.tasks.renew(&claim.lease, decided).await.unwrap();
    stores.tasks.renew(&claim.lease, renewed(4)).await.unwrap();
    assert_eq!(stores.view("one", 1).await.task.spec, spec);
    drop(stores);
    let stores = harness.open("store").await;
    stores.sweep(NOW + 3 * LEASE_MS).await;
    assert_eq!(stores.claim_one().await.task.spec, spec);
}
