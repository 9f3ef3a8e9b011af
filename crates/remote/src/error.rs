//! Errors of upstreams. A client sees a failure code and its fixed sentence; the upstream's words
//! are a [`Cause`] or a source, for the log only. Neither ever contains a key.

use std::error::Error;
use std::io;
use std::time::Duration;

use kinora_contract::{Failure, FailureCode};

use crate::answer::AnswerError;

/// Why there is no result, or not yet.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// The run was cancelled, and so was any work at the upstream.
    #[error("cancelled")]
    Cancelled,
    /// The dialect has no field for this part of the request.
    #[error("this kind of upstream does not support {0}")]
    Unsupported(&'static str),
    /// The request with its references is larger than allowed.
    #[error("the request is larger than {0} bytes")]
    RequestTooLarge(u64),
    /// The upstream rejected the request as invalid; a retry would be rejected as well.
    #[error("the upstream refused the request")]
    Refused(#[source] Cause),
    /// No upstream is available right now; this call started and lost nothing.
    #[error("no upstream available; retry after {after:?}")]
    Busy {
        /// The wait that the upstreams request.
        after: Duration,
        /// The last answer.
        #[source]
        cause: Cause,
    },
    /// It is unknown whether the upstream accepted the submit.
    #[error("upstream {upstream} did not answer the submit")]
    Unsettled {
        /// The upstream.
        upstream: String,
        /// What happened instead of an answer.
        #[source]
        cause: Cause,
    },
    /// The upstream does not know the task, or is no longer configured.
    #[error("upstream {0} does not know the task")]
    Forgotten(String),
    /// The upstream's task failed.
    #[error("the upstream's task failed ({upstream_code}): {text}")]
    Failed {
        /// The failure code for the client.
        code: FailureCode,
        /// The upstream's own code; private.
        upstream_code: String,
        /// The upstream's own words; private.
        text: String,
    },
    /// No upstream gave a sign of life for the maximum time.
    #[error("no sign of life for {silence_max:?}")]
    Silent {
        /// The maximum time.
        silence_max: Duration,
        /// The last error.
        #[source]
        cause: Cause,
    },
    /// The upstream's task exceeded the time limit.
    #[error("the task took longer than {0:?}")]
    Overdue(Duration),
    /// The task is completed, but all attempts to read its result failed.
    #[error("reading the result failed")]
    NoResult(#[source] Cause),
    /// The result is larger than allowed.
    #[error("the result is larger than {0} bytes")]
    ResultTooLarge(u64),
    /// The result's URL has an origin that is not configured.
    #[error("the origin {0} of the result is not configured")]
    ForeignResult(String),
    /// A local file could not be read or written.
    #[error("local file error")]
    Storage(#[source] io::Error),
    /// The ticket could not be stored; the upstream's task was cancelled.
    #[error("the ticket could not be stored")]
    NotKept(#[source] Box<dyn Error + Send + Sync>),
}

impl RemoteError {
    /// The failure code for the task's client.
    pub const fn code(&self) -> FailureCode {
        match self {
            Self::Cancelled => FailureCode::Cancelled,
            Self::Failed { code, .. } => *code,
            Self::Silent { .. } | Self::Overdue(_) => FailureCode::GenerationTimeout,
            Self::Storage(_) | Self::NotKept(_) => FailureCode::StorageFailed,
            _ => FailureCode::GenerationFailed,
        }
    }

    /// The same code with its sentence.
    pub fn failure(&self) -> Failure {
        self.code().into()
    }
}

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
    /// A body that cannot be used.
    #[error(transparent)]
    Answer(#[from] AnswerError),
    /// The body exceeds the size limit.
    #[error("the answer is larger than {0} bytes")]
    AnswerTooLarge(usize),
    /// A status word that the dialect does not know.
    #[error("unknown status {0:?}")]
    Word(String),
    /// The result is compressed, although the request did not allow it.
    #[error("the result is encoded as {0:?}")]
    Encoding(String),
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
    pub(crate) const fn is_ambiguous(&self) -> bool {
        match self {
            Self::Status { status, .. } => matches!(status, 408 | 502 | 504),
            Self::Connect(_) | Self::NoUpstream => false,
            _ => true,
        }
    }
}
