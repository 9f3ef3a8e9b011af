//! Queries for operators: sums over ended tasks, which count each task once and outlive it; the log
//! of key changes; the queue and running tasks.

use kinora_contract::{Clock as _, FailureCode, TaskTally};

use super::bench::{Bench, is_lost};
use super::fixtures::{LEASE_MS, MODELS, NOW, RETENTION_MS, actor, id, of_model, renewal, task};
use super::keys::key;
use super::{Harness, Site};
use crate::{KeyActionKind, KeyRotation, ModelQueue, ReleasedAttempt, TallyRequest, TallyRow};

const DAY_MS: u64 = 24 * 60 * 60 * 1000;
const TODAY: u64 = NOW / DAY_MS;

async fn tallies(site: &Site, request: TallyRequest) -> Vec<TallyRow> {
    site.operations.tallies(&request).await.unwrap()
}

async fn all(site: &Site) -> Vec<TallyRow> {
    tallies(site, TallyRequest::default()).await
}

fn row(day: u64, project: &str, model: &str, tally: TaskTally) -> TallyRow {
    TallyRow {
        day,
        project: project.to_owned(),
        model: model.to_owned(),
        tally,
    }
}

fn completed(tasks: u64, engine_ms: u64) -> TaskTally {
    TaskTally {
        completed: tasks,
        video_ms: tasks * 5_000,
        engine_ms,
        ..TaskTally::default()
    }
}

/// A repeated or late finish adds nothing.
pub async fn an_ended_task_is_counted_once(harness: &impl Harness) {
    let [api, site] = harness.open_both("store").await;
    for number in 1..=5 {
        api.submit(number, "one").await;
    }
    api.submit(6, "two").await;
    let claims = site.claim(6).await;
    assert!(all(&api).await.is_empty(), "nothing has ended");
    site.clock.advance(700);
    let of = |number: u64| {
        let found = claims.iter().find(|claim| claim.task.id == id(number));
        found.expect("it is claimed")
    };
    for _ in 0..2 {
        // The second one changes nothing.
        let _ = site.complete(of(1)).await;
        let _ = api.complete(of(6)).await;
    }
    let failure = FailureCode::GenerationFailed.into();
    let failed = site.work.finish(&of(2).lease, Err(failure), RETENTION_MS);
    failed.await.unwrap();
    api.cancel("one", 3, RETENTION_MS).await;
    assert!(is_lost(&site.complete(of(3)).await));
    api.tasks.delete("one", id(4)).await.unwrap();
    assert!(is_lost(&site.complete(of(4)).await));
    // A task that returns to the queue has not ended.
    let back = site.work.release(&of(5).lease, ReleasedAttempt::Counts);
    back.await.unwrap();
    let again = site.claim_one().await;
    site.clock.advance(300);
    site.complete(&again).await.unwrap();
    assert!(is_lost(&site.complete(of(5)).await));
    let of_one = TaskTally {
        failed: 1,
        cancelled: 2,
        ..completed(2, 4 * 700 + 1_000)
    };
    let wanted = [
        row(TODAY, "one", MODELS[0], of_one),
        row(TODAY, "two", MODELS[0], completed(1, 700)),
    ];
    for site in [&api, &site] {
        assert_eq!(all(site).await, wanted);
    }
}

/// The sums also survive a restart.
pub async fn sums_outlive_their_tasks(harness: &impl Harness) {
    let site = harness.open("store").await;
    site.submit(1, "one").await;
    site.submit(2, "one").await;
    let claims = site.claim(2).await;
    for claim in &claims {
        site.complete(claim).await.unwrap();
    }
    let wanted = [row(TODAY, "one", MODELS[0], completed(2, 0))];
    site.tasks.delete("one", id(1)).await.unwrap();
    site.sweep(NOW + RETENTION_MS).await;
    site.sweep(NOW + RETENTION_MS + 10_000).await;
    assert!(site.tasks.get("one", id(2)).await.unwrap().is_none());
    assert_eq!(all(&site).await, wanted);
    drop(site);
    let site = harness.open("store").await;
    assert_eq!(all(&site).await, wanted);
}

/// The day is that of the end, in UTC.
pub async fn sums_are_told_by_day_project_and_model(harness: &impl Harness) {
    let site = harness.open("store").await;
    site.submit_all([
        of_model(1, "one", MODELS[0]),
        of_model(2, "one", MODELS[1]),
        of_model(3, "two", MODELS[1]),
    ])
    .await;
    let claims = site.claim(3).await;
    site.complete(&claims[0]).await.unwrap();
    site.pass_until((TODAY + 1) * DAY_MS);
    for claim in &claims[1..] {
        // It holds the lease until a sweep.
        site.complete(claim).await.unwrap();
    }
    let rows = all(&site).await;
    let days: Vec<u64> = rows.iter().map(|row| row.day).collect();
    assert_eq!(days, [TODAY, TODAY + 1, TODAY + 1]);
    let since = TallyRequest {
        since: Some(TODAY + 1),
        ..TallyRequest::default()
    };
    assert_eq!(tallies(&site, since.clone()).await, rows[1..]);
    let until = TallyRequest {
        until: Some(TODAY),
        ..TallyRequest::default()
    };
    assert_eq!(tallies(&site, until).await, rows[..1]);
    for row in &rows {
        let own = TallyRequest {
            since: Some(row.day),
            until: Some(row.day),
            project: Some(row.project.clone()),
            model: Some(row.model.clone()),
        };
        assert_eq!(tallies(&site, own).await, std::slice::from_ref(row));
    }
    let nobody = TallyRequest {
        project: Some("on".to_owned()),
        ..since
    };
    assert!(tallies(&site, nobody).await.is_empty());
}

/// Entries name their author and come newest first on every handle. A change that fails leaves no
/// entry.
pub async fn changes_of_keys_are_logged(harness: &impl Harness) {
    let [here, there] = harness.open_both("store").await;
    let (first, second) = (actor("alice"), actor("bob \u{1f511}"));
    here.keys.add_key(key(1), &first).await.unwrap();
    here.keys.add_key(key(1), &second).await.unwrap_err();
    assert!(!here.keys.add_first_key(key(2), &second).await.unwrap());
    let rotation = |old: &str, number| KeyRotation {
        old: old.to_owned(),
        new: key(number),
        now_ms: NOW + 50,
        grace_ms: 1_000,
    };
    let (one, three) = (key(1).id, key(3).id);
    let rotated = there.keys.rotate_key(rotation(&one, 3), &second).await;
    assert!(rotated.unwrap().is_some());
    let unknown = there.keys.rotate_key(rotation("key_unknown", 4), &second);
    assert!(unknown.await.unwrap().is_none());
    // The new key cannot be added: the old one stays valid, and nothing has changed.
    let taken = there.keys.rotate_key(rotation(&three, 1), &second).await;
    taken.unwrap_err();
    for _ in 0..2 {
        let revoked = here.keys.revoke_key(&three, NOW + 60, &first);
        assert!(revoked.await.unwrap());
    }
    assert!(
        !here
            .keys
            .revoke_key("key_unknown", NOW, &first)
            .await
            .unwrap()
    );
    let other = crate::NewKey {
        project: "two".to_owned(),
        ..key(5)
    };
    here.keys.add_key(other, &first).await.unwrap();
    let log = there.operations.key_log(Some("one")).await.unwrap();
    let told: Vec<_> = log
        .iter()
        .map(|entry| (entry.kind, &*entry.key, entry.at_ms, &*entry.by.user))
        .collect();
    let wanted = [
        (KeyActionKind::Revoked, &*three, NOW + 60, "alice"),
        (KeyActionKind::Rotated, &*one, NOW + 50, "bob \u{1f511}"),
        (KeyActionKind::Created, &*one, NOW + 1, "alice"),
    ];
    assert_eq!(told, wanted);
    assert_eq!(log[1].successor.as_ref(), Some(&three));
    assert_eq!((&log[1].name, &log[1].by), (&key(1).name, &second));
    drop((here, there));
    let site = harness.open("store").await;
    let log = site.operations.key_log(None).await.unwrap();
    assert_eq!((log.len(), &*log[0].project), (4, "two"));
}

/// The overview has waiting tasks by model, running tasks with their progress, and recent ends.
pub async fn an_overview_shows_what_waits_and_runs(harness: &impl Harness) {
    let [api, site] = harness.open_both("store").await;
    let empty = api.operations.overview().await.unwrap();
    assert!(empty.models.is_empty() && empty.running.is_empty());
    for number in 1..=3 {
        api.submit(number, "one").await;
    }
    let claims = site.claim(3).await;
    site.clock.advance(2_000);
    api.submit_all([
        of_model(4, "two", MODELS[1]),
        of_model(5, "one", MODELS[0]),
        task(6, "one"),
    ])
    .await;
    site.clock.advance(500);
    site.complete(&claims[0]).await.unwrap();
    api.cancel("one", 2, RETENTION_MS).await;
    site.renew(&claims[2].lease, renewal(40)).await.unwrap();
    let overview = api.operations.overview().await.unwrap();
    assert_eq!(overview.now_ms, site.clock.now_ms());
    let queue = |model: &str, waiting, running| ModelQueue {
        model: model.to_owned(),
        waiting,
        running,
        oldest_waiting_ms: Some(500),
    };
    let wanted = [queue(MODELS[0], 2, 1), queue(MODELS[1], 1, 0)];
    assert_eq!(overview.models, wanted);
    let [run] = &overview.running[..] else {
        panic!("{overview:?}")
    };
    assert_eq!((run.id, &*run.project, run.progress), (id(3), "one", 40));
    assert_eq!(
        (run.since_ms, run.attempt, &*run.worker),
        (2_500, 1, "worker")
    );
    let lately = (overview.completed_lately, overview.failed_lately);
    assert_eq!(lately, (1, 1));
    site.clock.advance(LEASE_MS);
    site.clock.advance(crate::LATELY_MS);
    let later = site.operations.overview().await.unwrap();
    assert_eq!((later.completed_lately, later.failed_lately), (0, 0));
}
