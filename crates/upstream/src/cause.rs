//! What came instead of a usable answer: for the log only. It never contains a key.

use std::error::Error;
use std::io;
use std::time::Duration;

use kinora_http::ExchangeError;

/// What happened instead of a usable answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Cause {
    /// No connection: nothing was sent.
    #[error("connecting failed")]
    Connect(#[source] Box<dyn Error + Send + Sync>),
    /// The connection broke before the answer was whole.
    #[error("the connection broke")]
    Exchange(#[source] Box<dyn Error + Send + Sync>),
    /// The answer, or its head, did not arrive in time.
    #[error("no answer within {0:?}")]
    Timeout(Duration),
    /// An error status.
    #[error("status {status}: {text}")]
    Status {
        /// The HTTP status.
        status: u16,
        /// The beginning of the body.
        text: String,
    },
    /// A body that cannot be used, as the protocol's reader says it.
    #[error(transparent)]
    Answer(Box<dyn Error + Send + Sync>),
    /// The body exceeds the size limit.
    #[error("the answer is larger than {0} bytes")]
    AnswerTooLarge(usize),
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
    /// Every upstream is excluded or asked us to wait.
    #[error("no upstream is available")]
    NoUpstream,
}

impl Cause {
    /// Whether the request may have reached a server that acted on it without answering. A
    /// gateway's 502 or 504 says nothing about the server.
    pub const fn is_ambiguous(&self) -> bool {
        match self {
            Self::Status { status, .. } => matches!(status, 408 | 502 | 504),
            Self::Connect(_) | Self::NoUpstream => false,
            _ => true,
        }
    }
}

impl From<ExchangeError> for Cause {
    fn from(error: ExchangeError) -> Self {
        match error {
            ExchangeError::Connect(error) => Self::Connect(error),
            ExchangeError::Broken(error) => Self::Exchange(error),
            ExchangeError::Timeout(limit) => Self::Timeout(limit),
            ExchangeError::TooLarge(bytes_max) => Self::AnswerTooLarge(bytes_max),
        }
    }
}
