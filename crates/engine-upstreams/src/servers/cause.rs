//! What came instead of a usable answer, and how it is logged: bounded, on one line. It never reaches a client
//! and never contains a key.

use std::error::Error;
use std::io;
use std::time::Duration;

use kinora_http::ExchangeError;

/// What happened instead of a usable answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The request itself cannot be written, such as a URL that is too long: nothing was sent.
    #[error("the request cannot be written")]
    Request(#[source] Box<dyn Error + Send + Sync>),
    /// No complete answer.
    #[error(transparent)]
    Exchange(#[from] ExchangeError),
    /// An error status.
    #[error("status {status}: {text}")]
    Status {
        /// The HTTP status.
        status: u16,
        /// The beginning of the body.
        text: String,
    },
    /// A body that cannot be used.
    #[error(transparent)]
    Answer(#[from] AnswerError),
    /// A status word that the protocol does not have.
    #[error("unknown status {0:?}")]
    Word(String),
    /// The result has a coding that is not undone.
    #[error("the result is encoded as {0:?}")]
    Encoding(Option<&'static str>),
    /// The compressed result is damaged.
    #[error("the result cannot be unpacked")]
    Damaged(#[source] io::Error),
    /// The result arrived too slowly.
    #[error("the result is slower than {bytes_min} bytes in {window:?}")]
    Rate {
        /// The minimum number of bytes.
        bytes_min: u64,
        /// The time in which they should have arrived.
        window: Duration,
    },
    /// The result has no bytes.
    #[error("the result is empty")]
    Empty,
    /// The upstream returned an invalid URL.
    #[error("the URL of the result is invalid")]
    Url(#[from] url::ParseError),
    /// The upstream named no URL.
    #[error("the answer has no URL of the result")]
    NoAddress,
    /// The result moved on and on.
    #[error("the result has more than {0} redirects")]
    Redirects(usize),
    /// Every upstream is excluded or asked us to wait.
    #[error("no upstream is available")]
    NoUpstream,
}

/// Why an answer is unusable.
#[derive(Debug, thiserror::Error)]
pub enum AnswerError {
    /// Not JSON, or nested too deeply.
    #[error("the answer is not JSON")]
    Json(#[from] serde_json::Error),
    /// JSON, but not an object.
    #[error("the answer is not a JSON object")]
    NotAnObject,
    /// No identifier that fits into a URL.
    #[error("the answer has no usable id")]
    Id,
    /// No status.
    #[error("the answer has no status")]
    Status,
    /// The answer is about another job.
    #[error("the answer is about another job")]
    OtherJob,
}

impl CallError {
    /// The connection broke before the answer was whole.
    pub(crate) fn broken(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Exchange(ExchangeError::Broken(error.into()))
    }

    /// Whether the request may have reached a server that acted on it without answering. A
    /// gateway's 502 or 504 says nothing about the server.
    pub const fn is_ambiguous(&self) -> bool {
        match self {
            Self::Status { status, .. } => matches!(status, 408 | 502 | 504),
            Self::Request(_) | Self::Exchange(ExchangeError::Connect(_)) | Self::NoUpstream => {
                false
            }
            _ => true,
        }
    }
}

const SHOWN_CHARS_MAX: usize = 500;

/// The first characters of `bytes`, without control characters.
pub(crate) fn shown(bytes: &[u8]) -> String {
    // A character has at most four bytes.
    let head = &bytes[..bytes.len().min(4 * SHOWN_CHARS_MAX)];
    String::from_utf8_lossy(head)
        .chars()
        .take(SHOWN_CHARS_MAX)
        .map(|one| if one.is_control() { ' ' } else { one })
        .collect()
}

/// The error with all its causes.
pub(crate) fn chain(error: &dyn Error) -> String {
    shown(kinora_http::error_chain(error).as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_bounded_and_on_one_line() {
        assert_eq!(shown(b"a\r\nb\x1b[0m"), "a  b [0m");
        assert_eq!(
            shown("\u{1F3AC}".repeat(9_000).as_bytes()).chars().count(),
            500
        );
        let error = CallError::Exchange(ExchangeError::Connect("refused\n".into()));
        assert_eq!(chain(&error), "connecting failed: refused ");
        assert_eq!(shown(b"\xff"), "\u{FFFD}");
    }
}
