//! Errors of servers. A client sees a failure code and its fixed sentence; a server's words are for the
//! log only.

use std::error::Error;
use std::io;
use std::time::Duration;

use crate::servers::{CallError, PatienceError};
use kinora_contract::FailureCode;

/// Why there is no film, or not yet.
#[derive(Debug, thiserror::Error)]
pub enum ComfyError {
    /// The run was cancelled, and so was any work at the server.
    #[error("cancelled")]
    Cancelled,
    /// The workflow's bindings do not take this part of the request.
    #[error("the workflow does not take {0}")]
    Unsupported(&'static str),
    /// A file is larger than may be uploaded.
    #[error("a file of the request is larger than {0} bytes")]
    FileTooLarge(u64),
    /// No server can run the workflow; each says what it lacks.
    #[error("no server can run the workflow: {0}")]
    Unfit(String),
    /// A server rejected the request; a retry would be rejected as well.
    #[error("the server refused the workflow")]
    Refused(#[source] CallError),
    /// No usable answer right now; this call started and lost nothing.
    #[error("no usable answer; retry after {after:?}")]
    Busy {
        /// The wait that the server requests.
        after: Duration,
        /// What happened.
        #[source]
        cause: CallError,
    },
    /// No server took the job for the maximum time; nothing was started.
    #[error("no server took the job")]
    NoPlace(#[source] CallError),
    /// The server does not know the job, or is no longer configured.
    #[error("server {0} does not know the job")]
    Forgotten(String),
    /// The job failed.
    #[error("the job failed: {text}")]
    Failed {
        /// The failure code for the client.
        code: FailureCode,
        /// The server's own words; private.
        text: String,
    },
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
    /// The job is completed, but its film cannot be had.
    #[error("there is no film: {0}")]
    NoFilm(String),
    /// All attempts to read the film failed.
    #[error("reading the film failed")]
    Unread(#[source] CallError),
    /// The film is larger than allowed.
    #[error("the film is larger than {0} bytes")]
    FilmTooLarge(u64),
    /// A local file could not be read or written.
    #[error("local file error")]
    Storage(#[source] io::Error),
    /// The ticket could not be stored; no job was submitted.
    #[error("the ticket could not be stored")]
    NotKept(#[source] Box<dyn Error + Send + Sync>),
}

impl ComfyError {
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

    /// Whether the job may still be at work at its server, unwanted.
    pub(crate) const fn leaves_work(&self) -> bool {
        matches!(
            self,
            Self::Cancelled | Self::Silent { .. } | Self::Overdue(_)
        )
    }
}

impl From<PatienceError> for ComfyError {
    fn from(impatience: PatienceError) -> Self {
        match impatience {
            PatienceError::Cancelled => Self::Cancelled,
            PatienceError::Silent { silence_max, cause } => Self::Silent { silence_max, cause },
            PatienceError::Overdue(run_max) => Self::Overdue(run_max),
        }
    }
}
