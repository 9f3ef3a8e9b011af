//! The task id in a path. A malformed id is refused here, in the envelope; axum's own refusal would
//! be plain text.

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use kinora_contract::TaskId;

use crate::error::ApiError;

/// The `{id}` of a path. A malformed id counts as an unknown task, without asking the store.
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
