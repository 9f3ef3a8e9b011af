//! Webhooks and pending deliveries, in the format for moving between stores. Finished deliveries
//! are left behind: they are only a log.

use kinora_contract::{UnixMs, WebhookSecret};
use serde::{Deserialize, Serialize};

use crate::{DeliveryState, Hex, Webhook};

/// A webhook with its secrets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MovedWebhook {
    id: String,
    project: String,
    /// Absent: it signs deliveries to the `callback_url` of requests.
    url: Option<String>,
    secret: Hex,
    /// The old secret, which also signs until this time.
    old_secret: Option<(Hex, UnixMs)>,
    created_at_ms: UnixMs,
    disabled_at_ms: Option<UnixMs>,
}

impl From<Webhook> for MovedWebhook {
    fn from(stored: Webhook) -> Self {
        let hex = |secret: &WebhookSecret| Hex(*secret.bytes());
        Self {
            secret: hex(&stored.secret),
            old_secret: stored
                .old_secret
                .map(|(secret, until_ms)| (hex(&secret), until_ms)),
            id: stored.id,
            project: stored.project,
            url: stored.url,
            created_at_ms: stored.created_at_ms,
            disabled_at_ms: stored.disabled_at_ms,
        }
    }
}

impl From<&MovedWebhook> for Webhook {
    fn from(moved: &MovedWebhook) -> Self {
        let secret = |hex: Hex| WebhookSecret::new(hex.0);
        let moved = moved.clone();
        Self {
            secret: secret(moved.secret),
            old_secret: moved
                .old_secret
                .map(|(hex, until_ms)| (secret(hex), until_ms)),
            id: moved.id,
            project: moved.project,
            url: moved.url,
            created_at_ms: moved.created_at_ms,
            disabled_at_ms: moved.disabled_at_ms,
            dropped: 0,
        }
    }
}

/// A delivery that waits for the end of its task, or is pending. Its lease is left behind: a
/// delivery in progress becomes due immediately, with the same event id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MovedDelivery {
    /// The event's id.
    pub(crate) event: String,
    /// The id of the task that ends; absent for a test.
    pub(crate) task: Option<String>,
    /// The webhook's id.
    pub(crate) webhook: String,
    /// The destination, if not the URL of the webhook.
    pub(crate) url: Option<String>,
    /// Waiting or pending.
    pub(crate) state: DeliveryState,
    /// Attempts so far.
    pub(crate) attempts: u32,
    /// When it is due: 0 means immediately.
    pub(crate) due_ms: UnixMs,
}
