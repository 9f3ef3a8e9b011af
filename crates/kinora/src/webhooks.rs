//! `kinora webhooks`: add, list, remove, rotate, test, and the log of deliveries. Works directly on
//! the store, beside a running service, and never creates a store.

use std::sync::Arc;
use std::time::Duration;

use kinora_contract::limits::{WEBHOOK_ROTATION_HOURS, WEBHOOKS_MAX};
use kinora_contract::{Clock, WebhookSecret, reference_url};
use kinora_store::{DeliveryState, LoggedDelivery, Webhook, WebhookChange, WebhookStore};
use serde_json::{Value, json};

use crate::cli::{AddArgs, DeliveriesArgs, HomeArgs, WebhookArgs, WebhooksCommand};
use crate::failure::Failure;
use crate::output::{date, print, printable, table, unix_seconds};
use crate::system::{SystemClock, random, random_letters};
use crate::{shell_hint, store_access};

const ROTATION_MS: u64 = WEBHOOK_ROTATION_HOURS * 60 * 60 * 1000;
/// How long a test waits for its delivery: the maximum time of one attempt, and the service's pause
/// before it.
const TEST_LOOKS: u32 = 60;
const TEST_LOOK_EVERY: Duration = Duration::from_millis(250);

/// Runs a webhook command.
pub(crate) fn run(command: &WebhooksCommand) -> Result<(), Failure> {
    let runtime = store_access::runtime()?;
    match command {
        WebhooksCommand::Add(args) => runtime.block_on(add(args)),
        WebhooksCommand::List { json, home } => runtime.block_on(list(*json, home)),
        WebhooksCommand::Remove(args) => runtime.block_on(remove(args)),
        WebhooksCommand::Rotate(args) => runtime.block_on(rotate(args)),
        WebhooksCommand::Test(args) => runtime.block_on(test(args)),
        WebhooksCommand::Deliveries(args) => runtime.block_on(deliveries(args)),
        WebhooksCommand::Redeliver { number, home } => runtime.block_on(redeliver(*number, home)),
    }
}

fn open(home: &HomeArgs) -> Result<Arc<dyn WebhookStore>, Failure> {
    let config = store_access::config(home)?;
    let opened = kinora_store::open_webhooks(&config.store_url());
    opened.map_err(|error| shell_hint::open_failure(error, "webhooks list", home))
}

/// The webhook with this id.
async fn find_webhook(store: &dyn WebhookStore, id: &str) -> Result<Webhook, Failure> {
    let mut webhooks = store.webhooks().await?.into_iter();
    webhooks.find(|one| one.id == id).ok_or_else(|| {
        Failure::new(format!(
            "There is no webhook with the id {}; `kinora webhooks list` shows all.",
            id.escape_debug()
        ))
    })
}

async fn add(args: &AddArgs) -> Result<(), Failure> {
    let project = args.project.trim();
    if project.is_empty() {
        return Err(Failure::new("A webhook needs a project."));
    }
    if let Some(url) = &args.url {
        let checked = reference_url::check(url, "--url");
        checked.map_err(|refusal| Failure::new(format!("--url: {}", refusal.message)))?;
    }
    let store = open(&args.home)?;
    let webhooks = store.webhooks().await?;
    let own = webhooks.iter().filter(|one| one.project == project);
    if own.count() >= WEBHOOKS_MAX {
        return Err(Failure::new(format!(
            "The project has the maximum of {WEBHOOKS_MAX} webhooks; remove one first."
        )));
    }
    let secret = WebhookSecret::new(random()?);
    let webhook = Webhook {
        id: format!("wh_{}", random_letters()?),
        project: project.to_owned(),
        url: args.url.clone(),
        secret: secret.clone(),
        old_secret: None,
        created_at_ms: SystemClock.now_ms(),
        disabled_at_ms: None,
        dropped: 0,
    };
    if !store.change_webhook(WebhookChange::Add(webhook)).await? {
        return Err(Failure::new(
            "The project has a secret for callbacks already; replace it with `kinora webhooks rotate`, or name an \
             address with --url.",
        ));
    }
    print(&format!("{}\n", secret.reveal()));
    Ok(())
}

async fn list(json: bool, home: &HomeArgs) -> Result<(), Failure> {
    let webhooks = open(home)?.webhooks().await?;
    let now_ms = SystemClock.now_ms();
    print(&if json {
        webhooks_json(&webhooks, now_ms)
    } else {
        webhooks_table(&webhooks, now_ms)
    });
    Ok(())
}

async fn remove(args: &WebhookArgs) -> Result<(), Failure> {
    let store = open(&args.home)?;
    let Webhook { id, .. } = find_webhook(&*store, &args.id).await?;
    let remove = WebhookChange::Remove { id };
    store.change_webhook(remove).await?;
    print(&format!("Removed {} and its deliveries.\n", args.id));
    Ok(())
}

async fn rotate(args: &WebhookArgs) -> Result<(), Failure> {
    let store = open(&args.home)?;
    let Webhook { id, .. } = find_webhook(&*store, &args.id).await?;
    let secret = WebhookSecret::new(random()?);
    let rotate = WebhookChange::Rotate {
        id,
        secret: secret.clone(),
        old_until_ms: SystemClock.now_ms().saturating_add(ROTATION_MS),
    };
    store.change_webhook(rotate).await?;
    print(&format!("{}\n", secret.reveal()));
    Ok(())
}

async fn test(args: &WebhookArgs) -> Result<(), Failure> {
    let store = open(&args.home)?;
    let Webhook { id, .. } = find_webhook(&*store, &args.id).await?;
    let event = format!("evt_test_{}", random_letters()?);
    let test = WebhookChange::Test {
        id: id.clone(),
        event: event.clone(),
    };
    // The store decides: between the look above and this change another command may have removed
    // the webhook.
    if !store.change_webhook(test).await? {
        return Err(Failure::new(
            "The webhook has no URL of its own, or is disabled: there is nothing to test.",
        ));
    }
    // The running service sends the event; this command only watches the store for the outcome.
    for _ in 0..TEST_LOOKS {
        tokio::time::sleep(TEST_LOOK_EVERY).await;
        let newest = store.deliveries(&id, 100).await?;
        let found = newest.into_iter().find(|one| one.event == event);
        if let Some(result) = found.and_then(|delivery| delivery_outcome(&delivery)) {
            return result;
        }
    }
    Err(Failure::new(
        "The test event is stored, but was not sent yet: no service is running on this store. It will be sent when one \
         does.",
    ))
}

/// The outcome of the first attempt; `None` before it.
fn delivery_outcome(delivery: &LoggedDelivery) -> Option<Result<(), Failure>> {
    let answer = &delivery.last.as_ref()?.answer;
    Some(match (delivery.state, answer) {
        (DeliveryState::Delivered, Ok(status)) => {
            print(&format!("Delivered; the receiver answered {status}.\n"));
            Ok(())
        }
        (_, Ok(status)) => Err(Failure::new(format!(
            "Not delivered: the receiver answered {status}. Any status from 200 to 299 confirms a delivery."
        ))),
        (_, Err(why)) => Err(Failure::new(format!("Not delivered: {why}"))),
    })
}

async fn deliveries(args: &DeliveriesArgs) -> Result<(), Failure> {
    let store = open(&args.home)?;
    let Webhook { id, .. } = find_webhook(&*store, &args.id).await?;
    let found = store.deliveries(&id, args.count as usize).await?;
    print(&if args.json {
        deliveries_json(&found)
    } else {
        deliveries_table(&found)
    });
    Ok(())
}

async fn redeliver(number: u64, home: &HomeArgs) -> Result<(), Failure> {
    let again = WebhookChange::Redeliver { number };
    if !open(home)?.change_webhook(again).await? {
        return Err(Failure::new(format!(
            "There is no delivered or given-up delivery {number}."
        )));
    }
    print(&format!("Delivery {number} will be repeated.\n"));
    Ok(())
}

/// Shown instead of a URL for a webhook whose requests name their own.
const CALLBACKS: &str = "callback_url";

/// One line per webhook, oldest first.
fn webhooks_table(webhooks: &[Webhook], now_ms: u64) -> String {
    let heads = [
        "ID",
        "PROJECT",
        "STATE",
        "CREATED",
        "OLD SECRET UNTIL",
        "DROPPED",
        "URL",
    ];
    let rows = webhooks.iter().map(|one| {
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
    });
    table(heads, rows)
}

/// An array with one object per webhook, oldest first.
fn webhooks_json(webhooks: &[Webhook], now_ms: u64) -> String {
    let all: Value = webhooks
        .iter()
        .map(|one| {
            json!({
                "id": one.id,
                "project": one.project,
                "url": one.url,
                "state": state(one),
                "created_at": one.created_at_ms / 1000,
                "disabled_at": unix_seconds(one.disabled_at_ms),
                "old_secret_until": unix_seconds(old_until(one, now_ms)),
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

/// One line per delivery, newest first.
fn deliveries_table(deliveries: &[LoggedDelivery]) -> String {
    let heads = [
        "NUMBER", "STATE", "ATTEMPTS", "LAST", "ANSWER", "NEXT", "EVENT", "TASK", "URL",
    ];
    let rows = deliveries.iter().map(|one| {
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
            next_attempt_ms(one).map_or_else(String::new, date),
            one.event.clone(),
            one.task.clone().unwrap_or_default(),
            printable(one.url.as_deref().unwrap_or_default()),
        ]
    });
    table(heads, rows)
}

/// An array with one object per delivery, newest first.
fn deliveries_json(deliveries: &[LoggedDelivery]) -> String {
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
                "last_at": unix_seconds(one.last.as_ref().map(|last| last.at_ms)),
                "status": answer.and_then(|answer| answer.as_ref().ok()),
                "error": answer.and_then(|answer| answer.as_ref().err()),
                "next_at": unix_seconds(next_attempt_ms(one)),
            })
        })
        .collect();
    format!("{all:#}\n")
}

/// When it is due; `None` if it is due now, or never.
fn next_attempt_ms(delivery: &LoggedDelivery) -> Option<u64> {
    let is_pending = delivery.state == DeliveryState::Pending && delivery.due_ms > 0;
    is_pending.then_some(delivery.due_ms)
}

#[cfg(test)]
mod tests {
    use kinora_contract::WebhookSecret;
    use kinora_store::DeliveryAttempt;

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
        let mut one = LoggedDelivery {
            number: 4711,
            event: "evt_1".to_owned(),
            task: Some("video_1".to_owned()),
            url: None,
            state: DeliveryState::Pending,
            attempts: 2,
            due_ms: NOW + 60_000,
            last: Some(DeliveryAttempt {
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
