//! Why a server made no film. A client sees a failure code and its fixed sentence; a server's words are a
//! [`CallError`] or a source, for the log only. Neither ever contains a key.

use std::borrow::Cow;
use std::error::Error;
use std::io;
use std::time::Duration;

use kinora_contract::FailureCode;
use kinora_engine::EngineError;

use super::cause::{CallError, chain};

/// Why there is no film, or not yet.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamError {
    /// The run was cancelled, and so was any work at the server.
    #[error("cancelled")]
    Cancelled,
    /// The dialect or the workflow has no place for this part of the request.
    #[error("this kind of server does not support {0}")]
    Unsupported(Cow<'static, str>),
    /// The request with its references is larger than allowed.
    #[error("the request is larger than {0} bytes")]
    RequestTooLarge(u64),
    /// No server can run the workflow; each says what it lacks.
    #[error("no server can run the workflow: {0}")]
    Unfit(String),
    /// A server rejected the request as invalid; a retry would be rejected as well.
    #[error("the server refused the request")]
    Refused(#[source] CallError),
    /// No server is available, or gives a usable answer, right now; this call started and lost nothing.
    #[error("no server available; retry after {after:?}")]
    Busy {
        /// The wait that the servers request.
        after: Duration,
        /// The last answer.
        #[source]
        cause: CallError,
    },
    /// No server accepted the request for the maximum time; nothing was started.
    #[error("no server accepted the request")]
    NoPlace(#[source] CallError),
    /// An earlier run ended during a submit that may be charged: nobody knows whether the server accepted it, and it is
    /// not repeated.
    #[error(
        "an earlier run ended during its submit; the server may have taken the task, and charge it"
    )]
    Interrupted,
    /// It is unknown whether the server accepted the submit.
    #[error("server {upstream} did not answer the submit")]
    Unsettled {
        /// The server.
        upstream: String,
        /// What happened instead of an answer.
        #[source]
        cause: CallError,
    },
    /// The server does not know the job, or is no longer configured.
    #[error("server {0} does not know the job")]
    Forgotten(String),
    /// Like [`Self::Forgotten`], where each submit may be charged.
    #[error(
        "{0} no longer knows the job, or is no longer configured; it is not submitted again, because it may have \
         been paid for: look for it in the provider's console"
    )]
    Lost(String),
    /// The job failed at the server.
    #[error("the job failed: {text}")]
    Failed {
        /// The failure code for the client.
        code: FailureCode,
        /// The server's own code and words; private.
        text: String,
    },
    /// The job ended without a film, and nobody's fault.
    #[error("the server ended the job as {0:?}")]
    Ended(String),
    /// No server gave a sign of life for the maximum time.
    #[error("no sign of life for {silence_max:?}")]
    Silent {
        /// The maximum time.
        silence_max: Duration,
        /// The last error.
        #[source]
        cause: CallError,
    },
    /// The job exceeded the time limit.
    #[error("the job took longer than {0:?}")]
    Overdue(Duration),
    /// The job is completed, but has put out no film.
    #[error("there is no film: {0}")]
    NoFilm(String),
    /// The job is completed, but all attempts to read its film failed.
    #[error("reading the film failed")]
    NoResult(#[source] CallError),
    /// The film is larger than allowed.
    #[error("the film is larger than {0} bytes")]
    ResultTooLarge(u64),
    /// The film's URL has an origin that is not configured.
    #[error("the origin {0} of the film is not configured")]
    ForeignResult(String),
    /// A local file could not be read or written.
    #[error("local file error")]
    Storage(#[source] io::Error),
    /// The ticket could not be stored; nothing of the job is at work.
    #[error("the ticket could not be stored")]
    NotKept(#[source] Box<dyn Error + Send + Sync>),
}

impl UpstreamError {
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

    /// Retry when it suits; the server is not at fault.
    pub(crate) const fn later(cause: CallError) -> Self {
        Self::Busy {
            after: Duration::ZERO,
            cause,
        }
    }

    /// Whether the job may still be at work at its server, unwanted.
    pub(crate) const fn leaves_work(&self) -> bool {
        matches!(
            self,
            Self::Cancelled | Self::Silent { .. } | Self::Overdue(_)
        )
    }
}

impl From<UpstreamError> for EngineError {
    /// Whose failure it is: the job's, unless the server gave no reason, its film cannot be read, or it stopped
    /// answering.
    fn from(error: UpstreamError) -> Self {
        let (code, cause) = (error.code(), chain(&error));
        match error {
            UpstreamError::Cancelled => Self::Cancelled,
            UpstreamError::NoPlace(_) => Self::NoPlace(cause),
            UpstreamError::Failed {
                code: FailureCode::GenerationFailed | FailureCode::GenerationTimeout,
                ..
            }
            | UpstreamError::NoResult(_)
            | UpstreamError::Silent { .. }
            | UpstreamError::Forgotten(_) => Self::JobFailed { code, cause },
            _ => Self::CodedFailure { code, cause },
        }
    }
}
