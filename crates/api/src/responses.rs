//! Responses: JSON bodies, the headers that restrict what browsers may do with them, and refusals
//! written by hand where hyper cannot answer. Nothing here decides what to answer.

use std::fmt::Write as _;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use kinora_contract::RequestRefusal;
use serde::Serialize;

use crate::request_id::RequestId;

/// Typical number of headers in an answer: reserving them at once avoids growing the map in steps.
const HEADERS: usize = 12;

/// A JSON answer. Our own types always serialise; a failure would give a bare 500.
pub(crate) fn json_response(status: StatusCode, value: &impl Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(bytes) => json_bytes(status, bytes),
        Err(error) => {
            tracing::error!(%error, "answer not serialised");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

/// An answer from JSON that is already written.
pub(crate) fn json_bytes(status: StatusCode, bytes: impl Into<Bytes>) -> Response {
    let mut response = Response::new(Body::from(bytes.into()));
    *response.status_mut() = status;
    response.headers_mut().reserve(HEADERS);
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

/// A 200 with a JSON body.
pub(crate) struct JsonResponse<T>(pub(crate) T);

impl<T: Serialize> IntoResponse for JsonResponse<T> {
    fn into_response(self) -> Response {
        json_response(StatusCode::OK, &self.0)
    }
}

/// Headers of every response that does not set them itself.
const SECURITY_HEADERS: [(HeaderName, &str); 4] = [
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::CACHE_CONTROL, "no-store"),
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; frame-ancestors 'none'",
    ),
];

/// Content security policy of results. A browser that opens one builds its own page around it, under the same policy: the
/// player may load the result and apply styles, nothing else.
pub(crate) const MEDIA_POLICY: &str = "default-src 'none'; media-src 'self'; img-src 'self'; style-src 'unsafe-inline'; \
     frame-ancestors 'none'";

/// Adds the security headers that a response lacks.
pub(crate) fn add_security_headers(headers: &mut HeaderMap) {
    for (name, value) in SECURITY_HEADERS {
        headers
            .entry(name)
            .or_insert(HeaderValue::from_static(value));
    }
}

/// A whole refusal as bytes, from the status line (`503 Service Unavailable`) to the body, for
/// connections without a request that hyper could answer. It closes the connection.
pub(crate) fn raw_refusal(
    status: &str,
    refusal: &RequestRefusal,
    request_id: RequestId,
    retry_after_seconds: Option<u64>,
) -> Vec<u8> {
    let body = serde_json::to_string(&refusal.body()).unwrap_or_default();
    let mut text = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\nx-request-id: {request_id}\r\n\
         connection: close\r\ncontent-length: {}\r\n",
        body.len()
    );
    for (name, value) in SECURITY_HEADERS {
        let _ = write!(text, "{name}: {value}\r\n");
    }
    if let Some(seconds) = retry_after_seconds {
        let _ = write!(text, "retry-after: {seconds}\r\n");
    }
    text.push_str("\r\n");
    text.push_str(&body);
    text.into_bytes()
}
