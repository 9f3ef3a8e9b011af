//! Webhooks and the deliveries that are still to be made, as they are carried from one store to another. Deliveries
//! that have arrived or were given up stay behind: they are a log.

use kinora_contract::{UnixMs, WebhookSecret};
use serde::{Deserialize, Serialize};

use crate::{DeliveryState, Hex, Webhook};

/// A webhook with its secrets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MovedWebhook {
    id: String,
    project: String,
    /// Absent: it signs what goes to the `callback_url` of requests.
    url: Option<String>,
    secret: Hex,
    /// Signs beside the other until then.
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
        }
    }
}

/// A delivery that waits for the end of its task, or is pending. Its lease stays behind: one that was under way is due
/// at once, under the same event id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MovedDelivery {
    /// The event's id.
    pub(crate) event: String,
    /// The task that ends, by its id; absent for a test.
    pub(crate) task: Option<String>,
    /// The webhook's id.
    pub(crate) webhook: String,
    /// Where it goes, if not to the address of the webhook.
    pub(crate) url: Option<String>,
    /// Waiting or pending.
    pub(crate) state: DeliveryState,
    /// Attempts so far.
    pub(crate) attempts: u32,
    /// When it is due: 0 at once.
    pub(crate) due_ms: UnixMs,
}
