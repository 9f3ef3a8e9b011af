//! Tasks with references: found ahead of their turn, decided while they run, swept when done.

use kinora_contract::{FrameSize, Inputs, Seconds, Size};

use super::Harness;
use super::fixtures::{Bench, EXPIRY, LEASE_MS, NOW, artifact, cancelled, id, renewed, task};
use crate::{Attempt, NewTask, Renewed, reference_keys};

fn with_images(number: u64, count: usize) -> NewTask {
    let mut new = task(number, "one");
    new.spec.inputs = Inputs::References {
        images: vec!["https://example.org/i".to_owned(); count],
        audios: Vec::new(),
    };
    new
}

/// In the order of acceptance, page by page, only those that wait and have any.
pub async fn waiting_tasks_with_references_are_found_in_order(harness: &impl Harness) {
    let stores = harness.open("store").await;
    for number in 1..=6 {
        let new = if number % 2 == 0 {
            with_images(number, 1)
        } else {
            task(number, "one")
        };
        stores.tasks.insert(new).await.unwrap();
    }
    let page = |after, limit| stores.tasks.waiting_with_references(after, limit);
    let first = page(0, 2).await.unwrap();
    let ids: Vec<_> = first.iter().map(|(_, task)| task.id).collect();
    assert_eq!(ids, [id(2), id(4)]);
    let second = page(first[1].0, 9).await.unwrap();
    assert_eq!(second.len(), 1);
    assert_eq!(second[0].1.id, id(6));
    assert!(page(second[0].0, 9).await.unwrap().is_empty());

    let claims = stores.claim(2).await;
    assert_eq!(claims[1].task.id, id(2));
    stores
        .tasks
        .cancel("one", id(4), cancelled(), NOW, EXPIRY)
        .await
        .unwrap();
    let left = page(0, 9).await.unwrap();
    assert_eq!(left.iter().map(|(_, t)| t.id).collect::<Vec<_>>(), [id(6)]);
    stores
        .tasks
        .release(&claims[1].lease, Attempt::Forgiven)
        .await
        .unwrap();
    drop(stores);
    let stores = harness.open("store").await;
    let left = stores.tasks.waiting_with_references(0, 9).await.unwrap();
    let ids: Vec<_> = left.iter().map(|(_, task)| task.id).collect();
    assert_eq!(ids, [id(2), id(6)]);
}

/// They are of no use to anybody then; those of a completed draft still serve its final.
pub async fn references_are_swept_when_their_task_has_ended(harness: &impl Harness) {
    let stores = harness.open("store").await;
    let mut draft = with_images(3, 1);
    draft.spec.draft = true;
    for new in [with_images(1, 2), with_images(2, 1), draft] {
        stores.tasks.insert(new).await.unwrap();
    }
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
    let mut new = with_images(1, 1);
    new.spec.seconds = Seconds::Auto;
    stores.tasks.insert(new).await.unwrap();
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
