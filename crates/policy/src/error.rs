//! Why settings are unusable, and why a question has no answer. Both are for operators.

use std::time::Duration;

use kinora_http::{ExchangeError, RootsError, error_chain};

/// Why options are invalid.
#[derive(Debug, thiserror::Error)]
pub enum PolicyOptionsError {
    /// Not `http` or `https`, without a host, or with a user or a fragment.
    #[error("'{0}' is not an http or https URL without user and fragment")]
    Url(String),
    /// Contains characters that a header cannot contain.
    #[error("the token is empty or not plain ASCII")]
    Token,
    /// The library of TLS refused its settings.
    #[error("TLS cannot be used: {0}")]
    Tls(#[from] RootsError),
}

/// Why a question has no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// No answer arrived in time.
    #[error("no answer within {0:?}")]
    Timeout(Duration),
    /// No connection, a broken one, an answer that is not HTTP/1.1, or one that exceeds its limit.
    #[error("{}", error_chain(.0))]
    Exchange(#[from] ExchangeError),
    /// Not 200.
    #[error("its answer has status {0}")]
    Status(u16),
    /// The answer contains no verdict.
    #[error(
        "its answer is not {{\"allow\": true}} or {{\"allow\": false, \"reason\": \"...\"}}: {0}"
    )]
    Form(#[from] serde_json::Error),
    /// The question could not be sent.
    #[error("the request could not be made: {0}")]
    Request(#[from] hyper::http::Error),
}
