//! Errors of upstreams. A client sees a failure code and its fixed sentence; the upstream's words
//! are a [`CallError`] or a source, for the log only. Neither ever contains a key.

use std::borrow::Cow;
use std::error::Error;
use std::io;
use std::time::Duration;

use crate::servers::{CallError, PatienceError};
use kinora_contract::{Failure, FailureCode};

/// Why there is no result, or not yet.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// The run was cancelled, and so was any work at the upstream.
    #[error("cancelled")]
    Cancelled,
    /// The dialect has no field for this part of the request.
    #[error("this kind of upstream does not support {0}")]
    Unsupported(Cow<'static, str>),
    /// The request with its references is larger than allowed.
    #[error("the request is larger than {0} bytes")]
    RequestTooLarge(u64),
    /// The upstream rejected the request as invalid; a retry would be rejected as well.
    #[error("the upstream refused the request")]
    Refused(#[source] CallError),
    /// No upstream is available right now; this call started and lost nothing.
    #[error("no upstream available; retry after {after:?}")]
    Busy {
        /// The wait that the upstreams request.
        after: Duration,
        /// The last answer.
        #[source]
        cause: CallError,
    },
    /// No upstream accepted the request for the maximum time; nothing was started.
    #[error("no upstream accepted the request")]
    NoPlace(#[source] CallError),
    /// An earlier run ended during a submit that may be charged: nobody knows whether the upstream accepted it, and it is
    /// not repeated.
    #[error(
        "an earlier run ended during its submit; the upstream may have taken the task, and charge it"
    )]
    Interrupted,
    /// It is unknown whether the upstream accepted the submit.
    #[error("upstream {upstream} did not answer the submit")]
    Unsettled {
        /// The upstream.
        upstream: String,
        /// What happened instead of an answer.
        #[source]
        cause: CallError,
    },
    /// The upstream does not know the task, or is no longer configured.
    #[error("upstream {0} does not know the task")]
    Forgotten(String),
    /// Like [`Self::Forgotten`], where each submit may be charged.
    #[error(
        "{0} no longer knows the job, or is no longer configured; it is not submitted again, because it may have \
         been paid for: look for it in the provider's console"
    )]
    Lost(String),
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
    /// The upstream's task ended without a result, and nobody's fault.
    #[error("the upstream ended the task as {0:?}")]
    Ended(String),
    /// No upstream gave a sign of life for the maximum time.
    #[error("no sign of life for {silence_max:?}")]
    Silent {
        /// The maximum time.
        silence_max: Duration,
        /// The last error.
        #[source]
        cause: CallError,
    },
    /// The upstream's task exceeded the time limit.
    #[error("the task took longer than {0:?}")]
    Overdue(Duration),
    /// The task is completed, but all attempts to read its result failed.
    #[error("reading the result failed")]
    NoResult(#[source] CallError),
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

impl From<PatienceError> for RemoteError {
    fn from(impatience: PatienceError) -> Self {
        match impatience {
            PatienceError::Cancelled => Self::Cancelled,
            PatienceError::Silent { silence_max, cause } => Self::Silent { silence_max, cause },
            PatienceError::Overdue(run_max) => Self::Overdue(run_max),
        }
    }
}
