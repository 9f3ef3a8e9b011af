//! Webhooks and their deliveries. The end of a task and its deliveries are stored in one
//! transaction, so no event is lost.

use async_trait::async_trait;
use kinora_contract::{TaskId, UnixMs, WebhookSecret};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::StoreError;

/// Maximum time until a delivery is due: longer than every pause between attempts. One that seems to
/// be due later was stamped by a wrong clock, and counts as due.
pub(crate) const AHEAD_MS_MAX: u64 = 25 * 60 * 60 * 1000;
/// Maximum number of deliveries of one kind that a trim removes from a webhook.
pub(crate) const TRIM_STEP: u64 = 2_000;

/// Webhooks, for operators.
#[async_trait]
pub trait WebhookStore: Send + Sync + std::fmt::Debug {
    /// All webhooks, in order of creation.
    ///
    /// # Errors
    /// [`StoreError`] if they cannot be read.
    async fn webhooks(&self) -> Result<Vec<Webhook>, StoreError>;

    /// Changes a webhook. Returns whether it existed.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be written now.
    async fn change_webhook(&self, change: WebhookChange) -> Result<bool, StoreError>;

    /// The newest deliveries to a webhook, at most `count`, newest first.
    ///
    /// # Errors
    /// [`StoreError`] if they cannot be read.
    async fn deliveries(
        &self,
        webhook: &str,
        count: usize,
    ) -> Result<Vec<LoggedDelivery>, StoreError>;
}

/// Webhooks, for the process that makes deliveries.
#[async_trait]
pub trait DeliveryStore: WebhookStore {
    /// Leases due deliveries: for each webhook those due longest, up to its limit minus those in
    /// progress, and one of each webhook before a second of any. None for a disabled webhook.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be written now.
    async fn lease_deliveries(
        &self,
        request: DeliveryRequest,
    ) -> Result<Vec<DueDelivery>, StoreError>;

    /// Stores the result of an attempt, unless its lease has ended and another process holds the
    /// delivery.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be written now.
    async fn complete_delivery(&self, done: DeliveryDone) -> Result<(), StoreError>;

    /// Removes of each webhook the oldest finished deliveries beyond
    /// [`kinora_contract::limits::WEBHOOK_LOG_MAX`], and the pending ones that have been due longest
    /// beyond [`kinora_contract::limits::WEBHOOK_PENDING_MAX`], a limited number of them at a time.
    /// Returns the number of pending ones.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be written now.
    async fn trim_deliveries(&self) -> Result<u64, StoreError>;

    /// A counter that moves when a task has ended, so that deliveries may be due. Only a hint that
    /// shortens waiting; polling must be enough.
    fn delivery_hints(&self) -> watch::Receiver<u64>;
}

/// A receiver of events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Webhook {
    /// Its identifier.
    pub id: String,
    /// The project whose events it gets.
    pub project: String,
    /// Its URL. `None`: it signs deliveries to the `callback_url` of requests; a project has one
    /// such webhook.
    pub url: Option<String>,
    /// The secret that signs.
    pub secret: WebhookSecret,
    /// The old secret, which also signs until this time.
    pub old_secret: Option<(WebhookSecret, UnixMs)>,
    /// Time of creation.
    pub created_at_ms: UnixMs,
    /// When its receiver reported that it is gone. It gets no more events.
    pub disabled_at_ms: Option<UnixMs>,
    /// How many of its pending deliveries were dropped because too many were pending.
    pub dropped: u64,
}

impl Webhook {
    /// The secrets that sign at this time.
    pub(crate) fn secrets(&self, now_ms: UnixMs) -> Vec<WebhookSecret> {
        let old = self.old_secret.as_ref();
        // After a rotation both secrets sign for a while, so that a receiver can change to the new
        // one at its own time.
        let old = old.filter(|(_, until_ms)| *until_ms > now_ms);
        let old = old.map(|(secret, _)| secret.clone());
        std::iter::once(self.secret.clone()).chain(old).collect()
    }
}

/// The webhook of one task's end, besides those of its project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskCallback {
    /// The webhook whose secret signs.
    pub webhook: String,
    /// The `callback_url` of the request.
    pub url: String,
}

/// An operator's change of a webhook.
#[derive(Clone, Debug)]
pub enum WebhookChange {
    /// Adds it, unless it is for callbacks and its project already has one for them.
    Add(Webhook),
    /// Removes it and its deliveries.
    Remove {
        /// Its id.
        id: String,
    },
    /// Replaces its secret; the old one also signs until a given time.
    Rotate {
        /// Its id.
        id: String,
        /// The new secret.
        secret: WebhookSecret,
        /// Until when the old secret also signs.
        old_until_ms: UnixMs,
    },
    /// Adds the delivery of a test event, if the webhook has a URL and is not disabled.
    Test {
        /// Its id.
        id: String,
        /// The event's unique id.
        event: String,
    },
    /// Repeats a delivery that arrived or was given up, with all its attempts.
    Redeliver {
        /// [`LoggedDelivery::number`].
        number: u64,
    },
}

/// The state of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryState {
    /// The task has not ended.
    Waiting,
    /// The delivery is due, now or later.
    Pending,
    /// The delivery arrived.
    Delivered,
    /// The delivery was given up.
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
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }
}

/// A delivery in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedDelivery {
    /// Number of its row.
    pub number: u64,
    /// The event's id.
    pub event: String,
    /// Id of the task that ended; `None` for a test.
    pub task: Option<String>,
    /// The destination, if not the URL of the webhook.
    pub url: Option<String>,
    /// Its state.
    pub state: DeliveryState,
    /// Attempts so far.
    pub attempts: u32,
    /// When it is due, while it is pending: 0 means immediately. During an attempt, the end of the
    /// lease.
    pub due_ms: UnixMs,
    /// The result of the last attempt.
    pub last: Option<DeliveryAttempt>,
}

/// The result of an attempt at a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryAttempt {
    /// When it ended, by the clock of the store.
    pub at_ms: UnixMs,
    /// The receiver's answer.
    pub answer: ReceiverAnswer,
}

/// A receiver's answer: its HTTP status, or why there was none.
pub type ReceiverAnswer = Result<u16, String>;

/// A request for deliveries.
#[derive(Clone, Copy, Debug)]
pub struct DeliveryRequest {
    /// Maximum number of deliveries.
    pub count: usize,
    /// Maximum number for one webhook, including those in progress.
    pub each: usize,
    /// Length of the lease in milliseconds. A delivery that is not settled by then may be taken
    /// again.
    pub lease_ms: u64,
}

/// A leased delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueDelivery {
    /// Number of its row.
    pub number: u64,
    /// Distinguishes this lease from earlier and later ones of the same delivery.
    pub token: u64,
    /// Number of times it was taken, including this one.
    pub attempts: u32,
    /// The event's id.
    pub event: String,
    /// The task that ended; `None` for a test.
    pub task: Option<TaskId>,
    /// The project that owns the webhook.
    pub project: String,
    /// The destination.
    pub url: String,
    /// The secrets that sign it, newest first.
    pub secrets: Vec<WebhookSecret>,
}

/// The outcome of an attempt.
#[derive(Clone, Debug)]
pub struct DeliveryDone {
    /// Number of its row.
    pub number: u64,
    /// Token of the lease.
    pub token: u64,
    /// The receiver's answer.
    pub answer: ReceiverAnswer,
    /// The next step.
    pub next: DeliveryNext,
}

/// The next step after an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryNext {
    /// The delivery arrived.
    Delivered,
    /// The delivery is due again after a pause.
    Again {
        /// The pause.
        after_ms: u64,
    },
    /// The delivery was not attempted, which costs no attempt, and is due after a pause.
    Later {
        /// The pause.
        after_ms: u64,
    },
    /// The delivery is given up.
    Failed,
    /// The receiver is gone: the webhook is disabled, and all its deliveries are given up. If the
    /// receiver is a request's `callback_url`, only this delivery is given up.
    Gone,
}

impl DeliveryNext {
    /// The resulting state of the delivery.
    pub(crate) const fn state(self) -> DeliveryState {
        match self {
            Self::Delivered => DeliveryState::Delivered,
            Self::Again { .. } | Self::Later { .. } => DeliveryState::Pending,
            Self::Failed | Self::Gone => DeliveryState::Failed,
        }
    }

    /// When it is due again.
    pub(crate) const fn due_ms(self, now_ms: UnixMs) -> UnixMs {
        match self {
            Self::Again { after_ms } | Self::Later { after_ms } => now_ms.saturating_add(after_ms),
            // Never due: a finished delivery leaves the index of pending ones by its state.
            Self::Delivered | Self::Failed | Self::Gone => 0,
        }
    }
}
