//! What is around every answer: header limits, a request id, security headers, and an envelope
//! for whatever went wrong outside of an endpoint, a panic included.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Request, header};
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use kinora_contract::limits::{HEADER_BYTES_MAX, HEADERS_MAX};
use kinora_contract::{ErrorCode, Refusal};
use tower_service::Service;

use crate::error::ApiError;

/// Numbers requests: a random prefix of the process and a counter.
#[derive(Clone, Debug)]
pub(crate) struct RequestIds {
    prefix: Arc<str>,
    next: Arc<AtomicU64>,
}

impl RequestIds {
    pub(crate) fn new(random: [u8; 6]) -> Self {
        let prefix: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        Self {
            prefix: prefix.into(),
            next: Arc::default(),
        }
    }

    pub(crate) fn next(&self) -> String {
        format!(
            "req_{}{:08x}",
            self.prefix,
            self.next.fetch_add(1, Ordering::Relaxed)
        )
    }
}

/// Answers one request.
pub(crate) async fn answer(router: Router, ids: &RequestIds, request: Request<Body>) -> Response {
    let id = ids.next();
    let (method, uri) = (request.method().clone(), request.uri().clone());
    let mut response = match check_headers(request.headers()) {
        Err(refusal) => ApiError::from(refusal).into_response(),
        Ok(()) => guarded(router, request).await,
    };
    let status = response.status();
    if status.is_server_error() {
        tracing::error!(request = id, %method, path = uri.path(), status = status.as_u16(), "answered");
    } else {
        tracing::debug!(request = id, %method, path = uri.path(), status = status.as_u16(), "answered");
    }
    let headers = response.headers_mut();
    if let Ok(value) = HeaderValue::try_from(id) {
        headers.insert("x-request-id", value);
    }
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    response
}

/// Runs the endpoint; a panic in it is a refusal like any other.
async fn guarded(mut router: Router, request: Request<Body>) -> Response {
    let answered = AssertUnwindSafe(router.call(request)).catch_unwind().await;
    match answered {
        Ok(Ok(response)) => response,
        Ok(Err(never)) => match never {},
        Err(_) => ApiError::internal(&"an endpoint panicked").into_response(),
    }
}

fn check_headers(headers: &HeaderMap) -> Result<(), Refusal> {
    let bytes: usize = headers
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len())
        .sum();
    if headers.len() > HEADERS_MAX || bytes > HEADER_BYTES_MAX {
        let message =
            format!("At most {HEADERS_MAX} headers of {HEADER_BYTES_MAX} bytes in all are taken.");
        return Err(Refusal::new(ErrorCode::HeadersTooLarge, message));
    }
    Ok(())
}
