//! Error responses: the envelope, its headers, and errors of the service itself. The private cause
//! travels with the response as a [`ServiceFault`], for the log, and is never sent.

use std::fmt::Display;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use kinora_contract::{ErrorCode, RequestRefusal};
use kinora_store::{ExceededQuota, StoreError};

use crate::memory::LimitReached;
use crate::responses::json_response;

/// How soon a client should retry while the store is unavailable.
const STORAGE_RETRY_SECONDS: u64 = 2;

/// How soon a client should retry while this process stops: by then another one has taken over, or
/// this one has restarted.
const STOPPING_RETRY_SECONDS: u64 = 5;

/// How soon a client should retry while the memory for connections is full.
const FULL_RETRY_SECONDS: u64 = 5;
/// A refusal repeats no longer path.
const PATH_SHOWN_MAX: usize = 100;

/// Why the service failed to handle a request: for the log only.
#[derive(Clone, Debug)]
pub(crate) enum ServiceFault {
    /// A bug or a broken invariant: each one is logged.
    Internal(String),
    /// The task store or the blob store is full or unavailable: logged once per outage.
    Storage(String),
    /// The memory for connections is full: logged once per episode.
    Overload,
}

/// A refusal with its headers.
#[derive(Clone, Debug)]
pub(crate) struct ApiError {
    fault: Option<ServiceFault>,
    refusal: RequestRefusal,
    retry_after_seconds: Option<u64>,
    /// The official SDKs retry some statuses on their own; this stops them.
    is_final: bool,
    /// Whether to close the connection afterwards.
    closing: bool,
}

impl ApiError {
    /// A refusal caused by `param`.
    pub(crate) fn for_param(code: ErrorCode, param: &str, message: impl Into<String>) -> Self {
        RequestRefusal::for_param(code, param, message).into()
    }

    /// A refusal that no single field causes.
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        RequestRefusal::new(code, message).into()
    }

    /// The stable error code.
    pub(crate) const fn code(&self) -> ErrorCode {
        self.refusal.code
    }

    /// Sets `Retry-After`.
    #[must_use]
    pub(crate) const fn retry_after(mut self, seconds: u64) -> Self {
        self.retry_after_seconds = Some(seconds);
        self
    }

    /// Makes SDKs not retry the request, although they would by its status.
    #[must_use]
    pub(crate) const fn final_answer(mut self) -> Self {
        self.is_final = true;
        self
    }

    /// Closes the connection after this answer.
    #[must_use]
    pub(crate) const fn closing(mut self) -> Self {
        self.closing = true;
        self
    }

    /// Rewords the refusal for another endpoint.
    #[must_use]
    pub(crate) fn reworded(mut self, words: impl FnOnce(RequestRefusal) -> RequestRefusal) -> Self {
        self.refusal = words(self.refusal);
        self
    }

    /// The task does not exist or belongs to another project: clients cannot tell the two apart.
    pub(crate) fn video_not_found() -> Self {
        Self::new(ErrorCode::VideoNotFound, "There is no such video.")
    }

    /// The file does not exist or belongs to another project: clients cannot tell the two apart.
    pub(crate) fn file_not_found() -> Self {
        Self::new(
            ErrorCode::FileNotFound,
            "There is no such file; it may have been deleted or have expired.",
        )
    }

    /// No route has this path. A slash too many, as from a base URL that ends with one, is named.
    pub(crate) fn no_such_path(path: &str) -> Self {
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let meant = format!("/{}", parts.join("/"));
        let is_ours = matches!(
            parts.first(),
            Some(&("v1" | "healthz" | "readyz" | "openapi.json"))
        );
        let hint = if !is_ours || meant == path || meant.len() > PATH_SHOWN_MAX {
            "see /openapi.json".to_owned()
        } else if path.trim_end_matches('/') == meant {
            format!("without the slash at the end: {meant}")
        } else {
            format!("without the doubled slash: {meant}")
        };
        Self::new(ErrorCode::NotFound, format!("No such path; {hint}."))
    }

    /// The query has a parameter that the endpoint does not take.
    pub(crate) fn unknown_parameter(name: &str) -> Self {
        let shown = shown(name);
        let message = format!("Unknown parameter: '{shown}'.");
        Self::for_param(ErrorCode::UnknownParameter, &shown, message)
    }

    /// A task past its retention.
    pub(crate) fn expired() -> Self {
        Self::new(
            ErrorCode::VideoExpired,
            "This video has expired; its files are gone.",
        )
    }

    /// The body did not arrive in time. The request had no effect, so the client may send it again.
    pub(crate) fn too_slow() -> Self {
        let message = "The body did not arrive in time; send the request again.";
        Self::new(ErrorCode::RequestTimeout, message).closing()
    }

    /// The process is stopping and starts nothing new.
    pub(crate) fn shutting_down(message: &str) -> Self {
        Self::new(ErrorCode::ShuttingDown, message).retry_after(STOPPING_RETRY_SECONDS)
    }

    /// An internal error.
    pub(crate) fn internal(cause: impl Display) -> Self {
        Self::new(
            ErrorCode::InternalError,
            "Internal error; send the request again.",
        )
        .because(ServiceFault::Internal(cause.to_string()))
    }

    /// The task store or the blob store is full or unavailable.
    pub(crate) fn storage(cause: impl Display) -> Self {
        Self::away("Storage unavailable; try again soon.")
            .because(ServiceFault::Storage(cause.to_string()))
    }

    /// Like [`Self::storage`], for an outage that the log already has.
    pub(crate) fn away(message: &str) -> Self {
        Self::new(ErrorCode::StorageUnavailable, message).retry_after(STORAGE_RETRY_SECONDS)
    }

    fn because(mut self, fault: ServiceFault) -> Self {
        self.fault = Some(fault);
        self
    }
}

/// The beginning of a name that a client chose, for a refusal: the name may be nearly as long as the body.
pub(crate) fn shown(name: &str) -> String {
    name.chars().take(64).collect()
}

impl From<LimitReached> for ApiError {
    fn from(full: LimitReached) -> Self {
        let (code, message) = match full {
            LimitReached::Owner => (
                ErrorCode::RateLimitExceeded,
                "Too many of your requests are unfinished, or their answers unread; finish or close \
                 them, then send the request again.",
            ),
            LimitReached::All => (
                ErrorCode::Overloaded,
                "The service is out of memory for requests; try again soon.",
            ),
        };
        Self {
            fault: (full == LimitReached::All).then_some(ServiceFault::Overload),
            ..Self::new(code, message).retry_after(FULL_RETRY_SECONDS)
        }
    }
}

/// Beyond a quota. Waiting helps only after days, so SDKs must not retry on their own.
impl From<ExceededQuota> for ApiError {
    fn from(quota: ExceededQuota) -> Self {
        let message = match quota {
            ExceededQuota::Task => {
                let message = "This request takes more storage than a project may use here; send fewer references, or \
                               ask the operator for more.";
                return Self::new(ErrorCode::SubmitsNotAllowed, message);
            }
            ExceededQuota::ProjectTasks => {
                "This project has reached its maximum of stored tasks; delete finished ones, or wait until some expire."
            }
            ExceededQuota::ProjectBytes => {
                "This project has used up its storage; delete finished videos, or wait until some expire."
            }
            ExceededQuota::Bytes => {
                "The storage of this service is full; delete finished videos, or ask the operator for more."
            }
        };
        Self::new(ErrorCode::StorageQuotaExceeded, message).final_answer()
    }
}

impl From<RequestRefusal> for ApiError {
    fn from(refusal: RequestRefusal) -> Self {
        Self {
            fault: None,
            refusal,
            retry_after_seconds: None,
            is_final: false,
            closing: false,
        }
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unavailable(_) => Self::storage(error),
            StoreError::Corrupt(_) | StoreError::LeaseLost(_) => Self::internal(error),
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let code = self.refusal.code;
        let status = StatusCode::from_u16(code.http_status());
        let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = json_response(status, &self.refusal.body());
        if let Some(fault) = self.fault {
            response.extensions_mut().insert(fault);
        }
        let headers = response.headers_mut();
        if self.closing {
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        if let Some(seconds) = self.retry_after_seconds {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.is_final {
            headers.insert("x-should-retry", HeaderValue::from_static("false"));
        }
        if code == ErrorCode::InvalidApiKey {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}
