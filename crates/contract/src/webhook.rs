//! The event at the end of a task, in the form of OpenAI's events, and its signature: Standard
//! Webhooks 1.0
//! (<https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md>),
//! which the OpenAI SDKs verify. Pure: times are arguments, and nothing is sent here.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use serde::Serialize;
use sha2::Sha256;

use crate::id::TaskId;
use crate::limits::WEBHOOK_ATTEMPTS_MAX;
use crate::task::TaskState;

/// The header with the event's id, the same for each attempt.
pub const ID_HEADER: &str = "webhook-id";
/// The header with the time of the attempt, in Unix seconds.
pub const TIMESTAMP_HEADER: &str = "webhook-timestamp";
/// The header with the signatures.
pub const SIGNATURE_HEADER: &str = "webhook-signature";

/// The type of the event that `kinora webhooks test` sends.
pub const TEST_EVENT: &str = "webhook.test";

const SECRET_PREFIX: &str = "whsec_";

/// Signs the events of one webhook: 32 bytes. `Debug` hides them; print them only deliberately,
/// with `reveal`.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookSecret([u8; 32]);

impl WebhookSecret {
    /// A secret made of these bytes, which must be random.
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The bytes to store.
    pub const fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The secret in the form that SDKs take, `whsec_` and base64; to show once.
    pub fn reveal(&self) -> String {
        format!("{SECRET_PREFIX}{}", STANDARD.encode(self.0))
    }

    /// One signature: `v1,` and the base64 of HMAC-SHA256 over `id.timestamp.body`. Never `None`,
    /// since HMAC takes keys of any length.
    fn sign(&self, id: &str, timestamp_s: u64, body: &[u8]) -> Option<String> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).ok()?;
        // Id and time are signed too: a receiver can refuse an old delivery that somebody else
        // repeats, with its true time or with a new one.
        mac.update(format!("{id}.{timestamp_s}.").as_bytes());
        mac.update(body);
        Some(format!(
            "v1,{}",
            STANDARD.encode(mac.finalize().into_bytes())
        ))
    }
}

impl fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebhookSecret(..)")
    }
}

/// The value of [`SIGNATURE_HEADER`]: one signature per secret, separated by spaces.
pub fn signatures(secrets: &[WebhookSecret], id: &str, timestamp_s: u64, body: &[u8]) -> String {
    let signed = secrets
        .iter()
        .filter_map(|secret| secret.sign(id, timestamp_s, body));
    signed.collect::<Vec<_>>().join(" ")
}

/// The id of the event for the end of this task. A task ends only once, so the id is unique.
pub fn event_id(task: TaskId) -> String {
    let text = task.to_string();
    // One event id per task, whatever the attempt or the process: receivers drop duplicates by it.
    let number = text.split_once('_').map_or("", |(_, number)| number);
    format!("evt_{number}")
}

/// The type of the event for a task that ended in this state; `None` if it is unfinished or
/// expired.
pub const fn event_type(state: &TaskState) -> Option<&'static str> {
    match state {
        TaskState::Completed(_) => Some("video.completed"),
        TaskState::Failed(_) => Some("video.failed"),
        TaskState::Waiting | TaskState::Running | TaskState::Expired => None,
    }
}

/// An event in its wire form.
#[derive(Clone, Debug, Serialize)]
pub struct EventEnvelope<'a, T> {
    /// The event's id, also in [`ID_HEADER`].
    pub id: &'a str,
    /// Always `event`.
    pub object: &'static str,
    /// Time of the event, in Unix seconds.
    pub created_at: u64,
    /// [`event_type`], or [`TEST_EVENT`].
    #[serde(rename = "type")]
    pub kind: &'a str,
    /// The task object.
    pub data: T,
}

/// The pause after `attempts` failed attempts, in milliseconds; `None` after the last one.
pub fn pause_ms(attempts: u32) -> Option<u64> {
    /// Seconds. Short at first, for a receiver that restarts; a day in all, for one that stays down
    /// overnight.
    const PAUSES: [u64; WEBHOOK_ATTEMPTS_MAX as usize - 1] =
        [5, 30, 120, 600, 1_800, 3_600, 7_200, 14_400, 28_800, 28_800];
    let place = usize::try_from(attempts.saturating_sub(1)).ok()?;
    PAUSES.get(place).map(|seconds| seconds * 1000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{Failure, FailureCode};

    /// The example of the specification's reference implementations:
    /// <https://github.com/standard-webhooks/standard-webhooks/tree/main/libraries>.
    #[test]
    fn a_signature_is_that_of_the_specification() {
        let mut key = [0; 32];
        key[..24].copy_from_slice(&STANDARD.decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap());
        let (id, timestamp, body) = (
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            1_614_265_330,
            r#"{"test": 2432232314}"#,
        );
        // HMAC pads keys with zeros up to its block of 64 bytes (RFC 2104), so that 24 bytes and 8 zeros are one key.
        let signature = signatures(&[WebhookSecret::new(key)], id, timestamp, body.as_bytes());
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn each_secret_signs_and_is_shown_by_its_text_alone() {
        let [old, new] = [1, 2].map(|byte| WebhookSecret::new([byte; 32]));
        let alone = |one: &WebhookSecret| signatures(std::slice::from_ref(one), "evt_1", 7, b"{}");
        let both = signatures(&[new.clone(), old.clone()], "evt_1", 7, b"{}");
        assert_eq!(both, format!("{} {}", alone(&new), alone(&old)));
        let by_new = |id: &str, timestamp_s: u64, body: &[u8]| {
            signatures(std::slice::from_ref(&new), id, timestamp_s, body)
        };
        for other in [
            by_new("evt_2", 7, b"{}"),
            by_new("evt_1", 8, b"{}"),
            by_new("evt_1", 7, b"[]"),
            alone(&old),
        ] {
            assert_ne!(other, alone(&new));
        }
        assert_eq!(
            old.reveal(),
            "whsec_AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE="
        );
        assert_eq!(format!("{old:?}"), "WebhookSecret(..)");
    }

    #[test]
    fn an_end_is_one_event_and_nothing_else_is() {
        let failed = TaskState::Failed(Failure::from(FailureCode::Cancelled));
        assert_eq!(event_type(&failed), Some("video.failed"));
        for state in [TaskState::Waiting, TaskState::Running, TaskState::Expired] {
            assert_eq!(event_type(&state), None);
        }
        let id = event_id(TaskId::from_parts(1_760_000_000_000, [7; 10]));
        assert!(id.starts_with("evt_") && id.len() == 30, "{id}");
        let event = EventEnvelope {
            id: &id,
            object: "event",
            created_at: 9,
            kind: "video.failed",
            data: [1],
        };
        let expected = format!(
            r#"{{"id":"{id}","object":"event","created_at":9,"type":"video.failed","data":[1]}}"#
        );
        assert_eq!(serde_json::to_string(&event).unwrap(), expected);
    }

    #[test]
    fn attempts_end_after_a_day() {
        let pauses: Vec<u64> = (1..).map_while(pause_ms).collect();
        assert_eq!(pauses.len() + 1, WEBHOOK_ATTEMPTS_MAX as usize);
        assert!(pauses.is_sorted() && pauses.first() == Some(&5_000));
        let hours = pauses.iter().sum::<u64>() / 1000 / 3600;
        assert!((23..25).contains(&hours), "{hours}");
        assert_eq!([pause_ms(11), pause_ms(u32::MAX)], [None, None]);
    }
}
