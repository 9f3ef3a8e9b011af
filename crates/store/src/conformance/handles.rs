//! Two handles on one store, like two processes: each sees the other's actions, and neither repeats
//! them.

use std::collections::HashSet;
use std::sync::Arc;

use kinora_contract::{FailureCode, TaskState};

use super::bench::{Bench, heard, is_lost};
use super::fixtures::{LEASE_MS, NOW, RETENTION_MS, fetching, id, task, with_images};
use super::{Harness, Site};
use crate::{FetchReport, FetchRequest, IdempotencyKey, InsertOutcome, LeaseLost, NewTask};

/// Yields each number once, on alternating handles.
pub(super) fn in_turn(sites: &[Site; 2], count: u64) -> impl Iterator<Item = (u64, Site)> {
    (0..count).zip(sites.iter().cycle().cloned())
}

/// Both handles send the same request repeatedly.
pub async fn twins_on_two_handles_make_one_task(harness: &impl Harness) {
    let sites = harness.open_both("store").await;
    for round in 0..10 {
        let twins = in_turn(&sites, 8).map(|(number, site)| {
            let new = NewTask {
                idempotency: Some(IdempotencyKey {
                    key: format!("key {round}"),
                    fingerprint: [1; 32],
                    bound_ms: 1_000,
                }),
                ..task(100 * round + number, "one")
            };
            tokio::spawn(async move { site.tasks.insert(new).await.unwrap() })
        });
        let (mut inserted, mut seen) = (0, HashSet::new());
        for twin in twins.collect::<Vec<_>>() {
            match twin.await.unwrap() {
                InsertOutcome::Inserted(task) => {
                    inserted += 1;
                    seen.insert(task.id);
                }
                InsertOutcome::Replayed(task) => {
                    seen.insert(task.id);
                }
                other => panic!("{other:?}"),
            }
        }
        assert_eq!((inserted, seen.len()), (1, 1), "round {round}");
        for site in &sites {
            let usage = site.tasks.usage("one").await.unwrap();
            assert_eq!(usage.tasks, round + 1);
        }
    }
}

/// Every task has one holder, and every token is issued once.
pub async fn two_handles_never_claim_the_same_task(harness: &impl Harness) {
    let sites = harness.open_both("store").await;
    for (number, site) in in_turn(&sites, 40) {
        let project = if number % 3 == 0 { "one" } else { "two" };
        site.submit(number, project).await;
    }
    let workers = in_turn(&sites, 16);
    let workers = workers.map(|(_, site)| tokio::spawn(async move { site.claim(4).await }));
    let (mut tasks, mut tokens) = (HashSet::new(), HashSet::new());
    for worker in workers.collect::<Vec<_>>() {
        for claim in worker.await.unwrap() {
            assert!(tasks.insert(claim.task.id), "claimed twice");
            assert!(tokens.insert(claim.lease.token), "a token given out twice");
        }
    }
    assert_eq!(tasks.len(), 40);
    for site in &sites {
        assert!(site.claim(4).await.is_empty());
    }
}

/// A worker asks for all its leases at once, and gets a hint that there is something to ask for.
pub async fn a_cancel_is_seen_by_the_worker_on_another_handle(harness: &impl Harness) {
    let [api, worker] = harness.open_both("store").await;
    for number in 1..=3 {
        api.submit(number, "one").await;
    }
    let claims = worker.claim(3).await;
    let leases: Vec<_> = claims.iter().map(|claim| claim.lease.clone()).collect();
    assert_eq!(worker.work.find_lost(&leases).await.unwrap(), []);
    assert_eq!(worker.work.find_lost(&[]).await.unwrap(), []);
    let mut withdrawn = worker.work.withdrawals();
    withdrawn.mark_unchanged();
    api.cancel("one", 2, RETENTION_MS).await;
    heard(&mut withdrawn, "a cancel").await;
    let lost = worker.work.find_lost(&leases).await.unwrap();
    assert_eq!(lost, [(1, LeaseLost::Withdrawn)]);
    assert!(is_lost(&worker.complete(&claims[1]).await));

    withdrawn.mark_unchanged();
    api.tasks.delete("one", id(3)).await.unwrap();
    heard(&mut withdrawn, "a delete").await;
    worker.complete(&claims[0]).await.unwrap();
    let lost = api.work.find_lost(&leases).await.unwrap();
    let all = [
        (0, LeaseLost::Superseded),
        (1, LeaseLost::Withdrawn),
        (2, LeaseLost::Withdrawn),
    ];
    assert_eq!(lost, all);
}

/// The worker need not wait for its next poll.
pub async fn a_submit_is_heard_on_another_handle(harness: &impl Harness) {
    let [api, worker] = harness.open_both("store").await;
    let mut work = worker.work.work_hints();
    work.mark_unchanged();
    api.submit(1, "one").await;
    heard(&mut work, "a submit").await;
    assert_eq!(worker.claim_one().await.task.id, id(1));
    work.mark_unchanged();
    api.submit_all([with_images(2, "one", 1)]).await;
    heard(&mut work, "a task with references").await;
    assert_eq!(worker.take(1).await[0].task.id, id(2));
}

/// The preview can be read as soon as it is stored, until the run ends.
pub async fn a_preview_is_read_on_another_handle(harness: &impl Harness) {
    let [api, worker] = harness.open_both("store").await;
    api.submit(1, "one").await;
    let claim = worker.claim_one().await;
    for preview in [&b"first"[..], b"second"] {
        let put = worker.work.put_preview(&claim.lease, Arc::from(preview));
        put.await.unwrap();
        let shown = api.tasks.preview(id(1)).await.unwrap();
        assert_eq!(shown.as_deref(), Some(preview));
    }
    worker.complete(&claim).await.unwrap();
    assert_eq!(api.tasks.preview(id(1)).await.unwrap(), None);
}

/// The other handle reads the changed task in its current state, in every way.
pub async fn a_change_is_read_on_another_handle(harness: &impl Harness) {
    let [first, second] = harness.open_both("store").await;
    first.submit(1, "one").await;
    assert_eq!(second.task("one", 1).await.state, TaskState::Waiting);
    let claim = second.claim_one().await;
    assert_eq!(first.task("one", 1).await.state, TaskState::Running);
    second.complete(&claim).await.unwrap();
    let ended = second.task("one", 1).await;
    assert_eq!(first.task("one", 1).await, ended);
    assert_eq!(first.work.task(id(1)).await.unwrap(), Some(ended.clone()));
    let known = first.chores.find_tasks(&[id(2), id(1)]).await.unwrap();
    let known: Vec<_> = known.into_iter().map(Result::unwrap).collect();
    assert_eq!(known, [None, Some(ended)]);
    first.tasks.delete("one", id(1)).await.unwrap();
    assert!(second.tasks.get("one", id(1)).await.unwrap().is_none());
    assert_eq!(second.work.task(id(1)).await.unwrap(), None);
}

/// While a fetch is leased, nobody else gets it.
pub async fn two_handles_never_fetch_for_the_same_task(harness: &impl Harness) {
    let sites = harness.open_both("store").await;
    let projects = ["one", "two", "three", "four", "five", "six"];
    for (number, project) in (0..).zip(projects) {
        let tasks = [2 * number, 2 * number + 1].map(|number| with_images(number, project, 1));
        sites[0].submit_all(tasks).await;
    }
    let workers = in_turn(&sites, 12);
    let workers = workers.map(|(_, site)| tokio::spawn(async move { site.take(2).await }));
    let (mut tasks, mut fetches) = (HashSet::new(), Vec::new());
    for worker in workers.collect::<Vec<_>>() {
        for fetch in worker.await.unwrap() {
            assert!(tasks.insert(fetch.task.id), "fetched twice at once");
            fetches.push(fetch);
        }
    }
    assert_eq!(tasks.len(), 12);
    // Any handle can settle a fetch by its token.
    for (fetch, site) in fetches.iter().zip(sites.iter().rev().cycle()) {
        let settled = site.work.complete_fetch(fetch, FetchReport::AtHand).await;
        settled.unwrap();
    }
    assert_eq!(sites[1].claim(20).await.len(), 12);
}

/// It neither fails the task, nor makes it claimable, nor gives it back, whatever the task's state.
pub async fn a_fetch_under_a_lost_token_ends_nothing(harness: &impl Harness) {
    let [late, other] = harness.open_both("store").await;
    late.submit_all([with_images(1, "one", 1)]).await;
    let take = async |site: &Site| {
        let request = FetchRequest {
            lease_ms: LEASE_MS,
            ..fetching(1)
        };
        site.work.lease_fetches(request).await.unwrap().remove(0)
    };
    let stale = take(&late).await;
    other.clock.advance(LEASE_MS);
    let current = take(&other).await;
    assert!(current.token != stale.token && current.tries == 2);
    let untouched = async || {
        let failed = FetchReport::Failed {
            failure: FailureCode::ReferenceTimeout.into(),
            retention_ms: RETENTION_MS,
        };
        let before = other.task("one", 1).await;
        for fetched in [
            failed,
            FetchReport::AtHand,
            FetchReport::Back { pause_ms: 0 },
        ] {
            let settled = late.work.complete_fetch(&stale, fetched).await;
            assert!(is_lost(&settled), "{settled:?}");
            assert_eq!(other.task("one", 1).await, before);
        }
        assert!(late.claim(1).await.is_empty() && late.take(1).await.is_empty());
    };
    // Another process is fetching by now.
    untouched().await;
    let settled = other
        .work
        .complete_fetch(&current, FetchReport::AtHand)
        .await;
    settled.unwrap();
    // A worker is running it by now.
    let claim = other.claim_one().await;
    untouched().await;
    other.check(&claim.lease).await.unwrap();
    other.complete(&claim).await.unwrap();
    untouched().await;
    assert_eq!(
        other.sweep(NOW + LEASE_MS).await,
        crate::SweepReport::default()
    );
}
