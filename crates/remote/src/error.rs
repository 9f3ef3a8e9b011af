//! What can go wrong with an upstream. A client sees a failure code and its fixed sentence; what the
//! upstream said is a [`Cause`] or a source, for the log alone. Neither ever holds a key.

use std::error::Error;
use std::io;
use std::time::Duration;

use kinora_contract::{Failure, FailureCode};

use crate::answer::AnswerError;

/// Why there is no result, or not yet.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// The cancel was obeyed, and passed on where there was something to stop.
    #[error("cancelled")]
    Cancelled,
    /// The dialect has no words for this part of the request.
    #[error("this kind of upstream cannot be told: {0}")]
    Unsupported(&'static str),
    /// The request with its references is larger than allowed.
    #[error("the request is larger than {0} bytes")]
    RequestTooLarge(u64),
    /// The upstream finds the request wrong; another try would be refused as well.
    #[error("the upstream refused the request")]
    Refused(#[source] Cause),
    /// Nobody can be asked at the moment; nothing was begun or lost by this call.
    #[error("no answer to be had now; again in {after:?} at the earliest")]
    Busy {
        /// What the upstreams wish.
        after: Duration,
        /// What the last one answered.
        #[source]
        cause: Cause,
    },
    /// Nobody knows whether the upstream took the submit.
    #[error("the submit at {upstream} was not answered")]
    Unsettled {
        /// Where.
        upstream: String,
        /// What came instead of an answer.
        #[source]
        cause: Cause,
    },
    /// The upstream does not know the task, or is no longer configured.
    #[error("the task is not known at {0}")]
    Forgotten(String),
    /// The upstream's task failed.
    #[error("the upstream's task failed ({upstream_code}): {text}")]
    Failed {
        /// What a client may be told.
        code: FailureCode,
        /// The upstream's own code; private.
        upstream_code: String,
        /// The upstream's own words; private.
        text: String,
    },
    /// No upstream gave a sign of life for as long as allowed.
    #[error("no sign of life for {silence_max:?}")]
    Silent {
        /// As long as allowed.
        silence_max: Duration,
        /// The last thing that happened.
        #[source]
        cause: Cause,
    },
    /// The upstream's task took longer than allowed.
    #[error("the task took longer than {0:?}")]
    Overdue(Duration),
    /// The task is completed, and its result could not be had in the allowed number of tries.
    #[error("the result cannot be read")]
    NoResult(#[source] Cause),
    /// The result is larger than allowed.
    #[error("the result is larger than {0} bytes")]
    ResultTooLarge(u64),
    /// The result lies at an origin that the operator did not name.
    #[error("the result lies at the origin {0}, which is not configured")]
    ForeignResult(String),
    /// A local file could not be read or written.
    #[error("a local file")]
    Storage(#[source] io::Error),
    /// The ticket could not be stored; the upstream's task was cancelled.
    #[error("the ticket could not be stored")]
    NotKept(#[source] Box<dyn Error + Send + Sync>),
}

impl RemoteError {
    /// What the client of the task is told.
    pub const fn code(&self) -> FailureCode {
        match self {
            Self::Cancelled => FailureCode::Cancelled,
            Self::Failed { code, .. } => *code,
            Self::Silent { .. } | Self::Overdue(_) => FailureCode::GenerationTimeout,
            Self::Storage(_) | Self::NotKept(_) => FailureCode::StorageFailed,
            _ => FailureCode::GenerationFailed,
        }
    }

    /// The same with its sentence.
    pub fn failure(&self) -> Failure {
        self.code().into()
    }
}

/// What happened instead of a usable answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Cause {
    /// No connection: nothing was sent.
    #[error("no connection")]
    Connect(#[source] Box<dyn Error + Send + Sync>),
    /// The connection broke before the answer was whole.
    #[error("the exchange broke off")]
    Exchange(#[source] Box<dyn Error + Send + Sync>),
    /// The answer, or its head, did not come in time.
    #[error("no answer within {0:?}")]
    Timeout(Duration),
    /// A status that says no.
    #[error("status {status}: {text}")]
    Status {
        /// The HTTP status.
        status: u16,
        /// The beginning of the body.
        text: String,
    },
    /// A body that says nothing.
    #[error(transparent)]
    Answer(#[from] AnswerError),
    /// A body without end.
    #[error("the answer is larger than {0} bytes")]
    AnswerTooLarge(usize),
    /// A status word that the dialect does not know.
    #[error("the unknown status {0:?}")]
    Word(String),
    /// The result is compressed, although nobody asked for it.
    #[error("the result is encoded as {0:?}")]
    Encoding(String),
    /// The result came too slowly.
    #[error("the result comes more slowly than {bytes_min} bytes in {window:?}")]
    Rate {
        /// What should have come.
        bytes_min: u64,
        /// In what time.
        window: Duration,
    },
    /// The result has no byte.
    #[error("the result is empty")]
    Empty,
    /// The upstream named an address that is none.
    #[error("the address of the result is no URL")]
    Url(#[from] url::ParseError),
    /// Every upstream is left out or wants to be left alone.
    #[error("no upstream can be asked")]
    NoUpstream,
}

impl Cause {
    /// Whether the request may have reached a server that acted on it without saying so. A
    /// gateway's 502 or 504 speaks for itself alone.
    pub(crate) const fn is_ambiguous(&self) -> bool {
        match self {
            Self::Status { status, .. } => matches!(status, 408 | 502 | 504),
            Self::Connect(_) | Self::NoUpstream => false,
            _ => true,
        }
    }
}
