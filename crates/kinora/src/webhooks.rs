//! `kinora webhooks`: add, list, remove, rotate, test, and the log of deliveries. Works directly on
//! the store, beside a running service, and never creates a store.

mod listing;

use std::sync::Arc;
use std::time::Duration;

use kinora_contract::limits::{WEBHOOK_ROTATION_HOURS, WEBHOOKS_MAX};
use kinora_contract::{Clock, WebhookSecret, reference_url};
use kinora_store::{Delivery, DeliveryState, StoreError, Webhook, WebhookChange, Webhooks};

use crate::cli::{AddArgs, DeliveriesArgs, HomeArgs, WebhookArgs, WebhooksArgs, WebhooksCommand};
use crate::config::Config;
use crate::failure::Failure;
use crate::output::print;
use crate::system::{SystemClock, random};
use crate::{folder, hint};

const ROTATION_MS: u64 = WEBHOOK_ROTATION_HOURS * 60 * 60 * 1000;
/// How long a test waits for its delivery: the maximum time of one attempt, and the service's pause
/// before it.
const TEST_LOOKS: u32 = 60;
const TEST_LOOK_EVERY: Duration = Duration::from_millis(250);

/// Runs a webhook command.
pub(crate) fn run(args: &WebhooksArgs) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::because("The command could not start", error))?;
    match &args.command {
        WebhooksCommand::Add(args) => runtime.block_on(add(args)),
        WebhooksCommand::List { json, home } => runtime.block_on(list(*json, home)),
        WebhooksCommand::Remove(args) => runtime.block_on(remove(args)),
        WebhooksCommand::Rotate(args) => runtime.block_on(rotate(args)),
        WebhooksCommand::Test(args) => runtime.block_on(test(args)),
        WebhooksCommand::Deliveries(args) => runtime.block_on(deliveries(args)),
        WebhooksCommand::Redeliver { number, home } => runtime.block_on(redeliver(*number, home)),
    }
}

fn open(home: &HomeArgs) -> Result<Arc<dyn Webhooks>, Failure> {
    let config = Config::load(home)?;
    folder::refuse_unfinished_restore(&config.data)?;
    let opened = kinora_store::open_webhooks(&config.store_url());
    opened.map_err(|error| hint::not_opened(error, "webhooks list", home))
}

fn failed(error: StoreError) -> Failure {
    Failure::because("The store does not answer", error)
}

/// The webhook with this id.
async fn find(store: &dyn Webhooks, id: &str) -> Result<Webhook, Failure> {
    let mut webhooks = store.webhooks().await.map_err(failed)?.into_iter();
    webhooks.find(|one| one.id == id).ok_or_else(|| {
        Failure::new(format!(
            "There is no webhook with the id {}; `kinora webhooks list` shows all.",
            id.escape_debug()
        ))
    })
}

fn random_name() -> Result<String, Failure> {
    let letters = random::<12>()?;
    Ok(letters
        .iter()
        .map(|byte| char::from(b'a' + byte % 26))
        .collect())
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
    let webhooks = store.webhooks().await.map_err(failed)?;
    let own = webhooks.iter().filter(|one| one.project == project);
    if own.count() >= WEBHOOKS_MAX {
        return Err(Failure::new(format!(
            "The project has the maximum of {WEBHOOKS_MAX} webhooks; remove one first."
        )));
    }
    let secret = WebhookSecret::new(random()?);
    let webhook = Webhook {
        id: format!("wh_{}", random_name()?),
        project: project.to_owned(),
        url: args.url.clone(),
        secret: secret.clone(),
        old_secret: None,
        created_at_ms: SystemClock.now_ms(),
        disabled_at_ms: None,
        dropped: 0,
    };
    let added = store.change_webhook(WebhookChange::Add(webhook)).await;
    if !added.map_err(failed)? {
        return Err(Failure::new(
            "The project has a secret for callbacks already; replace it with `kinora webhooks rotate`, or name an \
             address with --url.",
        ));
    }
    print(&format!("{}\n", secret.reveal()));
    Ok(())
}

async fn list(json: bool, home: &HomeArgs) -> Result<(), Failure> {
    let webhooks = open(home)?.webhooks().await.map_err(failed)?;
    let now_ms = SystemClock.now_ms();
    print(&if json {
        listing::webhooks_json(&webhooks, now_ms)
    } else {
        listing::webhooks_table(&webhooks, now_ms)
    });
    Ok(())
}

async fn remove(args: &WebhookArgs) -> Result<(), Failure> {
    let store = open(&args.home)?;
    let Webhook { id, .. } = find(&*store, &args.id).await?;
    let remove = WebhookChange::Remove { id };
    store.change_webhook(remove).await.map_err(failed)?;
    print(&format!("Removed {} and its deliveries.\n", args.id));
    Ok(())
}

async fn rotate(args: &WebhookArgs) -> Result<(), Failure> {
    let store = open(&args.home)?;
    let Webhook { id, .. } = find(&*store, &args.id).await?;
    let secret = WebhookSecret::new(random()?);
    let rotate = WebhookChange::Rotate {
        id,
        secret: secret.clone(),
        old_until_ms: SystemClock.now_ms().saturating_add(ROTATION_MS),
    };
    store.change_webhook(rotate).await.map_err(failed)?;
    print(&format!("{}\n", secret.reveal()));
    Ok(())
}

async fn test(args: &WebhookArgs) -> Result<(), Failure> {
    let store = open(&args.home)?;
    let Webhook { id, .. } = find(&*store, &args.id).await?;
    let event = format!("evt_test_{}", random_name()?);
    let test = WebhookChange::Test {
        id: id.clone(),
        event: event.clone(),
    };
    if !store.change_webhook(test).await.map_err(failed)? {
        return Err(Failure::new(
            "The webhook has no URL of its own, or is disabled: there is nothing to test.",
        ));
    }
    for _ in 0..TEST_LOOKS {
        tokio::time::sleep(TEST_LOOK_EVERY).await;
        let newest = store.deliveries(&id, 100).await.map_err(failed)?;
        let found = newest.into_iter().find(|one| one.event == event);
        if let Some(result) = found.and_then(|delivery| tested(&delivery)) {
            return result;
        }
    }
    Err(Failure::new(
        "The test event is stored, but was not sent yet: no service is running on this store. It will be sent when one \
         does.",
    ))
}

/// The outcome of the first attempt; `None` before it.
fn tested(delivery: &Delivery) -> Option<Result<(), Failure>> {
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
    let Webhook { id, .. } = find(&*store, &args.id).await?;
    let found = store.deliveries(&id, args.count as usize).await;
    let found = found.map_err(failed)?;
    print(&if args.json {
        listing::deliveries_json(&found)
    } else {
        listing::deliveries_table(&found)
    });
    Ok(())
}

async fn redeliver(number: u64, home: &HomeArgs) -> Result<(), Failure> {
    let again = WebhookChange::Redeliver { number };
    let changed = open(home)?.change_webhook(again).await;
    if !changed.map_err(failed)? {
        return Err(Failure::new(format!(
            "There is no delivered or given-up delivery {number}."
        )));
    }
    print(&format!("Delivery {number} will be repeated.\n"));
    Ok(())
}
