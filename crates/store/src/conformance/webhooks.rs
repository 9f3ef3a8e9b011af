//! Webhooks and deliveries: added with the end of a task, leased, limited per webhook, settled
//! once.

use futures_util::future::join_all;
use kinora_contract::WebhookSecret;
use kinora_contract::limits::{WEBHOOK_LOG_MAX, WEBHOOK_PENDING_MAX};
use kinora_contract::webhook::event_id;
use tokio::sync::watch;

use super::bench::{Bench, heard};
use super::fixtures::{NOW, RETENTION_MS, id, renewal, task};
use super::{Harness, Site};
use crate::{
    DeliveryDone, DeliveryNext, DeliveryRequest, DeliveryState, DueDelivery, LoggedDelivery,
    NewTask, TaskCallback, Webhook, WebhookChange,
};

const LEASE_MS: u64 = 60_000;

fn webhook(number: u8, project: &str) -> Webhook {
    Webhook {
        id: format!("hook_{number}"),
        project: project.to_owned(),
        url: Some(format!("https://example.org/{number}")),
        secret: WebhookSecret::new([number; 32]),
        old_secret: None,
        created_at_ms: NOW + u64::from(number),
        disabled_at_ms: None,
        dropped: 0,
    }
}

fn of_callbacks(number: u8, project: &str) -> Webhook {
    Webhook {
        url: None,
        ..webhook(number, project)
    }
}

async fn change(site: &Site, change: WebhookChange) -> bool {
    site.webhooks.change_webhook(change).await.unwrap()
}

async fn add(site: &Site, webhook: Webhook) -> bool {
    change(site, WebhookChange::Add(webhook)).await
}

async fn take_up_to(site: &Site, count: usize, each: usize) -> Vec<DueDelivery> {
    let request = DeliveryRequest {
        count,
        each,
        lease_ms: LEASE_MS,
    };
    let mut taken = site.webhooks.lease_deliveries(request).await.unwrap();
    taken.sort_by_key(|one| one.number);
    taken
}

async fn take(site: &Site) -> Vec<DueDelivery> {
    take_up_to(site, 100, 100).await
}

async fn take_one(site: &Site) -> DueDelivery {
    let [one] = take(site).await.try_into().expect("one delivery is due");
    one
}

async fn settle(site: &Site, taken: &DueDelivery, next: DeliveryNext) {
    let status = if next == DeliveryNext::Delivered {
        204
    } else {
        500
    };
    let done = DeliveryDone {
        number: taken.number,
        token: taken.token,
        answer: Ok(status),
        next,
    };
    site.webhooks.complete_delivery(done).await.unwrap();
}

async fn log(site: &Site, webhook: &str) -> Vec<LoggedDelivery> {
    site.webhooks.deliveries(webhook, 100).await.unwrap()
}

/// Adds pending deliveries to the first webhook.
async fn fill(site: &Site, count: u64) {
    let tests = (0..count).map(|number| WebhookChange::Test {
        id: "hook_1".to_owned(),
        event: format!("evt_{number}"),
    });
    let tests: Vec<WebhookChange> = tests.collect();
    for some in tests.chunks(1000) {
        join_all(some.iter().map(|one| change(site, one.clone()))).await;
    }
}

/// Ends a task of this project by a cancel.
async fn end(site: &Site, number: u64, project: &str) {
    site.submit(number, project).await;
    site.cancel(project, number, RETENTION_MS).await;
}

fn with_callback(number: u64, project: &str, webhook: &str) -> NewTask {
    NewTask {
        callback: Some(TaskCallback {
            webhook: webhook.to_owned(),
            url: format!("https://example.org/callback/{number}"),
        }),
        ..task(number, project)
    }
}

/// A completed, failed or cancelled task gives one delivery to each webhook of its project, and
/// none to others.
pub async fn the_end_of_a_task_is_due_at_every_webhook_of_its_project(harness: &impl Harness) {
    let site = harness.open("store").await;
    for (number, project) in [(1, "one"), (2, "one"), (3, "two")] {
        assert!(add(&site, webhook(number, project)).await);
    }
    site.submit(1, "one").await;
    let claim = site.claim_one().await;
    assert!(take(&site).await.is_empty(), "the task has not ended");
    site.complete(&claim).await.unwrap();
    end(&site, 2, "three").await;
    let taken = take(&site).await;
    let urls: Vec<&str> = taken.iter().map(|one| &*one.url).collect();
    assert_eq!(urls, ["https://example.org/1", "https://example.org/2"]);
    for (one, byte) in taken.iter().zip([1, 2]) {
        assert_eq!(one.task, Some(id(1)));
        assert_eq!(one.event, event_id(id(1)));
        assert_eq!((&*one.project, one.attempts), ("one", 1));
        assert_eq!(one.secrets, [WebhookSecret::new([byte; 32])]);
    }
    site.sweep(NOW + RETENTION_MS).await;
    assert_eq!(take(&site).await.len(), 2, "an expiry is no event");
}

/// The callback is not due before the end, even if the task is deleted. The project's own webhooks
/// get deliveries as well.
pub async fn a_callback_is_due_when_its_task_ends(harness: &impl Harness) {
    let site = harness.open("store").await;
    assert!(add(&site, of_callbacks(1, "one")).await);
    assert!(
        !add(&site, of_callbacks(2, "one")).await,
        "a project has one"
    );
    assert!(add(&site, of_callbacks(3, "two")).await);
    for number in [1, 2] {
        let new = with_callback(number, "one", "hook_1");
        site.tasks.insert(new).await.unwrap();
    }
    end(&site, 3, "one").await;
    assert!(take(&site).await.is_empty());
    let waiting = log(&site, "hook_1").await;
    let states: Vec<_> = waiting.iter().map(|one| one.state).collect();
    assert_eq!(states, [DeliveryState::Waiting; 2]);
    site.cancel("one", 1, RETENTION_MS).await;
    let one = take_one(&site).await;
    assert_eq!(one.url, "https://example.org/callback/1");
    assert_eq!(one.task, Some(id(1)));
    site.tasks.delete("one", id(2)).await.unwrap();
    assert_eq!(take_one(&site).await.task, Some(id(2)));
}

/// This holds between two processes; a settlement after another lease changes nothing.
pub async fn a_delivery_is_leased_to_one_and_settled_once(harness: &impl Harness) {
    let [site, second] = harness.open_both("store").await;
    add(&site, webhook(1, "one")).await;
    for number in 1..=20 {
        end(&site, number, "one").await;
    }
    let (ours, theirs) = tokio::join!(take_up_to(&site, 10, 100), take_up_to(&second, 20, 100));
    let mut all: Vec<u64> = ours.iter().chain(&theirs).map(|one| one.number).collect();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), ours.len() + theirs.len(), "no delivery twice");
    let rest = take(&second).await;
    assert_eq!(all.len() + rest.len(), 20);
    let stale = ours.first().or(theirs.first()).unwrap().clone();
    site.pass_until(NOW + LEASE_MS);
    let again = take(&second).await;
    assert_eq!(again.len(), 20);
    let held = again.iter().find(|one| one.number == stale.number).unwrap();
    assert_eq!((held.attempts, &held.event), (2, &stale.event));
    settle(&site, &stale, DeliveryNext::Delivered).await;
    let found = log(&site, "hook_1").await;
    let of_stale = |found: &[LoggedDelivery]| {
        let found = found.iter().find(|one| one.number == stale.number);
        found.unwrap().clone()
    };
    assert_eq!(of_stale(&found).state, DeliveryState::Pending);
    settle(&second, held, DeliveryNext::Delivered).await;
    let settled = of_stale(&log(&site, "hook_1").await);
    assert_eq!(settled.state, DeliveryState::Delivered);
    let last = settled.last.unwrap();
    assert_eq!((last.at_ms, last.answer), (NOW + LEASE_MS, Ok(204)));
}

/// The pause is by the store's clock. The delivery comes again until it is given up, and when an
/// operator asks for it.
pub async fn a_delivery_comes_again_after_its_pause(harness: &impl Harness) {
    let site = harness.open("store").await;
    add(&site, webhook(1, "one")).await;
    end(&site, 1, "one").await;
    const PAUSE: u64 = 8 * 60 * 60 * 1000;
    let first = take_one(&site).await;
    settle(&site, &first, DeliveryNext::Again { after_ms: PAUSE }).await;
    site.pass_until(NOW + PAUSE - 1);
    assert!(take(&site).await.is_empty());
    site.pass_until(NOW + PAUSE);
    let second = take_one(&site).await;
    assert_eq!((second.attempts, second.event), (2, first.event));
    let done = DeliveryDone {
        number: second.number,
        token: second.token,
        answer: Err("no answer".to_owned()),
        next: DeliveryNext::Failed,
    };
    site.webhooks.complete_delivery(done).await.unwrap();
    site.pass_until(NOW + 2 * PAUSE);
    assert!(take(&site).await.is_empty());
    let [row] = log(&site, "hook_1").await.try_into().unwrap();
    assert_eq!(row.state, DeliveryState::Failed);
    assert_eq!(row.last.unwrap().answer, Err("no answer".to_owned()));
    let number = row.number;
    assert!(change(&site, WebhookChange::Redeliver { number }).await);
    assert!(
        !change(&site, WebhookChange::Redeliver { number }).await,
        "it is pending"
    );
    assert_eq!(take_one(&site).await.attempts, 1);
}

/// Deliveries in progress count; each webhook gets its first before any gets its second.
pub async fn a_webhook_has_a_bounded_share_of_deliveries(harness: &impl Harness) {
    let [site, second] = harness.open_both("store").await;
    for (number, project) in [(1, "slow"), (2, "polite")] {
        add(&site, webhook(number, project)).await;
    }
    for number in 1..=10 {
        end(&site, number, "slow").await;
    }
    end(&site, 11, "polite").await;
    let taken = take_up_to(&site, 2, 4).await;
    let projects: Vec<&str> = taken.iter().map(|one| &*one.project).collect();
    assert_eq!(projects, ["slow", "polite"]);
    assert_eq!(take_up_to(&second, 100, 4).await.len(), 3);
    assert!(take_up_to(&second, 100, 4).await.is_empty());
    end(&site, 12, "polite").await;
    assert_eq!(take_up_to(&second, 100, 4).await[0].project, "polite");
    settle(&site, &taken[0], DeliveryNext::Again { after_ms: 5_000 }).await;
    assert_eq!(take_up_to(&second, 100, 4).await.len(), 1);
}

/// The webhook gets no more events; one for callbacks continues, since other receivers still exist.
pub async fn a_webhook_whose_receiver_is_gone_is_disabled(harness: &impl Harness) {
    let site = harness.open("store").await;
    add(&site, webhook(1, "one")).await;
    add(&site, of_callbacks(2, "one")).await;
    for number in [1, 2] {
        let new = with_callback(number, "one", "hook_2");
        site.tasks.insert(new).await.unwrap();
        site.cancel("one", number, RETENTION_MS).await;
    }
    for taken in take_up_to(&site, 2, 1).await {
        settle(&site, &taken, DeliveryNext::Gone).await;
    }
    assert_eq!(take_one(&site).await.url, "https://example.org/callback/2");
    end(&site, 3, "one").await;
    assert!(take(&site).await.is_empty());
    let webhooks = site.webhooks.webhooks().await.unwrap();
    let disabled: Vec<_> = webhooks.iter().map(|one| one.disabled_at_ms).collect();
    assert_eq!(disabled, [Some(NOW), None]);
    let given_up = log(&site, "hook_1").await;
    assert!(
        given_up
            .iter()
            .all(|one| one.state == DeliveryState::Failed)
    );
    let (id, event) = ("hook_1".to_owned(), "evt_test".to_owned());
    assert!(!change(&site, WebhookChange::Test { id, event }).await);
}

/// The newest first; the old one until its time.
pub async fn a_replaced_secret_signs_for_a_while(harness: &impl Harness) {
    let site = harness.open("store").await;
    add(&site, webhook(1, "one")).await;
    let [old, new] = [1, 9].map(|byte| WebhookSecret::new([byte; 32]));
    let rotate = |id: &str| WebhookChange::Rotate {
        id: id.to_owned(),
        secret: new.clone(),
        old_until_ms: NOW + 1000,
    };
    assert!(change(&site, rotate("hook_1")).await);
    assert!(!change(&site, rotate("unknown")).await);
    end(&site, 1, "one").await;
    let taken = take_one(&site).await;
    assert_eq!(taken.secrets, [new.clone(), old]);
    settle(&site, &taken, DeliveryNext::Again { after_ms: 1000 }).await;
    site.pass_until(NOW + 1000);
    assert_eq!(take_one(&site).await.secrets, [new]);
}

/// A webhook survives with its secrets, pauses and deliveries, until it is removed.
pub async fn webhooks_and_deliveries_outlive_a_restart(harness: &impl Harness) {
    let site = harness.open("store").await;
    let rotated = Webhook {
        old_secret: Some((WebhookSecret::new([7; 32]), NOW + 5)),
        ..webhook(1, "one, \"quoted\"")
    };
    add(&site, rotated.clone()).await;
    add(&site, of_callbacks(2, "one")).await;
    for number in [1, 2] {
        end(&site, number, "one, \"quoted\"").await;
    }
    let [first, _] = take(&site).await.try_into().unwrap();
    settle(
        &site,
        &first,
        DeliveryNext::Again {
            after_ms: LEASE_MS + 1,
        },
    )
    .await;
    drop(site);
    let site = harness.open("store").await;
    let webhooks = site.webhooks.webhooks().await.unwrap();
    assert_eq!(webhooks, [rotated, of_callbacks(2, "one")]);
    // A lease ends with its process, or at its time.
    site.pass_until(NOW + LEASE_MS);
    assert_eq!(take_one(&site).await.task, Some(id(2)));
    site.pass_until(NOW + LEASE_MS + 1);
    assert_eq!(take_one(&site).await.task, Some(id(1)));
    let remove = WebhookChange::Remove {
        id: "hook_1".to_owned(),
    };
    assert!(change(&site, remove.clone()).await);
    assert!(!change(&site, remove).await);
    assert!(log(&site, "hook_1").await.is_empty());
    site.pass_until(NOW + 10 * LEASE_MS);
    assert!(take(&site).await.is_empty());
}

/// The newest are kept; a delivery that waits for the end of its task is not dropped.
pub async fn the_log_of_a_webhook_is_bounded(harness: &impl Harness) {
    let site = harness.open("store").await;
    add(&site, webhook(1, "one")).await;
    fill(&site, WEBHOOK_LOG_MAX + 1).await;
    let count = usize::MAX >> 1;
    let rows = async || site.webhooks.deliveries("hook_1", count).await.unwrap();
    assert_eq!(rows().await.len() as u64, WEBHOOK_LOG_MAX + 1);
    let oldest = rows().await.last().unwrap().clone();
    let [first, second] = take_up_to(&site, 2, 2).await.try_into().unwrap();
    assert_eq!(first.number, oldest.number);
    settle(&site, &second, DeliveryNext::Delivered).await;
    assert_eq!(site.webhooks.trim_deliveries().await.unwrap(), 0);
    let is_under_way = |one: &LoggedDelivery| one.number == first.number;
    assert!(rows().await.iter().any(is_under_way), "not forgotten");
    settle(&site, &first, DeliveryNext::Delivered).await;
    site.webhooks.trim_deliveries().await.unwrap();
    let kept = rows().await;
    assert_eq!(kept.len() as u64, WEBHOOK_LOG_MAX);
    assert!(kept.iter().all(|one| one.number > oldest.number));
}

/// Those that have been due longest are dropped and counted, unless they are under way.
pub async fn p08_the_pending_deliveries_of_a_webhook_are_bounded(harness: &impl Harness) {
    const MORE: u64 = 20;
    let site = harness.open("store").await;
    add(&site, webhook(1, "one")).await;
    add(&site, webhook(2, "two")).await;
    end(&site, 1, "two").await;
    fill(&site, WEBHOOK_PENDING_MAX + MORE).await;
    let newest = site.webhooks.deliveries("hook_1", 1).await.unwrap();
    let under_way = take_up_to(&site, 3, 2).await;
    assert_eq!(under_way.len(), 3, "two and one");
    // A leased one is due later than the others.
    assert_eq!(site.webhooks.trim_deliveries().await.unwrap(), MORE);
    assert_eq!(site.webhooks.trim_deliveries().await.unwrap(), 0);
    let webhooks = site.webhooks.webhooks().await.unwrap();
    let dropped: Vec<u64> = webhooks.iter().map(|one| one.dropped).collect();
    assert_eq!(dropped, [MORE, 0]);
    for one in &under_way {
        settle(&site, one, DeliveryNext::Delivered).await;
    }
    let count = usize::MAX >> 1;
    let kept = site.webhooks.deliveries("hook_1", count).await.unwrap();
    let of_state = |state| kept.iter().filter(|one| one.state == state).count() as u64;
    assert_eq!(of_state(DeliveryState::Pending), WEBHOOK_PENDING_MAX - 2);
    assert_eq!(of_state(DeliveryState::Delivered), 2, "those under way");
    assert_eq!(kept[0], newest[0]);
}

/// Its receiver keeps failing, or the service has no capacity for it now.
pub async fn a_delivery_that_is_postponed_costs_no_attempt(harness: &impl Harness) {
    let site = harness.open("store").await;
    add(&site, webhook(1, "one")).await;
    end(&site, 1, "one").await;
    for round in 1..=20 {
        let taken = take_one(&site).await;
        assert_eq!(taken.attempts, 1, "{round}");
        settle(&site, &taken, DeliveryNext::Later { after_ms: 1_000 }).await;
        assert!(take(&site).await.is_empty());
        site.pass_until(NOW + round * 1_000);
    }
    let [row] = log(&site, "hook_1").await.try_into().unwrap();
    assert_eq!((row.attempts, row.last), (0, None));
    assert_eq!(row.state, DeliveryState::Pending);
}

/// The deliverer need not wait for its next poll; nothing else wakes it.
pub async fn the_end_of_a_task_is_heard_on_every_handle(harness: &impl Harness) {
    let [api, worker] = harness.open_both("store").await;
    let mut hints = [&api, &worker].map(|site| site.webhooks.delivery_hints());
    for number in 1..=3 {
        api.submit(number, "one").await;
    }
    let claim = worker.claim_one().await;
    worker.renew(&claim.lease, renewal(40)).await.unwrap();
    let moved = |hints: &mut watch::Receiver<u64>| hints.has_changed().unwrap();
    assert_eq!(hints.each_mut().map(moved), [false; 2], "nothing has ended");
    worker.complete(&claim).await.unwrap();
    for hints in &mut hints {
        heard(hints, "a result").await;
    }
    api.cancel("one", 2, RETENTION_MS).await;
    for hints in &mut hints {
        heard(hints, "a cancel").await;
    }
    worker.tasks.delete("one", id(3)).await.unwrap();
    for hints in &mut hints {
        heard(hints, "a delete").await;
    }
}
