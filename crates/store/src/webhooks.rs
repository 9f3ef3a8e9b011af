//! Webhooks and the deliveries to them. That a task has come to its end, and what is to be delivered for that, is
//! stored in one transaction, so that no event is lost.

use async_trait::async_trait;
use kinora_contract::{TaskId, UnixMs, WebhookSecret};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::StoreError;

/// No delivery is due later than this from now: longer than every pause between attempts.
pub(crate) const AHEAD_MS_MAX: u64 = 25 * 60 * 60 * 1000;

/// The receivers of events, for operators.
#[async_trait]
pub trait Webhooks: Send + Sync + std::fmt::Debug {
    /// All webhooks, in the order of their creation.
    ///
    /// # Errors
    /// [`StoreError`] when they cannot be read.
    async fn webhooks(&self) -> Result<Vec<Webhook>, StoreError>;

    /// Changes one. Returns whether there was something to change.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot change now.
    async fn change_webhook(&self, change: WebhookChange) -> Result<bool, StoreError>;

    /// The newest deliveries to a webhook, at most so many, newest first.
    ///
    /// # Errors
    /// [`StoreError`] when they cannot be read.
    async fn deliveries(&self, webhook: &str, count: usize) -> Result<Vec<Delivery>, StoreError>;
}

/// Webhooks, for the process that delivers.
#[async_trait]
pub trait Deliveries: Webhooks {
    /// Leases deliveries that are due: of each webhook those that are due longest, as many as its bound and those under
    /// way leave, and one of each webhook before a second of any. None of a webhook that is disabled.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot change now.
    async fn take_deliveries(
        &self,
        request: DeliveryRequest,
    ) -> Result<Vec<DueDelivery>, StoreError>;

    /// Stores the result of an attempt, unless its lease has run out and another process holds the delivery. Forgets
    /// the oldest deliveries of the webhook that are over, beyond [`kinora_contract::limits::WEBHOOK_LOG_MAX`].
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot change now.
    async fn settle_delivery(&self, done: DeliveryDone) -> Result<(), StoreError>;

    /// A counter that moves when a task has ended, so that deliveries may be due.
    /// A hint that saves waiting; polling is the truth.
    fn delivery_hints(&self) -> watch::Receiver<u64>;
}

/// A receiver of events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Webhook {
    /// Its identifier.
    pub id: String,
    /// The project whose events it gets.
    pub project: String,
    /// Its address. `None`: it signs what goes to the `callback_url` of requests, and a project has one such.
    pub url: Option<String>,
    /// Signs.
    pub secret: WebhookSecret,
    /// Signs beside it until then.
    pub old_secret: Option<(WebhookSecret, UnixMs)>,
    /// When it was added.
    pub created_at_ms: UnixMs,
    /// When its receiver said that it is gone. It gets nothing more.
    pub disabled_at_ms: Option<UnixMs>,
}

impl Webhook {
    /// The secrets that sign at this time.
    pub(crate) fn secrets(&self, now_ms: UnixMs) -> Vec<WebhookSecret> {
        let old = self.old_secret.as_ref();
        let old = old.filter(|(_, until_ms)| *until_ms > now_ms);
        let old = old.map(|(secret, _)| secret.clone());
        std::iter::once(self.secret.clone()).chain(old).collect()
    }
}

/// Where one task's end is told besides the webhooks of its project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Callback {
    /// The webhook that signs.
    pub webhook: String,
    /// The `callback_url` of the request.
    pub url: String,
}

/// What an operator does with a webhook.
#[derive(Clone, Debug)]
pub enum WebhookChange {
    /// Adds it, unless its project has one for callbacks already and this is another.
    Add(Webhook),
    /// Removes it with its deliveries.
    Remove {
        /// Which one.
        id: String,
    },
    /// Replaces its secret; the old one signs beside the new one until a time.
    Rotate {
        /// Which one.
        id: String,
        /// The new secret.
        secret: WebhookSecret,
        /// Until when the old one signs.
        old_until_ms: UnixMs,
    },
    /// Adds the delivery of a test event to one that has an address and is not disabled.
    Test {
        /// Which one.
        id: String,
        /// The event's id, which no other event has.
        event: String,
    },
    /// Makes a delivery again that has arrived or was given up, with all its attempts.
    Redeliver {
        /// [`Delivery::number`].
        number: u64,
    },
}

/// Where a delivery stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryState {
    /// Its task has not ended.
    Waiting,
    /// It is to be made.
    Pending,
    /// It has arrived.
    Delivered,
    /// It was given up.
    Failed,
}

impl DeliveryState {
    const ALL: [Self; 4] = [Self::Waiting, Self::Pending, Self::Delivered, Self::Failed];

    /// Its name, as it is stored and shown.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Pending => "pending",
            Self::Delivered => "delivered",
            Self::Failed => "failed",
        }
    }

    /// The state of this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }
}

/// A delivery in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Which row.
    pub number: u64,
    /// The event's id.
    pub event: String,
    /// The task that ended, by its id; `None` for a test.
    pub task: Option<String>,
    /// Where it goes, if not to the address of the webhook.
    pub url: Option<String>,
    /// Where it stands.
    pub state: DeliveryState,
    /// Attempts so far.
    pub attempts: u32,
    /// When it is due, while it is pending: 0 at once. The end of the lease while it is being made.
    pub due_ms: UnixMs,
    /// The result of the last attempt.
    pub last: Option<Attempted>,
}

/// The result of an attempt at a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempted {
    /// When it ended, by the clock of the store.
    pub at_ms: UnixMs,
    /// What the receiver answered.
    pub answer: Answer,
}

/// A receiver's answer: its HTTP status, or why there was none.
pub type Answer = Result<u16, String>;

/// Which deliveries to take.
#[derive(Clone, Copy, Debug)]
pub struct DeliveryRequest {
    /// How many at most.
    pub count: usize,
    /// How many of one webhook at most, with those under way.
    pub each: usize,
    /// How long the lease lasts, in milliseconds. A delivery that is not settled by then may be taken again.
    pub lease_ms: u64,
}

/// A leased delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueDelivery {
    /// Which row.
    pub number: u64,
    /// Tells this lease from earlier and later ones of the same delivery.
    pub token: u64,
    /// How often it was taken, this time included.
    pub attempts: u32,
    /// The event's id.
    pub event: String,
    /// The task that ended; `None` for a test.
    pub task: Option<TaskId>,
    /// Whose it is.
    pub project: String,
    /// Where it goes.
    pub url: String,
    /// They sign it, the newest first.
    pub secrets: Vec<WebhookSecret>,
}

/// What became of an attempt.
#[derive(Clone, Debug)]
pub struct DeliveryDone {
    /// Which row.
    pub number: u64,
    /// Of the lease.
    pub token: u64,
    /// What the receiver answered.
    pub answer: Answer,
    /// What follows.
    pub next: DeliveryNext,
}

/// What follows an attempt at a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryNext {
    /// It has arrived.
    Delivered,
    /// It is due again after so many milliseconds.
    Again {
        /// The pause.
        after_ms: u64,
    },
    /// It is given up.
    Failed,
    /// The receiver is gone: the webhook is disabled, and all deliveries to it are given up. Where the receiver is a
    /// request's `callback_url`, only this delivery is.
    Gone,
}

impl DeliveryNext {
    /// The state that it leaves the delivery in.
    pub(crate) const fn state(self) -> DeliveryState {
        match self {
            Self::Delivered => DeliveryState::Delivered,
            Self::Again { .. } => DeliveryState::Pending,
            Self::Failed | Self::Gone => DeliveryState::Failed,
        }
    }

    /// When it is due again.
    pub(crate) const fn due_ms(self, now_ms: UnixMs) -> UnixMs {
        match self {
            Self::Again { after_ms } => now_ms.saturating_add(after_ms),
            Self::Delivered | Self::Failed | Self::Gone => 0,
        }
    }
}
