//! Tasks with references: fetched before they are claimed, decided while they run, swept when done.

use kinora_contract::{FailureCode, FrameSize, Size, TaskId, TaskPhase, TaskState, VideoLength};

use super::Harness;
use super::bench::{Bench, heard, is_lost};
use super::fixtures::{
    LEASE_MS, NOW, RETENTION_MS, artifact, fetching, files, id, renewal, task, with_images,
};
use crate::{
    ClaimedTask, FetchReport, FetchRequest, LeaseRenewal, ReferenceFetch, ReleasedAttempt,
    reference_keys,
};

fn numbers(fetches: &[ReferenceFetch]) -> Vec<TaskId> {
    fetches.iter().map(|fetch| fetch.task.id).collect()
}

/// Newer tasks overtake it, and it overtakes them once it is claimable.
pub async fn a_task_is_claimed_only_when_its_references_are_at_hand(harness: &impl Harness) {
    let stores = harness.open("store").await;
    let tasks = [with_images(1, "one", 1), task(2, "one"), task(3, "two")];
    stores.submit_all(tasks).await;
    let claims = stores.claim(9).await;
    let claimed: Vec<_> = claims.iter().map(|claim| claim.task.id).collect();
    assert_eq!(claimed, [id(2), id(3)]);
    let fetches = stores.take(9).await;
    assert_eq!(numbers(&fetches), [id(1)]);
    assert!(stores.claim(9).await.is_empty(), "it is only being fetched");
    let mut work = stores.work.work_hints();
    work.mark_unchanged();
    let settled = stores.work.complete_fetch(&fetches[0], FetchReport::AtHand);
    settled.await.unwrap();
    heard(&mut work, "references at hand").await;
    assert_eq!(stores.claim_one().await.task.id, id(1));
}

/// The project with the fewest fetches in progress first, then the one whose last fetch is longest
/// ago; no project takes all.
pub async fn references_are_fetched_by_projects_in_turn(harness: &impl Harness) {
    let stores = harness.open("store").await;
    stores
        .submit_all((0..20).map(|number| with_images(number, "many", 3)))
        .await;
    stores
        .submit_all([with_images(20, "single", 1), with_images(21, "third", 1)])
        .await;
    assert_eq!(numbers(&stores.take(1).await), [id(0)]);
    assert_eq!(numbers(&stores.take(1).await), [id(20)]);
    let rest = stores.take(9).await;
    assert_eq!(numbers(&rest), [id(21), id(1)], "two places are all it has");
    assert!(stores.take(9).await.is_empty());
    stores.submit_all([with_images(22, "fourth", 1)]).await;
    assert_eq!(numbers(&stores.take(9).await), [id(22)]);
    let settled = stores.work.complete_fetch(&rest[1], FetchReport::AtHand);
    settled.await.unwrap();
    assert_eq!(numbers(&stores.take(9).await), [id(2)]);
}

/// A repeated answer, a late one, and one for an ended task change nothing.
pub async fn a_fetch_is_leased_and_settled_once(harness: &impl Harness) {
    let stores = harness.open("store").await;
    let tasks = [with_images(1, "one", 1), with_images(2, "one", 1)];
    stores.submit_all(tasks).await;
    let fetches = stores.take(2).await;
    let settle =
        async |fetch: &ReferenceFetch, fetched| stores.work.complete_fetch(fetch, fetched).await;
    let failed = || FetchReport::Failed {
        failure: FailureCode::ReferenceTimeout.into(),
        retention_ms: RETENTION_MS,
    };
    stores.clock.advance(1);
    settle(&fetches[0], failed()).await.unwrap();
    let task = stores.task("one", 1).await;
    let failure = FailureCode::ReferenceTimeout.into();
    assert_eq!(task.state, TaskState::Failed(failure));
    assert_eq!(
        [task.started_at_ms, task.finished_at_ms, task.expires_at_ms],
        [None, Some(NOW + 1), Some(NOW + 1 + RETENTION_MS)]
    );
    assert!(is_lost(&settle(&fetches[0], FetchReport::AtHand).await));
    let mut withdrawn = stores.work.withdrawals();
    withdrawn.mark_unchanged();
    stores.cancel("one", 2, RETENTION_MS).await;
    heard(&mut withdrawn, "a cancel, in the fetch stage").await;
    assert!(is_lost(&settle(&fetches[1], FetchReport::AtHand).await));

    stores.submit_all([with_images(3, "one", 1)]).await;
    let take = async || {
        let request = FetchRequest {
            lease_ms: 1_000,
            ..fetching(9)
        };
        stores.work.lease_fetches(request).await.unwrap()
    };
    let first = take().await;
    stores.clock.advance(999);
    assert!(take().await.is_empty());
    stores.clock.advance(1);
    let second = take().await;
    assert_eq!((numbers(&second), second[0].tries), (vec![id(3)], 2));
    assert!(is_lost(&settle(&first[0], failed()).await));
    stores.clock.advance(1_000);
    let third = take().await;
    assert_eq!(numbers(&third), [id(3)]);
    assert!(is_lost(&settle(&second[0], FetchReport::AtHand).await));
    settle(&third[0], FetchReport::AtHand).await.unwrap();
    assert_eq!(stores.claim_one().await.task.id, id(3));
}

/// A fault of the service costs a task only time.
pub async fn a_fetch_given_back_is_taken_again_after_its_pause(harness: &impl Harness) {
    let stores = harness.open("store").await;
    stores.submit_all([with_images(1, "one", 1)]).await;
    let fetches = stores.take(1).await;
    let back = FetchReport::Back { pause_ms: 500 };
    stores.work.complete_fetch(&fetches[0], back).await.unwrap();
    stores.clock.advance(499);
    assert!(stores.take(1).await.is_empty());
    assert!(stores.claim(1).await.is_empty());
    stores.clock.advance(1);
    let again = stores.take(1).await;
    assert_eq!((numbers(&again), again[0].tries), (vec![id(1)], 2));
}

/// A completed fetch is durable; fetches in progress are repeated.
pub async fn what_is_at_hand_is_not_fetched_again_after_a_restart(harness: &impl Harness) {
    let stores = harness.open("store").await;
    stores
        .submit_all([1, 2, 3].map(|number| with_images(number, "one", 1)))
        .await;
    let fetches = stores.take(2).await;
    let settled = stores.work.complete_fetch(&fetches[0], FetchReport::AtHand);
    settled.await.unwrap();
    let claim = stores.claim_one().await;
    stores
        .work
        .release(&claim.lease, ReleasedAttempt::Forgiven)
        .await
        .unwrap();
    drop(stores);
    let stores = harness.open_after_leases("store").await;
    assert_eq!(numbers(&stores.take(9).await), [id(2), id(3)]);
    let claims = stores.claim(9).await;
    assert_eq!(claims.len(), 1);
    assert_eq!(claims[0].task.id, id(1));
}

/// The run gives its slot back, and the attempt does not count.
pub async fn lost_references_are_fetched_again(harness: &impl Harness) {
    let stores = harness.open("store").await;
    stores
        .submit_all([with_images(1, "one", 1), task(2, "one")])
        .await;
    stores.fetch_all().await;
    let claims = stores.claim(2).await;
    for claim in &claims {
        let given_back = stores
            .work
            .release(&claim.lease, ReleasedAttempt::ReferencesLost);
        given_back.await.unwrap();
    }
    let waiting = stores.task("one", 1).await;
    assert_eq!(
        (waiting.state.phase(), waiting.attempt),
        (TaskPhase::Waiting, 0)
    );
    let free = stores.claim(9).await;
    assert_eq!(free.len(), 1, "one has no references to lose");
    assert_eq!(free[0].task.id, id(2));
    drop(stores);
    let stores = harness.open_after_leases("store").await;
    // For a store that does not immediately know that nobody runs the other task any more.
    stores.sweep(NOW).await;
    stores.fetch_all().await;
    assert_eq!(stores.claim(9).await.len(), 2);
}

/// An ended task does not need its references; those of a completed draft are kept for its final.
pub async fn references_are_swept_when_their_task_has_ended(harness: &impl Harness) {
    let stores = harness.open("store").await;
    let mut draft = with_images(3, "one", 1);
    draft.spec.draft = true;
    let tasks = [with_images(1, "one", 2), with_images(2, "one", 1), draft];
    stores.submit_all(tasks).await;
    stores.fetch_all().await;
    let [one, two, draft]: [_; 3] = stores.claim(3).await.try_into().unwrap();
    let keys = |claim: &ClaimedTask| reference_keys(&claim.task);
    assert_eq!(keys(&one).len(), 2);
    assert_eq!(stores.files_due().await, [""; 0]);
    stores.complete(&one).await.unwrap();
    assert_eq!(stores.remove_files().await, keys(&one));
    stores.tasks.delete("one", two.task.id).await.unwrap();
    let mut wanted = two.lease.file_keys().to_vec();
    wanted.extend(keys(&two));
    assert_eq!(stores.remove_files().await, wanted);
    let finish = stores.work.finish(&draft.lease, Ok(artifact("draft")), 10);
    finish.await.unwrap();
    stores.sweep(NOW).await;
    assert_eq!(stores.files_due().await, [""; 0]);
    assert_eq!(stores.sweep(NOW + 10).await.expired, 1);
    let mut wanted = files("draft");
    wanted.extend(keys(&draft));
    assert_eq!(stores.remove_files().await, wanted);
}

/// Clients see the values immediately, and a rerun starts from them.
pub async fn what_is_decided_of_a_spec_is_kept(harness: &impl Harness) {
    let stores = harness.open("store").await;
    let mut new = with_images(1, "one", 1);
    new.spec.seconds = VideoLength::Auto;
    stores.tasks.insert(new).await.unwrap();
    stores.fetch_all().await;
    let claim = stores.claim_one().await;
    let mut spec = claim.task.spec.clone();
    spec.seconds = VideoLength::Fixed(9);
    spec.frame = FrameSize::Fixed(Size::new(480, 480));
    let decided = LeaseRenewal {
        decided: Some(Box::new(spec.clone())),
        ..renewal(3)
    };
    stores.renew(&claim.lease, decided).await.unwrap();
    stores.renew(&claim.lease, renewal(4)).await.unwrap();
    assert_eq!(stores.task("one", 1).await.spec, spec);
    drop(stores);
    let stores = harness.open("store").await;
    stores.sweep(NOW + 3 * LEASE_MS).await;
    assert_eq!(stores.claim_one().await.task.spec, spec);
}
