//! Webhooks and deliveries for people and programs: an aligned table, or JSON.

use kinora_store::{Delivery, DeliveryState, Webhook};
use serde_json::{Value, json};

use crate::date::date;
use crate::table::{aligned, printable};

/// Instead of a URL: each request has its own.
const CALLBACKS: &str = "callback_url";

/// One line per webhook, oldest first.
pub(super) fn webhooks_table(webhooks: &[Webhook], now_ms: u64) -> String {
    let heads = [
        "ID",
        "PROJECT",
        "STATE",
        "CREATED",
        "OLD SECRET UNTIL",
        "DROPPED",
        "URL",
    ];
    let mut rows = vec![heads.map(str::to_owned)];
    rows.extend(webhooks.iter().map(|one| {
        let url = one.url.as_deref().unwrap_or(CALLBACKS);
        [
            one.id.clone(),
            printable(&one.project),
            state(one).to_owned(),
            date(one.created_at_ms),
            old_until(one, now_ms).map_or_else(String::new, date),
            one.dropped.to_string(),
            printable(url),
        ]
    }));
    aligned(&rows)
}

/// An array with one object per webhook, oldest first.
pub(super) fn webhooks_json(webhooks: &[Webhook], now_ms: u64) -> String {
    let all: Value = webhooks
        .iter()
        .map(|one| {
            json!({
                "id": one.id,
                "project": one.project,
                "url": one.url,
                "state": state(one),
                "created_at": one.created_at_ms / 1000,
                "disabled_at": seconds(one.disabled_at_ms),
                "old_secret_until": seconds(old_until(one, now_ms)),
                "dropped": one.dropped,
            })
        })
        .collect();
    format!("{all:#}\n")
}

const fn state(webhook: &Webhook) -> &'static str {
    match webhook.disabled_at_ms {
        Some(_) => "disabled",
        None => "enabled",
    }
}

fn old_until(webhook: &Webhook, now_ms: u64) -> Option<u64> {
    let (_, until_ms) = webhook.old_secret.as_ref()?;
    Some(*until_ms).filter(|until_ms| *until_ms > now_ms)
}

fn seconds(time_ms: Option<u64>) -> Option<u64> {
    time_ms.map(|time_ms| time_ms / 1000)
}

/// One line per delivery, newest first.
pub(super) fn deliveries_table(deliveries: &[Delivery]) -> String {
    let heads = [
        "NUMBER", "STATE", "ATTEMPTS", "LAST", "ANSWER", "NEXT", "EVENT", "TASK", "URL",
    ];
    let mut rows = vec![heads.map(str::to_owned)];
    rows.extend(deliveries.iter().map(|one| {
        let last = one.last.as_ref();
        [
            one.number.to_string(),
            one.state.name().to_owned(),
            one.attempts.to_string(),
            last.map_or_else(String::new, |last| date(last.at_ms)),
            last.map_or_else(String::new, |last| match &last.answer {
                Ok(status) => status.to_string(),
                Err(why) => printable(why),
            }),
            next(one).map_or_else(String::new, date),
            one.event.clone(),
            one.task.clone().unwrap_or_default(),
            printable(one.url.as_deref().unwrap_or_default()),
        ]
    }));
    aligned(&rows)
}

/// An array with one object per delivery, newest first.
pub(super) fn deliveries_json(deliveries: &[Delivery]) -> String {
    let all: Value = deliveries
        .iter()
        .map(|one| {
            let answer = one.last.as_ref().map(|last| &last.answer);
            json!({
                "number": one.number,
                "event": one.event,
                "task": one.task,
                "url": one.url,
                "state": one.state.name(),
                "attempts": one.attempts,
                "last_at": seconds(one.last.as_ref().map(|last| last.at_ms)),
                "status": answer.and_then(|answer| answer.as_ref().ok()),
                "error": answer.and_then(|answer| answer.as_ref().err()),
                "next_at": seconds(next(one)),
            })
        })
        .collect();
    format!("{all:#}\n")
}

/// When it is due; `None` if it is due now, or never.
fn next(delivery: &Delivery) -> Option<u64> {
    let is_pending = delivery.state == DeliveryState::Pending && delivery.due_ms > 0;
    is_pending.then_some(delivery.due_ms)
}

#[cfg(test)]
mod tests {
    use kinora_contract::WebhookSecret;
    use kinora_store::Attempted;

    use super::*;

    const NOW: u64 = 1_795_319_100_000;

    fn webhook() -> Webhook {
        Webhook {
            id: "wh_abc".to_owned(),
            project: "shop\u{1b}".to_owned(),
            url: None,
            secret: WebhookSecret::new([1; 32]),
            old_secret: Some((WebhookSecret::new([2; 32]), NOW + 60_000)),
            created_at_ms: NOW,
            disabled_at_ms: None,
            dropped: 0,
        }
    }

    #[test]
    fn no_secret_and_no_control_character_is_shown() {
        let (table, json) = (
            webhooks_table(&[webhook()], NOW),
            webhooks_json(&[webhook()], NOW),
        );
        for text in [&table, &json] {
            assert!(
                !text.contains("whsec_") && !text.contains('\u{1b}'),
                "{text:?}"
            );
            assert!(
                text.contains("wh_abc") && text.contains("enabled"),
                "{text}"
            );
        }
        assert!(
            table.contains(CALLBACKS) && table.contains("2026-11-22 03:46"),
            "{table}"
        );
        assert!(!webhooks_table(&[webhook()], NOW + 60_000).contains("03:46"));
    }

    #[test]
    fn a_delivery_says_what_was_answered_and_what_comes() {
        let mut one = Delivery {
            number: 4711,
            event: "evt_1".to_owned(),
            task: Some("video_1".to_owned()),
            url: None,
            state: DeliveryState::Pending,
            attempts: 2,
            due_ms: NOW + 60_000,
            last: Some(Attempted {
                at_ms: NOW,
                answer: Ok(503),
            }),
        };
        let table = deliveries_table(std::slice::from_ref(&one));
        for part in [
            "4711",
            "pending",
            "503",
            "2026-11-22 03:45",
            "2026-11-22 03:46",
        ] {
            assert!(table.contains(part), "{part}: {table}");
        }
        one.state = DeliveryState::Delivered;
        let value: Value = serde_json::from_str(&deliveries_json(&[one])).unwrap();
        assert_eq!(value[0]["status"], 503);
        assert_eq!(value[0]["next_at"], Value::Null);
        assert_eq!(value[0]["last_at"], NOW / 1000);
    }
}
