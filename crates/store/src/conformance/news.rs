//! News for followers of tasks: current states, ended tasks, and notices of changes.

use std::collections::BTreeSet;
use std::time::Duration;

use kinora_contract::{Clock as _, Status, TaskId};

use super::bench::Bench as _;
use super::fixtures::{LEASE_MS, NOW, RETENTION_MS, id, with_images};
use super::{Harness, Site};
use crate::{ChangeReceiver, EndedRequest, LeaseRenewal, ReleasedAttempt, TaskChange, TaskGlance};

/// Only a failing case waits this long.
const PATIENCE: Duration = Duration::from_secs(60);

/// Reads status and progress of these tasks.
async fn glance(site: &Site, numbers: &[u64]) -> Vec<Option<(Status, u8)>> {
    let ids: Vec<TaskId> = numbers.iter().copied().map(id).collect();
    let glances = site.tasks.glance(&ids).await.unwrap();
    let seen = |(glance, id): (Option<TaskGlance>, TaskId)| {
        let glance = glance?;
        assert_eq!((glance.id, glance.created_at_ms), (id, NOW));
        Some((glance.status, glance.progress))
    };
    glances.into_iter().zip(ids).map(seen).collect()
}

fn report(progress: u8) -> LeaseRenewal {
    LeaseRenewal {
        progress,
        ..LeaseRenewal::default()
    }
}

/// The answers are those of polls, in the requested order; expired and deleted tasks have none.
pub async fn glances_are_told_of_several_tasks_at_once(harness: &impl Harness) {
    let [first, second] = harness.open_both("store").await;
    for number in 1..=4 {
        first.submit(number, "one").await;
    }
    let claims = first.claim(3).await;
    first.renew(&claims[0].lease, report(40)).await.unwrap();
    second.complete(&claims[1]).await.unwrap();
    let release = second
        .work
        .release(&claims[2].lease, ReleasedAttempt::Counts);
    release.await.unwrap();
    first.cancel("one", 4, 1_000).await;
    let asked = [9, 4, 1, 2, 3, 1];
    let wanted = [
        None,
        Some((Status::Failed, 0)),
        Some((Status::InProgress, 40)),
        Some((Status::Completed, 100)),
        // It waits again.
        Some((Status::InProgress, 0)),
        Some((Status::InProgress, 40)),
    ];
    for site in [&first, &second] {
        assert_eq!(glance(site, &asked).await, wanted);
    }
    first.sweep(NOW + 1_000).await;
    first.tasks.delete("one", id(2)).await.unwrap();
    for site in [&first, &second] {
        assert_eq!(glance(site, &[4, 2]).await, [None, None]);
    }
    assert!(first.tasks.glance(&[]).await.unwrap().is_empty());
}

/// The answer has all waiting and running tasks of the project, and no others.
pub async fn unfinished_tasks_of_a_project_are_told_by_creation(harness: &impl Harness) {
    let [first, second] = harness.open_both("store").await;
    first.submit(1, "one").await;
    first.submit(3, "one").await;
    first.submit_all([with_images(4, "one", 1)]).await;
    first.submit(5, "one").await;
    first.submit_all([with_images(6, "one", 1)]).await;
    first.submit(2, "two").await;
    let fetches = first.take(1).await;
    assert_eq!(fetches.len(), 1);
    let unfinished = async |project: &str| {
        let mut told = Vec::new();
        for site in [&first, &second] {
            let glances = site.tasks.unfinished(project).await.unwrap();
            told.push(
                glances
                    .iter()
                    .map(|one| (one.id, one.status))
                    .collect::<Vec<_>>(),
            );
        }
        assert_eq!(told[0], told[1]);
        told.remove(0)
    };
    let queued = |number| (id(number), Status::Queued);
    assert_eq!(unfinished("one").await, [1, 3, 4, 5, 6].map(queued));
    assert_eq!(unfinished("two").await, [queued(2)]);
    let claims = second.claim(2).await;
    for claim in &claims {
        second.renew(&claim.lease, report(1)).await.unwrap();
    }
    first.cancel("one", 4, RETENTION_MS).await;
    first.tasks.delete("one", id(6)).await.unwrap();
    let own = unfinished("one").await;
    let run: BTreeSet<TaskId> = claims.iter().map(|claim| claim.task.id).collect();
    let wanted = [1, 3, 5].map(id).map(|one| match run.contains(&one) {
        true => (one, Status::InProgress),
        false => (one, Status::Queued),
    });
    assert_eq!(own, wanted);
    for claim in &claims {
        first.complete(claim).await.unwrap();
    }
    assert!(
        unfinished("one")
            .await
            .iter()
            .all(|(one, _)| !run.contains(one))
    );
    assert!(unfinished("three").await.is_empty());
}

/// Tasks come in the order of their ends. If there are many, only the last ones are returned; after
/// a step back of the clock, all.
pub async fn ended_tasks_are_told_since_a_time(harness: &impl Harness) {
    let [first, second] = harness.open_both("store").await;
    for number in 1..=5 {
        first.submit(number, "one").await;
    }
    first.submit(6, "two").await;
    let read = async |site: &Site, since_ms: u64, limit: usize| {
        let request = EndedRequest {
            project: "one".to_owned(),
            since_ms,
            limit,
        };
        let ended = site.tasks.ended(request).await.unwrap();
        assert!(ended.from_ms <= since_ms && ended.next_ms <= ended.now_ms);
        assert_eq!(ended.now_ms, site.clock.now_ms());
        for (at_ms, id) in &ended.tasks {
            let task = site.tasks.task(*id).await.unwrap().unwrap();
            assert_eq!(task.finished_at_ms, Some(*at_ms));
        }
        ended
    };
    let ended = async |site: &Site, since_ms: u64, limit: usize| {
        let ended = read(site, since_ms, limit).await.tasks;
        ended.into_iter().map(|(_, id)| id).collect::<Vec<_>>()
    };
    assert_eq!(ended(&first, NOW, 9).await, []);
    // Hours apart: a store may include earlier ones that were still in transit.
    let hour_ms = 60 * 60 * 1000;
    for (hours, number) in (1..).zip([4, 1, 6, 3, 2]) {
        first.pass_until(NOW + hours * hour_ms);
        let project = if number == 6 { "two" } else { "one" };
        first.cancel(project, number, 100 * hour_ms).await;
    }
    for site in [&first, &second] {
        assert_eq!(ended(site, NOW, 9).await, [4, 1, 3, 2].map(id));
        assert_eq!(ended(site, NOW + 4 * hour_ms, 9).await, [3, 2].map(id));
        assert_eq!(ended(site, NOW, 2).await, [3, 2].map(id));
        let next_ms = read(site, NOW, 9).await.next_ms;
        assert!(next_ms > NOW + 4 * hour_ms);
    }
    first.tasks.delete("one", id(3)).await.unwrap();
    assert_eq!(ended(&second, NOW + 4 * hour_ms, 9).await, [id(2)]);
    // Set back by three hours: the last reported time is in the future.
    first.clock.set(NOW + 2 * hour_ms);
    assert_eq!(
        ended(&second, NOW + 5 * hour_ms, 9).await,
        [4, 1, 2].map(id)
    );
}

/// Waits until this task's change is reported.
async fn heard(changes: &mut ChangeReceiver, number: u64, what: &str) {
    let told = async {
        loop {
            match changes.next().await {
                TaskChange::Of(task) if task == id(number) => return,
                TaskChange::Of(_) => {}
                TaskChange::Unknown => panic!("nothing was lost"),
            }
        }
    };
    let told = tokio::time::timeout(PATIENCE, told).await;
    assert!(told.is_ok(), "not heard of {what}");
}

/// All followers on all handles receive the change, and can read it then.
pub async fn changes_are_heard_on_every_handle(harness: &impl Harness) {
    let [api, worker] = harness.open_both("store").await;
    let follow = |site: &Site| site.tasks.changes();
    let mut followers = [follow(&api), follow(&api), follow(&worker)];
    let mut all = async |number: u64, what: &str| {
        for follower in &mut followers {
            heard(follower, number, what).await;
        }
    };
    api.submit(1, "one").await;
    all(1, "a submit").await;
    let claim = worker.claim_one().await;
    all(1, "a claim").await;
    worker.renew(&claim.lease, report(7)).await.unwrap();
    all(1, "progress").await;
    assert_eq!(glance(&api, &[1]).await, [Some((Status::InProgress, 7))]);
    worker.complete(&claim).await.unwrap();
    all(1, "an end").await;
    assert_eq!(glance(&api, &[1]).await, [Some((Status::Completed, 100))]);
    for number in [2, 3] {
        api.submit(number, "two").await;
        all(number, "a submit").await;
    }
    api.cancel("two", 2, RETENTION_MS).await;
    all(2, "a cancel").await;
    worker.tasks.delete("two", id(3)).await.unwrap();
    all(3, "a delete").await;
    assert_eq!(glance(&api, &[3]).await, [None]);
}

/// An extended lease, a returned run, a fetch, an expiry.
pub async fn what_clients_do_not_see_is_no_news(harness: &impl Harness) {
    let site = harness.open("store").await;
    site.submit_all([with_images(1, "one", 1)]).await;
    let mut changes = site.tasks.changes();
    site.fetch_all().await;
    let claim = site.claim_one().await;
    heard(&mut changes, 1, "the first claim").await;
    site.renew(&claim.lease, LeaseRenewal::default())
        .await
        .unwrap();
    let release = site.work.release(&claim.lease, ReleasedAttempt::Forgiven);
    release.await.unwrap();
    let claim = site.claim_one().await;
    site.pass_until(NOW + LEASE_MS / 2);
    site.complete(&claim).await.unwrap();
    heard(&mut changes, 1, "the end").await;
    site.sweep(NOW + 2 * RETENTION_MS).await;
    site.tasks.delete("one", id(1)).await.unwrap();
    assert_eq!(changes.try_next(), None);
}
