//! Values to bytes: JSON answers, and path parameters that never make the framework speak.

use axum::body::Body;
use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use kinora_contract::TaskId;
use serde::Serialize;

use crate::error::ApiError;

/// A JSON answer. Our own types always serialise; if one did not, the answer is a bare 500.
pub(crate) fn json_response(status: StatusCode, value: &impl Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(bytes) => json_bytes(status, bytes),
        Err(error) => {
            tracing::error!(%error, "an answer could not be written");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

/// An answer of JSON that is written already.
pub(crate) fn json_bytes(status: StatusCode, bytes: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(bytes));
    *response.status_mut() = status;
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

/// The `{id}` of a path. Whatever is no id is an unknown task, and no store is asked.
pub(crate) struct PathId(pub(crate) TaskId);

impl<S: Send + Sync> FromRequestParts<S> for PathId {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let params = RawPathParams::from_request_parts(parts, state)
            .await
            .map_err(|_| ApiError::video_not_found())?;
        let text = params
            .iter()
            .find(|(name, _)| *name == "id")
            .map(|(_, text)| text);
        text.and_then(|text| text.parse().ok())
            .map(Self)
            .ok_or_else(ApiError::video_not_found)
    }
}
