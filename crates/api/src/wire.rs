//! Builds JSON answers.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use serde::Serialize;

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
pub(crate) struct Answer<T>(pub(crate) T);

impl<T: Serialize> IntoResponse for Answer<T> {
    fn into_response(self) -> Response {
        json_response(StatusCode::OK, &self.0)
    }
}
