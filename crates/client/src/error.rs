//! Errors: what happened, whether a retry may help, and what to do next. None contains the key.

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Why a call did not succeed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The client cannot be built from these options.
    #[error("{0}")]
    Options(String),
    /// The service answered, and refused.
    #[error(transparent)]
    Refused(Box<Refusal>),
    /// There was no connection to the service, so nothing was sent.
    #[error("cannot connect to {origin}: {source}")]
    Connect {
        /// Scheme, host and port.
        origin: String,
        /// The cause.
        source: Box<dyn StdError + Send + Sync>,
    },
    /// The connection broke before the answer was complete.
    #[error("the connection broke: {0}")]
    Broken(#[source] Box<dyn StdError + Send + Sync>),
    /// No complete answer in time.
    #[error("no answer within {} s", .0.as_secs())]
    Timeout(Duration),
    /// The answer is not one of this API.
    #[error("the answer is not from a Kinora service: {0}")]
    Answer(String),
    /// A local file could not be read.
    #[error("{} cannot be read: {source}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A local file could not be written.
    #[error("{} cannot be written: {source}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

/// A refusal of the service.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refusal {
    /// The HTTP status.
    pub status: u16,
    /// The stable code, such as `queue_full`; empty if something in front of the service answered.
    pub code: String,
    /// A sentence for people.
    pub message: String,
    /// The field or header at fault, if there is one.
    pub param: Option<String>,
    /// The id of the request, which is in the service's log.
    pub request_id: Option<String>,
    /// How long the service asks to wait before a retry.
    pub retry_after: Option<Duration>,
    /// Whether the service says that a retry is pointless (`x-should-retry: false`).
    pub is_final: bool,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match (self.code.as_str(), &self.request_id) {
            ("", _) => write!(f, " (HTTP {})", self.status),
            (code, None) => write!(f, " ({code})"),
            (code, Some(id)) => write!(f, " ({code}, request {id})"),
        }
    }
}

impl StdError for Refusal {}

impl Error {
    /// The refusal, if the service answered.
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            _ => None,
        }
    }

    /// The service's code, if it answered with one.
    pub fn code(&self) -> Option<&str> {
        let code = self.refusal()?.code.as_str();
        (!code.is_empty()).then_some(code)
    }

    /// How long the service asks to wait before a retry.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        self.refusal()?.retry_after
    }

    /// Whether the same call may succeed later.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Connect { .. } | Self::Broken(_) | Self::Timeout(_) => true,
            Self::Refused(refusal) => {
                matches!(refusal.status, 408 | 429 | 500 | 502..=504) && !refusal.is_final
            }
            _ => false,
        }
    }

    /// What to do next, as a sentence; `None` if the message already says it.
    pub fn advice(&self) -> Option<&'static str> {
        match self {
            Self::Connect { .. } => Some("Check the URL, and that the service is running."),
            Self::Broken(_) | Self::Timeout(_) => {
                Some("Try again; a repeated submit makes no second task.")
            }
            Self::Answer(_) => Some("Check the URL: another program answers there."),
            Self::File { .. } => Some("Choose another path, or free some space."),
            Self::Options(_) | Self::Unreadable { .. } => None,
            Self::Refused(refusal) => refusal.advice(),
        }
    }
}

impl Refusal {
    fn advice(&self) -> Option<&'static str> {
        Some(match self.code.as_str() {
            "invalid_api_key" => {
                "Use a valid API key; an operator can create one with `kinora keys create`."
            }
            "scope_missing" | "model_not_allowed" | "submits_not_allowed" => {
                "Use another key, or ask the operator for one with more permissions."
            }
            "model_not_found" => "List the models: GET /v1/models.",
            "video_not_found" => "Check the id, and that the key belongs to the task's project.",
            "file_not_found" => "Check the id; files expire, and belong to one project.",
            "video_expired" => "The service removed this video after its retention; make it again.",
            "video_not_ready" => "Wait until the task is completed.",
            "not_cancellable" => "The task is finished; delete it to remove its video.",
            "invalid_url" => {
                "References are http or https URLs that the service can read, or files that were uploaded to it."
            }
            "budget_exceeded" => "Send the request again after the renewal of the budget.",
            "storage_quota_exceeded" => "Delete videos and files that you no longer need.",
            "idempotency_key_reused" => "Use a fresh idempotency key for another request.",
            "rate_limit_exceeded"
            | "queue_full"
            | "overloaded"
            | "shutting_down"
            | "storage_unavailable" => "Try again later.",
            "internal_error" | "content_lost" => {
                "Send the request id to the operator; the service's log has the cause."
            }
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(status: u16, code: &str) -> Refusal {
        Refusal {
            status,
            code: code.to_owned(),
            message: "No.".to_owned(),
            param: None,
            request_id: Some("r1".to_owned()),
            retry_after: None,
            is_final: false,
        }
    }

    #[test]
    fn a_refusal_names_its_code_and_request() {
        assert_eq!(
            refusal(429, "queue_full").to_string(),
            "No. (queue_full, request r1)"
        );
        assert_eq!(refusal(502, "").to_string(), "No. (HTTP 502)");
    }

    #[test]
    fn only_what_may_pass_by_itself_is_worth_a_repeat() {
        let transient = |refusal| Error::Refused(Box::new(refusal)).is_transient();
        assert!(transient(refusal(503, "shutting_down")));
        assert!(transient(refusal(429, "queue_full")));
        assert!(!transient(refusal(400, "invalid_value")));
        assert!(!transient(refusal(409, "video_failed")));
        let quota = Refusal {
            is_final: true,
            ..refusal(429, "storage_quota_exceeded")
        };
        assert!(!transient(quota));
    }
}
