//! Pauses of models, and the cancel of all queued tasks: an operator's and an owner's hold on the queue.

use kinora_contract::{Clock as _, FailureCode, TaskState};

use super::bench::Bench;
use super::fixtures::{
    LEASE_MS, MODELS, NOW, RETENTION_MS, cancelled, claiming, id, of_model, sweep_at, with_images,
};
use super::{Harness, Site};
use crate::operations::cancel::CANCELLED_AT_ONCE;
use crate::{ClaimRequest, Pause, Pauses, QueuedCancel, ReleasedAttempt, SweepRequest};

fn paused(model: Option<&str>, since_ms: u64, reason: Option<&str>) -> Pause {
    Pause {
        model: model.map(str::to_owned),
        since_ms,
        reason: reason.map(str::to_owned),
    }
}

async fn pause(site: &Site, model: Option<&str>) {
    let pause = paused(model, site.clock.now_ms(), None);
    site.pauses.pause(pause).await.unwrap();
}

async fn resume(site: &Site, model: Option<&str>) -> bool {
    let resumed = site.pauses.resume(model, site.clock.now_ms());
    resumed.await.unwrap()
}

async fn pauses(site: &Site) -> Vec<Pause> {
    site.pauses
        .pauses()
        .await
        .unwrap()
        .iter()
        .cloned()
        .collect()
}

/// Every handle sees it, the operators' overview too, and so does a process that starts later.
pub async fn a_pause_lasts_until_it_is_ended(harness: &impl Harness) {
    let [here, there] = harness.open_both("store").await;
    assert!(pauses(&here).await.is_empty());
    let one = paused(Some(MODELS[1]), NOW, Some("new \"weights\" \u{1f30a}"));
    here.pauses.pause(one.clone()).await.unwrap();
    let all = paused(None, NOW + 5, None);
    there.pauses.pause(all.clone()).await.unwrap();
    for site in [&here, &there] {
        assert_eq!(pauses(site).await, [all.clone(), one.clone()]);
        let seen = site.operations.overview().await.unwrap().pauses;
        assert_eq!(seen, site.pauses.pauses().await.unwrap());
    }
    let held = here.pauses.pauses().await.unwrap();
    assert_eq!(held.find(MODELS[1]), Some(&one));
    assert_eq!(
        (held.find("another"), held.of_all()),
        (Some(&all), Some(&all))
    );
    drop((here, there));

    let site = harness.open("store").await;
    assert_eq!(pauses(&site).await, [all.clone(), one.clone()]);
    assert!(resume(&site, None).await && !resume(&site, None).await);
    assert_eq!(pauses(&site).await, [one]);
    assert!(!resume(&site, Some(MODELS[0])).await);
    assert!(resume(&site, Some(MODELS[1])).await);
    assert!(site.pauses.pauses().await.unwrap().is_empty());
}

/// It keeps its beginning, and its reason unless there is another. A later one has neither.
pub async fn a_repeated_pause_goes_on(harness: &impl Harness) {
    let site = harness.open("store").await;
    let model = Some(MODELS[0]);
    let repeat = async |since_ms, reason| {
        let pause = paused(model, since_ms, reason);
        site.pauses.pause(pause).await.unwrap();
        pauses(&site).await
    };
    let first = paused(model, NOW, Some("first"));
    assert_eq!(
        repeat(NOW, Some("first")).await,
        std::slice::from_ref(&first)
    );
    assert_eq!(repeat(NOW + 9, None).await, [first]);
    let other = paused(model, NOW, Some("other"));
    assert_eq!(repeat(NOW + 9, Some("other")).await, [other]);
    assert!(resume(&site, model).await);
    assert_eq!(
        repeat(NOW + 10, None).await,
        [paused(model, NOW + 10, None)]
    );
}

fn obeying(pauses: &Pauses, count: usize) -> ClaimRequest {
    ClaimRequest {
        paused: pauses.clone(),
        ..claiming(count)
    }
}

/// Tasks of other models are, and references are fetched: their addresses may not last.
pub async fn nothing_of_a_paused_model_is_claimed(harness: &impl Harness) {
    let site = harness.open("store").await;
    let other = of_model(2, "one", MODELS[1]);
    site.submit_all([with_images(1, "one", 1), other]).await;
    pause(&site, Some(MODELS[0])).await;
    site.fetch_all().await;
    let request = obeying(&site.pauses.pauses().await.unwrap(), 9);
    assert!(site.work.has_claimable(&request).await.unwrap());
    let claims = site.work.claim(request.clone()).await.unwrap();
    let ids: Vec<_> = claims.iter().map(|claim| claim.task.id).collect();
    assert_eq!(ids, [id(2)]);
    assert!(!site.work.has_claimable(&request).await.unwrap());
    site.complete(&claims[0]).await.unwrap();

    assert!(resume(&site, Some(MODELS[0])).await);
    pause(&site, None).await;
    let request = obeying(&site.pauses.pauses().await.unwrap(), 9);
    assert!(!site.work.has_claimable(&request).await.unwrap());
    assert!(site.work.claim(request).await.unwrap().is_empty());
    assert!(resume(&site, None).await);
    let request = obeying(&site.pauses.pauses().await.unwrap(), 9);
    assert_eq!(site.work.claim(request).await.unwrap().len(), 1);
}

/// Otherwise one that waits to run alone would keep the worker from the other models until the end of the
/// pause.
pub async fn a_task_of_a_paused_model_holds_back_nobody(harness: &impl Harness) {
    let site = harness.open("store").await;
    site.submit(1, "one").await;
    let claim = async |model: &str, paused: &Pauses| {
        let request = ClaimRequest {
            models: vec![model.to_owned()],
            ..obeying(paused, 4)
        };
        site.work.claim(request).await.unwrap()
    };
    let none = Pauses::default();
    for _ in 1..=2 {
        assert_eq!(claim(MODELS[0], &none).await.len(), 1);
        let now_ms = site.clock.now_ms();
        assert_eq!(site.sweep(now_ms + LEASE_MS).await.requeued, 1);
    }
    site.submit_all([of_model(2, "one", MODELS[1])]).await;
    let busy = claim(MODELS[1], &none).await;
    assert_eq!(busy.len(), 1);
    site.submit_all([of_model(3, "one", MODELS[1])]).await;
    assert!(claim(MODELS[0], &none).await.is_empty());
    assert!(claim(MODELS[1], &none).await.is_empty());
    let held: Pauses = [paused(Some(MODELS[0]), NOW, None)].into_iter().collect();
    assert_eq!(claim(MODELS[1], &held).await.len(), 1);
}

/// Nothing fails by waiting while it is paused, and after a pause its tasks have the whole time anew. Other
/// models keep theirs, also behind a batch of paused tasks.
pub async fn a_wait_begins_anew_after_a_pause(harness: &impl Harness) {
    let site = harness.open("store").await;
    let other = |number| of_model(number, "one", MODELS[1]);
    site.submit_all([1, 2, 3].map(|number| of_model(number, "one", MODELS[0])))
        .await;
    site.submit_all([other(4)]).await;
    pause(&site, Some(MODELS[0])).await;
    let waited = async |now_ms| {
        let sweep = SweepRequest {
            waiting_ms_max: Some(4_000),
            batch: 2,
            ..sweep_at(now_ms)
        };
        site.sweep_by(sweep).await.waited
    };
    assert_eq!(waited(NOW + 4_001).await, 1);
    match &site.task("one", 4).await.state {
        TaskState::Failed(failure) => assert_eq!(failure.code, FailureCode::TaskExpired.as_str()),
        other => panic!("{other:?}"),
    }
    site.pass_until(NOW + 10_000);
    assert!(resume(&site, Some(MODELS[0])).await);
    site.submit_all([other(5)]).await;
    pause(&site, None).await;
    assert_eq!(waited(NOW + 13_999).await, 0);
    site.pass_until(NOW + 20_000);
    assert!(resume(&site, None).await);
    assert_eq!(waited(NOW + 23_999).await, 0);
    assert_eq!(waited(NOW + 24_001).await, 2);
    assert_eq!(waited(NOW + 24_001).await, 2);
    assert_eq!(waited(NOW + 1_000_000).await, 0);
}

async fn cancel_queued(site: &Site, project: &str, model: Option<&str>) -> u64 {
    let request = QueuedCancel {
        project: project.to_owned(),
        model: model.map(str::to_owned),
        failure: cancelled(),
        retention_ms: RETENTION_MS,
    };
    site.tasks.cancel_queued(request).await.unwrap()
}

/// Neither those of other projects, nor running ones, nor those that have run before, which clients see as
/// running.
pub async fn the_queued_tasks_of_a_project_are_cancelled(harness: &impl Harness) {
    let [api, site] = harness.open_both("store").await;
    for number in 1..=2 {
        api.submit(number, "one").await;
    }
    let [running, released]: [_; 2] = site.claim(2).await.try_into().unwrap();
    let release = site
        .work
        .release(&released.lease, ReleasedAttempt::Forgiven);
    release.await.unwrap();
    let waiting = [
        with_images(3, "one", 1),
        of_model(4, "one", MODELS[0]),
        of_model(5, "one", MODELS[1]),
        of_model(6, "two", MODELS[0]),
    ];
    api.submit_all(waiting).await;
    assert_eq!(cancel_queued(&api, "one", Some(MODELS[1])).await, 1);
    assert_eq!(cancel_queued(&site, "one", None).await, 2);
    assert_eq!(cancel_queued(&api, "one", None).await, 0);
    for number in 3..=5 {
        let task = api.task("one", number).await;
        assert_eq!(task.state, TaskState::Failed(cancelled()), "{number}");
    }
    site.complete(&running).await.unwrap();
    let left: Vec<_> = site.claim(9).await;
    let mut left: Vec<_> = left.iter().map(|claim| claim.task.id).collect();
    left.sort_unstable();
    assert_eq!(left, [id(2), id(6)]);
}

/// More than one transaction takes.
pub async fn any_number_of_queued_tasks_is_cancelled(harness: &impl Harness) {
    let site = harness.open("store").await;
    let count = 2 * CANCELLED_AT_ONCE as u64 + 1;
    for number in 0..count {
        site.submit(number, "one").await;
    }
    assert_eq!(cancel_queued(&site, "one", None).await, count);
    assert!(site.tasks.unfinished("one").await.unwrap().is_empty());
    assert!(site.claim(1).await.is_empty());
}
