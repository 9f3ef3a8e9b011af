//! Webhooks of a store that is moved, and deliveries in every state.

use kinora_contract::WebhookSecret;
use kinora_contract::webhook::event_id;
use kinora_store::conformance::Site;
use kinora_store::conformance::bench::Bench as _;
use kinora_store::conformance::fixtures::{NOW, RETENTION_MS, id};
use kinora_store::{
    DeliveryDone, DeliveryNext, DeliveryRequest, DeliveryState, DueDelivery, NewTask, TaskCallback,
    Webhook, WebhookChange,
};

/// The pause before an attempt is repeated.
const PAUSE_MS: u64 = 30_000;

fn webhook(number: u8, project: &str) -> Webhook {
    Webhook {
        id: format!("hook_{number}"),
        project: project.to_owned(),
        url: Some(format!("https://example.org/{number}?\u{1f511}=\"")),
        secret: WebhookSecret::new([number; 32]),
        old_secret: None,
        created_at_ms: NOW + 9 - u64::from(number),
        disabled_at_ms: None,
        dropped: 0,
    }
}

/// One with two secrets, one of callbacks, and one that is disabled; the last one is the oldest.
pub(super) fn webhooks() -> [Webhook; 3] {
    let disabled = Webhook {
        disabled_at_ms: Some(NOW),
        ..webhook(3, "two")
    };
    let of_callbacks = Webhook {
        url: None,
        ..webhook(2, "one")
    };
    let rotated = Webhook {
        old_secret: Some((WebhookSecret::new([255; 32]), NOW + 2 * PAUSE_MS)),
        ..webhook(1, "two")
    };
    [disabled, of_callbacks, rotated]
}

pub(super) async fn add_webhooks(site: &Site) {
    for webhook in webhooks().into_iter().rev() {
        let added = site.webhooks.change_webhook(WebhookChange::Add(webhook));
        assert!(added.await.unwrap());
    }
}

/// The same task, whose end is also told to an address of its own.
pub(super) fn with_callback(new: NewTask) -> NewTask {
    NewTask {
        callback: Some(TaskCallback {
            webhook: "hook_2".to_owned(),
            url: "https://example.org/callback".to_owned(),
        }),
        ..new
    }
}

async fn take(site: &Site, count: usize) -> Vec<DueDelivery> {
    let request = DeliveryRequest {
        count,
        each: 100,
        lease_ms: 60_000,
    };
    let mut taken = site.webhooks.lease_deliveries(request).await.unwrap();
    taken.sort_by_key(|one| one.number);
    taken
}

/// Of the first three deliveries one arrives, one is to be repeated, and one stays under way.
pub(super) async fn deliver_some(site: &Site) {
    let taken = take(site, 3).await;
    assert_eq!(taken.len(), 3, "{taken:?}");
    let again = DeliveryNext::Again { after_ms: PAUSE_MS };
    for (one, next) in taken.iter().zip([DeliveryNext::Delivered, again]) {
        let done = DeliveryDone {
            number: one.number,
            token: one.token,
            answer: Ok(200),
            next,
        };
        site.webhooks.complete_delivery(done).await.unwrap();
    }
}

/// Webhooks sign as before, and everything that was still to be told is told once: what was under way at once, what is
/// to be repeated after its pause, and the callback of task 1, which is cancelled here, at its end.
pub(super) async fn assert_deliveries_go_on(site: &Site) {
    assert_eq!(site.webhooks.webhooks().await.unwrap(), webhooks());
    let log = site.webhooks.deliveries("hook_1", 100).await.unwrap();
    assert!(
        log.iter().all(|one| one.state == DeliveryState::Pending),
        "what has arrived stays behind: {log:?}"
    );
    let [disabled, of_callbacks, rotated] = webhooks();
    let due = take(site, 100).await;
    // Tasks of the project in the order of their ends; the first was told, the second waits for its pause.
    let events: Vec<_> = due
        .iter()
        .map(|one| (&*one.event, one.attempts, &one.url))
        .collect();
    let [_, _, first, rest @ ..] = ENDED.map(|number| event_id(id(number)));
    let url = rotated.url.unwrap();
    let mut wanted = vec![(&*first, 2, &url)];
    wanted.extend(rest.iter().map(|event| (&**event, 1, &url)));
    assert_eq!(events, wanted);
    let (old, _) = rotated.old_secret.unwrap();
    for one in &due {
        assert_eq!(one.secrets, [rotated.secret.clone(), old.clone()]);
    }
    site.pass_until(NOW + PAUSE_MS + 1_000);
    let [again] = take(site, 100).await.try_into().unwrap();
    assert_eq!(
        (&*again.event, again.attempts),
        (&*event_id(id(ENDED[1])), 2)
    );
    site.cancel("one", 1, RETENTION_MS).await;
    let [callback] = take(site, 100).await.try_into().unwrap();
    assert_eq!(callback.url, "https://example.org/callback");
    assert_eq!(callback.secrets, [of_callbacks.secret]);
    let of_disabled = site.webhooks.deliveries(&disabled.id, 100).await.unwrap();
    assert!(of_disabled.is_empty(), "{of_disabled:?}");
}

/// Tasks of the project `two` in the order in which [`super::filled::fill`] ends them.
const ENDED: [u64; 6] = [4, 7, 8, 9, 12, 13];
